#!/usr/bin/env python3
"""Sessions whose ranks are processes: losses, results, state, saves, a rank that is killed, Ctrl-C, and launchers.

    PAR_HOME=build python3 python/tests/test_session_ranks.py

Needs nothing but Python and a built Par.
"""
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

from test_session import ADAM, BATCH, DATA, MLP, SCORES, par, read_arrays, rows

STEPS = 4
PAIR = {"mesh": {"dp": 2, "tp": 2}, "shard": {"fc1.weight": {0: "tp"}, "fc2.weight": {1: "tp"}}}


def children_of(pid):
    """The processes that a process has started, and those that these have."""
    found = []
    for folder in pathlib.Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError):
                continue
            if parent == pid:
                found += [int(folder.name), *children_of(int(folder.name))]
    return found


class Ranks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="par-ranks-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.arrays = read_arrays(DATA)
        cls.bundle = par.compile(MLP, [ADAM, PAIR], out=cls.folder / "four.par")
        cls.one = par.compile(MLP, ADAM, out=cls.folder / "one.par")

    def batch(self, step):
        return {name: rows(view, step * BATCH, BATCH) for name, view in self.arrays.items()}

    def refused(self, call, *arguments, **named):
        with self.assertRaises(par.Error) as caught:
            call(*arguments, **named)
        return caught.exception

    def test_losses_and_saves_are_those_of_par_run(self):
        whole = par.run(self.bundle, data=DATA, order="sequential", steps=STEPS, quiet=True).losses
        with par.open(self.bundle) as job:
            self.assertEqual(job.ranks, 4)
            self.assertEqual([job.train(self.batch(step)).loss for step in range(2)], whole[:2])
            saved = job.save(self.folder / "saves")
            state = job.state()
            self.assertEqual([job.train(self.batch(step)).loss for step in range(2, STEPS)], whole[2:])
            job.resume(saved)
            self.assertEqual((job.step, job.train(self.batch(2)).loss), (2, whole[2]))
        self.assertEqual(par.run(self.bundle, data=DATA, order="sequential", steps=STEPS, resume=saved,
                                 quiet=True).losses, whole[2:])
        with par.open(self.one, resume=saved) as job:
            for name, value in job.state().items():
                self.assertEqual(memoryview(value).tobytes(), memoryview(state[name]).tobytes(), name)
        with par.open(self.one, isolated=True) as job:
            job.load(state)
            loss = job.eval(self.batch(2)).loss
        with par.open(self.bundle, init=True) as job:
            job.load(state)
            self.assertAlmostEqual(job.eval(self.batch(2)).loss, loss, places=5)

    def test_a_batch_that_is_told_is_read_beside_the_step_before(self):
        whole = par.run(self.bundle, data=DATA, order="sequential", steps=STEPS, quiet=True).losses
        batches = [{name: memoryview(bytearray(view.tobytes())).cast(view.format, view.shape)
                    for name, view in self.batch(step).items()} for step in range(STEPS)]
        with par.open(self.bundle) as job:
            losses = [job.train(batches[0], next=batches[1]).loss]
            batches[1]["x"].cast("B")[:] = bytes(batches[1]["x"].nbytes)  # too late: the ranks have it
            losses += [job.train(batches[1], next=batches[2]).loss, job.train(batches[2], next=batches[0]).loss,
                       job.train(batches[3]).loss]
            self.assertEqual(losses, whole)

    def test_results_are_whole(self):
        serve = par.compile(SCORES, PAIR, out=self.folder / "serve.par")
        single = par.compile(SCORES, out=self.folder / "single.par")
        with par.open(serve) as job, par.open(single) as other:
            for step in range(2):
                mine, theirs = (memoryview(each.predict(self.batch(step))["logits"]) for each in (job, other))
                self.assertEqual(mine.shape, theirs.shape)
                for a, b in zip(mine.cast("B").cast("f"), theirs.cast("B").cast("f")):
                    self.assertAlmostEqual(a, b, places=5)

    def test_faults_leave_the_ranks_alive(self):
        with par.open(self.bundle) as job:
            self.assertIn("no array for", self.refused(job.train, x=self.batch(0)["x"]).message)
            self.assertIn("no complete checkpoint", self.refused(job.resume, self.folder / "nothing").message)
            self.assertIn("Not a directory", self.refused(job.save, "/dev/null/saves").message)
            state = job.state()
            nan = memoryview(bytes([0, 0, 192, 127] * 512)).cast("f", [16, 32])
            error = self.refused(job.train, x=nan, labels=self.batch(0)["labels"])
            self.assertEqual((error.code, "holds NaN" in str(error)), (5, True))
            job.load(state)
            self.assertGreater(job.eval(self.batch(0)).loss, 0)

    def test_a_rank_that_is_killed(self):
        job = par.open(self.bundle)
        job.train(self.batch(0))
        ranks = [pid for pid in children_of(os.getpid()) if pid not in (os.getpid(),)]
        os.kill(max(ranks), signal.SIGKILL)
        error = self.refused(lambda: [job.train(self.batch(0)) for _ in range(3)])
        self.assertEqual(error.code, 4)
        self.assertRegex(str(error), r"rank \d .* ended by signal 9 in step 1")
        self.assertIn("the session has ended, and no call works after that: ",
                      self.refused(job.train, self.batch(0)).message)
        job.close()
        self.assertEqual(children_of(os.getpid()), [])

    def test_a_caller_that_takes_its_time(self):
        with par.open(self.bundle, timeout=1) as job:
            first = job.eval(self.batch(0)).loss
            open_files = len(os.listdir("/proc/self/fd"))
            time.sleep(4)  # ranks that wait for each other so long would be in a deadlock
            for _ in range(20):
                self.assertEqual(job.eval(self.batch(0)).loss, first)
            self.assertEqual(len(os.listdir("/proc/self/fd")), open_files)

    def test_all_ranks_that_are_ended(self):
        for number, story in ((signal.SIGKILL, "the process of the ranks was ended by Killed"),
                              (signal.SIGTERM, "a signal ended the ranks|SIGTERM")):
            job = par.open(self.one, isolated=True)
            job.train(self.batch(0))
            os.kill(children_of(os.getpid())[0], number)
            error = self.refused(lambda: [(job.train(self.batch(0)), time.sleep(0.2)) for _ in range(50)])
            self.assertRegex(str(error), story)
            job.close()

    def test_ranks_are_processes(self):
        error = self.refused(par.Job, str(self.bundle.path), ["--comm=inproc"])
        self.assertIn("a session takes no --comm inproc: its ranks are processes", error.message)

    def test_the_ranks_end_with_the_caller(self):
        script = f"""
            import sys, time
            sys.path[:0] = {[str(pathlib.Path(par.__file__).parents[1]), str(pathlib.Path(__file__).parent)]!r}
            import par
            job = par.open({str(self.bundle.path)!r})
            print("open", flush=True)
            time.sleep(60)
        """
        with subprocess.Popen([sys.executable, "-S", "-c", textwrap.dedent(script)], stdout=subprocess.PIPE,
                              text=True) as process:
            self.assertEqual(process.stdout.readline(), "open\n")
            ranks = children_of(process.pid)
            self.assertGreaterEqual(len(ranks), 5)
            process.kill()
            process.wait()
            for _ in range(200):
                if not any(alive(pid) for pid in ranks):
                    break
                time.sleep(0.05)
            self.assertEqual([pid for pid in ranks if alive(pid)], [])

    def test_ctrl_c_leaves_a_save(self):
        folder = self.folder / "interrupted"
        script = f"""
            import sys
            sys.path[:0] = {[str(pathlib.Path(par.__file__).parents[1]), str(pathlib.Path(__file__).parent)]!r}
            import par, test_session
            test_session.Session.arrays = test_session.read_arrays(test_session.DATA)
            batch = test_session.Session.batch(test_session.Session, 0)
            with par.open({str(self.bundle.path)!r}, save={str(folder)!r}) as job:
                job.train(batch)
                print("trains", flush=True)
                while True:
                    job.train(batch)
        """
        with subprocess.Popen([sys.executable, "-S", "-c", textwrap.dedent(script)], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
            self.assertEqual(process.stdout.readline(), "trains\n")
            os.killpg(process.pid, signal.SIGINT)
            said = process.communicate(timeout=60)[1]
        self.assertIn("KeyboardInterrupt", said)
        with par.open(self.bundle, resume=folder) as job:
            self.assertGreater(job.step, 0)

    def test_under_a_launcher(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        script = f"""
            import os, sys
            sys.path[:0] = {[str(pathlib.Path(par.__file__).parents[1]), str(pathlib.Path(__file__).parent)]!r}
            import par, test_session
            test_session.Session.arrays = test_session.read_arrays(test_session.DATA)
            batch = lambda step: test_session.Session.batch(test_session.Session, step)
            with par.open({str(self.bundle.path)!r}) as job:
                losses = [job.train(batch(step)).loss for step in range({STEPS})]
                state = job.state(["fc1.weight"])
                print(losses, hash(memoryview(state["fc1.weight"]).tobytes()), flush=True)
                try:
                    job.set(lr=0.1) if os.environ["RANK"] == "3" else job.train(batch(0))
                except par.Error as error:
                    print(error.message)
        """
        common = {**os.environ, "WORLD_SIZE": "4", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
                  "PYTHONHASHSEED": "0"}
        processes = [subprocess.Popen([sys.executable, "-S", "-c", textwrap.dedent(script)], stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, text=True,
                                      env={**common, "RANK": str(rank), "LOCAL_RANK": str(rank)}) for rank in range(4)]
        said = [process.communicate(timeout=120)[0].splitlines() for process in processes]
        whole = par.run(self.bundle, data=DATA, order="sequential", steps=STEPS, quiet=True).losses
        for lines in said:
            self.assertEqual(lines[0].rpartition(" ")[0], str(whole), said)
            self.assertEqual(lines[0], said[0][0])
        self.assertTrue(any("; all ranks of a job make the same calls in the same order" in line
                            for lines in said for line in lines), said)


def alive(pid):
    try:
        return "Z" != pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


if __name__ == "__main__":
    unittest.main()

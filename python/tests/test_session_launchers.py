#!/usr/bin/env python3
"""Sessions whose ranks a launcher starts: each of its processes opens the bundle, and is one rank.

    PAR_HOME=build python3 python/tests/test_session_launchers.py [--torch PYTHON]

mpirun where it is installed, and the variables of srun; or torchrun of a PYTHON that has torch. Losses and state are
those of ranks that the session starts itself; a rank that is killed raises par.Error at the others.
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

from test_session import ADAM, BATCH, DATA, MLP, par, read_arrays, rows
from test_session_ranks import PAIR

STEPS, RANKS = 3, 4
FOREIGN = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_", "TORCHELASTIC", "OMPI_", "PMI", "SLURM_", "PAR_TOKEN")
SCRIPT = """
    import os, pathlib, signal, sys, time
    sys.path[:0] = {path!r}
    import par, test_session
    from test_session_ranks import children_of
    test_session.Session.arrays = test_session.read_arrays(test_session.DATA)
    batch = lambda step: test_session.Session.batch(test_session.Session, step)
    with par.open({bundle!r}, timeout=20) as job:
        # half of the callers know the next batch: that is each one's own affair
        told = [batch(step) for step in range({steps})] + [None]
        losses = [job.train(told[step], next=told[step + 1] if os.getpid() % 2 else None).loss
                  for step in range({steps})]
        weight = memoryview(job.state(["fc1.weight"])["fc1.weight"]).tobytes()
        mine = pathlib.Path({out!r}) / str(os.getpid())
        mine.with_suffix(".part").write_text(repr((losses, sum(weight))))
        mine.with_suffix(".part").rename(mine)
        if {kills}:
            while len([one for one in pathlib.Path({out!r}).iterdir() if not one.suffix]) < {ranks}:
                time.sleep(0.01)
            if min(int(one.name) for one in pathlib.Path({out!r}).iterdir() if one.name.isdigit()) == os.getpid():
                for rank in children_of(os.getpid()):
                    os.kill(rank, signal.SIGKILL)
            try:
                while True:
                    job.train(batch(0))
            except par.Error as error:
                mine.with_suffix(".error").write_text(f"{{error.code}} {{error}}")
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Launchers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="par-launchers-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        arrays = read_arrays(DATA)
        cls.batches = [{name: rows(view, step * BATCH, BATCH) for name, view in arrays.items()}
                       for step in range(STEPS)]
        cls.bundle = par.compile(MLP, [ADAM, PAIR], out=cls.folder / "four.par")
        with par.open(cls.bundle) as job:
            losses = [job.train(batch).loss for batch in cls.batches]
            weight = memoryview(job.state(["fc1.weight"])["fc1.weight"]).tobytes()
        cls.expected = repr((losses, sum(weight)))
        cls.environment = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}

    def launch(self, command, out, *, kills=False, environment=None, each=({},)):
        """Runs the script under a launcher, or a process with each of the environments; what all of them said."""
        out.mkdir()
        script = out.with_suffix(".py")
        script.write_text(textwrap.dedent(SCRIPT.format(
            path=[str(pathlib.Path(par.__file__).parents[1]), str(pathlib.Path(__file__).parent)],
            bundle=str(self.bundle.path), steps=STEPS, out=str(out), kills=kills, ranks=RANKS)))
        processes = [subprocess.Popen([*command, str(script)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                      text=True, env={**self.environment, **(environment or {}), **more},
                                      start_new_session=True) for more in each]
        try:
            said = [process.communicate(timeout=120)[0] for process in processes]
        finally:
            for process in processes:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
        return [process.returncode for process in processes], "".join(said)

    def check(self, name, command, **options):
        codes, said = self.launch(command, self.folder / name, **options)
        self.assertEqual(set(codes), {0}, said)
        self.assertEqual([one.read_text() for one in (self.folder / name).iterdir()], [self.expected] * RANKS, said)
        began = time.monotonic()
        _, said = self.launch(command, self.folder / f"{name}-killed", kills=True, **options)
        self.assertLess(time.monotonic() - began, 90, said)
        errors = [one.read_text() for one in (self.folder / f"{name}-killed").glob("*.error")]
        self.assertGreaterEqual(len(errors), RANKS - 1, said)
        for error in errors:
            self.assertRegex(error, r"^4 [^\0]*(was ended by Killed|rank \d .* ended)")

    @unittest.skipIf("--torch" in sys.argv, "the test with torchrun only")
    @unittest.skipUnless(shutil.which("mpirun"), "mpirun is not installed")
    def test_mpirun(self):
        self.check("mpirun", ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n",
                              str(RANKS), sys.executable, "-S"])

    @unittest.skipUnless("--torch" in sys.argv, "no Python with torch is given")
    def test_torchrun(self):
        python = sys.argv[sys.argv.index("--torch") + 1]
        self.check("torchrun", [python, "-m", "torch.distributed.run", f"--nproc-per-node={RANKS}",
                                f"--master-port={free_port()}"])

    @unittest.skipIf("--torch" in sys.argv, "the test with torchrun only")
    def test_srun(self):
        each = [{"SLURM_PROCID": str(rank), "SLURM_NTASKS": str(RANKS), "SLURM_LOCALID": str(rank),
                 "SLURM_JOB_ID": "77", "SLURM_JOB_NODELIST": "localhost"} for rank in range(RANKS)]
        self.check("srun", [sys.executable, "-S"], each=each,
                   environment={"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

#!/usr/bin/env python3
"""Ranks that are killed under a session: every call then raises par.Error in time, and the interpreter goes on.

    PAR_HOME=build python3 python/tests/test_session_kills.py

Each communicator of processes, each rank and the process above them; while a session opens, in train, between calls and
while it saves. Needs nothing but Python and a built Par.
"""
import faulthandler
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import threading
import time
import unittest

from test_session import ADAM, BATCH, DATA, MLP, par, read_arrays, rows
from test_session_ranks import PAIR, children_of

PATIENCE = 60  # seconds from a kill to the error, on a machine that is busy
HANGS = 240


def ended(process):
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        pass


class Kills(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="par-kills-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        arrays = read_arrays(DATA)
        cls.batch = {name: rows(view, 0, BATCH) for name, view in arrays.items()}
        cls.bundle = par.compile(MLP, [ADAM, PAIR], out=cls.folder / "four.par")

    def setUp(self):
        faulthandler.dump_traceback_later(HANGS, exit=True)
        self.addCleanup(faulthandler.cancel_dump_traceback_later)

    def raises(self, call, *, within=PATIENCE):
        """The error that the call raises, if it is a dead rank's and comes in time."""
        began = time.monotonic()
        with self.assertRaises(par.Error) as caught:
            while True:
                call()
                self.assertLess(time.monotonic() - began, within, "no call has raised")
        self.assertLess(time.monotonic() - began, within)
        self.assertEqual(caught.exception.code, 4, caught.exception)
        return str(caught.exception)

    def leaves_nothing(self, job):
        """The next call says that the session has ended; its processes have; and another session trains."""
        self.assertIn("the session has ended, and no call works after that: ", self.raises(job.state))
        job.close()
        self.assertEqual(children_of(os.getpid()), [])
        with par.open(self.bundle) as other:
            self.assertGreater(other.train(self.batch).loss, 0)

    def test_each_process_between_calls(self):
        for comm in ("shm", "tcp"):
            for victim in range(5):  # the process above the ranks, and four ranks
                with self.subTest(comm=comm, victim=victim):
                    job = par.open(self.bundle, comm=comm)
                    job.train(self.batch)
                    ended(sorted(children_of(os.getpid()))[victim])
                    time.sleep(0.3)
                    story = self.raises(lambda: job.train(self.batch))
                    self.assertRegex(story, r"ended by (signal 9|Killed)")
                    if victim:
                        self.assertRegex(story, r"rank \d .* ended by signal 9")
                    self.leaves_nothing(job)

    def test_in_train(self):
        for comm in ("shm", "tcp"):
            for after in (0.0, 0.02, 0.1):
                with self.subTest(comm=comm, after=after):
                    job = par.open(self.bundle, comm=comm)
                    victim = sorted(children_of(os.getpid()))[2]
                    killer = threading.Timer(after, ended, [victim])
                    killer.start()
                    self.assertRegex(self.raises(lambda: job.train(self.batch)), r"rank \d .* ended by signal 9")
                    killer.join()
                    self.leaves_nothing(job)

    def test_while_it_saves(self):
        for number, after in enumerate((0.0, 0.002, 0.01)):
            with self.subTest(after=after):
                job = par.open(self.bundle, comm="shm")
                job.train(self.batch)
                folder = self.folder / f"saves{number}"
                whole = job.save(folder)
                victim = sorted(children_of(os.getpid()))[1 + number]
                killer = threading.Timer(after, ended, [victim])
                killer.start()
                self.raises(lambda: (job.train(self.batch), job.save(folder, keep=0)))
                killer.join()
                self.leaves_nothing(job)
                with par.open(self.bundle, resume=folder) as again:  # a whole save is there
                    self.assertGreaterEqual(again.step, int(pathlib.Path(whole).name))
                    self.assertGreater(again.train(self.batch).loss, 0)

    def test_while_it_opens(self):
        for count in (1, 3, 5):  # of processes that have started
            with self.subTest(count=count):
                done = threading.Event()

                def kill(count=count, done=done):
                    while not done.is_set():
                        started = sorted(children_of(os.getpid()))
                        if len(started) >= count:
                            return ended(started[-1])
                        time.sleep(0.001)

                killer = threading.Thread(target=kill)
                killer.start()
                try:
                    def opened():
                        with par.open(self.bundle) as job:
                            while True:
                                job.train(self.batch)
                    self.raises(opened)
                finally:
                    done.set()
                    killer.join()
                self.assertEqual(children_of(os.getpid()), [])


if __name__ == "__main__":
    sys.stdout.flush()
    unittest.main()

#!/usr/bin/env python3
"""Tables and event files of a fit and of a run, and its bar.

    PAR_HOME=build python3 python/tests/test_logs.py

Needs nothing but Python and a built Par; with the package tensorboard event files are read back.
"""
import contextlib
import csv
import importlib.util
import io
import os
import pathlib
import pty
import re
import shutil
import sys
import tempfile
import unittest
from unittest import mock

from test_session import ADAM, BATCH, DATA, MLP, par, read_arrays, rows

from par import bars

HAS_TENSORBOARD = importlib.util.find_spec("tensorboard") is not None


def events(folder):
    """{tag: [(step, value)]} of a folder of event files."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    found = EventAccumulator(os.fspath(folder))
    found.Reload()
    return {tag: [(one.step, one.value) for one in found.Scalars(tag)] for tag in found.Tags()["scalars"]}


class Logs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="par-logs-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        arrays = read_arrays(DATA)
        cls.batches = [{name: rows(view, i * BATCH, BATCH) for name, view in arrays.items()} for i in range(4)]
        cls.bundle = par.compile(MLP, ADAM, out=cls.folder / "one.par")

    def fit(self, *callbacks):
        with par.open(self.bundle) as job:
            return job.fit(self.batches, eval=self.batches[:2], eval_every=2, callbacks=callbacks, progress=False)

    def test_a_table_of_a_fit(self):
        fitted = self.fit(par.CsvFile(self.folder / "fit.csv"))
        with open(self.folder / "fit.csv", newline="") as file:
            table = list(csv.DictReader(file))
        self.assertEqual([row["step"] for row in table], ["1", "2", "2", "3", "4", "4"])
        self.assertEqual([float(row["loss"]) for row in table if row["loss"]], fitted.losses)
        self.assertEqual([float(row["eval_loss"]) for row in table if row["eval_loss"]],
                         [one["loss"] for one in fitted.evals])

    def test_a_table_of_a_run(self):
        run = par.run(self.bundle, data=DATA, steps=2, quiet=True, log=f"csv:{self.folder / 'run.csv'}")
        with open(self.folder / "run.csv", newline="") as file:
            table = list(csv.DictReader(file))
        self.assertEqual([float(row["loss"]) for row in table], run.losses)

    @unittest.skipIf(HAS_TENSORBOARD, "tensorboard is installed")
    def test_event_files_need_their_package(self):
        for make in (lambda: par.TensorBoard(self.folder / "board"),
                     lambda: par.run(self.bundle, data=DATA, steps=1, log=f"tensorboard:{self.folder / 'board'}")):
            with self.assertRaises(par.Error) as caught:
                make()
            self.assertEqual(caught.exception.code, 2)
            self.assertIn("event files of TensorBoard need the package tensorboard (No module named",
                          caught.exception.message)
            self.assertIn('pip install "par[tensorboard]"', caught.exception.notes[0])

    @unittest.skipUnless(HAS_TENSORBOARD, "needs tensorboard")
    def test_event_files(self):
        fitted = self.fit(par.TensorBoard(self.folder / "fit"))
        found = events(self.folder / "fit")
        self.assertEqual([step for step, _ in found["train/loss"]], [1, 2, 3, 4])
        for (_, value), loss in zip(found["train/loss"], fitted.losses):
            self.assertAlmostEqual(value, loss, places=5)
        self.assertEqual([step for step, _ in found["eval/loss"]], [2, 4])
        run = par.run(self.bundle, data=DATA, steps=3, eval_data=DATA, eval_every=3, quiet=True,
                      log=f"tensorboard:{self.folder / 'run'}")
        found = events(self.folder / "run")
        self.assertEqual([step for step, _ in found["train/loss"]], [1, 2, 3])
        self.assertAlmostEqual(found["eval/loss"][0][1], run.metrics[-1]["eval_loss"], places=5)

    def test_another_kind_is_refused(self):
        for log in ("wandb:x", "csv:", "x.csv"):
            with self.assertRaises(par.Error) as caught:
                par.run(self.bundle, data=DATA, steps=1, log=log)
            self.assertEqual((caught.exception.code, caught.exception.message),
                             (2, f'log is "{log}", expected "csv:FILE" or "tensorboard:FOLDER"'))

    def drawn(self, columns, term, steps=3):
        """The text that a bar of some steps writes to a terminal, or with no columns to a file."""
        if columns is None:
            err = io.StringIO()
        else:
            leader, follower = pty.openpty()
            self.addCleanup(os.close, leader)
            err = os.fdopen(follower, "w")
        with mock.patch.dict(os.environ, {"TERM": term}), mock.patch.object(sys, "stderr", err), \
                mock.patch("os.get_terminal_size", lambda descriptor: os.terminal_size((columns, 24))), \
                mock.patch("time.monotonic", iter(range(100)).__next__):
            bar = bars.Bar(steps)
            for step in range(1, steps + 1):
                bar.step(step, par.Scalars(loss=0.5, accuracy=0.25, lr=1.0))
            bar.end()
            if columns is None:
                return err.getvalue()
        err.close()
        text = b""
        with contextlib.suppress(OSError):  # the end
            while data := os.read(leader, 65536):
                text += data
        return text.decode()

    def test_a_bar_on_a_terminal(self):
        for columns in (100, 30):
            text = self.drawn(columns, "xterm")
            parts = [part.rstrip("\r\n") for part in text.split("\r\x1b[K")[1:]]
            self.assertTrue(all(len(part) < columns for part in parts[1:-1]), parts)
            self.assertIn("s the first step, with its data", parts[0])
            self.assertNotRegex(text, r"\x1b\[[0-9;]*m")
        wide = self.drawn(100, "xterm")
        self.assertIn("[#############.......] step 2  loss 0.5000  accuracy 0.2500  1.0 steps/s  1 s left", wide)

    def test_lines_elsewhere(self):
        for columns, term in ((None, "xterm"), (100, "dumb")):
            text = self.drawn(columns, term, steps=30)
            self.assertNotIn("\x1b", text)
            self.assertEqual(text.count("s the first step, with its data"), 1)
            steps = [int(step) for step in re.findall(r"step (\d+)  loss", text)]
            self.assertEqual(steps, [1, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30])


if __name__ == "__main__":
    unittest.main()

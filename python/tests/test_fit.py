#!/usr/bin/env python3
"""job.fit: loaders, evaluation, callbacks, early ends, and errors of what gives the batches.

    PAR_HOME=build python3 python/tests/test_fit.py

Needs nothing but Python and a built Par.
"""
import contextlib
import io
import pathlib
import shutil
import tempfile
import threading
import unittest

from test_session import ADAM, BATCH, DATA, MLP, par, read_arrays, rows


class Fitting(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="par-fit-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        arrays = read_arrays(DATA)
        cls.batches = [{name: rows(view, i * BATCH, BATCH) for name, view in arrays.items()} for i in range(5)]
        cls.bundle = par.compile(MLP, ADAM, out=cls.folder / "one.par")
        cls.losses = par.run(cls.bundle, data=DATA, order="sequential", steps=10, quiet=True).losses

    def fit(self, batches, **options):
        with par.open(self.bundle) as job:
            return job.fit(batches, progress=False, **options)

    def refused(self, call, *arguments, **named):
        with self.assertRaises(par.Error) as caught:
            call(*arguments, **named)
        return caught.exception

    def test_losses_are_those_of_a_loop(self):
        for prefetch in (0, 1, 4):
            fitted = self.fit(self.batches, prefetch=prefetch)
            self.assertEqual((fitted.losses, fitted.stopped), (self.losses[:5], "data"))

    def test_steps_and_passes(self):
        self.assertEqual(len(self.fit(self.batches, steps=7).losses), 7)
        self.assertEqual(len(self.fit(self.batches, epochs=2).losses), 10)
        fitted = self.fit(iter(self.batches), steps=9)
        self.assertEqual((fitted.losses, fitted.stopped), (self.losses[:5], "data"))
        fitted = self.fit((batch for batch in self.batches), steps=3)
        self.assertEqual((fitted.losses, fitted.stopped), (self.losses[:3], "steps"))
        pairs = [(batch["x"], batch["labels"]) for batch in self.batches]
        self.assertEqual(self.fit(pairs, inputs=("x", "labels")).losses, self.losses[:5])

    def test_passes_of_a_known_length_have_an_end(self):
        for options in ({"epochs": 2}, {"steps": 4}, {}):
            with par.open(self.bundle) as job, contextlib.redirect_stderr(io.StringIO()) as said:
                job.fit(self.batches, **options)
            self.assertIn(" s left", said.getvalue())
        with par.open(self.bundle) as job, contextlib.redirect_stderr(io.StringIO()) as said:
            job.fit(iter(self.batches), log_every=1)
        self.assertNotIn(" left", said.getvalue())

    def test_a_resumed_fit_goes_on_with_the_next_batch(self):
        class Passes:
            """Batches whose order is that of the pass."""

            def __init__(self, batches):
                self.batches, self.epoch, self.drawn = batches, None, []

            def __len__(self):
                return len(self.batches)

            def set_epoch(self, epoch):
                self.epoch = epoch

            def __iter__(self):
                for i in range(len(self.batches)):
                    self.drawn.append((self.epoch, i))
                    yield self.batches[(i + self.epoch) % len(self.batches)]

        whole = self.fit(Passes(self.batches), epochs=3)
        self.assertEqual((len(whole.losses), whole.stopped), (15, "epochs"))
        for done in (3, 5, 7):
            with par.open(self.bundle) as job:
                job.fit(Passes(self.batches), steps=done, progress=False)
                save = job.save(self.folder / f"after-{done}")
            with par.open(self.bundle, resume=save) as job:
                loader = Passes(self.batches)
                fitted = job.fit(loader, steps=12, resumed=True, progress=False, eval=self.batches[:1], eval_every=4)
                self.assertEqual((fitted.losses, fitted.stopped), (whole.losses[done:12], "steps"))
                self.assertEqual(loader.drawn[0], (done // 5, 0))
                self.assertEqual([one["step"] for one in fitted.evals], [step for step in (4, 8, 12) if step > done])
                self.assertEqual(job.fit(loader, steps=12, resumed=True, progress=False).losses, [])
                rest = job.fit(Passes(self.batches), epochs=3, resumed=True, progress=False)
                self.assertEqual((rest.losses, rest.stopped), (whole.losses[12:], "epochs"))
        with par.open(self.bundle, resume=save) as job:  # of a generator all that came before is drawn
            fitted = job.fit((self.batches[(i % 5 + i // 5) % 5] for i in range(15)), resumed=True, progress=False)
            self.assertEqual((fitted.losses, fitted.stopped), (whole.losses[7:], "data"))

    def test_batches_are_fetched_beside_compute(self):
        fetching = []

        def batches():
            for batch in self.batches:
                fetching.append(threading.current_thread().name)
                yield batch

        self.fit(batches())
        self.assertEqual(fetching, ["par-fetch"] * 5)
        self.assertNotIn("par-fetch", [thread.name for thread in threading.enumerate()])

    def test_batches_that_have_been_fetched_are_told_ahead(self):
        told, fetched = [], threading.Semaphore(0)

        def batches():
            for batch in self.batches:
                yield batch
                fetched.release()  # the thread has put it where the steps take it

        def wait(job, step, out):  # for the batch after the next one
            for _ in range({1: 3, 2: 1, 3: 1}.get(step, 0)):
                self.assertTrue(fetched.acquire(timeout=60))

        def watched(batch, next=None):
            told.append(next)
            return train(batch, next=next)

        for prefetch in (2, 0):
            told.clear()
            with par.open(self.bundle) as job:
                train, job.train = job.train, watched
                fitted = job.fit(batches() if prefetch else self.batches, prefetch=prefetch, progress=False,
                                 callbacks=[wait] if prefetch else [])
            self.assertEqual(fitted.losses, self.losses[:5])
            self.assertEqual(told[1:], [*self.batches[2:], None] if prefetch else [None] * 4)

    def test_evaluation_and_callbacks(self):
        seen = []

        class Watch(par.Callback):
            def on_step(self, job, step, scalars):
                seen.append(("step", step, scalars.loss))

            def on_eval(self, job, step, scalars):
                seen.append(("eval", step, scalars.loss))

        with par.open(self.bundle) as job:
            best = par.BestCheckpoint(self.folder / "best")
            fitted = job.fit(self.batches, steps=4, eval=self.batches[:2], eval_every=2, callbacks=[Watch(), best],
                             progress=False)
            lowest = min(fitted.evals, key=lambda one: one["loss"])
            self.assertEqual(best.path, str(self.folder / "best" / str(lowest["step"])))
            self.assertEqual([one[:2] for one in seen],
                             [("step", 1), ("step", 2), ("eval", 2), ("step", 3), ("step", 4), ("eval", 4)])
            mean = sum(job.eval(batch).loss for batch in self.batches[:2]) / 2
            self.assertEqual(fitted.evals[-1]["loss"], mean)
            job.resume(best.path)
            self.assertEqual(job.step, lowest["step"])

    def test_a_folder_of_another_run_is_refused_before_the_first_step(self):
        folder = self.folder / "others"
        with par.open(self.bundle) as job:
            job.train(self.batches[0])
            save = job.save(folder)
        blocked = self.folder / "blocked"
        blocked.write_text("a file")
        for wrong, message in ((folder, "holds saves, the newest of step 1, that this run does not go on from"),
                               (blocked / "best", "cannot write: ")):
            with par.open(self.bundle) as job:
                best = par.BestCheckpoint(wrong)
                error = self.refused(job.fit, self.batches, eval=self.batches[:1], callbacks=[best], progress=False)
                self.assertIn(message, error.message)
                self.assertEqual(job.step, 0)
        with par.open(self.bundle, resume=save) as job:  # its own folder
            best = par.BestCheckpoint(folder)
            job.fit(self.batches[:1], eval=self.batches[:1], callbacks=[best], progress=False)
            self.assertEqual(best.path, str(folder / "2"))
            job.fit(self.batches[:1], eval=self.batches[:1], callbacks=[best], progress=False)  # and again

    def test_early_ends(self):
        fitted = self.fit(self.batches, steps=9, callbacks=[lambda job, step, out: step == 2])
        self.assertEqual((fitted.losses, fitted.stopped), (self.losses[:2], "callback"))
        with par.open(self.bundle) as job:
            job.set(lr=0)
            fitted = job.fit(self.batches, epochs=9, eval=self.batches[:1], eval_every=1,
                             callbacks=[par.EarlyStopping(patience=2)], progress=False)
            self.assertEqual((len(fitted.losses), fitted.stopped), (3, "callback"))

    def test_what_gives_the_batches_fails(self):
        def broken():
            yield self.batches[0]
            raise OSError("the disk is gone")

        with self.assertRaisesRegex(OSError, "the disk is gone"):
            self.fit(broken())
        self.assertIn("a batch is a tuple of 2 arrays; say their names", self.refused(self.fit, [(1, 2)]).message)
        self.assertIn("a batch is int; give dicts", self.refused(self.fit, [3]).message)
        once = iter(self.batches[:1])
        self.assertIn("eval gave no batches", self.refused(self.fit, self.batches, eval=once, eval_every=1).message)
        self.assertIn('the evaluation gives no "accuracy"; it gives loss',
                      self.refused(self.fit, self.batches, eval=self.batches[:1], eval_every=1,
                                   callbacks=[par.EarlyStopping(metric="accuracy")]).message)


if __name__ == "__main__":
    unittest.main()

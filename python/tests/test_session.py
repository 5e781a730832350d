#!/usr/bin/env python3
"""par.open: training, evaluation, prediction, state and saves, a batch a call, and what each says when it refuses.

    PAR_HOME=build python3 python/tests/test_session.py

Needs nothing but Python and a built Par: arrays are buffers.
"""
import array
import ctypes
import os
import pathlib
import shutil
import sys
import tempfile
import threading
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "python"))
import par  # noqa: E402
from par import libraries  # noqa: E402
from stored import read_arrays  # noqa: E402

MLP = SOURCE / "test/Models/mlp/model.onnx"
SCORES = SOURCE / "examples/mlp.onnx"
DATA = SOURCE / "test/Models/mlp/data.safetensors"
ADAM = {"train": {"optimizer": {"kind": "adamw", "lr": 0.01}}}
BATCH, STEPS = 16, 8


def rows(view, first, count):
    """Some rows of an array, as a buffer of their own."""
    shape, width = view.shape, 1
    for size in shape[1:]:
        width *= size
    flat = view.cast("B").cast(view.format)
    part = memoryview(flat[first * width:(first + count) * width].tobytes())
    return part.cast(view.format, [count, *shape[1:]])


class Session(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="par-session-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.arrays = read_arrays(DATA)
        cls.bundle = par.compile(MLP, ADAM, out=cls.folder / "one.par")

    def batch(self, step):
        first = step * BATCH % self.arrays["x"].shape[0]
        return {name: rows(view, first, BATCH) for name, view in self.arrays.items()}

    def refused(self, call, *arguments, **named):
        with self.assertRaises(par.Error) as caught:
            call(*arguments, **named)
        return caught.exception

    def reference(self, **options):
        return par.run(self.bundle, data=DATA, order="sequential", quiet=True, **options)

    def trained(self, job, first, last):
        return [job.train(self.batch(step)).loss for step in range(first, last)]

    def test_losses_are_those_of_par_run(self):
        metrics = self.reference(steps=STEPS).metrics
        with par.open(self.bundle) as job:
            for step, line in enumerate(metrics):
                out = job.train(**self.batch(step))
                self.assertEqual((out.loss, out["lr"], out["grad_norm"]), (line["loss"], line["lr"], line["grad_norm"]))
            self.assertEqual(job.step, STEPS)

    def test_a_save_of_a_session_is_one_of_par_run(self):
        whole = self.reference(steps=STEPS).losses
        with par.open(self.bundle) as job:
            self.trained(job, 0, 3)
            saved = job.save(self.folder / "mine")
        self.assertEqual(saved, str(self.folder / "mine/3"))
        self.assertEqual(self.reference(steps=STEPS, resume=saved).losses, whole[3:])
        self.reference(steps=3, save=self.folder / "theirs")
        with par.open(self.bundle, resume=self.folder / "theirs") as job:
            self.assertEqual(job.step, 3)
            self.assertEqual(self.trained(job, 3, STEPS), whole[3:])
            job.resume(saved)
            self.assertEqual((job.step, self.trained(job, 3, STEPS)), (3, whole[3:]))

    def test_saves_beside_training(self):
        with par.open(self.bundle, save=self.folder / "beside", save_every=2, keep=9) as job:
            self.trained(job, 0, 5)
            job.save()
        names = {path.name for path in (self.folder / "beside").iterdir() if path.name.isdigit()}
        self.assertEqual(names, {"2", "4", "5"})

    def test_eval_and_rates(self):
        with par.open(self.bundle) as job:
            before = job.eval(self.batch(0)).loss
            self.assertEqual(job.eval(self.batch(0)).loss, before)
            self.assertEqual(job.train(self.batch(0)).loss, before)
            self.assertLess(job.eval(self.batch(0)).loss, before)
            job.set(lr=0.5)
            self.assertEqual((job.get("lr"), job.train(self.batch(0))["lr"]), (0.5, 0.5))

    def test_state_goes_out_and_in(self):
        with par.open(self.bundle) as job:
            self.trained(job, 0, 2)
            state = job.state()
            self.assertEqual(set(state), set(job.tensors))
            loss = job.eval(self.batch(0)).loss
            name = "fc1.weight"
            self.assertEqual(memoryview(state[name]).shape, job.tensors[name].shape)
            zeros = memoryview(bytes(64 * 32 * 4)).cast("f", [64, 32])
            job.load({name: zeros})
            self.assertEqual(memoryview(job.state([name])[name]).tobytes(), bytes(zeros.nbytes))
            self.assertNotEqual(job.eval(self.batch(0)).loss, loss)
            job.load(state)
            self.assertEqual(job.eval(self.batch(0)).loss, loss)
            job.export(self.folder / "weights.safetensors")
            job.load({name: zeros})
            job.load(self.folder / "weights.safetensors")
            self.assertEqual(job.eval(self.batch(0)).loss, loss)

    def test_predict_is_that_of_par_predict(self):
        serve = par.compile(SCORES, out=self.folder / "serve.par")
        data = self.folder / "first.safetensors"
        par.arrays.write(self.batch(0), data)
        expected = read_arrays(pathlib.Path(par.predict(serve, data=data, output=self.folder / "out.safetensors")))
        with par.open(serve) as job:
            found = job.predict(self.batch(0))
            self.assertEqual(list(found), ["logits"])
            self.assertEqual(memoryview(found["logits"]).shape, (BATCH, 10))
            self.assertEqual(memoryview(found["logits"]).tobytes(), expected["logits"].tobytes())
            self.assertIn('no entry "train"', self.refused(job.train, self.batch(0)).message)
            narrow = self.batch(0)["x"].cast("B")[:3 * 31 * 4].cast("f", [3, 31])
            self.assertIn('array "x" is f32[3, 31]; input "x" takes f32[32] a sample',
                          self.refused(job.predict, x=narrow).message)
            self.assertIn("different numbers of rows",
                          self.refused(job.predict, {**self.batch(0), "labels": array.array("q", [1] * 3)}).message)

    def test_a_kept_start_is_that_of_the_weights(self):
        """A state that the caller changed is not kept, and one that it changes later stays its own."""
        serve = par.compile(SCORES, out=self.folder / "kept.par")
        cache = self.folder / "cache"
        with par.open(serve, cache=cache) as job:
            name = next(name for name, tensor in job.tensors.items() if tensor.type == "f32")
            before = memoryview(job.state([name])[name])
            numbers = array.array("f", (one + 1 for one in array.array("f", before.tobytes())))
            other = {name: memoryview(numbers).cast("B").cast("f", list(before.shape))}
            job.load(other)
            changed = memoryview(job.predict(self.batch(0))["logits"]).tobytes()
            self.assertEqual(list(cache.glob("starts/*")), [])
        found = []
        for _ in range(3):
            with par.open(serve, cache=cache) as job:
                found.append(memoryview(job.predict(self.batch(0))["logits"]).tobytes())
                job.load(other)
                self.assertEqual(memoryview(job.predict(self.batch(0))["logits"]).tobytes(), changed)
        self.assertEqual(len(list(cache.glob("starts/*.start"))), 1)
        self.assertEqual(found[0], found[1])
        self.assertEqual(found[0], found[2])
        self.assertNotEqual(found[0], changed)

    def test_arrays_that_do_not_fit(self):
        with par.open(self.bundle) as job:
            good = self.batch(0)
            self.assertEqual(self.refused(job.train, x=good["x"]).message,
                             'no array for "labels" i64[16]'
                             "; feed every input, or bind it in the plan: inputs.NAME.value")
            self.assertIn('no input "y"; its inputs are "labels" i64[16], "x" f32[16, 32]',
                          self.refused(job.train, {**good, "y": good["x"]}).message)
            self.assertEqual(self.refused(job.train, {**good, "x": rows(good["x"], 0, 15)}).message,
                             "\"x\" has 15 rows; a call of this bundle takes 16, by the plan's batch")
            self.assertEqual(self.refused(job.train, {**good, "x": good["labels"]}).message,
                             'array "x" is i64[16]; input "x" takes f32')
            self.assertIn('array "x" is f32[16, 2, 16]; input "x" takes f32[32] a sample',
                          self.refused(job.train, {**good, "x": good["x"].cast("B").cast("f", [16, 2, 16])}).message)
            self.assertIn('array "labels" holds 77 in row 1',
                          self.refused(job.train, {**good, "labels": array.array("q", [0, 77] + [1] * 14)}).message)
            self.assertIn("x is str; give a numpy array", self.refused(job.train, {**good, "x": "text"}).message)
            self.assertEqual(job.step, 0)
            self.assertEqual(job.train(good).loss, self.reference(steps=1).losses[0])

    def test_calls_that_do_not_fit(self):
        error = self.refused(par.open, self.folder / "none.par")
        self.assertEqual((error.code, "none.par" in str(error)), (1, True))
        self.assertIn("a session takes no --data", self.refused(par.Job, str(self.bundle.path), ["--data=a"]).message)
        with par.open(self.bundle) as job:
            self.assertEqual(self.refused(job.save).message,
                             "no folder to save in: name one, or open the session with --save DIR")
            self.assertIn("no complete checkpoint", self.refused(job.resume, self.folder / "nothing").message)
            self.assertIn("this bundle has no such key", self.refused(job.set, rate=1).message)
            self.assertIn("the seed is given when a session opens: --set seed=1", self.refused(job.set, seed=1).message)
            self.assertIn("--set lr takes a number from 0", self.refused(job.set, lr=-1).message)
            self.assertEqual(self.refused(job.state, ["fc1.weigh"]).message,
                             'this bundle has no tensor "fc1.weigh" that is saved; did you mean "fc1.weight"?')
            self.assertIn("; the bundle's is f32[64, 32]",
                          self.refused(job.load, {"fc1.weight": self.arrays["x"]}).message)
            self.assertIn(".safetensors or .onnx", self.refused(job.export, self.folder / "a.bin").message)
            self.assertIn("no entry has run since the session was opened: ",
                          self.refused(job._result, "loss", False).message)
            job.train(self.batch(0))
            self.assertEqual(self.refused(job._result, "loss", False).message,
                             'entry "train" has no result "loss"; it has none')
            self.assertIn("this bundle trains", self.refused(job.predict, x=self.arrays["x"]).message)
        job.close()
        for call in (lambda: job.train(self.batch(0)), lambda: job.step, job.state, job.save):
            self.assertEqual(self.refused(call).message, "the job is closed; open the bundle again with par.open")

    def test_a_batch_that_is_told_ahead(self):
        whole = self.reference(steps=STEPS).losses
        batches = [self.batch(step) for step in range(STEPS)]
        with par.open(self.bundle) as job:
            losses = [job.train(batches[step], next=batches[(step + 1) % STEPS]).loss for step in range(3)]
            losses.append(job.train(**batches[3], next=batches[0]).loss)  # and then another one comes
            before = job.eval(batches[0]).loss
            losses.append(job.train(batches[4], next=batches[5]).loss)
            self.assertNotEqual(job.eval(batches[5]).loss, before)
            losses += [job.train(self.batch(5), next={"x": batches[6]["x"]}).loss]
            losses += [job.train(batches[6], next={**batches[7], "labels": array.array("q", [77] * 16)}).loss]
            losses += [job.train(batches[7], next=batches[0]).loss]
            self.assertEqual(losses, whole)

    def test_mistakes_in_a_batch_that_is_told_are_those_of_its_own_call(self):
        good = self.batch(0)
        with par.open(self.bundle) as job:
            for wrong, message in (
                    ({"x": good["x"]}, 'no array for "labels" i64[16]'),
                    ({**good, "y": good["x"]}, 'no input "y"'),
                    ({**good, "x": "text"}, "x is str; give a numpy array"),
                    ({**good, "labels": array.array("q", [77] * 16)}, 'array "labels" holds 77 in row 0')):
                job.train(good, next=wrong)
                self.assertIn(message, self.refused(job.train, wrong).message)
            self.assertIn("next is memoryview; give a dict", self.refused(job.train, good, next=good["x"]).message)
            self.assertEqual(job.step, 4)

    def test_calls_between_a_batch_that_was_told_and_its_own(self):
        good, narrow = self.batch(0), memoryview(array.array("f", [0.5] * 8)).cast("B").cast("f", [2, 4])
        with par.open(self.bundle) as job:
            job.train(self.batch(0), next=good)
            self.refused(job.eval, x=narrow, labels=array.array("q", [0, 0]))
            job.train(good)
            job.train(self.batch(1), next=good)
            self.assertIn('no array for "labels"', self.refused(job.train).message)  # it trains with nothing by chance
            job.train(good)
            self.assertEqual(job.step, 4)

    def test_a_failed_call_forgets_its_arrays(self):
        good = self.batch(0)
        with par.open(self.bundle) as job:
            self.refused(job.train, x=good["x"], labels=array.array("q", [77] * 16))
            self.assertIn('no array for "labels"', self.refused(job.train, x=good["x"]).message)
            self.refused(job.train, labels=good["labels"], x=good["labels"])
            self.assertIn('no array for "labels"', self.refused(job.train, x=good["x"]).message)

    def test_forgetting_what_was_fed(self):
        good, other = self.batch(0), self.batch(1)
        with par.open(self.bundle) as job, par.open(self.bundle) as untold:
            library, handle = libraries.runtime(), job._handle
            job.train(good, next=other)  # the runtime has the next call's arrays
            self.assertEqual(library.par_forget(handle), 0)
            self.assertFalse(library.par_error(handle))
            self.assertEqual(library.par_run(handle, b"train"), 2)
            self.assertIn('no array for "labels" i64[16], "x"', library.par_error(handle).contents.message.decode())
            self.assertEqual(job.step, 1)
            job._told = None
            untold.train(good)
            self.assertEqual(job.train(other), untold.train(other))
            self.assertEqual(library.par_forget(None), 2)

    def test_a_loss_that_is_not_finite(self):
        with par.open(self.bundle) as job:
            bad = memoryview(array.array("f", [float("nan")] * 512)).cast("B").cast("f", [16, 32])
            error = self.refused(job.train, x=bad, labels=self.batch(0)["labels"])
            self.assertEqual(error.code, 5)
            self.assertIn('row 0 of the data for "x" holds NaN', " ".join(error.notes))

    def test_calls_of_c_that_do_not_fit(self):
        with par.open(self.bundle) as job:
            library, handle = libraries.runtime(), job._handle
            shape = (ctypes.c_int64 * 1)(16)
            for call, message in [
                    (lambda: library.par_run(handle, None), "entry is missing: a null pointer or an empty list"),
                    (lambda: library.par_load(handle, None, 0), "paths is missing: a null pointer or an empty list"),
                    (lambda: library.par_feed(handle, b"labels", None, 4, shape, 1),
                     '"labels" is fed from address 0; give the address of its first element'),
                    (lambda: library.par_feed(handle, b"labels", 1, 99, shape, 1),
                     "99 is no element type of this interface"),
                    (lambda: library.par_read(handle, b"fc1.bias", 1, 3), '"fc1.bias" takes 256 bytes, not 3')]:
                self.assertEqual(call(), 2)
                self.assertEqual(library.par_error(handle).contents.message.decode(), message)
            self.assertEqual(library.par_run(None, b"train"), 2)
        wrong = library.par_open(None)
        self.assertEqual(library.par_run(wrong, b"train"), 2)
        self.assertIn("the session did not open: options is missing", library.par_error(wrong).contents.text.decode())
        self.assertEqual(library.par_close(wrong), 0)

    def test_a_fork_leaves_the_job_alone(self):
        with par.open(self.bundle) as job:
            self.trained(job, 0, 1)
            child = os.fork()
            if child == 0:
                try:
                    job.train(self.batch(1))
                except par.Error as error:
                    os._exit(7 if f"the session is of process {os.getppid()}" in error.message else 8)
                os._exit(9)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 7)
            self.trained(job, 1, 2)

    def test_threads_take_turns(self):
        with par.open(self.bundle) as job:
            said, losses = [], []

            def train():
                for _ in range(200):
                    try:
                        losses.append(job.train(self.batch(0)).loss)
                    except par.Error as error:
                        said.append(error.message)

            threads = [threading.Thread(target=train) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(job.step, len(losses))
            for message in said:
                self.assertIn("another thread is in a call of this job; one thread at a time may call", message)


if __name__ == "__main__":
    unittest.main()

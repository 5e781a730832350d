#!/usr/bin/env python3
"""compile, check, names, complete_plan, verify, run and predict, with what each says when it refuses.

    PAR_HOME=build python3 python/tests/test_verbs.py

Needs nothing but Python and a built Par.
"""
import array
import contextlib
import ctypes
import importlib
import io
import json
import os
import pathlib
import pickle
import pydoc
import shutil
import sys
import tempfile
import threading
import unittest
from unittest import mock

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "python"))
import par  # noqa: E402
from par import libraries  # noqa: E402
from par.findings import take  # noqa: E402
from par.plan import compile_options, to_yaml  # noqa: E402
from stored import read_arrays  # noqa: E402

MLP = SOURCE / "test/Models/mlp/model.onnx"
DATA = SOURCE / "test/Models/mlp/data.safetensors"
BATCH = ("batch.size is 30, and the model was exported for a batch of 16; par.export with dynamic leaves its size to "
         "the plan; if another dim is the batch, say which: batch.dim")
TRAIN = {"train": {"optimizer": {"kind": "sgd", "lr": 0.1}}}


class Verbs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="par-verbs-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.trained = par.compile(MLP, [TRAIN, {"mesh": {"dp": 2}}], out=cls.folder / "train.par")

    def refused(self, call, *arguments, **named):
        with self.assertRaises(par.Error) as caught:
            call(*arguments, **named)
        return caught.exception

    def test_help_lists_what_a_user_calls(self):
        text = pydoc.plain(pydoc.render_doc(par))
        contents = text[text.index("PACKAGE CONTENTS"):text.index("CLASSES")].split()[2:]
        self.assertEqual(contents, [])
        for module in pathlib.Path(par.__path__[0]).glob("*.py"):
            self.assertNotRegex(text[text.index("CLASSES"):], rf"\n +par\.{module.stem}\.")
        self.assertEqual([name for name in dir(par) if name[0] != "_"], sorted(set(par.__all__)))
        self.assertEqual([name for name in par.__all__ if getattr(par, name).__module__ != "par"], [])
        self.assertIs(pickle.loads(pickle.dumps(par.Job)), par.Job)
        importlib.import_module("par.experts")  # which nothing here has imported

    def test_compile_gives_a_bundle(self):
        self.assertEqual(self.trained.path, self.folder / "train.par")
        self.assertIn("plan    2 ranks: dp 2; 1 stage", self.trained.summary)
        self.assertIn("proved  1 program on 2 ranks", self.trained.summary)
        self.assertEqual(len(self.trained.manifest["ranks"]), 2)
        self.assertIn("dp: 2", self.trained.plan)
        self.assertEqual(par.Bundle(self.trained.path).manifest, self.trained.manifest)

    def test_facts_are_data_classes(self):
        examples = SOURCE / "examples"
        pipeline = par.compile(examples / "tiny-gpt.onnx", examples / "3d.yaml", out=self.folder / "facts.par")
        memory, plan = pipeline.memory, pipeline.plan
        self.assertEqual([role.role for role in memory.roles], ["s0", "s1"])
        self.assertIsNone(memory.limit)
        for role in memory.roles:
            program = json.loads((pipeline.path / f"role-{role.role[1:]}.json").read_text())
            self.assertEqual(role.peak, sum(program["arena"][space] for space in ("state", "pool")))
            self.assertEqual(role.peak, role.params + role.grads + role.states + role.saved + role.buffers)
        self.assertEqual((plan.ranks, plan.meshes, plan.schedule), (8, ({"pp": 2, "dp": 2, "tp": 2},), "1f1b"))
        self.assertEqual((str(plan), "dp: 2" in plan), ((pipeline.path / "plan.yaml").read_text(), True))
        self.assertEqual([stage.modules[0] for stage in pipeline.stages], ["wte", "h.2"])
        self.assertAlmostEqual(sum(stage.percent for stage in pipeline.stages), 100)
        forced = {each.rule.origin for each in pipeline.collectives if each.rule}
        self.assertIn("megatron.yaml:10", forced)
        weights = [match for match in pipeline.matches if "c_attn" in match.pattern]
        self.assertTrue(weights[0].origin and "transformer.h.0.attn.c_attn.weight" in weights[0].names["parameter"],
                        pipeline.matches)
        self.assertEqual({each.axis for each in pipeline.collectives}, {"dp", "dp+tp", "pp", "tp"})
        self.assertEqual(pipeline.report["proof"]["ranks"], 8)

    def test_a_bundle_by_its_path_has_no_report(self):
        opened = par.Bundle(self.trained.path)
        self.assertEqual(str(opened.plan), str(self.trained.plan))
        self.assertIsNone(opened.plan.ranks)
        with self.assertRaises(par.Error) as caught:
            opened.memory
        self.assertEqual((caught.exception.code, caught.exception.message),
                         (2, "was opened by its path; its report is the compiler's"))
        with self.assertRaisesRegex(ValueError, "the report has version 2, this package reads 1"):
            par.Bundle(self.trained.path, report='{"par_report": 2}').stages

    def test_files_then_dicts_then_set(self):
        plan = self.folder / "plan.yaml"
        plan.write_text("mesh: {dp: 2}\nbatch: {microbatches: 2}\n")
        text = par.complete_plan(MLP, [plan, TRAIN], set={"batch.microbatches": 4})
        self.assertRegex(text, r"microbatches: 4 +# --set")
        self.assertRegex(text, r"dp: 2 +# plan.yaml:1")
        self.assertRegex(text, r"kind: sgd +# --set")

    def test_check_writes_nothing(self):
        before = sorted(os.listdir(self.folder))
        self.assertIn("memory per rank", par.check(MLP, TRAIN))
        self.assertEqual(sorted(os.listdir(self.folder)), before)

    def test_fit_has_the_facts_of_the_search(self):
        before = sorted(os.listdir(self.folder))
        found = par.fit(MLP, gpus="4xh100-sxm", plan=TRAIN)
        self.assertEqual(found.plan.ranks, 4)
        self.assertIn("fits    yes", str(found))
        self.assertIn(f"{found.candidates} plans for 4 ranks", found.summary)
        self.assertEqual(found.alternatives[0].step_ns, found.step_ns)
        self.assertLessEqual(found.bound_ns, found.step_ns)
        self.assertEqual(found.memory.roles[0].ranks * len(found.memory.roles), 4)
        self.assertEqual(found.keys["train.optimizer.kind"], ("sgd", "--set"))
        self.assertEqual(found.reasons[0].key, "mesh")
        self.assertGreater(found.largest[0].bytes, 0)
        self.assertIsNone(found.tokens_per_second)
        self.assertIn(found.limited_by, found.summary)
        self.assertIn(f"mfu     {found.mfu_percent:.2f} %", found.summary)
        self.assertEqual(found.fewest.ranks, 1)
        self.assertEqual(sorted(os.listdir(self.folder)), before)
        error = self.refused(par.fit, MLP, gpus="many")
        self.assertEqual(error.message, '--gpus takes NUMBERxHARDWARE, as 8xh100-sxm, found "many"')

    def test_what_if_has_the_facts_of_both_plans(self):
        before = sorted(os.listdir(self.folder))
        plan = {**TRAIN, "mesh": {"dp": 2}}
        change = par.what_if(MLP, plan, change={"zero.level": 1})
        self.assertEqual(change.keys["zero.level"], (None, "1"))
        states = [side.memory.roles[0].states for side in (change.before, change.after)]
        gathers = [[each.axis for each in side.collectives if each.kind == "all_gather"]
                   for side in (change.before, change.after)]
        self.assertEqual(gathers, [[], ["dp"]])
        self.assertEqual(change.peak_bytes, change.after.memory.roles[0].peak - change.before.memory.roles[0].peak)
        self.assertEqual(states, [side["memory"]["roles"][0]["states"]
                                  for side in (change.report["before"], change.report["after"])])
        self.assertGreater(change.after.step_ns, 0)
        self.assertIn(f"{change.slower_percent:+.1f} %", str(change))
        self.assertEqual(sorted(os.listdir(self.folder)), before)
        error = self.refused(par.what_if, MLP, plan, change={})
        self.assertEqual(error.message, 'change is empty; give a key and its value, as {"zero.level": 1}')
        with compile_options(MLP, None, None) as options:
            nothing = libraries.compiler().par_what_if(ctypes.byref(options), None, 0)
        self.assertEqual(self.refused(take, libraries.compiler(), nothing).message, "no setting that changes")
        error = self.refused(par.what_if, MLP, plan, change={"zero.levl": 1})
        self.assertEqual((error.code, error.message), (1, 'unknown key "levl" in zero; did you mean "level"?'))

    def test_names(self):
        self.assertIn("fc1.weight", par.names(MLP, "params"))
        error = self.refused(par.names, MLP, "colours")
        self.assertEqual((error.code, error.file), (2, None))
        self.assertEqual(error.message, '--list takes params, modules, nodes or inputs, found "colours"')

    def test_plan_errors_have_places(self):
        plan = self.folder / "bad.yaml"
        plan.write_text("train: {}\nrecompute: ful\npipeline: {shedule: 1f1b}\n")
        error = self.refused(par.compile, MLP, plan, out=self.folder / "none.par")
        self.assertEqual((error.code, error.file, error.line, error.column), (1, str(plan), 2, 12))
        self.assertEqual(len(error.findings), 2)
        self.assertEqual(error.findings[1].message, 'unknown key "shedule" in pipeline; did you mean "schedule"?')
        self.assertEqual(error.findings[1].shown, "pipeline: {shedule: 1f1b}\n           ^\n")
        self.assertIn(f"{plan}:3:12: error: unknown key", str(error))
        self.assertFalse((self.folder / "none.par").exists())

    def test_setting_errors_name_the_setting(self):
        error = self.refused(par.compile, MLP, TRAIN, set=["batch=30"])
        self.assertEqual((error.file, error.line), ("--set batch=30", None))
        self.assertEqual(error.message, BATCH)

    def test_errors_of_a_dict_name_its_key(self):
        error = self.refused(par.compile, MLP, {**TRAIN, "batch": 30})
        self.assertEqual((error.file, error.message), ("plan: batch", BATCH))
        error = self.refused(par.compile, MLP, [{"train": {"optimizer": "adamv"}}])
        self.assertEqual(str(error).split(";")[0], 'plan: train: error: train.optimizer takes sgd, momentum, adamw, '
                         'lion, muon or a mapping, found "adamv"')
        error = self.refused(par.fit, MLP, gpus="2xcpu", plan={"recompute": "ful"})
        self.assertEqual(error.file, "plan: recompute")

    def test_notes(self):
        error = self.refused(par.compile, MLP, {"shard": {"fc9.weight": {0: "none"}}}, out=self.folder / "none.par")
        self.assertEqual(error.message, 'pattern "fc9.weight" matches no parameter, module or value')
        self.assertIn('nearest is "fc1.weight" (1 parameter)', error.notes[0])

    def test_memory_limit_is_code_3(self):
        error = self.refused(par.compile, MLP, TRAIN, set={"target": {"memory": "20KiB"}}, out=self.folder / "none.par")
        self.assertEqual(error.code, 3)
        self.assertRegex(error.message, r"^stage 0 needs \d+\.?\d* KiB a rank, the limit is 20.0 KiB")

    def test_bad_models(self):
        error = self.refused(par.compile, self.folder / "missing.onnx")
        self.assertEqual((error.code, error.file), (1, str(self.folder / "missing.onnx")))
        torn = self.folder / "torn.onnx"
        torn.write_bytes(MLP.read_bytes()[:1000])
        error = self.refused(par.compile, torn)
        self.assertEqual((error.code, error.file), (1, str(torn)))

    def test_plans_of_the_wrong_type(self):
        self.assertEqual(self.refused(par.compile, MLP, 3).message, "a plan is a path or a dict, found int")
        self.assertEqual(self.refused(par.compile, MLP, {"batch": {1, 2}}).message,
                         "a plan holds numbers, texts, lists and dicts, found set")
        self.assertEqual(self.refused(par.compile, MLP, [TRAIN, "plan.yaml"]).message,
                         "a plan file stands after a dict; dicts override files, so give them last")
        self.assertEqual(to_yaml({"h.*": [1, True, None, 0.5, 'a "b"']}), '{"h.*": [1, true, null, 0.5, "a \\"b\\""]}')

    def test_no_library(self):
        with mock.patch.dict(os.environ, PAR_HOME=str(self.folder)):
            error = self.refused(par.compile, MLP)
            self.assertEqual(error.code, 2)
            self.assertEqual(error.message, "libpar-compiler.so is not built or not found: there is no "
                             f"{self.folder}/lib/libpar-compiler.so")
            self.assertEqual(error.notes, ("set PAR_HOME to a build folder of Par or to where it is installed, or "
                                           "unset it",))
            self.assertIn("par-run is not built or not found", self.refused(par.run, self.trained).message)

    def test_the_c_abi_refuses_wrong_calls(self):
        library = libraries.compiler()

        def said(options):
            return self.refused(take, library, library.par_compile(options)).message
        size = ctypes.sizeof(libraries.CompileOptions)
        self.assertEqual(said(None), "options is NULL")
        self.assertEqual(said(ctypes.byref(libraries.CompileOptions(size=8))),
                         "options.size is smaller than that of any version of ParCompileOptions")
        self.assertEqual(said(ctypes.byref(libraries.CompileOptions(size=size))), "no model")
        self.assertEqual(said(ctypes.byref(libraries.CompileOptions(size=size, plan_count=1))),
                         "options counts plans, settings or plugins that it does not hold")
        self.assertEqual(said(ctypes.byref(libraries.CompileOptions(size=size, flags=64))),
                         "options.flags has a flag that this version does not know")

    def test_broken_library(self):
        (self.folder / "broken/lib").mkdir(parents=True)
        (self.folder / "broken/lib/libpar-compiler.so").write_text("no library")
        with mock.patch.dict(os.environ, PAR_HOME=str(self.folder / "broken")):
            self.assertRegex(self.refused(par.compile, MLP).message, "^cannot be loaded: ")

    def test_threads_compile_at_once(self):
        """Nothing is kept between calls: what one refuses is not in what the other says, and bundles are those of one
        thread."""
        results = {}

        def work(name, settings):
            try:
                results[name] = par.compile(MLP, TRAIN, set=settings, out=self.folder / f"{name}.par")
            except par.Error as error:
                results[name] = error
        threads = [threading.Thread(target=work, args=(name, settings)) for name, settings in
                   [("good", {"mesh.dp": 2}), ("bad", {"batch": 30}), ("pipeline", {"mesh.pp": 2})]]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([str(error) for error in results["bad"].findings],
                         ["--set batch=30: error: " + BATCH])
        self.assertIn("pp 2", results["pipeline"].summary)
        self.assertEqual((results["good"].path / "role-0.json").read_bytes(),
                         (self.trained.path / "role-0.json").read_bytes())

    def test_verify(self):
        counts = self.trained.verify()
        self.assertEqual((counts["programs"], counts["ranks"]), (1, 2))
        broken = par.compile(MLP, TRAIN, out=self.folder / "broken.par")
        program = broken.path / "role-0.json"
        program.write_text(program.read_text() + " ")
        error = self.refused(par.verify, broken)
        self.assertEqual((error.code, error.file), (1, str(broken.path)))
        error = self.refused(par.verify, self.folder)
        self.assertEqual((error.code, error.message), (1, "not a bundle: it has no manifest.json"))

    def test_run(self):
        done = self.trained.run(data=DATA, order="sequential", steps=3, comm="inproc", quiet=True,
                                export=self.folder / "weights.safetensors", metrics=self.folder / "kept.jsonl")
        kept = [json.loads(line) for line in (self.folder / "kept.jsonl").read_text().splitlines()]
        self.assertEqual(kept, done.metrics)
        self.assertEqual([line["step"] for line in done.metrics], [1, 2, 3])
        self.assertLess(done.losses[2], done.losses[0])
        self.assertIn("step    3/3", done.text)
        self.assertTrue((self.folder / "weights.safetensors").is_file())
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            again = par.run(self.trained, data=[DATA], order="sequential", steps=3, comm="inproc", set={"lr": 0})
        self.assertEqual(said.getvalue(), again.text)
        self.assertEqual(again.losses[0], done.losses[0])

    def test_a_run_that_resumes_has_its_own_metrics(self):
        metrics, say = self.folder / "resumed.jsonl", {"data": DATA, "order": "sequential", "comm": "inproc",
                                                       "quiet": True}
        say.update(save=self.folder / "saves", metrics=metrics)
        self.trained.run(steps=2, **say)
        done = self.trained.run(steps=4, resume="auto", **say)
        self.assertEqual([line["step"] for line in done.metrics], [3, 4])
        self.assertEqual([json.loads(line)["step"] for line in metrics.read_text().splitlines()], [1, 2, 3, 4])
        self.assertEqual(self.trained.run(dry_run=True, **say).metrics, [])

    def test_run_errors(self):
        error = self.refused(self.trained.run, data=self.folder / "none.safetensors", steps=1, comm="inproc")
        self.assertEqual((error.code, error.file), (1, str(self.folder / "none.safetensors")))
        error = self.refused(self.trained.run, data=DATA, text=MLP, steps=1)
        self.assertEqual((error.code, error.file, error.message), (2, None, "--data and --text exclude each other"))

    def test_run_feeds_by_flags(self):
        say = {"order": "sequential", "steps": 2, "comm": "inproc", "quiet": True}
        made_up = self.trained.run(synthetic=True, **say)
        self.assertIn("data made up: ", par.run(self.trained, synthetic=True, **{**say, "quiet": False}).text)
        self.assertLess(made_up.losses[1], made_up.losses[0])
        error = self.refused(self.trained.run, tokens="none.bin:u16", **say)
        self.assertEqual((error.code, error.file), (1, "none.bin"))
        error = self.refused(self.trained.run, data=DATA, normalize={"x": ((0.5, 0.25, 1), (2, 3, 4))}, **say)
        self.assertIn("pixels become floats, and 3 numbers are one for each of its channels", error.message)
        error = self.refused(self.trained.run, data=DATA, normalize={"x": (0.5, 2)}, **say)
        self.assertIn('input "x" takes pixels, which are u8', error.message)

    def test_run_takes_arrays(self):
        arrays = read_arrays(DATA)
        files = self.trained.run(data=DATA, order="sequential", steps=3, comm="inproc", quiet=True)
        done = self.trained.run(data=arrays, order="sequential", steps=3, comm="inproc", quiet=True)
        self.assertEqual(done.losses, files.losses)
        half = [{name: values[part] for name, values in arrays.items()} for part in (slice(80), slice(80, None))]
        self.assertEqual(self.trained.run(data=half, order="sequential", steps=3, comm="inproc", quiet=True).losses,
                         files.losses)
        weights = {"fc1.bias": array.array("f", [0.0] * 64)}
        error = self.refused(self.trained.run, data=arrays, weights=weights, steps=1, comm="inproc")
        self.assertEqual(error.code, 1)
        self.assertIn('holds no "', error.message)
        error = self.refused(self.trained.run, data={"x": [1.0, 2.0]}, steps=1)
        self.assertEqual((error.code, error.message),
                         (2, 'data["x"] is list; give a numpy array or a torch tensor of float, '
                                                          "int or bool numbers, or a .safetensors file"))
        error = self.refused(self.trained.run, data={"x": memoryview(b"text").cast("c")}, steps=1)
        self.assertIn('data["x"] is memoryview; give a numpy array', error.message)

    def test_predict(self):
        serving = par.compile(MLP, out=self.folder / "serve.par")
        out = serving.predict(data=DATA, output=self.folder / "out.safetensors", comm="inproc")
        self.assertGreater(os.path.getsize(out), 100)
        error = self.refused(self.trained.predict, data=DATA, output=self.folder / "out.safetensors", comm="inproc")
        self.assertEqual((error.code, error.message), (1, 'this bundle has no entry "predict"; it has eval, train'))
        self.assertEqual(error.notes, (
            'this bundle trains; of the same model par.compile(model, plan, set={"train": None}, out="serve.par") '
            'predicts, with '
            'weights="ckpt/100" or what run(export=...) wrote',))
        error = self.refused(serving.predict, [1.0])
        self.assertEqual((error.code, error.message),
                         (2, "predict takes arrays by the names of the model's inputs, and a file for "
                                                          "what it predicts"))
        self.assertEqual(error.notes, ('bundle.predict(data={"input": array}, output="scores.safetensors")',))
        self.assertEqual(self.refused(serving.predict, data=DATA).message,
                         'predict writes a file: output="scores.safetensors"')

    def test_calls_of_compile_that_fit_nothing(self):
        self.assertEqual(self.refused(par.compile, MLP, TRAIN, TRAIN).message,
                         "par.compile takes a model's file and a plan")
        self.assertEqual(self.refused(par.check, MLP, TRAIN, dynamic={}).message,
                         f'"dynamic" is for a module; "{MLP}" is exported already')
        with self.assertRaisesRegex(TypeError, "par.compile has no argument 'dynamics'"):
            par.compile(MLP, TRAIN, dynamics={})


if __name__ == "__main__":
    unittest.main()

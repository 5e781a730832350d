#!/usr/bin/env python3
"""par.export of what takes no memory, and of containers; par.compile of a module. With torch, onnx, onnxscript and a
built Par.

    PAR_HOME=build python3 python/tests/test_structure.py
"""
import dataclasses
import importlib.util
import io
import json
import pathlib
import struct
import sys
import tempfile
import time
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import par  # noqa: E402
from par import progress  # noqa: E402

HAS_TORCH = all(importlib.util.find_spec(name) for name in ("torch", "onnx", "onnxscript"))
HAS_TRANSFORMERS = HAS_TORCH and importlib.util.find_spec("transformers")
if HAS_TORCH:
    import onnx
    import onnx.reference
    import torch

    class Net(torch.nn.Module):
        """A tied head, a buffer that a checkpoint holds and one that only the constructor knows."""

        def __init__(self):
            super().__init__()
            self.table, self.head = torch.nn.Embedding(11, 6), torch.nn.Linear(6, 11, bias=False)
            self.head.weight = self.table.weight
            self.norm = torch.nn.BatchNorm1d(6)
            self.register_buffer("scale", torch.full((6,), 2.0))
            self.rates = Rates()

        def forward(self, tokens):
            x = self.rates(self.table(tokens) * self.scale + torch.tensor([0.5]))
            return self.head(self.norm(x.flatten(0, 1)).view(x.shape))

    class Rates(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("rates", torch.empty(6), persistent=False)
            self.reset_parameters()

        def reset_parameters(self):
            self.rates.copy_(torch.arange(6.0))

        def forward(self, x):
            return x + self.rates


@unittest.skipUnless(HAS_TORCH, "needs torch, onnx and onnxscript")
class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="par-structure-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def refused(self, call, *arguments, **named):
        with self.assertRaises(par.Error) as caught:
            call(*arguments, **named)
        return caught.exception

    def write(self, path, arrays):
        """A .safetensors file, as the library of the format writes it."""
        header, data = {"__metadata__": {"format": "pt"}}, b""
        for name, tensor in arrays.items():
            raw = tensor.detach().numpy().tobytes()
            header[name] = {"dtype": "F32", "shape": list(tensor.shape),
                            "data_offsets": [len(data), len(data) + len(raw)]}
            data += raw
        text = json.dumps(header).encode()
        path.write_bytes(struct.pack("<Q", len(text)) + text + data)


class Structure(Case):
    def export(self, module, **more):
        return par.export(module, {"tokens": torch.arange(8).view(2, 4)}, self.folder / "net.onnx", **more)

    def initializers(self):
        model = onnx.load(str(self.folder / "net.onnx"), load_external_data=False)
        return {tensor.name: tensor for tensor in model.graph.initializer}

    def test_from_the_meta_device(self):
        with torch.device("meta"):
            module = Net()
        self.export(module, weights=False, dynamic={"tokens": ["batch", "seq"]})
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["net.onnx"])
        found = self.initializers()
        absent = {name for name, tensor in found.items() if tensor.external_data}
        self.assertEqual(absent, {"head.weight", "norm.weight", "norm.bias", "scale"})
        self.assertEqual({entry.value for name in absent for entry in found[name].external_data
                          if entry.key == "location"},
                         {"net.onnx.absent"})
        for name, values in (("rates.rates", torch.arange(6.0)), ("norm.running_var", torch.ones(6)),
                             ("norm.running_mean", torch.zeros(6))):
            self.assertEqual(onnx.numpy_helper.to_array(found[name]).tolist(), values.tolist(), name)
        self.assertTrue(all(value.is_meta for value in (*module.parameters(), *module.buffers())),
                        "the module stays as it was")
        self.assertIs(module.head.weight, module.table.weight)

    def test_of_a_module_with_weights_and_of_empty_ones(self):
        """A module as accelerate's init_empty_weights leaves it: parameters without memory, buffers with their
        values."""
        module, empty = Net(), Net()
        for part in empty.modules():
            for name, parameter in part._parameters.items():
                if parameter is not None:
                    part._parameters[name] = torch.nn.Parameter(parameter.to("meta"))
        empty.head.weight = empty.table.weight
        texts = []
        for each in (module, empty):
            before = {name: value.clone() for name, value in each.state_dict().items()}
            self.export(each, weights=False)
            texts.append({name: tensor.SerializeToString() for name, tensor in self.initializers().items()})
            self.assertEqual({name for name, tensor in self.initializers().items() if tensor.external_data},
                             {"head.weight", "norm.weight", "norm.bias"})
            for name, value in each.state_dict().items():
                self.assertTrue(value.is_meta or torch.equal(value, before[name]), name)
        self.assertEqual(texts[0], texts[1])

    def test_a_stale_file_of_weights_is_not_read(self):
        self.export(Net())
        (self.folder / "net.onnx.data").write_bytes(b"old")
        self.export(Net(), weights=False)
        self.assertRegex(par.names(self.folder / "net.onnx", "params"), "head.weight")

    def test_what_is_lost(self):
        with torch.device("meta"):
            module = Net()
        error = self.refused(self.export, module)
        self.assertEqual(error.message, '"table.weight" lies on the meta device and has no values to write')
        self.assertEqual(error.notes[0][:40], "weights=False exports only the structure")
        module.rates.reset_parameters = None
        self.assertEqual(self.refused(self.export, module, weights=False).message,
                         'the values of buffer "rates.rates" are lost: it lies on the meta device, and no checkpoint '
                         'holds it '
                         "(persistent=False)")
        module.rates.rates = torch.zeros(6)
        module.offset = torch.zeros(6, device="meta")
        self.assertEqual(self.refused(self.export, module, weights=False).message,
                         'the tensor "offset" lies on the meta device, and it is no parameter or buffer: its values '
                         'are lost')
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_weights_in_shards_later(self):
        """As Hugging Face writes them, in a folder; the same losses as of the module with its weights."""
        torch.manual_seed(0)
        module, shards = Net(), self.folder / "shards"
        shards.mkdir()
        state = {name: value for name, value in module.state_dict().items()
                 if value.is_floating_point() and name != "head.weight"}
        files = {name: f"model-0000{1 + i % 2}-of-00002.safetensors" for i, name in enumerate(state)}
        for file in set(files.values()):
            self.write(shards / file, {name: value for name, value in state.items() if files[name] == file})
        (shards / "model.safetensors.index.json").write_text(
            json.dumps({"metadata": {"total_size": 1}, "weight_map": files}))
        plan = {"train": {"loss": "cross_entropy", "optimizer": "sgd"}, "mesh": {"dp": 2}, "batch": 2}
        data = {"tokens": torch.arange(8).view(2, 4), "labels": torch.arange(1, 9).view(2, 4)}
        losses = []
        for name, more, weights in (("full", {}, None), ("later", {"weights": False}, shards)):
            self.export(module, **more)
            bundle = par.compile(self.folder / "net.onnx", plan, out=self.folder / f"{name}.par")
            losses.append(bundle.run(data=data, steps=3, order="sequential", weights=weights, quiet=True).losses)
        self.assertEqual(losses[0], losses[1])
        self.assertEqual(self.refused(bundle.run, data=data, steps=1, quiet=True).message[:12], "no weights: ")

    @unittest.skipUnless(HAS_TRANSFORMERS, "needs transformers")
    def test_rotary_tables_of_transformers(self):
        from transformers import LlamaConfig, LlamaForCausalLM
        config = LlamaConfig(hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2,
                             vocab_size=64,
                             use_cache=False)
        real = LlamaForCausalLM(config)
        with torch.device("meta"):
            module = LlamaForCausalLM(config)
        ids = torch.zeros(2, 8, dtype=torch.long)
        par.export(module, {"input_ids": ids, "labels": ids}, self.folder / "net.onnx", weights=False)
        found = self.initializers()
        self.assertEqual(onnx.numpy_helper.to_array(found["model.rotary_emb.inv_freq"]).tolist(),
                         real.model.rotary_emb.inv_freq.tolist())
        self.assertEqual({name for name, tensor in found.items() if tensor.external_data},
                         {name for name, _ in real.named_parameters()})


class Compile(Case):
    PLAN = {"train": {"loss": "cross_entropy", "optimizer": "sgd"}, "mesh": {"dp": 2}, "batch": 4}
    DYNAMIC = {"tokens": ["batch", None]}
    DATA = {"tokens": torch.arange(16).view(4, 4) % 11, "labels": torch.arange(16).view(4, 4) % 7} if HAS_TORCH else {}

    def compile(self, module, plan=None, **more):
        return par.compile(module, {"tokens": torch.arange(8).view(2, 4)}, plan or self.PLAN, dynamic=self.DYNAMIC,
                           out=self.folder / "net.par", **more)

    def files(self):
        return {path.name: path.read_bytes() for path in self.folder.iterdir() if path.is_file()}

    def losses(self, bundle):
        return bundle.run(data=self.DATA, steps=2, order="sequential", quiet=True).losses

    def test_in_one_call(self):
        module = Net()
        bundle = self.compile(module)
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["net.par", "net.par.onnx"])
        par.export(module, {"tokens": torch.arange(8).view(2, 4)}, self.folder / "net.onnx", dynamic=self.DYNAMIC)
        apart = par.compile(self.folder / "net.onnx", self.PLAN, out=self.folder / "apart.par")
        self.assertEqual(self.losses(bundle), self.losses(apart))
        self.assertIn("proved",
                      par.check(module, {"tokens": torch.arange(8).view(2, 4)}, self.PLAN, dynamic=self.DYNAMIC))

    def test_what_fails_leaves_what_was_there(self):
        losses, before = self.losses(self.compile(Net())), self.files()
        error = self.refused(self.compile, Net(), {**self.PLAN, "train": {"loss": "cross_entropi"}})
        self.assertIn('did you mean "cross_entropy"?', error.message)
        self.assertEqual(self.files(), before)
        self.assertEqual(self.losses(par.Bundle(self.folder / "net.par")), losses)
        self.compile(Net())
        self.assertNotEqual(self.files(), before)

    def test_calls_that_fit_nothing(self):
        error = self.refused(par.compile, Net())
        self.assertEqual((error.message, error.code), ("par.compile of a module (Net) needs example inputs", 2))
        self.assertEqual(self.refused(par.compile, "m.onnx", {}, {}).message,
                         "par.compile takes a model's file and a plan")
        self.assertEqual(self.refused(par.compile, "m.onnx", {}, dynamic={}).message,
                         '"dynamic" is for a module; "m.onnx" is exported already')
        self.assertEqual(self.refused(par.compile, Net(), {}, out=self.folder / "none" / "net.par").message,
                         f'"{self.folder}/none/net.par" cannot be written: there is no folder "{self.folder}/none"')
        with self.assertRaisesRegex(TypeError, "par.compile has no argument 'dynamics'"):
            par.compile(Net(), {}, {}, dynamics={})


class Containers(Case):
    def test_lists_dicts_and_what_is_constant(self):
        @dataclasses.dataclass
        class Pair:
            left: torch.Tensor
            right: torch.Tensor

        class Net(torch.nn.Linear):
            def forward(self, batch, pair, *xs, twice=False, bias=None):
                total = super().forward(batch["x"]) + sum(xs) + pair.left - pair.right
                return {"scores": total * (2 if twice else 1), "parts": (total, xs[0]), "none": None}, total.mean()

        x = torch.randn(2, 4)
        inputs = {"batch": {"x": x, "n": 3}, "pair": Pair(x + 1, x + 2), "xs": (x, x.cos()), "twice": True,
                  "bias": None}
        module = Net(4, 4)
        path = par.export(module, inputs, self.folder / "net.onnx", dynamic={
            name: ["batch"] for name in ("batch.x", "pair.left", "pair.right", "xs.0", "xs.1")})
        model = onnx.load(path)
        self.assertEqual([value.name for value in model.graph.input],
                         ["batch.x", "pair.left", "pair.right", "xs.0", "xs.1"])
        self.assertEqual({value.type.tensor_type.shape.dim[0].dim_param for value in model.graph.input}, {"batch"})
        self.assertEqual([value.name for value in model.graph.output], ["output", "output.1", "output.2", "loss"])
        self.assertNotIn("forward", vars(module))
        feed = {"batch.x": x, "pair.left": x + 1, "pair.right": x + 2, "xs.0": x, "xs.1": x.cos()}
        found = onnx.reference.ReferenceEvaluator(path).run(None, {name: value.numpy() for name, value in feed.items()})
        with torch.no_grad():
            wanted, mean = module(inputs["batch"], inputs["pair"], *inputs["xs"], twice=True)
        for one, other in zip(found, (wanted["scores"], *wanted["parts"], mean)):
            torch.testing.assert_close(torch.tensor(one), other)

    def test_names_of_dynamic_beside_constants(self):
        class Net(torch.nn.Linear):
            def forward(self, x, flag=True, mask=None, scale=1.0):
                return super().forward(x) * scale if flag else x

        for constants in ({"flag": True}, {"mask": None}, {"scale": 2.0}, {}):
            path = par.export(Net(4, 4), {"x": torch.zeros(2, 4), **constants}, self.folder / "net.onnx",
                              dynamic={"x": ["rows"]})
            (value,) = onnx.load(path).graph.input
            self.assertEqual((value.name, value.type.tensor_type.shape.dim[0].dim_param), ("x", "rows"), constants)

    def test_results_that_nest(self):
        """Names are those of the tensors: the loss is not the second layer."""
        class Net(torch.nn.Linear):
            def forward(self, x):
                y = super().forward(x)
                return {"layers": (x * 1, y), "loss": y.mean()}

        model = onnx.load(par.export(Net(4, 4), {"x": torch.zeros(2, 4)}, self.folder / "net.onnx"))
        self.assertEqual([(value.name, len(value.type.tensor_type.shape.dim)) for value in model.graph.output],
                         [("layers.0", 2), ("layers.1", 2), ("loss", 0)])

    def test_results_that_are_no_values_of_their_own(self):
        class Net(torch.nn.Linear):
            def forward(self, x):
                y = super().forward(x)
                return y, x, y, self.weight

        model = onnx.load(par.export(Net(4, 4), {"x": torch.zeros(2, 4)}, self.folder / "net.onnx"))
        self.assertEqual([value.name for value in model.graph.input], ["x"])
        self.assertEqual([value.name for value in model.graph.output], ["output", "output.1", "output.2", "output.3"])
        self.assertEqual({tensor.name for tensor in model.graph.initializer}, {"weight", "bias"})

    def test_a_result_without_tensors(self):
        class Net(torch.nn.Linear):
            def forward(self, x):
                return {"cache": {1, 2}, "y": super().forward(x)} if self.bias is not None else None

        with self.assertWarnsRegex(UserWarning,
                                   r"the file does not hold what forward returns beside tensors: cache \(set\)"):
            model = onnx.load(par.export(Net(2, 2), {"x": torch.zeros(2, 2)}, self.folder / "net.onnx"))
        self.assertEqual([value.name for value in model.graph.output], ["y"])
        self.assertEqual(self.refused(par.export, Net(2, 2, bias=False), {"x": torch.zeros(2, 2)},
                                      self.folder / "net.onnx").message, "forward of Net returns no tensor")


class Progress(unittest.TestCase):
    def shown(self, seconds, terminal):
        text = io.StringIO()
        text.isatty = lambda: terminal
        with mock.patch.object(progress, "PATIENCE",
                               0.05), mock.patch.object(sys, "stderr", text), progress.line("par.export: waits"):
            time.sleep(seconds)
        return text.getvalue()

    def test_one_line_and_only_where_it_takes_long(self):
        self.assertEqual(self.shown(0, False), "")
        self.assertEqual(self.shown(0.3, False), "par.export: waits ...\n")
        self.assertEqual(self.shown(0, True), "")
        self.assertEqual(self.shown(0.3, True), "\r\x1b[Kpar.export: waits ... 0 s\r\x1b[K")
        with mock.patch.object(progress, "PATIENCE", 0.01), mock.patch.object(sys, "stderr", None), progress.line(""):
            time.sleep(0.1)


if __name__ == "__main__":
    unittest.main()

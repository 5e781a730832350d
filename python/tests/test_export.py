#!/usr/bin/env python3
"""Files, refusals and warnings of par.export; with torch, onnx and onnxscript (without PyTorch: test_inputs.py).

    python3 python/tests/test_export.py
"""
import importlib.util
import json
import pathlib
import sys
import tempfile
import unittest
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import par  # noqa: E402

HAS_TORCH = all(importlib.util.find_spec(name) for name in ("torch", "onnx", "onnxscript"))


@unittest.skipUnless(HAS_TORCH, "needs torch, onnx and onnxscript")
class Exporter(unittest.TestCase):
    def test_autocast_is_the_plans(self):
        import onnx
        import torch

        class Cast(torch.nn.Linear):
            def forward(self, input):
                with torch.autocast("cpu", dtype=torch.bfloat16):
                    return super().forward(input).relu().float()

        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            model = onnx.load(par.export(Cast(4, 3), {"input": torch.zeros(2, 4)}, f"{folder}/model.onnx"))
        self.assertIn("Relu", [node.op_type for node in model.graph.node])
        self.assertEqual([str(one.message) for one in said if "autocast" in str(one.message)], [
            "torch.autocast to bfloat16 in forward is not in the file: Par computes as precision says, e.g. precision: "
            "bf16"])

    def test_an_embedding_that_rescales_its_rows(self):
        import torch

        module = torch.nn.Sequential(torch.nn.Embedding(10, 4, max_norm=1.0), torch.nn.Linear(4, 3))
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "model.onnx"
            with self.assertRaises(par.Error) as refused:
                par.export(module, {"input": torch.zeros(2, 5, dtype=torch.long)}, path)
            self.assertFalse(path.exists())
        self.assertIn("an embedding with max_norm, which rescales rows of its weight", refused.exception.message)

    def test_a_parameter_named_as_a_value(self):
        import onnx
        import torch

        class Named(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.t, self.mean = torch.nn.Parameter(torch.ones(())), torch.nn.Parameter(torch.ones(2))

            def forward(self, x):
                return (x - x.mean(0)) @ x.t() * self.t.exp() + self.mean.sum()

        with tempfile.TemporaryDirectory() as folder:
            onnx.checker.check_model(onnx.load(par.export(Named(), {"x": torch.ones(3, 2)}, f"{folder}/model.onnx")))

    def test_what_is_no_tensor(self):
        import onnx
        import torch

        class Flagged(torch.nn.Linear):
            def forward(self, input, mask=None, twice=False, shift=None):
                return super().forward(input) * (2 if twice else 1) + shift

        with tempfile.TemporaryDirectory() as folder:
            inputs = {"input": torch.zeros(2, 4), "mask": None, "twice": True, "shift": torch.zeros(2, 3)}
            model = onnx.load(par.export(torch.compile(Flagged(4, 3)), inputs, f"{folder}/model.onnx",
                                         dynamic={"input": ["batch"], "shift": ["batch"]}))
        self.assertEqual([value.name for value in model.graph.input], ["input", "shift"])
        self.assertLess({"weight", "bias"}, {tensor.name for tensor in model.graph.initializer} | {""})
        self.assertEqual(self.refused(Flagged(4, 3), input={1, 2}).message,
                         'input "input" is a set, and the inputs of a file are tensors')

        class Called(torch.nn.Linear):
            def forward(self, input, weight):
                return super().forward(input) * weight

        self.assertEqual(self.refused(Called(4, 3), input=torch.zeros(2, 4), weight=torch.zeros(2, 3)).message,
                         'input "weight" is called as a parameter or buffer of Called, and a file holds one of a name')

    def refused(self, module, **inputs):
        with tempfile.TemporaryDirectory() as folder, self.assertRaises(par.Error) as caught:
            par.export(module, inputs, f"{folder}/model.onnx")
        return caught.exception

    def test_sizes_by_data(self):
        import torch

        class Chosen(torch.nn.Module):
            def forward(self, x, labels):
                return torch.nn.functional.cross_entropy(x[labels != 0], labels[labels != 0])

        class Aligned(torch.nn.Module):
            def forward(self, x, labels, sizes):
                return torch.nn.functional.ctc_loss(x.log_softmax(-1), labels, sizes, sizes)

        labels = torch.ones(3, 2, dtype=torch.long)
        for error in (self.refused(Chosen(), x=torch.zeros(3, 2, 4), labels=labels),
                      self.refused(Aligned(), x=torch.zeros(5, 3, 4), labels=labels, sizes=torch.full((3,), 2))):
            self.assertRegex("\n".join(error.notes),
                             r"test_export.py:\d+: this call\na size or a branch depends on data there")

    def test_no_warning_of_training_mode(self):
        import torch
        module = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Dropout(0.1)).eval()
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            par.export(module, {"input": torch.zeros(2, 4)}, f"{folder}/model.onnx", dynamic={"input": ["batch"]})
        self.assertEqual([str(one.message) for one in said if "training mode" in str(one.message)], [])
        self.assertFalse(module.training)

    def test_transformer_of_torch_with_masks(self):
        """It chooses a kernel by comparing its mask with a causal one, which no export can decide. Nor does anything
        warn of a symbol that two inputs share."""
        import numpy
        import onnx.reference
        import torch

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.net = torch.nn.Transformer(8, 2, 1, 1, 16, dropout=0.0, batch_first=True)

            def forward(self, x, y, hidden):
                mask = torch.nn.Transformer.generate_square_subsequent_mask(y.shape[1])
                return self.net(x, y, tgt_mask=mask, src_key_padding_mask=hidden, memory_key_padding_mask=hidden)

        module = Net()
        feed = {"x": torch.randn(2, 5, 8), "y": torch.randn(2, 3, 8),
                "hidden": torch.tensor([[False] * 4 + [True]] * 2)}
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            par.export(module, feed, f"{folder}/model.onnx", dynamic={name: ["batch"] for name in feed})
            run = onnx.reference.ReferenceEvaluator(f"{folder}/model.onnx")
            (found,) = run.run(None, {name: value.numpy() for name, value in feed.items()})
        numpy.testing.assert_allclose(found, module(**feed).detach().numpy(), atol=1e-5)
        self.assertEqual([str(one.message) for one in said if "axis name" in str(one.message)], [])

    def test_attention_over_five_dims(self):
        import numpy
        import onnx.reference
        import torch

        class Net(torch.nn.Module):
            def forward(self, x, mask):
                return torch.nn.functional.scaled_dot_product_attention(x, x.cos(), x.sin(), attn_mask=mask)

        feed = {"x": torch.randn(2, 3, 2, 4, 8), "mask": torch.randn(3, 1, 4, 4)}
        with tempfile.TemporaryDirectory() as folder:
            par.export(Net(), feed, f"{folder}/model.onnx")
            run = onnx.reference.ReferenceEvaluator(f"{folder}/model.onnx")
            (found,) = run.run(None, {name: value.numpy() for name, value in feed.items()})
        numpy.testing.assert_allclose(found, Net()(**feed).numpy(), atol=1e-5)

    def test_a_query_that_sees_no_key_gets_0(self):
        """The first two of sample 0 are padding on the left; the exporter's own form is the mean of all values
        there."""
        import numpy
        import onnx.reference
        import torch

        class Net(torch.nn.Module):
            def forward(self, x, real):
                mask = torch.ones(4, 4, dtype=torch.bool).tril() & (real[:, None, None, :] > 0)
                return torch.nn.functional.scaled_dot_product_attention(x, x.cos(), x.sin(), attn_mask=mask)

        feed = {"x": torch.randn(2, 3, 4, 8), "real": torch.tensor([[0, 0, 1, 1], [1, 1, 1, 1]])}
        with tempfile.TemporaryDirectory() as folder:
            par.export(Net(), feed, f"{folder}/model.onnx", dynamic={"x": ["batch"], "real": ["batch"]})
            run = onnx.reference.ReferenceEvaluator(f"{folder}/model.onnx")
            (found,) = run.run(None, {name: value.numpy() for name, value in feed.items()})
        self.assertEqual(numpy.abs(found[0, :, :2]).max(), 0)
        numpy.testing.assert_allclose(found, Net()(**feed).numpy(), atol=1e-5)

    def test_attention_drops(self):
        """torch.onnx.export's own attention drops nothing, whatever dropout_p says."""
        import onnx
        import torch

        class Net(torch.nn.Module):
            def forward(self, x, mask):
                attend = torch.nn.functional.scaled_dot_product_attention
                few = x[:, :1]
                return (attend(x, x, x, dropout_p=0.3) + attend(x, x, x, is_causal=True, dropout_p=0.3)
                        + attend(x, x, x, mask > 0, dropout_p=0.3)
                        + attend(x, few, few, mask, dropout_p=0.3, enable_gqa=True))

        with tempfile.TemporaryDirectory() as folder:
            par.export(Net(), {"x": torch.randn(2, 3, 4, 8), "mask": torch.ones(4, 4)}, f"{folder}/model.onnx")
            graph = onnx.load(f"{folder}/model.onnx").graph
        known = {node.output[0]: node.attribute[0] for node in graph.node if node.op_type == "Constant"}
        drops = [[onnx.numpy_helper.to_array(known[name].t) for name in node.input[1:]]
                 for node in graph.node if node.op_type == "Dropout"]
        self.assertEqual([(round(float(ratio), 6), bool(trains)) for ratio, trains in drops], [(0.3, True)] * 4)

    def test_names_the_line_that_does_not_export(self):
        import torch

        class Net(torch.nn.Module):
            def forward(self, x):
                return x[:int(x.sum())]

        with tempfile.TemporaryDirectory() as folder, self.assertRaises(par.Error) as caught:
            par.export(Net(), {"x": torch.ones(2, 3)}, f"{folder}/model.onnx")
        self.assertRegex(caught.exception.notes[-2], r"test_export\.py:\d+: this call$")

    def test_names_the_line_of_an_operator_without_onnx(self):
        import torch

        class Net(torch.nn.Module):
            def forward(self, x):
                return x.cumprod(1)

        with tempfile.TemporaryDirectory() as folder, self.assertRaises(par.Error) as caught:
            par.export(Net(), {"x": torch.ones(2, 3)}, f"{folder}/model.onnx")
        line = Net.forward.__code__.co_firstlineno + 1
        self.assertRegex("\n".join(caught.exception.notes),
                         rf"test_export\.py:{line}: this call\nthe exporter has no ONNX for that op")

    def test_says_which_name_is_taken(self):
        import torch

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.code = torch.nn.Parameter(torch.ones(3))

            def forward(self, x):
                return x * self.code

        with tempfile.TemporaryDirectory() as folder, self.assertRaises(par.Error) as caught:
            par.export(Net(), {"x": torch.ones(2, 3)}, f"{folder}/model.onnx")
        self.assertIn('PyTorch\'s graph has a "code" of its own: call that parameter, buffer or module otherwise',
                      caught.exception.notes)

    def test_leaves_the_module_as_it_was(self):
        import copy
        import torch

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.map, self.kept = torch.nn.Linear(4, 3), None

            def forward(self, x):
                self.kept = self.map(x)
                self.new = self.kept + 1
                return self.new.sum()

        module = Net().eval()
        self.exported(module, {"x": torch.zeros(2, 4)})
        self.assertEqual((module.kept, hasattr(module, "new"), module.training, module.map.training),
                         (None, False, False, False))
        copy.deepcopy(module)

    def test_names_tied_parameters(self):
        import torch

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.table, self.head = torch.nn.Embedding(5, 4), torch.nn.Linear(4, 5, bias=False)
                self.head.weight = self.table.weight

            def forward(self, x):  # the head is not called
                return torch.nn.functional.linear(self.table(x), self.table.weight).sum()

        model, _ = self.exported(Net(), {"x": torch.zeros(2, 3, dtype=torch.long)})
        self.assertEqual([i.name for i in model.graph.initializer], ["head.weight"])
        self.assertEqual({p.key: p.value for p in model.metadata_props},
                         {"par.tied": '{"table.weight": "head.weight"}'})

    def test_says_what_to_do_about_complex_numbers(self):
        import torch

        class Net(torch.nn.Module):
            def forward(self, x):
                turn = torch.polar(torch.ones(4, 4), torch.ones(4, 4))
                return torch.view_as_real((torch.view_as_complex(x) * turn).cumsum(1))

        with tempfile.TemporaryDirectory() as folder, self.assertRaises(par.Error) as caught:
            par.export(Net(), {"x": torch.ones(2, 4, 4, 2)}, f"{folder}/model.onnx")
        self.assertRegex(str(caught.exception),
                         r"torch\.onnx\.export failed: Failed to convert [^\n]* to an ONNX model\.(\n|$)")
        self.assertNotIn("This is step", str(caught.exception))
        self.assertIn("write cos and sin apart", caught.exception.notes[-1])

    def test_one_tensor_given_for_two_inputs(self):
        """torch.export reads the second one's name twice then: with labels=input_ids the loss was another, silently."""
        import onnx
        import torch

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.table = torch.nn.Embedding(8, 4)

            def forward(self, tokens, labels, weights):
                return torch.nn.functional.cross_entropy(self.table(tokens) @ self.table.weight.T * weights.sum(),
                                                         labels)

        tokens, weights = torch.arange(6), torch.ones(8)
        with tempfile.TemporaryDirectory() as folder:
            inputs = {"tokens": tokens, "labels": tokens, "weights": weights[2:5]}
            graph = onnx.load(par.export(Net(), inputs, f"{folder}/model.onnx")).graph
        read = {name for node in graph.node for name in node.input if node.op_type != "Shape"}
        self.assertEqual([value.name for value in graph.input], ["tokens", "labels", "weights"])
        self.assertLessEqual({"tokens", "labels", "weights"}, read)
        self.assertIs(inputs["tokens"], tokens)

    def test_smoothed_labels_are_classes(self):
        """As an index -1 is the last class: only from the loss op does par-run know to refuse it."""
        import onnx
        import torch

        class Net(torch.nn.Module):
            def forward(self, scores, labels):
                return torch.nn.functional.cross_entropy(scores, labels, label_smoothing=0.1)

        with tempfile.TemporaryDirectory() as folder:
            inputs = {"scores": torch.ones(4, 5), "labels": torch.arange(4)}
            graph = onnx.load(par.export(Net(), inputs, f"{folder}/model.onnx")).graph
        kinds = [node.op_type for node in graph.node]
        self.assertIn("SoftmaxCrossEntropyLoss", kinds)
        self.assertNotIn("GatherElements", kinds)

    def test_parts_in_eval_mode_stay_so(self):
        import onnx
        import torch
        module = torch.nn.Sequential(torch.nn.Conv1d(2, 3, 1), torch.nn.BatchNorm1d(3), torch.nn.Conv1d(3, 3, 1),
                                     torch.nn.BatchNorm1d(3)).train()
        module[1].eval()
        with tempfile.TemporaryDirectory() as folder:
            par.export(module, {"input": torch.randn(2, 2, 5)}, f"{folder}/model.onnx", dynamic={"input": ["batch"]})
            norms = [node for node in onnx.load(f"{folder}/model.onnx").graph.node
                     if node.op_type == "BatchNormalization"]
        self.assertEqual([[one.i for one in node.attribute if one.name == "training_mode"] or [0] for node in norms],
                         [[0], [1]])
        self.assertEqual([part.training for part in module], [True, False, True, True])

    def test_a_buffer_that_only_unread_values_use_may_be_left_out(self):
        import torch

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.first = torch.nn.Linear(4, 3)
                self.register_buffer("frequencies", torch.ones(3))

            def forward(self, input):
                _ = torch.cos(self.frequencies * 2)
                return self.first(input).sum()

        with tempfile.TemporaryDirectory() as folder:
            par.export(Net(), {"input": torch.zeros(2, 4)}, f"{folder}/model.onnx")

    def test_a_table_that_the_first_forward_makes(self):
        import onnx
        import torch

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.first = torch.nn.Linear(4, 3)
                self.register_buffer("table", torch.zeros(1), persistent=False)

            def forward(self, input):
                if len(self.table) != 3:
                    self.table = torch.ones(3)
                return (self.first(input) * self.table).sum()

        with tempfile.TemporaryDirectory() as folder:
            par.export(Net(), {"input": torch.zeros(2, 4)}, f"{folder}/model.onnx")
            table = next(one for one in onnx.load(f"{folder}/model.onnx").graph.initializer if one.name == "table")
        self.assertEqual(list(onnx.numpy_helper.to_array(table)), [1, 1, 1])

    def test_attention_with_a_trained_bias(self):
        import torch

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.mix, self.bias = torch.nn.Linear(16, 16), torch.nn.Parameter(torch.zeros(2, 4, 4))

            def forward(self, input):
                heads = self.mix(input).view(3, 4, 2, 8).transpose(1, 2)
                mixed = torch.nn.functional.scaled_dot_product_attention(heads, heads, heads, attn_mask=self.bias[None])
                return mixed.transpose(1, 2).reshape(3, 4, -1).contiguous().sum()

        with tempfile.TemporaryDirectory() as folder:
            par.export(Net(), {"input": torch.zeros(3, 4, 16)}, f"{folder}/model.onnx")

    def exported(self, module, inputs):
        """The file, and what was said that names Par."""
        import onnx
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            par.export(module, inputs, f"{folder}/model.onnx")
            return onnx.load(f"{folder}/model.onnx"), [str(one.message) for one in said if " Par" in str(one.message)]

    def test_batch_norm_without_momentum_is_noted_with_its_counter(self):
        import torch

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.norm = torch.nn.BatchNorm1d(4, momentum=None)

            def forward(self, input):
                return self.norm(input).square().sum()

        net = Net()
        model, _ = self.exported(net, {"input": torch.randn(3, 4)})
        marks = {entry.key: entry.value for entry in model.metadata_props}
        self.assertEqual(json.loads(marks["par.training"])["cumulative"], ["norm"])
        self.assertIn(("par.updates", "norm.num_batches_tracked"),
                      [(entry.key, entry.value) for entry in model.graph.output[-1].metadata_props])
        self.assertIsNone(net.norm.momentum)
        self.assertEqual(int(net.norm.num_batches_tracked), 0)

    def test_refuses_masked_embeddings_in_branches(self):
        import torch

        class Net(torch.nn.Module):
            def __init__(self, padding):
                super().__init__()
                self.table = torch.nn.Embedding(5, 3, padding_idx=padding)

            def forward(self, ids, x):
                return torch.cond(x.sum() > 0, lambda ids, x: self.table(ids) * x, lambda ids, x: self.table(ids) + x,
                                  (ids, x)).sum()

        inputs = {"ids": torch.tensor([1, 2]), "x": torch.randn(2, 3)}
        self.exported(Net(None), inputs)
        with self.assertRaisesRegex(par.Error,
                                    "an embedding with padding_idx or scale_grad_by_freq in a branch of torch.cond"):
            self.exported(Net(1), inputs)

    def test_complex_einsum_is_four_real_ones(self):
        import torch

        class Net(torch.nn.Module):
            def forward(self, a, b):
                product = torch.einsum("bi,io->bo", torch.view_as_complex(a), torch.view_as_complex(b))
                return torch.view_as_real(product).sum()

        model, _ = self.exported(Net(), {"a": torch.randn(2, 3, 2), "b": torch.randn(3, 4, 2)})
        self.assertEqual([node.op_type for node in model.graph.node].count("Einsum"), 4)

    def test_notes_how_the_module_trains(self):
        import torch

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.norm = torch.nn.Linear(4, 3).requires_grad_(False), torch.nn.BatchNorm1d(3)
                self.table = torch.nn.Embedding(5, 3, padding_idx=1, scale_grad_by_freq=True)
                self.unused = torch.nn.Embedding(5, 3, padding_idx=1).requires_grad_(False)
                self.register_buffer("mean", torch.zeros(3))

            def forward(self, input, ids):
                hidden = self.norm(self.first(input)) + self.table(ids) + self.table.weight[0]
                hidden = hidden + torch.nn.functional.embedding(ids, self.table.weight, padding_idx=-2)
                self.mean.mul_(0.9).add_(hidden.detach().mean(0))
                return (hidden - self.mean).sum()

        inputs = {"input": torch.zeros(2, 4), "ids": torch.zeros(2, dtype=torch.int64)}
        model, said = self.exported(Net(), inputs)
        self.assertEqual(said, [])
        self.assertIn(("par.updates", "mean"),
                      [(entry.key, entry.value) for entry in model.graph.output[-1].metadata_props])
        self.assertEqual([entry.key for entry in model.metadata_props], ["par.training"])
        self.assertEqual(json.loads(model.metadata_props[0].value), {
            "version": 1, "frozen": ["first.weight", "first.bias"],
            "embeddings": [{"node": "node_embedding", "padding_row": 1, "scale_by_frequency": True},
                           {"node": "node_embedding_1", "padding_row": 3}]})
        model, _ = self.exported(torch.nn.Linear(4, 3), {"input": torch.zeros(2, 4)})
        self.assertEqual(len(model.metadata_props), 0)

    def test_stops_gradients_and_names_own_functions(self):
        import torch

        class Twice(torch.autograd.Function):
            @staticmethod
            def forward(context, x):
                return 2 * x

            @staticmethod
            def backward(context, gradient):
                return gradient

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.map = torch.nn.Linear(4, 3)

            def forward(self, input):
                with torch.no_grad():
                    scale = self.map(input).exp()
                    place = scale.argmax(1)
                return (Twice.apply(self.map(input)) * scale).sum() + place.sum()

        before = torch.export.export, torch.autograd.Function.apply
        model, said = self.exported(Net(), {"input": torch.zeros(2, 4)})
        self.assertEqual((torch.export.export, torch.autograd.Function.apply), before)
        self.assertEqual(said,
                         ["the backward of Twice (torch.autograd.Function) is not in the file: Par differentiates what "
                                "its forward computes"])
        held = [node for node in model.graph.node if node.op_type == "Identity"]
        made = {name: node.op_type for node in model.graph.node for name in node.output}
        self.assertEqual([made[node.input[0]] for node in held], ["Exp"])

    def test_functions_that_the_exporter_writes_otherwise(self):
        import numpy
        import torch
        import torch.nn.functional as F
        from onnx.reference import ReferenceEvaluator

        x = torch.tensor([[-200.0, -89.0, -3.0, 0.0, 3.0, 200.0]] * 2)
        place, y = torch.tensor([[0, 0, 1, 1, 2, 5]] * 2), torch.tensor([[1.0, 0, 1, 0, 1, 0]] * 2)
        for function in (F.logsigmoid, lambda h: torch.logaddexp(h, h.flip(1)),
                         lambda h: torch.atan2(h * 0, -h.abs() - 1),
                         lambda h: F.binary_cross_entropy_with_logits(h, y, weight=y + 1, pos_weight=y + 2,
                                                                      reduction="sum"),
                         lambda h: F.binary_cross_entropy(torch.sigmoid(h), y), lambda h: h.std(1),
                         lambda h: torch.logaddexp2(h, h.flip(1)), lambda h: torch.logcumsumexp(h, 1),
                         lambda h: torch.logcumsumexp(h, 0), torch.angle, torch.sinc,
                         lambda h: (h * 0).norm(p=3, dim=1), F.relu6,
                         lambda h: F.hardtanh(h, -3, 2), lambda h: h.max(1).values,
                         lambda h: h.min(0, keepdim=True).values,
                         lambda h: h.scatter_reduce(1, place, h * 2, "mean", include_self=False),
                         lambda h: h.scatter_reduce(1, place, h * 2, "mean"),
                         lambda h: h.scatter_reduce(1, place, h * 2, "amax")):
            class Net(torch.nn.Module):
                def forward(self, input):
                    return function(input)

            model, _ = self.exported(Net(), {"input": x})
            (found,) = ReferenceEvaluator(model).run(None, {"input": x.numpy()})
            numpy.testing.assert_allclose(found, function(x).numpy(), rtol=1e-6)

    def test_names_hooks_on_gradients(self):
        import torch

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.second = torch.nn.Linear(4, 3), torch.nn.Linear(3, 3)

            def forward(self, input):
                x = self.second(self.first(input))
                if x.requires_grad:  # which the exporter's run does not
                    x.register_hook(lambda gradient: gradient / 2)
                return x.sum()

        module = Net()
        module.first.weight.register_hook(lambda gradient: gradient * 0)
        module.second.register_full_backward_hook(lambda *_: None)
        before, line = torch.Tensor.register_hook, Net.forward.__code__.co_firstlineno + 3
        _, said = self.exported(module, {"input": torch.zeros(2, 4)})
        self.assertEqual(said,
                         [f"hooks on gradients (first.weight, second, test_export.py:{line}) are not in the file: Par "
                          f"trains "
                                "with the gradients that autograd gives without them"])
        self.assertIs(torch.Tensor.register_hook, before)
        module.second(torch.zeros(2, 3, requires_grad=True)).sum().backward()  # its own hooks are as they were

    def test_experts_compute_densely_while_exported(self):
        import torch

        class Experts(torch.nn.Module):  # what the decorator of transformers makes
            has_gate, has_bias = True, True
            is_transposed, has_post_expert_norm, _is_expert_parallel = False, False, False

            def __init__(self, experts=3, width=4, inner=5):
                super().__init__()
                self.num_experts = experts
                self.gate_up_proj = torch.nn.Parameter(torch.randn(experts, 2 * inner, width))
                self.gate_up_proj_bias = torch.nn.Parameter(torch.randn(experts, 2 * inner))
                self.down_proj = torch.nn.Parameter(torch.randn(experts, width, inner))
                self.down_proj_bias = torch.nn.Parameter(torch.randn(experts, width))

            def _apply_gate(self, both):
                gate, up = both.chunk(2, dim=-1)
                return torch.tanh(gate) * up

            def forward(self, hidden_states, top_k_index, top_k_weights):
                rows = []
                for token, chosen, weights in zip(hidden_states, top_k_index.tolist(), top_k_weights):
                    row = torch.zeros_like(token)
                    for one, weight in zip(chosen, weights):
                        inner = self._apply_gate(self.gate_up_proj[one] @ token + self.gate_up_proj_bias[one])
                        row = row + weight * (self.down_proj[one] @ inner + self.down_proj_bias[one])
                    rows.append(row)
                return torch.stack(rows)

        experts, tokens = Experts(), torch.randn(6, 4)
        chosen, weights = torch.tensor([[0, 2], [1, 0], [2, 1], [0, 1], [1, 2], [2, 0]]), torch.rand(6, 2)
        wanted = experts(tokens, chosen, weights)
        from par import experts as forms
        with forms.exportable(torch, experts):
            self.assertTrue(torch.allclose(experts(tokens, chosen, weights), wanted, atol=1e-5))
            self.assertIn("forward", vars(experts))
        self.assertNotIn("forward", vars(experts))
        model, _ = self.exported(experts, {"hidden_states": tokens, "top_k_index": chosen, "top_k_weights": weights})
        self.assertEqual(sum(node.op_type == "Einsum" for node in model.graph.node), 2)


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""What par.export refuses before it exports; with torch, onnx and onnxscript installed also that it warns of nothing.

    python3 python/tests/test_export.py
"""
import importlib
import importlib.util
import pathlib
import sys
import tempfile
import types
import unittest
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import par  # noqa: E402

export = importlib.import_module("par.export")
HAS_TORCH = all(importlib.util.find_spec(name) for name in ("torch", "onnx", "onnxscript"))


def tensor(*shape):
    return types.SimpleNamespace(shape=shape, ndim=len(shape))


class Dynamic(unittest.TestCase):
    def refused(self, *arguments):
        with self.assertRaises(par.Error) as caught:
            export._dynamic_dims(*arguments)
        self.assertEqual(caught.exception.code, 2)
        return caught.exception

    def test_dims_by_list_and_by_dict(self):
        dims = export._dynamic_dims(["x", "y"], [tensor(2, 3, 4), tensor(2, 1)], {"x": ["batch", None], "y": {-2: "batch"}})
        self.assertEqual(dims, {"x": {0: "batch"}, "y": {0: "batch"}})
        self.assertIsNone(export._dynamic_dims(["x"], [tensor(1)], None))

    def test_an_example_of_one(self):
        error = self.refused(["x"], [tensor(1, 8)], {"x": ["batch", "seq"]})
        self.assertEqual(error.message, 'dim 0 of the example for "x" is 1, and dynamic calls it "batch": torch fixes sizes of 0 '
                         "and 1, so the file would hold no other")
        self.assertEqual(error.notes, ('give an example whose "batch" is 2 or more; any size then trains',))

    def test_names_and_dims_that_are_not_there(self):
        error = self.refused(["x"], [tensor(2)], {"y": ["batch"]})
        self.assertEqual(error.message, 'dynamic names "y", which is no input')
        self.assertEqual(self.refused(["x"], [tensor(2)], {"x": [None, "seq"]}).message,
                         'dynamic names dim 1 of "x", which has 1')


@unittest.skipUnless(HAS_TORCH, "needs torch, onnx and onnxscript")
class Exporter(unittest.TestCase):
    def test_no_warning_of_training_mode(self):
        import torch
        module = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Dropout(0.1)).eval()
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            par.export(module, {"input": torch.zeros(2, 4)}, f"{folder}/model.onnx", dynamic={"input": ["batch"]})
        self.assertEqual([str(one.message) for one in said if "training mode" in str(one.message)], [])
        self.assertFalse(module.training)

    def test_parts_in_eval_mode_stay_so(self):
        import onnx
        import torch
        module = torch.nn.Sequential(torch.nn.Conv1d(2, 3, 1), torch.nn.BatchNorm1d(3), torch.nn.Conv1d(3, 3, 1),
                                     torch.nn.BatchNorm1d(3)).train()
        module[1].eval()
        with tempfile.TemporaryDirectory() as folder:
            par.export(module, {"input": torch.randn(2, 2, 5)}, f"{folder}/model.onnx", dynamic={"input": ["batch"]})
            norms = [node for node in onnx.load(f"{folder}/model.onnx").graph.node if node.op_type == "BatchNormalization"]
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

    def test_warns_of_what_the_file_does_not_hold(self):
        import torch

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.norm = torch.nn.Linear(4, 3).requires_grad_(False), torch.nn.BatchNorm1d(3)
                self.table = torch.nn.Embedding(5, 3, padding_idx=1, scale_grad_by_freq=True)
                self.register_buffer("mean", torch.zeros(3))

            def forward(self, input, ids):
                hidden = self.norm(self.first(input)) + self.table(ids)
                self.mean.mul_(0.9).add_(hidden.detach().mean(0))
                return (hidden - self.mean).sum()

        inputs = {"input": torch.zeros(2, 4), "ids": torch.zeros(2, dtype=torch.int64)}
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            par.export(Net(), inputs, f"{folder}/model.onnx")
        self.assertEqual([str(one.message) for one in said if "in Par" in str(one.message)], [
            "parameters that need no gradient in PyTorch (first.weight, first.bias) train in Par unless the plan says "
            "train: {freeze: [first.weight, first.bias]}",
            "buffers that forward changes in PyTorch (mean) keep their values in Par",
            "row 1 of table.weight (padding_idx) trains in Par, and not in PyTorch",
            "gradients of table.weight are not scaled by frequency in Par (scale_grad_by_freq)"])


if __name__ == "__main__":
    unittest.main()

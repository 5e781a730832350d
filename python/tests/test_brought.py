#!/usr/bin/env python3
"""Rewrites of par.export that make a module exportable (docs/pytorch.md), and that it leaves PyTorch as it was;
train_exports.py trains them beside PyTorch. With torch, onnx and onnxscript.

    python3 python/tests/test_brought.py
"""

import importlib.util
import pathlib
import sys
import tempfile
import types
import unittest
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import par  # noqa: E402

HAS_TORCH = all(importlib.util.find_spec(name) for name in ("torch", "onnx", "onnxscript"))


def patched():
    """The functions that par.export replaces while it exports."""
    import torch
    import transformers.masking_utils
    from torch.onnx._internal.exporter._registration import ONNXRegistry

    names = ("data", "__bool__", "item", "equal", "__getitem__", "__setitem__", "nonzero", "masked_select")
    return [
        *(getattr(torch.Tensor, name) for name in names),
        *(name in vars(torch.Tensor) for name in names),
        torch.equal,
        torch.where,
        torch._check_tensor_all,
        torch.distributions.Distribution._validate_args,
        transformers.masking_utils.is_tracing,
        transformers.masking_utils.is_torchdynamo_exporting,
        vars(ONNXRegistry)["from_torchlib"],
        torch.export.export,
        torch.Tensor.register_hook,
    ]


@unittest.skipUnless(HAS_TORCH, "needs torch, onnx and onnxscript")
class Brought(unittest.TestCase):
    def setUp(self):
        self.before = patched()

    def tearDown(self):
        self.assertEqual(patched(), self.before)

    def exported(self, module, inputs, **options):
        """The file, and what was said that names Par or the file."""
        import onnx

        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            par.export(module, inputs, f"{folder}/model.onnx", **options)
            return onnx.load(f"{folder}/model.onnx"), [
                str(one.message) for one in said if "the file" in str(one.message)
            ]

    def refused(self, module, **inputs):
        with tempfile.TemporaryDirectory() as folder, self.assertRaises(par.Error) as caught:
            par.export(module, inputs, f"{folder}/model.onnx")
        return caught.exception

    def holds(self, function, *inputs, within=1e-6, **options):
        """The file computes what the function of tensors does; returns what was said."""
        import numpy
        import torch
        from onnx.reference import ReferenceEvaluator

        names = [f"x{number}" for number in range(len(inputs))]

        class Net(torch.nn.Module):
            def forward(self, x0, x1=None, x2=None):
                return function(*(x for x in (x0, x1, x2) if x is not None))

        model, said = self.exported(Net(), dict(zip(names, inputs)), **options)
        (found,) = ReferenceEvaluator(model).run(
            None, {name: value.numpy() for name, value in zip(names, inputs)}
        )
        numpy.testing.assert_allclose(found, function(*inputs).detach().numpy(), rtol=within, atol=within)
        return said

    def test_settings_of_generation_are_off_while_it_exports(self):
        import torch

        class Cached(torch.nn.Linear):
            def __init__(self):
                super().__init__(4, 3)
                self.config = types.SimpleNamespace(use_cache=True, output_attentions=True)

            def forward(self, input):
                results = {"loss": super().forward(input).sum()}
                if self.config.output_attentions:
                    results["attentions"] = (input, input)
                if self.config.use_cache:
                    results["past"] = input.exp()
                return results

        class Holder(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.net = Cached()

            def forward(self, input):
                results = self.net(input)
                return results["loss"] + sum(each.mean() for each in results["attentions"])

        for module in (Cached(), Holder()):
            model, _ = self.exported(module, {"input": torch.ones(2, 4)})
            self.assertEqual([value.name for value in model.graph.output], ["loss"])
            config = getattr(module, "net", module).config
            self.assertEqual((config.use_cache, config.output_attentions), (True, True))

        class Failing(Cached):
            def forward(self, input):
                return super().forward(input)["past"]

        module = Failing()
        self.refused(module, input=torch.ones(2, 4))
        self.assertTrue(module.config.use_cache)

    def test_what_is_no_tensor_leaves_the_names_of_dims(self):
        import torch

        class Net(torch.nn.Module):
            def forward(self, flag, x, mask=None, scale=1, y=None):
                return x * scale + y if flag else x

        inputs = {"flag": True, "x": torch.ones(2, 3), "mask": None, "scale": 2.0, "y": torch.ones(2, 3)}
        module = Net()
        model, _ = self.exported(module, inputs, dynamic={"x": ["batch", "seq"], "y": ["batch", "seq"]})
        values = (*model.graph.input, *model.graph.output)
        dims = [[dim.dim_param for dim in value.type.tensor_type.shape.dim] for value in values]
        self.assertEqual(dims, [["batch", "seq"]] * 3)
        self.assertNotIn("forward", vars(module))

    def test_forward_that_differentiates(self):
        import torch

        class Force(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.net = torch.nn.Linear(3, 1)

            def forward(self, x):
                x = x.detach().requires_grad_(True)
                (force,) = torch.autograd.grad(torch.tanh(self.net(x)).sum(), x, create_graph=True)
                return force.square().mean()

        error = self.refused(Force(), x=torch.ones(2, 3))
        self.assertIn(
            "torch traces no torch.autograd.grad in forward, nor a tensor that forward gets past it: compute it by "
            "operators",
            error.notes,
        )

    def test_forward_that_differentiates_by_a_parameter(self):
        import torch

        class Penalty(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.net = torch.nn.Linear(3, 1)

            def forward(self, x):
                loss = torch.tanh(self.net(x)).sum()
                (slope,) = torch.autograd.grad(loss, self.net.weight, create_graph=True)
                return loss + slope.square().sum()

        error = self.refused(Penalty(), x=torch.ones(2, 3))
        self.assertIn(
            "torch traces no torch.autograd.grad in forward, nor a tensor that forward gets past it: compute it by "
            "operators",
            error.notes,
        )

    def test_scan(self):
        import torch
        from torch._higher_order_ops import scan

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.map = torch.nn.Linear(3, 3)

            def forward(self, x):
                rows = self.map(x).unsqueeze(0).expand(4, -1, -1)
                last, every = scan(
                    lambda c, v: (torch.tanh(c * 0.5 + v), (c * v).clone()), torch.zeros(2, 3), rows, dim=0
                )
                return (last + every.mean(0)).sum()

        model, _ = self.exported(Net(), {"x": torch.ones(2, 3)})
        torch.distributions.Distribution.set_default_validate_args(True)  # a first scan switches that off
        self.assertIn("Scan", [node.op_type for node in model.graph.node])

    def test_hooks_that_forward_adds_go(self):
        import torch

        class Net(torch.nn.Linear):
            def forward(self, input):
                if not hasattr(self, "hooked"):
                    self.hooked = self.register_forward_hook(lambda *_: None)
                return super().forward(input)

        module = Net(2, 2)
        kept = module.register_forward_pre_hook(lambda *_: None)
        self.exported(module, {"input": torch.ones(3, 2)})
        self.assertEqual((len(module._forward_hooks), hasattr(module, "hooked")), (0, False))
        self.assertEqual(list(module._forward_pre_hooks), [kept.id])

    def test_forward_that_fails(self):
        import torch

        class Net(torch.nn.Module):
            def forward(self, x):
                return x @ x

        error = self.refused(Net(), x=torch.ones(2, 3))
        self.assertRegex(
            error.message, r"forward of Net fails on the example: RuntimeError: .*mat1 and mat2 shapes"
        )
        self.assertRegex(error.notes[0], r"test_brought.py:\d+: this call")

    def test_a_branch_on_a_value_is_the_examples(self):
        import torch

        def forward(x):
            for power in range(2):
                if not torch.isfinite(x).all():
                    x = x.clamp(-1, 1)
                if (x > power).any() and x.sum() < 9:
                    x = x + 1
            if torch.equal(x, x * 2) or (x < -99).flatten().any().item():
                x = x - 1
            if torch.ones(3).all():  # says nothing of data
                x = x * 3
            return x

        line = forward.__code__.co_firstlineno
        said = self.holds(forward, torch.tensor([[0.5, 2.0, -1.0]]))
        places = ", ".join(f"{__file__}:{line + 2}" for line in (line, line + 2, line + 4))
        self.assertEqual(
            said,
            [
                f"a branch on a tensor's value, of which the file holds the side that the example took: {places}; "
                "torch.where holds both"
            ],
        )

    def test_a_branch_on_a_draw_is_no_constant(self):
        """As dropping whole layers is."""
        import torch

        def forward(x):
            return x * 2 if torch.rand([]) < 2 else x

        line = forward.__code__.co_firstlineno + 1
        (said,) = self.holds(forward, torch.randn(3))
        self.assertIn(f"{__file__}:{line}", said)

    def test_masks_of_transformers(self):
        """None for a mask of ones that the model makes, one of the window, one that is an input; with open
        lengths."""
        import torch
        import transformers

        sizes = dict(
            vocab_size=32,
            hidden_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=16,
            max_position_embeddings=32,
        )

        class Net(torch.nn.Module):
            def __init__(self, net):
                super().__init__()
                self.net = net

            def forward(self, input_ids, attention_mask=None):
                return self.net(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state.sum()

        ids, mask = torch.ones(2, 12, dtype=torch.long), torch.ones(2, 12, dtype=torch.long)
        for window, length in ((None, "seq"), (4, "seq"), (4, None)):
            net = Net(
                transformers.MistralModel(
                    transformers.MistralConfig(**sizes, num_key_value_heads=2, sliding_window=window)
                )
            )
            inputs = {"input_ids": ids, "attention_mask": mask}
            model, said = self.exported(net, inputs, dynamic={name: ["batch", length] for name in inputs})
            self.assertEqual([len(model.graph.input), said], [2, []])
            self.assertIn("attention_mask", {name for node in model.graph.node for name in node.input})
        net = Net(
            transformers.NystromformerModel(
                transformers.NystromformerConfig(**sizes, segment_means_seq_len=12, num_landmarks=4)
            )
        )
        self.assertEqual(self.exported(net, {"input_ids": ids})[1], [])

    def test_checks_of_arguments_are_dropped(self):
        import torch

        distributions = torch.distributions

        def forward(x):
            torch._check_tensor_all(x < 99)
            torch._assert_async((x < 99).all())
            return distributions.Normal(x, x.exp()).log_prob(x + 1) + distributions.Laplace(
                x, 2.0, validate_args=True
            ).log_prob(x)

        self.assertEqual(self.holds(forward, torch.randn(2, 3), within=1e-5), [])

    def test_rows_that_a_constant_mask_chooses(self):
        import torch

        def forward(x):
            mask = torch.zeros(4, dtype=torch.bool)
            mask[1:3] = True
            last = torch.ones(3, 3).tril() > 0
            written = x.clone()
            written[:, mask] = 7.0
            return (
                x[:, mask].sum(1)
                + x[:, ~mask, 0:1].sum(1)
                + torch.einsum("bi,ij->bj", x[:, 0], last.float())[:, last[1]].sum()
                + written.sum(1)
                + x[:, 1][torch.ones_like(x[:, 1]) > 0].sum()
                + torch.where(mask)[0].sum()
                + mask.nonzero().sum()
            )

        self.assertEqual(self.holds(forward, torch.randn(2, 4, 3), within=1e-5), [])

    def test_a_mask_of_data_stays_one(self):
        """A mask into which data were written, through a view, is no constant."""
        import torch

        class Net(torch.nn.Module):
            def forward(self, x):
                mask = torch.zeros(4, dtype=torch.bool)
                mask[1:3] = x[1:3] > 0
                return x[mask].sum()

        model, _ = self.exported(Net(), {"x": torch.ones(4)})
        self.assertIn("NonZero", [node.op_type for node in model.graph.node])  # which par-compile refuses

    def test_a_mask_that_forward_writes_is_no_constant(self):
        import torch

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("mask", torch.ones(4, dtype=torch.bool))

            def forward(self, x):
                total = x[self.mask].sum()
                self.mask.logical_not_()
                return total

        model, _ = self.exported(Net(), {"x": torch.ones(4)})
        self.assertIn("NonZero", [node.op_type for node in model.graph.node])

    def test_masked_scatter(self):
        import torch

        mask = torch.tensor([[0, 1, 1, 0], [1, 0, 0, 1]]) > 0

        def rows(x, mask, source):
            x = x.clone()
            x[mask] = source
            return x

        x, source = torch.randn(2, 4, 3), torch.randn(4, 3)
        self.holds(lambda x, mask, source: x.masked_scatter(mask.unsqueeze(-1), source), x, mask, source)
        self.holds(rows, x, mask, source)
        self.holds(rows, x, mask, source[:1])

    def test_complex_rotations(self):
        import torch

        def forward(x):
            angles = torch.outer(torch.arange(4.0), torch.tensor([1.0, 0.1]))
            turn = torch.polar(torch.ones_like(angles), angles)
            turn = (
                turn[torch.tensor([0, 1, 2, 3])][None, :, None]
                .expand(2, 4, 3, 2)
                .transpose(1, 2)[:, 0:3]
                .transpose(1, 2)
            )
            both = torch.view_as_complex(x.reshape(2, 4, 3, 2, 2)) * turn
            return torch.view_as_real(both * turn[0, :, 0].unsqueeze(1)).flatten(2)

        self.assertEqual(self.holds(forward, torch.randn(2, 4, 12), within=1e-5), [])

    def test_special_functions(self):
        import torch

        near = torch.tensor(
            [1e-6, 0.1, 0.5, 0.9, 1.0, 1.5, 2.0, 3.0, 10.0, 99.0, 101.0, 1e6, 1e30, -0.5, -1.7, -7.3]
        )
        self.holds(torch.lgamma, near, within=2e-6)
        self.holds(torch.lgamma, near.double(), within=1e-11)
        self.holds(torch.digamma, near, within=5e-6)
        self.holds(torch.digamma, near.double(), within=1e-10)
        inner = torch.cat(
            [torch.linspace(-0.9999, 0.9999, 41), torch.tensor([1.0, -1.0, 1 - 2.0**-24, 1e-30])]
        )
        self.holds(torch.erfinv, inner, within=2e-6)
        self.holds(torch.erfinv, inner.double(), within=1e-13)

    def test_draws(self):
        import torch

        class Net(torch.nn.Module):
            def forward(self, x):
                return x * torch.empty(3).uniform_(0.5, 2.0) + x[torch.randperm(3)]

        model, _ = self.exported(Net(), {"x": torch.ones(3)})
        self.assertLessEqual(
            {"RandomUniformLike", "RandomUniform", "TopK"}, {node.op_type for node in model.graph.node}
        )

    def test_draws_outside_of_pytorch(self):
        import numpy
        import torch

        class Net(torch.nn.Module):
            def forward(self, x):
                return x * float(numpy.random.rand())

        _, said = self.exported(Net(), {"x": torch.ones(3)})
        self.assertEqual(said,
                         ["forward draws from numpy.random: the file holds one draw for all steps; torch.rand and the "
                          "like "
                                "are drawn again in each"])

    def test_data_of_a_tensor(self):
        import torch
        x = torch.randn(4)
        self.holds(lambda x: x * x.data.abs().max() + (x * 2).data, x)

    def test_a_number_before_a_tensor(self):
        import torch

        x = torch.randn(4)
        self.holds(lambda x: x * torch.add(0.3333, x > 0, alpha=0.6667) + torch.sub(2, x, alpha=3), x)

    def test_an_own_function_whose_gradient_would_be_lost(self):
        import torch

        class Rounded(torch.autograd.Function):
            @staticmethod
            def forward(context, x):
                return x.round()

            @staticmethod
            def backward(context, gradient):
                return gradient

        class Hidden(torch.autograd.Function):
            @staticmethod
            def forward(context, scale, x):
                with torch.no_grad():
                    result = x * scale
                context.scale = scale
                return result

            @staticmethod
            def backward(context, gradient):
                return None, gradient * context.scale

        class Net(torch.nn.Module):
            def __init__(self, function):
                super().__init__()
                self.map, self.function = torch.nn.Linear(4, 3), function

            def forward(self, x):
                return self.function(self.map(x)).sum()

        for function, name, place in (
            (Rounded.apply, "Rounded", 0),
            (lambda x: Hidden.apply(3.0, x), "Hidden", 1),
        ):
            error = self.refused(Net(function), x=torch.randn(2, 4))
            self.assertEqual(
                error.message,
                f"the backward of {name} (torch.autograd.Function) gives its input {place} a gradient, and its "
                "forward, of which Par computes the gradient, gives none: what comes before would not train",
            )

    def test_an_own_function_that_is_differentiable_is_warned_of(self):
        import torch

        class Clipped(torch.autograd.Function):
            @staticmethod
            def forward(x, most):
                return x.clamp(max=most)

            @staticmethod
            def setup_context(context, inputs, output):
                pass

            @staticmethod
            def backward(context, gradient):
                return gradient, None

        class Net(torch.nn.Linear):
            def forward(self, input):
                return Clipped.apply(super().forward(input), 0.5).sum()

        _, said = self.exported(Net(4, 3), {"input": torch.randn(2, 4)})
        self.assertEqual(
            said,
            [
                "the backward of Clipped (torch.autograd.Function) is not in the file: Par differentiates what "
                "its forward computes"
            ],
        )


if __name__ == "__main__":
    unittest.main()

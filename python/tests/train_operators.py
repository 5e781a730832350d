#!/usr/bin/env python3
"""The operators of PyTorch's own test database, with the samples that PyTorch tests them by: each is exported with
par.export, trained one step in Par, and its loss and every element of its gradients are held against PyTorch's.

    python3 python/tests/train_operators.py --bin build/bin [--only nn.functional.pad,cumsum] [--part 0/2] [--samples 6]

What a sample says to need a gradient is a parameter, other tensors are buffers; the loss is the sum of the results,
each element times another number (a cosine). One export holds several samples of an operator; where it is not right,
each sample has its own line. The loss must lie within 2e-5 of the sum of the results' magnitudes, a gradient within
1e-4 of its largest element or parameter's (it is read from what SGD with a rate of 1 took off the parameter): both are
float32 on either side, and one sample that is translated otherwise is off by its own size. `refused` (par.export or
par-compile says why) is counted, and no failure. Left out: what is random, linear algebra, complex numbers, results
whose shape depends on values. Needs torch, onnx, onnxscript, safetensors, expecttest and pytest (which PyTorch's
database imports). Half an hour. Seeds are fixed.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import warnings

import torch
from safetensors.torch import load_file, save_file
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_flatten, tree_unflatten

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import par  # noqa: E402

LEFT_OUT = re.compile("|".join((
    "dropout|bernoulli|rand|multinomial|normal_|^normal|empty|cauchy|exponential|geometric|uniform|fractional|"
    "head_attention_forward",
    "linalg|svd|eig|cholesky|^lu|^qr|lstsq|inverse|ormqr|geqrf|triangular_solve|matrix_exp|logdet|slogdet|det$|trace|"
    "kron|cdist$",
    "fft|complex|polar|stft|sparse|jiterator|as_strided|resize_|resolve_|segment|scaled_mm|searchsorted|bucketize",
    "nonzero|masked_select|unique|item|tolist|histc|histogram|bincount|equal$|unsafe|^_|__r|native_|_batch_norm|"
    "special|gamma",
    # If several values go to one place, PyTorch gives each of them the gradient of the one that stays. It also
    # gives one to a logit whose whole range is cut off, from above and from below.
    "max_unpool|logit$")))


class Samples(torch.nn.Module):
    """An operator applied to several samples; returns the loss."""

    def __init__(self, operator, samples):
        super().__init__()
        self.operator, self.calls = operator, []
        for number, sample in enumerate(samples):
            values, spec = tree_flatten(((sample.input, *sample.args), sample.kwargs))
            self.calls.append(([self.keep(f"p{number}_{place}", value) for place, value in enumerate(values)], spec))

    def keep(self, name, value):
        """How the call gets the value: by the name of a parameter or buffer, or as it is."""
        if not isinstance(value, torch.Tensor):
            return lambda: value
        kept = value.detach().clone().contiguous()
        if value.requires_grad:
            setattr(self, name, torch.nn.Parameter(kept))
        else:
            self.register_buffer(name, kept)
        return lambda: getattr(self, name)

    def results(self):
        for number, (values, spec) in enumerate(self.calls):
            args, named = tree_unflatten([value() for value in values], spec)
            for result in tree_flatten(self.operator(*args, **named))[0]:
                if isinstance(result, torch.Tensor):
                    yield number, result.float()

    def forward(self, scale):
        total = scale.mean() * 0
        for number, result in self.results():
            weights = torch.cos(torch.arange(result.numel(), dtype=torch.float32) + number).reshape(result.shape)
            total = total + (result * weights).sum() * scale.mean()
        return total


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=300)
    said = " | ".join(line for line in (done.stdout + done.stderr).splitlines() if "warning:" not in line)
    return done.returncode, said[-400:]


def apart(module, loss, gradients, got, after):
    """Differences of a step in Par from PyTorch's."""
    size = max(1, sum(result.detach().abs().nan_to_num(0, 0, 0).sum().item() for _, result in module.results()))
    wrong = [] if abs(got - loss) <= 2e-5 * size else [f"loss {got}, PyTorch's {loss}"]
    for name, gradient in gradients.items():
        before = module.get_parameter(name).detach()
        found = before - after.get(name, before)
        largest = max(1, *(values.abs().nan_to_num(0, 0, 0).max().item() for values in (gradient, before)))
        off = ~((found - gradient).abs() <= 1e-4 * largest) & ~(found.isnan() & gradient.isnan()) & before.isfinite()
        if off.any():
            wrong.append(f"{name} {tuple(gradient.shape)}: {int(off.sum())} gradients of {gradient.numel()},"
                         f" {found[off][:3].tolist()}, PyTorch's {gradient[off][:3].tolist()}")
    return "; ".join(wrong)


def trial(operator, samples, folder, binaries):
    """`equal`, or what is wrong, and why."""
    module, feed = Samples(operator, samples), {"scale": torch.ones(2)}
    try:
        loss = module(**feed)
        loss.backward()
    except RuntimeError as error:
        return f"refused: by PyTorch: {str(error)[:80]}"
    gradients = {name: torch.zeros_like(p) if p.grad is None else p.grad for name, p in module.named_parameters()}
    try:
        par.export(module, feed, folder / "model.onnx", outputs=["loss"])
    except par.Error as error:
        return "refused: " + " | ".join(str(error).splitlines())[:400]
    save_file(feed, str(folder / "data.safetensors"))
    (folder / "plan.yaml").write_text("batch: 2\ntrain: {optimizer: {kind: sgd, lr: 1.0}}\n")
    code, said = run(f"{binaries}/par-compile", folder / "model.onnx", folder / "plan.yaml", "-o",
                     folder / "bundle.par", "-q")
    if code:
        return f"refused: {said}" if code == 1 and "error:" in said else f"WRONG: par-compile ends with {code}: {said}"
    metrics = folder / "metrics.jsonl"
    metrics.unlink(missing_ok=True)
    code, said = run(f"{binaries}/par-run", folder / "bundle.par", "--data", folder / "data.safetensors", "--steps", 1,
                     "--metrics", metrics, "--export", folder / "after.safetensors")
    if code:
        return f"WRONG: par-run ends with {code}: {said}" if loss.isfinite() else "equal: the loss is not finite"
    got = json.loads(metrics.read_text().splitlines()[0])["loss"]
    wrong = apart(module, loss.item(), gradients, got, load_file(folder / "after.safetensors"))
    return f"WRONG: {wrong[:600]}" if wrong else "equal"


def samples_of(info, most):
    torch.manual_seed(1)
    def is_held(sample):
        values = tree_flatten(((sample.input, *sample.args), sample.kwargs))[0]
        return all(value.numel() for value in values
                   if isinstance(value, torch.Tensor)) and not sample.kwargs.get("dropout_p")
    every = [sample for sample in info.sample_inputs("cpu", torch.float32, requires_grad=True) if is_held(sample)]
    return every[::max(1, len(every) // most)][:most]


def said_of(sample):
    values, named = tree_flatten((sample.input, sample.args))[0], sample.kwargs
    return str([tuple(v.shape) if isinstance(v, torch.Tensor) else v for v in values]) + \
        str({key: tuple(v.shape) if isinstance(v, torch.Tensor) else v for key, v in named.items()})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--part", default="0/1", help="K/N: every Nth operator from the Kth on")
    parser.add_argument("--samples", type=int, default=6)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    counts = {}
    first, step = map(int, options.part.split("/"))
    known = [info for info in op_db
             if torch.float32 in info.dtypes and info.supports_autograd and not LEFT_OUT.search(info.name)]
    chosen = [info for info in known if not options.only or info.name in options.only.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        for info in chosen[first::step]:
            name, samples = f"{info.name} {info.variant_test_name}".strip(), samples_of(info, options.samples)
            said = trial(info.op, samples, pathlib.Path(folder), options.bin)
            lines = [(name, said)]
            if not said.startswith("equal"):
                lines = [(f"{name} {said_of(sample)}", trial(info.op, [sample], pathlib.Path(folder), options.bin))
                         for sample in samples]
            for title, said in lines:
                counts[said.split(":")[0]] = counts.get(said.split(":")[0], 0) + 1
                print(f"{title}: {said}", flush=True)
    print(", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())))
    return "WRONG" in counts


if __name__ == "__main__":
    sys.exit(main())

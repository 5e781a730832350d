#!/usr/bin/env python3
"""Narrow formats: bf16 and fp16 against PyTorch's float64 losses and over ranks, and what an overflow does.

    precision.py --bin build/bin [--only formats|overflow|exhausted] [--model gpt2] [--case pp2dp2tp2]

Only Python's standard library is used. Exit status 0 when everything holds.
"""
import argparse
import json
import math
import pathlib
import shutil
import subprocess
import sys
import tempfile

from runs import HERE, Claims, Runs, largest, write_safetensors
from train_reference import CASES, optimizer_of


def check_formats(runs, claims, model, cases):
    """Ten losses: those of one rank near the reference's, those of many ranks near those of one."""
    run = json.loads((HERE / model / "reference.json").read_text())["runs"]["adamw"]
    for compute, bound in (("bf16", 2e-4), ("fp16", 1e-4)):
        losses = {}
        for case in ["one"] + cases:
            plan = CASES[case] + optimizer_of("adamw", run["options"]) + f"precision: {compute}\n"
            bundle = runs.compile(HERE / model / "model.onnx", plan)
            metrics, _ = runs.train(bundle, HERE / model / "data.safetensors", 10)
            losses[case] = [line["loss"] for line in metrics]
        worst = largest(abs(loss - wanted) / wanted for loss, wanted in zip(losses["one"], run["losses_f64"]))
        claims.hold(f"{model} {compute}: losses to float64's", worst if len(losses["one"]) == 10 else math.nan, bound,
                    unit="relative")
        for case in cases:
            worst = largest(abs(a - b) / b for a, b in zip(losses[case], losses["one"]))
            claims.hold(f"{model} {compute} {case}: losses to one rank's", worst, bound, unit="relative")


def rate(t):
    """The rate of update t, from 1: a warmup of 4 to 1e-3, then linearly to 0 at 12, as docs/plan.md says."""
    return 1e-3 * t / 4 if t <= 4 else 1e-3 * (1 - min(1, (t - 1 - 4) / 8))


def check_overflow(runs, claims, cases):
    """A scale that is too large: the step writes nothing, the scale halves, and a resumed run goes on bit for bit."""
    data = HERE / "gpt2" / "data.safetensors"
    for case in cases:
        plan = CASES[case] + "train: {optimizer: {kind: adamw, lr: {peak: 1e-3, warmup: 4, decay: linear, steps: 12}}" \
               ", clip: 1.0}\n" \
               "precision: {compute: fp16, loss_scale: {initial: 1073741824, growth: 2}}\n"
        bundle = runs.compile(HERE / "gpt2" / "model.onnx", plan)
        start = runs.train(bundle, data, 1, "--set", "lr=0")[1].read_bytes()
        metrics, weights = runs.train(bundle, data, 1)
        name = f"gpt2 fp16 {case}"
        claims.equal(f"{name}: a scale of 2^30 overflows", metrics[0]["grad_norm"], None)
        claims.equal(f"{name}: the scale halves", metrics[0]["loss_scale"], 2.0**29)
        claims.equal(f"{name}: weights stand", weights.read_bytes() == start, True)
        folder = runs.work / f"{case}.checkpoints"
        metrics, weights = runs.train(bundle, data, 16, "--save", folder, "--save-every", "8")
        whole, bits = [(line["loss"], line["loss_scale"], line["lr"]) for line in metrics], weights.read_bytes()
        skipped = [line["grad_norm"] is None for line in metrics]
        wanted = [rate(1 + i - sum(skipped[:i])) for i in range(16)]
        claims.hold(f"{name}: the rate's schedule does not count skipped steps",
                    largest(abs(line["lr"] - lr) for line, lr in zip(metrics, wanted)), 1e-12)
        claims.equal(f"{name}: some steps are good, some are skipped", {True, False} == set(skipped), True)
        scales = [2.0**30] + [scale for _, scale, _ in whole]
        halves = all(b == a / 2 if bad else b in (a, 2 * a) for a, b, bad in zip(scales, scales[1:], skipped))
        claims.equal(f"{name}: the scale halves where a step is skipped, there alone", halves, True)
        claims.equal(f"{name}: the scale grows again", any(b > a for a, b in zip(scales, scales[1:])), True)
        metrics, weights = runs.train(bundle, data, 16, "--resume", folder / "8")
        resumed = [(line["loss"], line["loss_scale"], line["lr"]) for line in metrics]
        claims.equal(f"{name}: resumed losses, scales and rates are the same", resumed == whole[8:], True)
        claims.equal(f"{name}: resumed weights are the same bits", weights.read_bytes() == bits, True)


def check_exhausted(runs, claims):
    """Inputs outside fp16's range, before a tanh: the loss is finite, a gradient never is."""
    rows, width = 16, 32
    data = runs.work / "huge.safetensors"
    write_safetensors(data,
                      {"x": ([rows, width], ([1e5] + [0.0] * (width - 1)) * rows), "labels": ([rows], [1] * rows)})
    plan = "train: {optimizer: sgd}\nprecision: {compute: fp16, loss_scale: {initial: 4}}\n"
    bundle = runs.compile(HERE / "mlp" / "model.onnx", plan)
    done = subprocess.run([str(part) for part in runs.command(bundle, data, 9)], capture_output=True, text=True,
                          timeout=60)
    claims.equal("mlp fp16: a scale that falls below 1 ends the run", done.returncode, 5)
    claims.equal("mlp fp16: and says so", done.stderr.strip(),
                 "step 3: error: loss scale exhausted: gradients overflow at 1 already")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", help="default: on the PATH",
                        default=pathlib.Path(shutil.which("par-compile") or ".").parent)
    parser.add_argument("--only", choices=["formats", "overflow", "exhausted"])
    parser.add_argument("--model", default="gpt2")
    parser.add_argument("--case", action="append", choices=sorted(CASES))
    options = parser.parse_args()
    claims = Claims()
    cases = options.case or ["pp2dp2tp2"]
    with tempfile.TemporaryDirectory(prefix="par-precision-") as work:
        runs = Runs(options.bin, work)
        if options.only in (None, "formats"):
            check_formats(runs, claims, options.model, cases)
        if options.only in (None, "overflow"):
            check_overflow(runs, claims, cases)
        if options.only in (None, "exhausted"):
            check_exhausted(runs, claims)
    print(f"{claims.count} claims, {len(claims.failures)} failed")
    sys.exit(1 if claims.failures else 0)


if __name__ == "__main__":
    main()

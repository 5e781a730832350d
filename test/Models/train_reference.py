#!/usr/bin/env python3
"""Trains a model of this folder under a plan and holds it against PyTorch's numbers (reference.json).

    train_reference.py --bin build/bin --model gpt2 --case pp2dp2tp2 [--optimizer sgd] [--gradients] [--comm shm]

Compares ten losses with the float64 reference (2e-5), norms of all parameters (1e-5 relative, 1e-3 under adamw for
biases whose gradient is zero in exact arithmetic in part), and with
--gradients one sgd step at lr 1: start minus exported weights against grads.safetensors.
Only Python's standard library is used. Exit status 0 when everything holds.
"""
import argparse
import json
import math
import pathlib
import shutil
import sys
import tempfile

from runs import HERE, Claims, Runs, largest, read_safetensors

EPSILON = 2.0 ** -23  # of float32
MEGATRON = "use: [megatron]\n"
# Plans by name: the mesh and keys that follow from it; the batch is the model's own.
CASES = {
    "one": "batch: {microbatches: 1}\n",
    "one-m8": "batch: {microbatches: 8}\n",
    "dp2": "mesh: {dp: 2}\n",
    "dp8": "mesh: {dp: 8}\n",
    "tp2": MEGATRON + "mesh: {tp: 2}\n",
    "tp4": MEGATRON + "mesh: {tp: 4}\n",
    "pp2": "mesh: {pp: 2}\nbatch: {microbatches: 4}\npipeline: {cuts: {h.*: even}}\n",
    "pp4-gpipe": "mesh: {pp: 4}\nbatch: {microbatches: 8}\npipeline: {schedule: gpipe, cuts: {h.*: even}}\n",
    "pp4-1f1b": "mesh: {pp: 4}\nbatch: {microbatches: 8}\npipeline: {schedule: 1f1b, cuts: {h.*: even}}\n",
    "pp4-auto": "mesh: {pp: 4}\nbatch: {microbatches: 8}\npipeline: {schedule: 1f1b, cuts: auto}\n",
    "pp2dp2tp2": MEGATRON + "mesh: {pp: 2, dp: 2, tp: 2}\nbatch: {microbatches: 4}\n"
                 "pipeline: {schedule: 1f1b, cuts: {h.*: even}}\nrecompute: none\n",
    "pp2dp2tp2-full": MEGATRON + "mesh: {pp: 2, dp: 2, tp: 2}\nbatch: {microbatches: 4}\n"
                      "pipeline: {schedule: 1f1b, cuts: {h.*: even}}\nrecompute: full\n",
    "pp2dp2tp2-each": MEGATRON + "mesh: {pp: 2, dp: 2, tp: 2}\nbatch: {microbatches: 4}\n"
                      "pipeline: {schedule: 1f1b, cuts: {h.*: even}}\nrecompute: {each: h.*}\n",
    "tp2pp2dp2": MEGATRON + "mesh: {tp: 2, pp: 2, dp: 2}\nbatch: {microbatches: 4}\n"
                 "pipeline: {schedule: 1f1b, cuts: {h.*: even}}\nrecompute: none\n",
    "pp2dp2-interleaved": "mesh: {pp: 2, dp: 2}\nbatch: {microbatches: 4}\npipeline: {stages: 4, cuts: {h.*: even}}\n",
    "pp2tp2-zb-v": MEGATRON + "mesh: {pp: 2, tp: 2}\nbatch: {microbatches: 4}\n"
                   "pipeline: {stages: 4, schedule: zb-v, cuts: {h.*: even}}\n",
    "dp2tp2-seq": MEGATRON + "mesh: {dp: 2, tp: 2}\nbatch: {microbatches: 2}\nshard:\n  out(ln_1): {1: tp}\n",
    "dp2tp3-vocab": "mesh: {dp: 2, tp: 3}\nshard:\n  wte.weight: {0: tp}\n",
}


def optimizer_of(name, options):
    """A plan's optimizer from the options of a reference run."""
    keys = {"sgd": ["lr"], "momentum": ["lr", "momentum"], "adamw": ["lr", "weight_decay", "betas", "eps"]}[name]
    return "train: {optimizer: " + json.dumps({"kind": name, **{key: options[key] for key in keys}}) + "}\n"


class Trial:
    """A model of a folder under a plan. Names of the model that differ from the reference's are in `names`, by the
    latter.

    `bound` is that of the losses, absolute, for each optimizer."""

    def __init__(self, runs, claims, model="gpt2", case="one", file=None, data=None, plan=None, names=None, more=(),
                 title=None,
                 folder=None, bound=lambda optimizer: 2e-5):
        folder = folder or HERE / model
        self.runs, self.claims, self.more, self.names, self.bound = runs, claims, more, names or {}, bound
        self.model, self.data = file or folder / "model.onnx", data or folder / "data.safetensors"
        self.plan = CASES[case] if plan is None else plan
        self.title = title or f"{model} {case}"
        self.reference = json.loads((folder / "reference.json").read_text())
        self.gradients = folder / "grads.safetensors"

    def read(self, path):
        weights = read_safetensors(path)
        back = {now: before for before, now in self.names.items()}
        return {back.get(name, name): weight for name, weight in weights.items()}

    def check_losses(self, name):
        run = self.reference["runs"][name]
        bundle = self.runs.compile(self.model, self.plan + optimizer_of(name, run["options"]))
        metrics, weights = self.runs.train(bundle, self.data, 10, *self.more)
        wanted = run["losses_f64"]
        worst = largest(abs(line["loss"] - loss) for line, loss in zip(metrics, wanted))
        self.claims.hold(f"{self.title} {name}: losses", worst if len(metrics) == len(wanted) else math.nan,
                         self.bound(name))
        self.check_norms(name, run, self.read(weights))

    def check_norms(self, name, run, weights):
        found, partly = {1e-5: [], 1e-3: []}, self.partly_noise() if name == "adamw" else set()
        for parameter, wanted in run["param_norms_f64"].items():
            if parameter in run["unstable_norms"]:
                continue
            bound = 1e-3 if parameter in partly else 1e-5
            weight = weights.get(parameter)
            norm = math.sqrt(math.fsum(x * x for x in weight[1])) if weight else math.nan
            found[bound].append(abs(norm - wanted) / (wanted or 1))
        self.claims.hold(f"{self.title} {name}: parameter norms", largest(found[1e-5]), 1e-5, unit="relative")
        if found[1e-3]:
            self.claims.hold(f"{self.title} {name}: norms of partly noise", largest(found[1e-3]), 1e-3, unit="relative")

    def partly_noise(self):
        """Parameters with elements whose gradient is zero in exact arithmetic: the key part of a fused query-key-value
        bias, which moves all scores of a row alike. The computed gradient is rounding, below that of the parameter's
        largest gradient, and adamw, which divides by the gradient's size, makes steps of the whole learning rate from
        it: PyTorch's own float32 norms are up to 1.3e-5 off there."""
        parts = set()
        for name, (_, gradient) in read_safetensors(self.gradients).items():
            noise = EPSILON * max(map(abs, gradient), default=0)
            if sum(0 < abs(g) <= noise for g in gradient) > len(gradient) / 100:
                parts.add(name)
        return parts

    def check_gradients(self):
        """One step at lr 1: start minus exported weights is the gradient."""
        bundle = self.runs.compile(self.model, self.plan + optimizer_of("sgd", {"lr": 1.0}))
        start = self.read(self.runs.train(bundle, self.data, 1, "--set", "lr=0", *self.more)[1])
        end = self.read(self.runs.train(bundle, self.data, 1, *self.more)[1])
        parts, gradients = [], read_safetensors(self.gradients)
        # A gradient that is zero in exact arithmetic (of a bias of attention's keys, which moves all scores of a row
        # alike) is the rounding of a sum whose terms are as large as other gradients: nothing of it but that it is
        # small can hold.
        noise = EPSILON * max(max(map(abs, gradient), default=0) for _, gradient in gradients.values())
        for name, (_, gradient) in gradients.items():
            peak = max(map(abs, gradient), default=0)
            weight = max(map(abs, start[name][1]), default=0)
            # The second part is the rounding of the difference of two float32 weights.
            bound = 1e-4 * peak + EPSILON * weight + noise
            difference = largest(abs((a - b) - g) for a, b, g in zip(start[name][1], end[name][1], gradient))
            parts.append(difference / bound if bound else math.inf if difference else 0)
        self.claims.hold(f"{self.title}: gradients of a step at lr 1", largest(parts), 1, unit="of the bound")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", help="default: on the PATH",
                        default=pathlib.Path(shutil.which("par-compile") or ".").parent)
    parser.add_argument("--model", default="gpt2")
    parser.add_argument("--file", default="model.onnx")
    parser.add_argument("--case", default="one", choices=sorted(CASES))
    parser.add_argument("--optimizer", action="append", choices=["sgd", "momentum", "adamw"])
    parser.add_argument("--gradients", action="store_true")
    parser.add_argument("--comm")
    parser.add_argument("--more", default="", help="further plan text")
    parser.add_argument("--timeout", type=int, default=300)
    options = parser.parse_args()
    claims = Claims()
    with tempfile.TemporaryDirectory(prefix="par-reference-") as work:
        trial = Trial(Runs(options.bin, work, options.timeout), claims, options.model, options.case,
                      HERE / options.model / options.file, plan=CASES[options.case] + options.more.replace("\\n", "\n"),
                      more=["--comm", options.comm] if options.comm else [])
        for optimizer in options.optimizer or []:
            trial.check_losses(optimizer)
        if options.gradients:
            trial.check_gradients()
    sys.exit(1 if claims.failures else 0)


if __name__ == "__main__":
    main()

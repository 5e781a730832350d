#!/usr/bin/env python3
"""Holds every model of a folder, in every variant, against PyTorch's numbers, a line a claim: figure, bound, pass or
FAIL.

    models.py --bin build/bin --models FOLDER [--only resnet] [--variant legacy] [--optimizer sgd] [--plan one]

FOLDER/NAME holds data.safetensors, reference.json, grads.safetensors and the exports model.onnx, model.legacy.onnx, and
so on. An export that lost parameters is refused with their names; of every other one
  losses     of ten steps, against float64, for each optimizer that the reference has
  norms      of all parameters thereafter, without those that reference.json calls unstable
  gradients  of one step at lr 1: start minus exported weights
  exports    hold every parameter under PyTorch's names, as .safetensors, and as a model that trains on from there, bit
             for bit
About four minutes on two cores. Only Python's standard library is used. Exit status 0: all hold.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

from runs import Claims, Runs, read_safetensors
from train_reference import Trial, optimizer_of

# With adamw, a batch norm's or a convolution's rounding in gradients near zero moves weights by up to the learning
# rate.
CONVOLUTIONS = {"resnet", "unet", "vit"}

# A further name of a tied parameter that no node of the export reads, so its owner is unknown.
UNTRACED = {"model.shared.weight"}

# Plans by name: a function of the model that gives the plan's text without `train`.
PLANS = {
    "one": lambda model: "batch: {microbatches: 1}\n",
}


class Model:
    """An export and the reference that belongs to it."""

    def __init__(self, file):
        self.file, self.folder, self.name = file, file.parent, file.parent.name
        self.variant = file.name.removeprefix("model.").removesuffix("onnx").rstrip(".") or "plain"
        self.title = self.name if self.variant == "plain" else f"{self.name} {self.variant}"
        self.reference = json.loads((self.folder / "reference.json").read_text())
        self.batch = self.reference["B"]
        if "batch_norm" in self.reference:
            self.batch_norm = self.reference["batch_norm"]

    def lost(self):
        """Parameters that this export does not have."""
        variant = self.reference["variants"].get(self.variant, self.reference)
        return variant.get("lost_parameters", [])

    def bound(self, optimizer):
        return 1e-4 if optimizer == "adamw" and self.name in CONVOLUTIONS else 1e-5


def check_refused(runs, claims, model, plan):
    """The compiler says how many parameters were lost, and names them."""
    file = runs.work / "refused.yaml"
    file.write_text(plan + "train: {optimizer: {kind: sgd, lr: 0.1}}\n")
    command = [runs.binaries / "par-compile", model.file, file, "-o", runs.work / "refused.par", "-v"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=runs.timeout)
    count = re.search(r"error: the export lost (\d+) of \d+ parameters", done.stderr)
    claims.equal(f"{model.title}: exit status of a compile", done.returncode, 1)
    claims.equal(f"{model.title}: parameters said to be lost", int(count[1]) if count else done.stderr[:200],
                 len(model.lost()))
    named = set(re.findall(r"[\w.]+", done.stderr))
    claims.equal(f"{model.title}: of these not named", [name for name in model.lost() if name not in named], [])


def rename_arrays(source, to):
    """A copy of a safetensors file whose arrays are called a0, a1, ...; what they were called, as --data takes it."""
    data = source.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    text = json.dumps({f"a{i}": entry for i, entry in enumerate(header.values())}).encode()
    to.write_bytes(len(text).to_bytes(8, "little") + text + data[8 + length:])
    return f"{to}:" + ",".join(f"{name}=a{i}" for i, name in enumerate(header))


def check_export(runs, claims, model, case, plan):
    """Trained weights go out under PyTorch's names and into a copy of the model, and come in from both."""
    data, title = model.folder / "data.safetensors", f"{model.title} {case}"
    name, run = next(iter(model.reference["runs"].items()))
    plan += optimizer_of(name, run["options"])
    bundle = runs.compile(model.file, plan)
    trained, copy = (runs.work / f"{model.title} {case}.{kind}" for kind in ("safetensors", "onnx"))
    for path in (trained, copy):
        runs.run(*runs.command(bundle, data, 10, "--export", path))
    found = read_safetensors(trained)
    shapes = {name: shape for name, (shape, _) in read_safetensors(model.folder / "grads.safetensors").items()}
    names = {alias: shapes[owner] for owner, aliases in model.reference["tied"].items() for alias in aliases
             if owner in shapes}
    names = {name: shape for name, shape in names.items() if name not in UNTRACED}
    wrong = [name for name, shape in {**shapes, **names}.items() if name not in found or found[name][0] != shape]
    claims.equal(f"{title}: PyTorch's parameters that --export leaves out", wrong, [])

    def first_loss(bundle, data, *more):
        return runs.train(bundle, data, 1, *more)[0][0]["loss"]

    after = first_loss(bundle, data, "--weights", trained)
    claims.hold(f"{title}: loss of the exported model, compiled again",
                abs(first_loss(runs.compile(copy, plan), data) - after), 0)
    renamed = rename_arrays(data, runs.work / "renamed.safetensors")
    claims.hold(f"{title}: loss with arrays of other names",
                abs(first_loss(bundle, renamed, "--weights", trained) - after), 0)


def check(runs, claims, model, case, optimizers):
    plan = PLANS[case](model)
    if model.lost():
        return check_refused(runs, claims, model, plan)
    trial = Trial(runs, claims, file=model.file, plan=plan, folder=model.folder, bound=model.bound,
                  title=f"{model.title} {case}")
    for optimizer in model.reference["runs"]:
        if not optimizers or optimizer in optimizers:
            trial.check_losses(optimizer)
    trial.check_gradients()
    check_export(runs, claims, model, case, plan)


def find(folder, names, variants):
    """Every model.*.onnx of the folder's sub-folders that have a reference."""
    models = [Model(file) for file in sorted(folder.glob("*/model*.onnx")) if (file.parent / "reference.json").exists()]
    return [model for model in models
            if (not names or model.name in names) and (not variants or model.variant in variants)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--models", required=True, type=pathlib.Path)
    parser.add_argument("--only", action="append", help="a model's name; repeat")
    parser.add_argument("--variant", action="append", help="plain, optimized, opset23, legacy or default; repeat")
    parser.add_argument("--optimizer", action="append", choices=["sgd", "momentum", "adamw"])
    parser.add_argument("--plan", action="append", choices=sorted(PLANS), help="default: one")
    options = parser.parse_args()
    models = find(options.models, options.only, options.variant)
    if not models:
        parser.error(f"no such models in {options.models}")
    claims, begin = Claims(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="par-models-") as work:
        runs = Runs(options.bin, work)
        for model in models:
            for case in options.plan or ["one"]:
                with claims.watch(f"{model.title} {case}"):
                    check(runs, claims, model, case, options.optimizer)
    print("\n".join(f"FAIL {line}" for line in claims.failures))
    print(f"{claims.count} claims, {len(claims.failures)} failed, {time.monotonic() - begin:.0f} s")
    sys.exit(1 if claims.failures else 0)


if __name__ == "__main__":
    main()

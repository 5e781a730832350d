#!/usr/bin/env python3
"""PipeDream's VGG-16 plan: convolutions on many ranks, the classifier on one; against one rank, a line a claim. Needs
torchvision.

    vgg.py --bin build/bin [--divide 8] [--steps 3] [--only 15-1]

torchvision's VGG-16 for images of 32 x 32 in 10 classes, dropout on, its widths divided by --divide.
15-1        `meshes: [{dp: 15}, {dp: 1}]` is compiled, proved, and its step simulated: its time beside that of 16 ranks
            of dp
2-1         `meshes: [{dp: 2}, {}]` under 1f1b, and with whole microbatches in turn (`replicas: round_robin`), equal to
            one rank: losses within 2e-5, weights within 2e-5 of their tensor's largest
2-1 sim     both played in 20 orders of what may happen at once, where --divide is 8 or more
Exit status 0: all hold.
"""
import argparse
import pathlib
import re
import shutil
import sys
import tempfile

import numpy
import torch
from torchvision.models import vgg

from runs import HERE, Claims, Runs

sys.path.append(str(HERE.parent.parent / "python"))
import par  # noqa: E402

TRAIN = "train: {loss: cross_entropy, optimizer: {kind: momentum, lr: 1e-3}, init: {weight: kaiming}}\n"
TURNS = {"1f1b": "", "round_robin": ", replicas: round_robin"}


def make(divide, path):
    """The model; its narrow form has the same layers."""
    widths = [step if step == "M" else step // divide for step in vgg.cfgs["D"]]
    model = vgg.VGG(vgg.make_layers(widths), num_classes=10)
    for number, sizes in {0: (512 * 49, 4096), 3: (4096, 4096), 6: (4096, 10 * divide)}.items():
        model.classifier[number] = torch.nn.Linear(*(size // divide for size in sizes))
    par.export(model, {"x": torch.zeros(2, 3, 32, 32)}, path, dynamic={"x": ["batch", None, None, None]},
               outputs=["scores"])


def plan(batch, microbatches, pipeline):
    return f"batch: {{size: {batch}, microbatches: {microbatches}}}\n{pipeline}{TRAIN}"


def meshes(first, turns):
    return f"pipeline: {{meshes: [{{dp: {first}}}, {{dp: 1}}], cuts: [classifier], schedule: 1f1b{TURNS[turns]}}}\n"


def arrays(path):
    """name -> array, not read before it is asked for."""
    from safetensors import safe_open
    with safe_open(path, "numpy") as file:
        return {name: file.get_tensor(name) for name in file.keys()}


def show_wide(runs, claims, model):
    """Sixteen ranks: what the compiler says of a step, and that par-verify proves it."""
    times = {}
    for title, text in {"dp16": plan(480, 2, "mesh: {dp: 16}\n"), "15-1": plan(480, 16, meshes(15, "1f1b")),
                        "15-1 round_robin": plan(480, 60, meshes(15, "round_robin"))}.items():
        with claims.watch(title):
            file, bundle = runs.work / "wide.yaml", runs.work / "wide.par"
            file.write_text(text)
            said = runs.run(runs.binaries / "par-compile", model, file, "-o", bundle)
            line = re.search(r"predicted step.*", said)[0]
            times[title] = line
            print(f"{title}: {' '.join(line.split())}", flush=True)
            proved = runs.run(runs.binaries / "par-verify", bundle)
            claims.equal(f"{title}: par-verify proves 16 ranks", "16 ranks" in proved, True)
            shutil.rmtree(bundle)


def train(runs, model, text, data, steps, *flags):
    bundle = runs.compile(model, text)
    lines, weights = runs.train(bundle, data, steps, "--init", *flags)
    return [line["loss"] for line in lines], arrays(weights)


def show_run(runs, claims, model, steps, sim):
    random = numpy.random.default_rng(1)
    data = runs.work / "data.safetensors"
    from safetensors.numpy import save_file
    save_file({"x": random.standard_normal((8 * steps, 3, 32, 32), numpy.float32),
               "labels": random.integers(0, 10, 8 * steps)}, data)
    losses, weights = train(runs, model, plan(8, 1, ""), data, steps)
    for turns in TURNS:
        title = f"2-1 {turns}"
        with claims.watch(title):
            text = plan(8, 4, meshes(2, turns))
            runs.run(runs.binaries / "par-verify", runs.compile(model, text))
            found, parts = train(runs, model, text, data, steps)
            claims.hold(f"{title}: losses to one rank's", max(map(abs, numpy.subtract(losses, found))), 2e-5)
            worst = {name: float(abs(parts[name] - whole).max() / (2e-5 * abs(whole).max() + 1e-9))
                     for name, whole in weights.items()}
            name = max(worst, key=worst.get)
            claims.hold(f"{title}: weights, worst {name}", worst[name], 1, unit="of the bound")
            if sim:
                played, _ = train(runs, model, text, data, steps, "--device", "sim", "--interleavings", "20")
                claims.equal(f"{title}: 20 orders, losses", played == found, True)
    print(f"losses {', '.join(f'{loss:.5f}' for loss in losses)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", help="default: on the PATH",
                        default=pathlib.Path(shutil.which("par-compile") or ".").parent)
    parser.add_argument("--divide", type=int, default=1)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--only", choices=["15-1", "2-1"], action="append")
    options = parser.parse_args()
    claims = Claims()
    with tempfile.TemporaryDirectory(prefix="par-vgg-") as work:
        runs, model = Runs(options.bin, work, timeout=1800), pathlib.Path(work) / "model.onnx"
        make(options.divide, model)
        if "15-1" in (options.only or ["15-1"]):
            show_wide(runs, claims, model)
        if "2-1" in (options.only or ["2-1"]):
            show_run(runs, claims, model, options.steps, options.divide >= 8)
    claims.finish()


if __name__ == "__main__":
    main()

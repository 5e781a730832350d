#!/usr/bin/env python3
"""Compiles exports that have no weights under several plans, and trains each two steps from --init: every plan proves its
bundle and gives one rank's losses and norms of gradients.

    structures.py --bin build/bin [--models FOLDER] [--only llama,swin] [--plan tp2]

FOLDER (zoo-structure beside this file) holds NAME.onnx.gz, made by zoo/structure.py --suite: architectures of transformers,
torchvision and timm, thin, but with tables of real lengths. Only Python's standard library is used. Exit status 0: all hold.
"""
import argparse
import gzip
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

from distributed import flow, parameters, shards
from runs import HERE, Claims, Failed, Runs, largest, write_safetensors

STEPS = 2
LOSS, NORM = 2e-5, 1e-4  # the order of additions; norms relative, as they are of sums that cancel
MICROBATCHES = 2
# Plans by name: the text from the model's shardings over two ranks, and into how many groups batch norm goes.
PLANS = {
    "dp2": (lambda shard: "mesh: {dp: 2}\nbatch: {microbatches: 1}\n", 1),
    "pp2": (lambda shard: f"mesh: {{pp: 2}}\nbatch: {{microbatches: {MICROBATCHES}}}\npipeline: {{cuts: auto}}\n", MICROBATCHES),
    "tp2": (lambda shard: "mesh: {tp: 2}\nbatch: {microbatches: 1}\nshard:\n" + shard, 1),
    "tp2-full": (lambda shard: f"mesh: {{tp: 2}}\nbatch: {{microbatches: {MICROBATCHES}}}\nrecompute: full\nshard:\n" + shard,
                 MICROBATCHES),
}
TRAIN = "train: {optimizer: {kind: sgd, lr: 0.1}, clip: 1.0e9}\n"  # a clip that never clips: it writes the norm


def inputs(binaries, model):
    """(name, type, shape) of each input."""
    said = subprocess.run([binaries / "par-compile", model, "--list=inputs"], capture_output=True, text=True, check=True).stdout
    listed = re.findall(r"^  (\S+)  (\w+)\[([\d, ]+)\]", said.split("\noutputs")[0], re.M)
    return [(name, dtype, [int(size) for size in shape.split(",")]) for name, dtype, shape in listed]


def write_data(binaries, model, path):
    """Random samples of STEPS batches; the first is the same for equal shapes, as labels of language models are."""
    arrays = {}
    for name, dtype, shape in inputs(binaries, model):
        choose, shape = random.Random(1), [STEPS * shape[0], *shape[1:]]
        count = 1
        for size in shape:
            count *= size
        draw = (lambda: choose.randrange(10, 500)) if dtype == "i64" else (lambda: choose.gauss(0, 1))
        arrays[name] = (shape, [draw() for _ in range(count)])
    write_safetensors(path, arrays)


class Structure:
    """A model of the folder, unpacked."""

    def __init__(self, runs, claims, packed):
        self.runs, self.claims, self.name = runs, claims, packed.name.removesuffix(".onnx.gz")
        self.model, self.data = runs.work / f"{self.name}.onnx", runs.work / f"{self.name}.safetensors"
        self.model.write_bytes(gzip.decompress(packed.read_bytes()))
        write_data(runs.binaries, self.model, self.data)
        self.alone = {}  # losses and norms of one rank, by groups of batch norm

    def train(self, plan):
        bundle = self.runs.compile(self.model, plan + TRAIN)
        lines, _ = self.runs.train(bundle, self.data, STEPS, "--init")
        shutil.rmtree(bundle)
        return [(line["loss"], line["grad_norm"]) for line in lines]

    def of_one_rank(self, groups):
        if groups not in self.alone:
            self.alone[groups] = self.train("batch: {microbatches: 1}\n" + (f"batch_norm: {groups}\n" if groups > 1 else ""))
        return self.alone[groups]

    def has_batch_norm(self):
        return any("running_mean" in name for name in self.names())

    def names(self):
        said = subprocess.run([self.runs.binaries / "par-compile", self.model, "--list=params"], capture_output=True, text=True,
                              check=True).stdout
        return re.findall(r"^  (\S+)  ", said, re.M)

    def check(self, plan):
        text, groups = PLANS[plan]
        rules = shards(parameters(self.runs.binaries, self.model), 2)
        shard = "".join(f'  "{pattern}": {flow(rule)}\n' for pattern, rule in rules.items())
        wanted = self.of_one_rank(groups if self.has_batch_norm() else 1)
        found = self.train(text(shard))
        if len(found) != STEPS:
            raise Failed(f"{len(found)} steps, expected {STEPS}")
        losses = largest(abs(a - b) for (a, _), (b, _) in zip(found, wanted))
        norms = largest(abs(a - b) / b for (_, a), (_, b) in zip(found, wanted))
        self.claims.hold(f"{self.name} {plan}: losses to one rank's", losses, LOSS)
        self.claims.hold(f"{self.name} {plan}: norms to one rank's", norms, NORM, unit="relative")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", help="default: on the PATH", default=pathlib.Path(shutil.which("par-compile") or ".").parent)
    parser.add_argument("--models", type=pathlib.Path, default=HERE / "zoo-structure")
    parser.add_argument("--only", default="", help="names, separated by commas")
    parser.add_argument("--plan", action="append", choices=sorted(PLANS), help="default: all")
    options = parser.parse_args()
    files = sorted(options.models.glob("*.onnx.gz"))
    names = options.only.split(",") if options.only else [file.name.removesuffix(".onnx.gz") for file in files]
    claims, begin = Claims(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="par-structures-") as work:
        runs = Runs(options.bin, work)
        for name in names:
            with claims.watch(name):
                structure = Structure(runs, claims, options.models / f"{name}.onnx.gz")
            for plan in options.plan or PLANS:
                with claims.watch(f"{name} {plan}"):
                    structure.check(plan)
    print("\n".join(f"FAIL {line}" for line in claims.failures))
    print(f"{claims.count} claims, {len(claims.failures)} failed, {time.monotonic() - begin:.0f} s")
    sys.exit(1 if claims.failures else 0)


if __name__ == "__main__":
    main()

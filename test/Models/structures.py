#!/usr/bin/env python3
"""Compiles exports that have no weights under several plans, and trains each two steps from --init: every plan proves
its bundle and gives one rank's losses and norms of gradients.

    structures.py --bin build/bin [--models FOLDER] [--only llama,swin] [--plan tp2]
    structures.py --bin build/bin [--models FOLDER] --random 300 [--seed 1]

FOLDER (zoo-structure beside this file) holds NAME.onnx.gz, made by zoo/structure.py --suite: architectures of
transformers, torchvision and timm, thin, but with tables of real lengths; or it is the cache of real_models.py, whose
models have their own weights and data. With --random, plans are drawn as distributed.py draws them; a plan that the
compiler refuses with a located message is counted, not failed. Only Python's standard library is used. Exit status 0:
all hold.

A plan changes only the order of additions. If batch norm amplifies that (a microbatch of one image), a plan may be ten
times as far from one rank as one rank is from itself with last bits of its images flipped (the farthest of three): up
to some hundredths of a norm, which would hide faults. So the same plan is then run in float64, too, in which it equals
one rank, if FOLDER/f64 has the model.
"""
import argparse
import functools
import gzip
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

from distributed import draw, flow, modules, parameters, play, shards
from runs import HERE, Claims, Failed, Runs, largest, write_safetensors

sys.path.append(str(HERE / "zoo"))
from par_side import write_nudged  # noqa: E402

STEPS = 2
NUDGES = 10
LOSS, NORM = 2e-5, 1e-4  # the order of additions; norms relative, as they are of sums that cancel
LOSS_64, NORM_64 = 1e-9, 1e-6  # in float64; norms are written in float32
MICROBATCHES = 2
# Plans by name: the text from the model's shardings over two ranks, and into how many groups batch norm goes.
PLANS = {
    "dp2": (lambda shard: "mesh: {dp: 2}\nbatch: {microbatches: 1}\n", 1),
    "pp2": (lambda shard: f"mesh: {{pp: 2}}\nbatch: {{microbatches: {MICROBATCHES}}}\npipeline: {{cuts: auto}}\n",
            MICROBATCHES),
    "tp2": (lambda shard: "mesh: {tp: 2}\nbatch: {microbatches: 1}\nshard:\n" + shard, 1),
    "tp2-full": (lambda shard: f"mesh: {{tp: 2}}\nbatch: {{microbatches: {MICROBATCHES}}}\nrecompute: full\nshard:\n"
                 + shard,
                 MICROBATCHES),
    **{f"zero3-{gather}": (lambda shard, gather=gather: "mesh: {dp: 2, tp: 2}\nbatch: {microbatches: 2}\n" +
                           f"zero: {{level: 3, gather: {gather}, min_size: 0}}\nshard:\n" + shard, 2)
       for gather in ("use", "step")},
}
TRAIN = "train: {optimizer: {kind: sgd, lr: 0.1}, clip: 1.0e9}\n"  # a clip that never clips: it writes the norm


def inputs(binaries, model):
    """(name, type, shape) of each input."""
    said = subprocess.run([binaries / "par-compile", model, "--list=inputs"], capture_output=True, text=True,
                          check=True).stdout
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
    write_safetensors(path, arrays, "F64" if any(dtype == "f64" for _, dtype, _ in inputs(binaries, model)) else "F32")


class Structure:
    """A model of the folder, unpacked where it is packed."""

    def __init__(self, runs, claims, file):
        self.runs, self.claims = runs, claims
        self.packed = file.name.endswith(".onnx.gz")
        self.name = file.name.removesuffix(".onnx.gz") if self.packed else file.parent.name
        self.double = file.parent / "f64" / file.name
        if file.parent.name == "f64":
            self.name += "-f64"
        self.file = runs.work / f"{self.name}.onnx" if self.packed else file
        self.data = runs.work / f"{self.name}.safetensors" if self.packed else file.parent / "data.safetensors"
        if self.packed and not self.file.exists():
            self.file.write_bytes(gzip.decompress(file.read_bytes()))
            write_data(runs.binaries, self.file, self.data)
        self.batch = inputs(runs.binaries, self.file)[0][2][0]
        self.batch_norm = any("running_mean" in name for name in self.names())
        self.alone = {}  # losses and norms of one rank, by its plan

    def train(self, plan, data=None):
        bundle = self.runs.compile(self.file, plan + TRAIN)
        lines, _ = self.runs.train(bundle, data or self.data, STEPS, *(["--init"] if self.packed else []))
        shutil.rmtree(self.runs.bundles.popitem()[1])
        return [(line["loss"], line["grad_norm"]) for line in lines]

    def nudge(self, plan, every):
        nudged = self.data.with_name(f"{self.name}-nudged.safetensors")
        write_nudged(self.data.parent, nudged.name, self.data.name, every)
        return self.train(plan, nudged)

    def of_one_rank(self, plan):
        if plan not in self.alone:
            self.alone[plan] = self.train(plan)
        return self.alone[plan]

    def names(self):
        said = subprocess.run([self.runs.binaries / "par-compile", self.file, "--list=params"], capture_output=True,
                              text=True,
                              check=True).stdout
        return re.findall(r"^  (\S+)  ", said, re.M)

    def check(self, plan):
        text, groups = PLANS[plan]
        rules = shards(parameters(self.runs.binaries, self.file), 2)
        shard = "".join(f'  "{pattern}": {flow(rule)}\n' for pattern, rule in rules.items())
        one = f"batch_norm: {groups}\n" if groups > 1 and self.batch_norm else ""
        self.compare(f"{self.name} {plan}", text(shard), "batch: {microbatches: 1}\n" + one)

    def compare(self, title, plan, one):
        """A plan beside that of one rank which computes the same."""
        wanted, found = self.of_one_rank(one), self.train(plan)
        if len(found) != STEPS:
            raise Failed(f"{len(found)} steps, expected {STEPS}")
        losses, norms = apart(found, wanted)
        most = (LOSS, NORM)
        if self.batch_norm and not (losses <= LOSS and norms <= NORM):
            moved = zip(*(apart(self.nudge(one, every), wanted) for every in (1, 2, 3)))
            most = [max(bound, NUDGES * max(each)) for bound, each in zip(most, moved)]
            if self.double.exists():
                self.compare_double(title, plan, one)
        self.claims.hold(f"{title}: losses to one rank's", losses, most[0])
        self.claims.hold(f"{title}: norms to one rank's", norms, most[1], unit="relative")

    def compare_double(self, title, plan, one):
        double = Structure(self.runs, self.claims, self.double)
        losses, norms = apart(double.train(plan), double.train(one))
        self.claims.hold(f"{title}: losses to one rank's in float64", losses, LOSS_64)
        self.claims.hold(f"{title}: norms to one rank's in float64", norms, NORM_64, unit="relative")


def apart(found, wanted):
    """Differences of losses, relative above 1, and of norms of gradients, relative."""
    return (largest(abs(a - b) / max(1, abs(b)) for (a, _), (b, _) in zip(found, wanted)),
            largest(abs(a - b) / b for (_, a), (_, b) in zip(found, wanted)))


def drawn_structure(runs, claims, structures, choose, file):
    if file not in structures:
        structures[file] = Structure(runs, claims, file)
    model = structures[file]
    plan = draw(choose, model, parameters(runs.binaries, model.file), modules(runs.binaries, model.file))
    plan.train = {}  # the plans of this file say what is trained
    text, one = plan.of(model, runs.binaries)
    title = f"{model.name} {flow(plan.mesh)} m {plan.microbatches}"
    return title, text, lambda title: model.compare(title, text, one)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", help="default: on the PATH",
                        default=pathlib.Path(shutil.which("par-compile") or ".").parent)
    parser.add_argument("--models", type=pathlib.Path, default=HERE / "zoo-structure")
    parser.add_argument("--only", default="", help="names, separated by commas")
    parser.add_argument("--plan", action="append", choices=sorted(PLANS), help="default: all")
    parser.add_argument("--random", type=int, help="how many plans to draw")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    files = sorted([*options.models.glob("*.onnx.gz"), *options.models.glob("*/model.onnx")])
    if options.only:
        called = {file: file.parent.name if file.name == "model.onnx" else file.name for file in files}
        files = [file for wanted in options.only.split(",") for file in files if called[file].startswith(wanted)]
    claims, begin = Claims(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="par-structures-") as work:
        runs = Runs(options.bin, work)
        if options.random:
            play(runs, claims, files, options.random, options.seed,
                 functools.partial(drawn_structure, runs, claims, {}))
        for file in [] if options.random else files:
            with claims.watch(file.name):
                structure = Structure(runs, claims, file)
            for plan in options.plan or PLANS:
                with claims.watch(f"{structure.name} {plan}"):
                    structure.check(plan)
    print("\n".join(f"FAIL {line}" for line in claims.failures))
    print(f"{claims.count} claims, {len(claims.failures)} failed, {time.monotonic() - begin:.0f} s")
    sys.exit(1 if claims.failures else 0)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Plans of models as ONNX's multi-device annotations and back, a line a plan: the same shardings, or why not.

    annotations.py --bin build/bin [--models FOLDER]... [--only gpt2,bert] [--plan tp2]... [--verbose]

Every model of the folders is compiled under every plan of PLANS with --emit=onnx; the annotated file keeps ONNX's rules
(--check-onnx-devices), and compiled from only its annotations (--onnx-sharding beside what is trained) it gives the
same devices, stages and shardings. Which values of the model are left in the compiled step depends on the rules, as a
rule keeps its value from being folded or fused: values that only one of both has are counted. A plan or an annotation
that is refused names its place: a file of the plan with a line, or a node; these are counted, too. No weights are read,
so files without them are models as well. Only Python's standard library is used. Exit status 0: all hold.
"""
import argparse
import gzip
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

from distributed import flow, listed, parameters, shards
from runs import HERE, Claims

sys.path.append(str(HERE.parent / "Onnx/Inputs"))
from mutate_devices import Model as AnnotatedModel  # noqa: E402

SHARED = HERE.parents[2] / "shared/models"


def tp(model):
    return "shard:\n" + "".join(f'  "{pattern}": {flow(rule)}\n' for pattern, rule in model.rules().items())


PLANS = {
    "dp2": lambda model: "mesh: {dp: 2}\n",
    "tp2": lambda model: "mesh: {tp: 2}\n" + tp(model),
    "dp2tp2": lambda model: "mesh: {dp: 2, tp: 2}\n" + tp(model),
    "tp2dp2": lambda model: "mesh: {tp: 2, dp: 2}\nmesh_order: [dp, tp]\n" + tp(model),
    "pp2": lambda model: "mesh: {pp: 2}\npipeline: {cuts: auto}\n",
    "pp4": lambda model: "mesh: {pp: 2}\npipeline: {cuts: auto, stages: 4}\n",
    "pp2dp2tp2": lambda model: "mesh: {pp: 2, dp: 2, tp: 2}\npipeline: {cuts: auto}\n" + tp(model),
    "megatron": lambda model: "use: [megatron]\nmesh: {dp: 2, tp: 2}\n",
    "megatron-sp": lambda model: "use: [megatron-sp]\nmesh: {tp: 2}\n",
}
# A refusal names a line of a plan, or a node of the model; or it is of the whole model or configuration.
PLACES = [re.compile(r"^\S+\.yaml:\d+:\d+: error: \S"),
          re.compile(r'^\S+\.onnx: error: node (".*"|number \d+, \w+): \S'),
          re.compile(r'^\S+\.onnx: error: (stages? |the plan|no sharding of )')]


class Model:
    def __init__(self, binaries, file, work):
        self.binaries, self.folder = binaries, work / f"{file.parent.name}-{file.name}"
        self.folder.mkdir()
        self.file = self.folder / "model.onnx"
        packed = file.name.endswith(".gz")
        self.name = file.name.removesuffix(".gz").removesuffix(".onnx")
        if self.name.split(".")[0] == "model":
            self.name = file.parent.name + self.name.removeprefix("model").replace(".", " ")
        if packed:
            self.file.write_bytes(gzip.decompress(file.read_bytes()))
        else:
            shutil.copy(file, self.file)
        self.step = self.folder / "step.yaml"
        self.write_step()

    def write_step(self):
        """The plan of the step: sizes, and a loss where the model has none."""
        said = listed(self.binaries, self.file, "inputs")
        names = re.findall(r"^  (\S+)  ", said.split("\noutputs")[1], re.M) if "\noutputs" in said else []
        symbols = sorted(set(re.findall(r"[\[ ]([A-Za-z]\w*)[,\]]", said)) - {"batch"})
        batch = "batch: 8\n" if re.search(r"\[batch[,\]]", said) else ""
        self.text = batch + ("dims: {" + ", ".join(f"{name}: 128" for name in symbols) + "}\n" if symbols else "")
        self.text += "train: {optimizer: sgd, lost: allow%s}\n" % ("" if "loss" in names else ", loss: cross_entropy")
        self.step.write_text(self.text)

    def rules(self):
        return shards(parameters(self.binaries, self.file), 2)


def annotations(file):
    """The configurations of a file, the stages of its nodes, and its shardings, both by node (and tensor)."""
    model = AnnotatedModel(file.read_bytes())
    stages, shardings = {}, {}
    for index, node in enumerate(model.nodes):
        for said in node.placed:
            stages[index] = said.get("stage")
            for sharding in said["shardings"]:
                shardings[index, sharding["tensor"]] = sharding
    return model.configurations, stages, shardings


def compile_with(binaries, *command):
    """Exit status, and the first error."""
    done = subprocess.run([binaries / "par-compile", *command], capture_output=True, text=True, timeout=900)
    errors = [line for line in done.stderr.splitlines() if ": error: " in line]
    return done.returncode, (errors or done.stderr.splitlines() or [""])[0]


class Trips:
    def __init__(self, binaries, claims):
        self.binaries, self.claims, self.refused, self.same = binaries, claims, [], 0
        self.values = self.others = 0

    def refuse(self, title, code, said):
        """A refusal that names its place is counted."""
        placed = code == 1 and any(place.match(said) for place in PLACES)
        self.claims.equal(f"{title}: refused at its place" + ("" if placed else f" ({said})"), placed, True)
        self.refused.append(f"{title}: {said}")

    def make(self, model, plan):
        title, folder = f"{model.name} {plan}", model.folder
        first, second, own = folder / "first.onnx", folder / "second.onnx", folder / f"{plan}.yaml"
        own.write_text(PLANS[plan](model))
        for file in (first, second):
            file.unlink(missing_ok=True)
        code, said = compile_with(self.binaries, model.file, model.step, own, "--emit=onnx", "-o", first, "-q")
        if code:
            return self.refuse(f"{title}: plan", code, said)
        code, said = compile_with(self.binaries, first, "--check-onnx-devices")
        self.claims.equal(f"{title}: ONNX's rules hold", said if code else "all", "all")
        again = ["--onnx-sharding", "--emit=onnx", "-o", second, "-q"]
        code, said = compile_with(self.binaries, first, model.step, *again)
        if code:
            return self.refuse(f"{title}: annotations", code, said)
        self.compare(title, annotations(first), annotations(second))

    def compare(self, title, first, second):
        (devices, *said), (devices_again, *said_again) = first, second
        differ = sorted((key for mine, its in zip(said, said_again) for key in mine.keys() & its.keys()
                         if mine[key] != its[key]), key=str)
        others = len(said[1].keys() ^ said_again[1].keys())
        self.claims.equal(f"{title}: shardings, {len(said[1])}, {others} values of one file", differ[:3], [])
        self.same += self.claims.equal(f"{title}: the devices again", devices == devices_again, True) and not differ
        self.values, self.others = self.values + len(said[1]), self.others + others


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, help="default: on the PATH",
                        default=pathlib.Path(shutil.which("par-compile") or ".").parent)
    parser.add_argument("--models", type=pathlib.Path, action="append", help=f"default: {SHARED}")
    parser.add_argument("--only", default="", help="begins of models' names, separated by commas")
    parser.add_argument("--plan", action="append", choices=list(PLANS), help="default: all")
    parser.add_argument("--verbose", action="store_true", help="prints what was refused")
    options = parser.parse_args()
    folders = options.models or [SHARED]
    files = sorted(file for folder in folders for pattern in ("*.onnx", "*.onnx.gz", "*/*.onnx", "*/*.onnx.gz")
                   for file in folder.glob(pattern))
    claims, begin = Claims(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="par-annotations-") as work:
        trips = Trips(options.bin.resolve(), claims)
        for file in files:
            if not any(name in (file.parent.name, file.name[:len(name)]) for name in options.only.split(",")):
                continue
            with claims.watch(str(file)):
                model = Model(trips.binaries, file, pathlib.Path(work))
            for plan in options.plan or PLANS:
                with claims.watch(f"{model.name} {plan}"):
                    trips.make(model, plan)
            shutil.rmtree(model.folder)
    if options.verbose:
        print("\n".join(trips.refused))
    user = os.times()
    print(f"{trips.same} plans the same again, {len(trips.refused)} refused at their place; "
          f"of {trips.values} shardings {trips.others} more or less; "
          f"{time.monotonic() - begin:.0f} s, {user.children_user:.0f} s of CPU")
    claims.finish()


if __name__ == "__main__":
    main()

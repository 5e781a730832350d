#!/usr/bin/env python3
"""Bounds what the shipped recipes send over tp at published widths and vocabularies: of a microbatch, in each layer and
outside of all layers, where the tables and heads of symbols are.

    recipe_bytes.py --bin build/bin [--only gpt2-xl]... [--recipe megatron-sp]... [--zero 1]... [--stages 2]...

The models are those of the folder wide, which zoo/structure.py --wide makes: two layers, no weights. They are compiled
in bf16 for h100-sxm with dp 2 and tp 4, and not run. The unit is what a rank sends to gather, or to scatter, one value
of a microbatch's tokens x width in bf16; a sum counts as two.
layers   a pair of matmuls: 4 units with megatron (a sum forward, one backward), 5 with megatron-sp (a gather and a
         scatter each, and a gather of what forward keeps shards of)
outside  a table: 2 units (a sum of the rows looked up, or a scatter of them and a gather of their gradient); a head: 2
         and 3; an encoder, for each stage that looks at it: 2, and 1 beside 2 in layers
No bound has a term of the vocabulary. Slack: a twentieth, for numbers a token and gradients of norms. If tp does not
divide the heads, attention runs whole: queries, keys, values and the gradient of what they give are gathered, too. Only
Python's standard library is used. Exit status 0: all hold.
"""
import argparse
import collections
import gzip
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from runs import HERE, Claims, Failed

TP, MICROBATCHES, LAYERS, BF16 = 4, 2, 2, 2
# Each model: tokens of a sample, width; of its texts together: pairs of matmuls, tables, heads, encoders that are
# looked at; `whole`: units of attention that runs whole;
# `moved`: pairs of which one sum is named after the module that follows the layers.
Family = collections.namedtuple("Family", "tokens width pairs tables heads looks whole moved",
                                defaults=(0, 0, 0))
FAMILIES = {
    "gpt2-xl": Family(1024, 1600, 4, 1, 1, whole=8),
    "gpt3": Family(2048, 12288, 4, 1, 1),
    "llama-3-8b": Family(2048, 4096, 4, 1, 1),
    "llama-3.2-1b": Family(2048, 2048, 4, 1, 1),
    "bert-large": Family(512, 1024, 4, 1, 1, moved=1),
    "t5-large": Family(512, 1024, 10, 2, 1, 1),
    "flan-t5-large": Family(512, 1024, 10, 2, 1, 1),
    "mixtral-8x7b": Family(2048, 4096, 4, 1, 1),
}
SAMPLES = 32
MEMBERS = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1, "all_to_all": 1}  # units of a value


def plan(recipe, zero, stages):
    mesh = f"{{pp: {stages}, dp: 2, tp: {TP}}}" if stages > 1 else f"{{dp: 2, tp: {TP}}}"
    return (f"target: h100-sxm\nmesh: {mesh}\nuse: [{recipe}]\nprecision: bf16\nzero: {zero}\n"
            f"batch: {{microbatches: {MICROBATCHES}}}\ncollectives: {{bucket: 0, overlap: false}}\n"
            "train: {optimizer: adamw}\n")


def report(binaries, work, file, text):
    """Output of par-compile for a plan."""
    path = work / "plan.yaml"
    path.write_text(text)
    done = subprocess.run([binaries / "par-compile", file, path, "--check", "--json"], capture_output=True, text=True,
                          check=False)
    said = json.loads(done.stdout)
    if done.returncode:
        raise Failed("; ".join(finding["message"] for finding in said["findings"] if not finding["warning"]))
    return said


def units_sent(said, unit):
    """(units in layers, units outside, largest value outside) of all roles, for one microbatch."""
    layers = outside = largest = 0
    for sent in said["collectives"]:
        if sent["axis"] != "tp":
            continue
        # Once a step: gradients of what all ranks have, and new values.
        times = sent["count"] // MICROBATCHES
        units = times * MEMBERS[sent["kind"].split()[0]] * sent["bytes"] / unit
        if re.search(r"\.(h|layer|layers|block)\.\d+(\.|,|$)", sent.get("place", "")):
            layers += units
        else:
            outside += units
            largest = max(largest, sent["bytes"] if times else 0)
    return layers, outside, largest


def check(claims, binaries, work, name, recipe, zero, stages):
    family = FAMILIES[name]
    file = work / f"{name}.onnx"
    if not file.exists():
        file.write_bytes(gzip.decompress((HERE / f"wide/{name}.onnx.gz").read_bytes()))
    unit = SAMPLES // 2 // MICROBATCHES * family.tokens * family.width * BF16
    layers, outside, largest = units_sent(report(binaries, work, file, plan(recipe, zero, stages)), unit)
    parts = recipe == "megatron-sp"
    looks = family.looks * stages
    most_layers = family.pairs * (5 if parts else 4) + family.whole + 2 * parts * looks - (2 - parts) * family.moved
    most_outside = 2 * family.tables + (3 if parts else 2) * family.heads + (2 - parts) * (looks + family.moved)
    title = f"{name} {recipe} zero {zero} pp {stages}"
    claims.hold(f"{title}: in layers", layers, 1.05 * most_layers, unit="units")
    claims.hold(f"{title}: outside", outside, 1.05 * most_outside, unit="units")
    claims.hold(f"{title}: largest outside", largest / unit, 1, unit="units")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", help="default: on the PATH", type=pathlib.Path,
                        default=pathlib.Path(shutil.which("par-compile") or ".").parent)
    parser.add_argument("--only", action="append", choices=sorted(FAMILIES))
    parser.add_argument("--recipe", action="append", choices=["megatron", "megatron-sp"])
    parser.add_argument("--zero", action="append", type=int, help="default: 0, 1 and 2")
    parser.add_argument("--stages", action="append", type=int, help="default: 1 and 2")
    options = parser.parse_args()
    claims = Claims()
    with tempfile.TemporaryDirectory(prefix="par-recipe-bytes-") as work:
        for name in options.only or FAMILIES:
            for recipe in options.recipe or ["megatron", "megatron-sp"]:
                for zero in options.zero or [0, 1, 2]:
                    for stages in options.stages or [1, 2]:
                        with claims.watch(f"{name} {recipe} zero {zero} pp {stages}"):
                            check(claims, options.bin, pathlib.Path(work), name, recipe, zero, stages)
    claims.finish()


if __name__ == "__main__":
    sys.exit(main())

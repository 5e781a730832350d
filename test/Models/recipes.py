#!/usr/bin/env python3
"""Checks the shipped recipes on a model of each family of names, a line a claim: figure, bound, pass or FAIL.

    recipes.py --bin build/bin [--models FOLDER] [--only llama]... [--recipe megatron-sp]... [--part
    counts|numbers|chunks]...
               [--microbatches 2]... [--chunks 2]...

FOLDER is as models.py describes it; without it gpt2 is the one beside this file, and the others are those of the folder
recipes, which are the same models without their weights: they give no numbers. Four ranks; tp has two of them if a
model has two heads of keys and values.
numbers  ten steps equal one rank's within the bounds of distributed.py
counts   activations that a rank of tp sends in a step are those that Megatron-LM's papers state: a sum for each pair of
         matmuls forward and one backward (two pairs a layer, three in a decoder that reads an encoder); one more
         forward for a table sharded by rows, one backward for a head sharded so and for each encoder that is read. With
         sequence parallelism a gather and a scatter replace each sum; backward gathers again the sharded residuals: the
         input of each pair and head, except of experts that read rows picked for them. A table's gradient is gathered
         with its tokens, or summed and scattered itself if that takes less time, which is counted separately. With
         several microbatches each sends its own, and all of them together as many bytes as one would. With bf16 it is
         the same in bf16, except for gradients of tables (and for experts' results, which the model itself weights in
         f32).
chunks   with collectives.decompose a gather before a pair and the scatter after it are so many chunks, which together
         send as many elements; ten steps equal one rank's within the same bounds
Only Python's standard library is used. Exit status 0: all hold.
"""
import argparse
import collections
import json
import pathlib
import shutil
import tempfile
import types

from distributed import Pair, Plan
from models import Model
from runs import HERE, Claims, Runs

TRAIN = "train: {optimizer: {kind: sgd, lr: 0.1}}\n"
# For each text that a model reads: tokens of a batch on a rank (padded, if tp shards them), pairs of matmuls, tables
# and heads that are sharded by the vocabulary, whether another text looks at it, tokens that are taken out of it, and
# pairs of experts whose input forward keeps as they read it, a row for each expert of a token, so that backward need
# not gather it.
Text = collections.namedtuple("Text", "tokens pairs tables heads looks taken kept", defaults=(0, 0, 0))
FAMILIES = {
    "gpt2": ({"tp": 4}, 64, [Text(8 * 32, 8, 1, 1)]),
    "llama": ({"dp": 2, "tp": 2}, 32, [Text(4 * 32, 4, 1, 1)]),
    "bert": ({"tp": 4}, 32, [Text(8 * 32, 4, 1, 1)]),
    "t5": ({"tp": 4}, 32, [Text(8 * 32, 4, 1, 0, 1), Text(8 * 16, 6, 1, 1)]),
    "vit": ({"dp": 2, "tp": 2}, 32, [Text(4 * 18, 4, 0, 0, 0, 1)]),
    "mixtral": ({"dp": 2, "tp": 2}, 32, [Text(4 * 32, 4, 1, 1, kept=2)]),
}


def sent(bundle, least):
    """(phase, kind) -> collectives over tp of a rank's step, the elements that all of them move to a rank, and how many
    are of which type; what is smaller than `least` elements (numbers a token, and scalars) is left out."""
    manifest, program = (json.loads((bundle / f"{name}.json").read_text()) for name in ("manifest", "role-0"))
    ranks = {c["name"]: len(c["groups"][0]) for c in manifest["communicators"]}
    counts, elements, formats = collections.Counter(), 0, collections.Counter()
    for block, _, _ in program["entries"]["train"]:
        phase = "forward" if "forward" in block else "backward"
        for i in program["blocks"][block]:
            if i["op"] != "coll" or i["comm"].split(".")[0] != "tp":
                continue
            whole = i["n"] * (1 if i["kind"] == "all_reduce" else ranks[i["comm"]])
            if whole >= least:
                counts[phase, i["kind"]] += 1
                formats[i["type"]] += 1
                elements += whole * (2 if i["kind"] == "all_reduce" else 1)
    return counts, elements, formats


def total(texts, count):
    return sum(count(text) for text in texts)


def check_counts(runs, claims, name, recipe, file, microbatches):
    mesh, hidden, texts = FAMILIES[name]

    def measure(microbatches, precision="f32"):
        plan = Plan(mesh, microbatches, use=f"[{recipe}]", shard={})
        bundle = runs.compile(file,
                              plan.of(types.SimpleNamespace(name=name), runs.binaries)[0] + TRAIN
                              + f"precision: {precision}\n")
        return sent(bundle, min(text.tokens for text in texts) // 18 * 17 * hidden // microbatches)

    counts, elements, _ = measure(microbatches)
    if microbatches > 1:
        claims.equal(f"{name} {recipe} m{microbatches}: elements sent, as with one microbatch", elements, measure(1)[1])
        counts = collections.Counter({key: count / microbatches for key, count in counts.items()})
        name = f"{name} m{microbatches}"
    title, sums = f"{name} {recipe}", recipe == "megatron"
    # The counterpart of each sum, gather and scatter.
    forward = total(texts, lambda text: text.pairs + text.tables)
    backward = total(texts, lambda text: text.pairs + text.heads + text.looks)  # as many inputs are gathered, twice
    if sums:
        wanted = {("forward", "all_reduce"): forward, ("backward", "all_reduce"): backward}
    else:
        wanted = {("forward", "reduce_scatter"): forward,
                  ("forward", "all_gather"): backward + total(texts, lambda text: text.taken),
                  ("backward", "reduce_scatter"): backward,
                  ("backward", "all_gather"): total(texts,
                                                    lambda text: text.pairs + text.tables + text.taken - text.kept)
                  + backward}
    # A table's gradient may be scattered instead of its tokens' gathered; that of a table of several texts once,
    # summed.
    scattered = counts["backward", "reduce_scatter"] - wanted.get(("backward", "reduce_scatter"), 0)
    tables = wanted.get(("backward", "all_gather"), 0) - counts["backward", "all_gather"]
    if not sums and 0 < scattered <= tables <= total(texts, lambda text: text.tables):
        print(f"{title}: gradients of {tables} tables are summed and scattered in {scattered}")
        wanted["backward", "reduce_scatter"] += scattered
        wanted["backward", "all_gather"] -= tables
    else:
        scattered = 0
    if microbatches == 1 and not total(texts, lambda text: text.kept):
        narrow, _, formats = measure(1, "bf16")
        claims.equal(f"{title} bf16: collectives", sum(narrow.values()), sum(counts.values()))
        claims.equal(f"{title} bf16: of them in f32", formats["f32"], scattered)
    for (phase, kind), count in wanted.items():
        claims.equal(f"{title}: {phase} {kind}", counts[phase, kind], count)
    claims.equal(f"{title}: of other kinds", sum(counts.values()) - sum(wanted.values()), 0)


def check_chunks(runs, claims, model, recipe, chunks):
    mesh, hidden, texts = FAMILIES[model.name]
    least = min(text.tokens for text in texts) // 18 * 17 * hidden

    def pair(decompose):
        plan = Plan(mesh, use=f"[{recipe}]", shard={}, collectives=f"{{decompose: {decompose}}}")
        return Pair(runs, model, plan)

    (whole, elements, _), cut = sent(runs.compile(model.file, pair("none").plan), least), pair(chunks)
    parts, moved, _ = sent(runs.compile(model.file, cut.plan), least // chunks)
    title = f"{model.name} {recipe} in {chunks}"
    for phase, kind in sorted(whole):
        more, rest = divmod(parts[phase, kind] - whole[phase, kind], chunks - 1)
        print(f"{title}: {phase} {kind}: {more} of {whole[phase, kind]} are cut")
        claims.equal(f"{title}: {phase} {kind} cut otherwise", rest, 0)
    claims.equal(f"{title}: some are cut", sum(parts.values()) > sum(whole.values()), True)
    claims.equal(f"{title}: elements sent", moved, elements)
    loss, share, worst = cut.compare()
    claims.hold(f"{title}: losses to one rank's", loss, 2e-5)
    claims.hold(f"{title}: weights, worst {worst[-40:]}", share, 1, unit="of the bound")


def check(runs, claims, name, recipe, options):
    folder = options.models or HERE
    file = folder / name / "model.onnx"
    trains = file.exists()
    if "counts" in options.part:
        for microbatches in options.microbatches or [1]:
            check_counts(runs, claims, name, recipe, file if trains else HERE / "recipes" / f"{name}.onnx.gz",
                         microbatches)
    if "chunks" in options.part and trains and recipe == "megatron-sp":
        for chunks in options.chunks or [2]:
            check_chunks(runs, claims, Model(file), recipe, chunks)
    if "numbers" in options.part and trains:
        loss, share, worst = Pair(runs, Model(file), Plan(FAMILIES[name][0], use=f"[{recipe}]", shard={})).compare()
        claims.hold(f"{name} {recipe}: losses to one rank's", loss, 2e-5)
        claims.hold(f"{name} {recipe}: weights, worst {worst[-40:]}", share, 1, unit="of the bound")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", help="default: on the PATH",
                        default=pathlib.Path(shutil.which("par-compile") or ".").parent)
    parser.add_argument("--models", type=pathlib.Path)
    parser.add_argument("--only", action="append", choices=sorted(FAMILIES))
    parser.add_argument("--recipe", action="append", choices=["megatron", "megatron-sp"])
    parser.add_argument("--microbatches", action="append", type=int, help="of the counts; default: 1")
    parser.add_argument("--part", action="append", choices=["counts", "numbers", "chunks"])
    parser.add_argument("--chunks", action="append", type=int, help="of the chunks; default: 2")
    options = parser.parse_args()
    options.part = options.part or ["counts", "numbers", "chunks"]
    claims = Claims()
    with tempfile.TemporaryDirectory(prefix="par-recipes-") as work:
        runs = Runs(options.bin, work)
        for name in options.only or FAMILIES:
            for recipe in options.recipe or ["megatron", "megatron-sp"]:
                with claims.watch(f"{name} {recipe}"):
                    check(runs, claims, name, recipe, options)
    claims.finish()


if __name__ == "__main__":
    main()

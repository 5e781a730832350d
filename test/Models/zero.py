#!/usr/bin/env python3
"""Holds what `zero` does against one rank, closed forms and itself, a line a claim: figure, bound, pass or FAIL.

    zero.py --bin build/bin [--part numbers|bf16|phases|bytes|axes|memory|masters|saves]... [--only gpt2]
            [--case zero1-dp4]... [--optimizer sgd] [--ranks 2]...
    zero.py --bin build/bin --part numbers --part bf16 --part phases --models FOLDER
    zero.py --bin build/bin --part bytes --part memory --structure gpt2-xl.onnx.gz... --ranks 64

numbers  every model of this folder, or of one as distributed.py takes it, under levels 1 to 3 on dp 4, dp 2 x tp 2 and
         pp 2 x dp 2 with 4 microbatches, and over one of two batch axes, sgd and adamw, clipped in half: ten steps
         equal one rank's within the bounds of distributed.py
bf16     the same with precision: bf16: losses are no farther from one rank's in f32 than four times those of one rank
         in bf16
phases   the same plans: the interpreter agrees in float64 after every phase
bytes    what a rank of the emitted program sends in a step, by closed form, with the padding of uneven dims. Psi
         elements are spread over N ranks, the rest (smaller than min_size) is whole and costs an all-reduce at every
         level:
             0      2 Psi (N-1)/N       all-reduce
             1      2 Psi (N-1)/N       reduce-scatter once, all-gather of the new values
             2  (1+m) Psi (N-1)/N       reduce-scatter in each of m microbatches
             3  m Psi + m Psi + m B, times (N-1)/N: gathers forward, and backward of the B elements that it reads
             3 with gather: step  (1+m) Psi (N-1)/N
         of this folder's gpt2, or of other files with GPT-2's names, which need no weights
axes     the same where the mesh has two axes
memory   params, grads and states of a rank: 4 (1 + 1 + 2) Psi bytes in f32 under adamw, and their divisions by N
masters  the same in bf16, whose matmuls read 2 bytes a parameter of Psi elements that are f32 on shards: 2 + 4 + 12 / N
         bytes at level 1 and 2 + 16 / N at level 2, and 2 Psi (N-1)/N bytes gathered once a step. Parameters that are
         read in f32 stay whole. Levels 0 and 3 as they are
saves    a checkpoint of each plan is read by each other one, and the step from there is the same within the bounds
Only Python's standard library is used. Exit status 0: all hold.
"""
import argparse
import json
import math
import pathlib
import shutil
import sys
import tempfile
import types

from distributed import Pair, Plan
from models import find
from runs import HERE, Claims, Runs, largest

F32 = 4
# A plan rounds the same numbers in another order: errors of the same size, of which the largest of ten steps is
# compared.
NARROW, BF16 = 4, "precision: bf16\n"
ADAMW = "train: {optimizer: {kind: adamw, lr: 1e-3}}\n"


def cases():
    plans = {}
    for level in (1, 2, 3):
        plans[f"zero{level}-dp4"] = Plan({"dp": 4}, 2, zero=level)
        plans[f"zero{level}-dp2tp2"] = Plan({"dp": 2, "tp": 2}, 2, zero="{level: %d, min_size: 0}" % level,
                                            train={"clip": 0.5})
        plans[f"zero{level}-pp2dp2"] = Plan({"pp": 2, "dp": 2}, 4, pipeline="{cuts: auto}", zero=level,
                                            train={"clip": 0.5})
        plans[f"zero{level}-hsdp"] = Plan({"rep": 2, "dp": 2}, 2, over=("rep", "dp"),
                                          zero="{level: %d, over: dp}" % level)
    plans["step-dp4"] = Plan({"dp": 4}, 2, zero="{level: 3, gather: step}")
    plans["step-dp2tp2"] = Plan({"dp": 2, "tp": 2}, 2, zero="{level: 3, gather: step, min_size: 0}",
                                train={"clip": 0.5})
    plans["step-pp2dp2"] = Plan({"pp": 2, "dp": 2}, 4, pipeline="{cuts: auto}", zero="{level: 3, gather: step}")
    return plans


CASES = cases()


def trained(options):
    """(title, model, case, optimizer) of each that is held against one rank."""
    models = [model for model in find(options.models, options.only, ["plain"]) if not model.lost()]
    if not models:
        sys.exit(f"zero.py: no such models in {options.models}")
    return [(f"{model.name} {case} {optimizer}", model, CASES[case], optimizer) for model in models
            for case in options.case or CASES
            for optimizer in options.optimizer or ["sgd", "adamw"]]


def numbers(runs, claims, options):
    for title, model, case, optimizer in trained(options):
        with claims.watch(title):
            bound = 1e-4 if optimizer == "adamw" else 2e-5
            loss, share, worst = Pair(runs, model, case, optimizer).compare(bound)
            claims.hold(f"{title}: losses to one rank's", loss, bound)
            claims.hold(f"{title}: weights, worst {worst[-40:]}", share, 1, unit="of the bound")


def narrow(runs, claims, options):
    alone = {}  # losses of one rank, by model and plan
    for title, model, case, optimizer in trained(options):
        with claims.watch(f"{title} in bf16"):
            pair = Pair(runs, model, case, optimizer)
            for plan in (pair.one, pair.one + BF16):
                if (model.file, plan) not in alone:
                    alone[model.file, plan] = pair.train(plan)[0]
            one, found = (largest(abs(a - b) for a, b in zip(losses, alone[model.file, pair.one]))
                          for losses in (alone[model.file, pair.one + BF16], pair.train(pair.plan + BF16)[0]))
            claims.hold(f"{title} in bf16: losses to one rank's in f32", found, max(NARROW * one, 1e-3))


def phases(runs, claims, options):
    file = runs.work / "checked.yaml"
    for title, model, case, optimizer in trained(options):
        with claims.watch(f"{title}: phases that were checked"):
            file.write_text(Pair(runs, model, case, optimizer).plan)
            said = runs.run(runs.binaries / "par-compile", model.file, file, "--check", "--check-phases")
            claims.equal(f"{title}: phases that were checked", said.count("checked "), 11)


class Bundle:
    """The programs of a bundle whose ranks are all of one role, and what they hold of each parameter."""

    def __init__(self, folder):
        self.manifest = json.loads((folder / "manifest.json").read_text())
        self.program = json.loads((folder / "role-0.json").read_text())
        self.members = {c["name"]: len(c["groups"][0]) for c in self.manifest["communicators"]}
        self.layouts = {t["name"]: self.manifest["layouts"][t["layout"]] for t in self.manifest["tensors"]}
        self.parameters = {t["name"]: math.prod(t["stored"]) for t in self.manifest["tensors"]
                           if t["kind"] == "parameter"}
        self.states = {t["name"]: t["of"] for t in self.manifest["tensors"] if t["kind"] == "state"}

    def sent(self, group=None):
        """Elements that a train entry sends by each kind of collective, only within groups of these ranks if some are
        named; those of one element (loss, norm) are counted separately."""
        groups = {c["name"]: next(g for g in c["groups"] if 0 in g) for c in self.manifest["communicators"]}
        total = dict.fromkeys(["all_reduce", "reduce_scatter", "all_gather", "all_to_all", "scalars"], 0)
        for block, _, _ in self.program["entries"]["train"]:
            for i in self.program["blocks"][block]:
                if i["op"] != "coll" or (group and groups[i["comm"]] != group):
                    continue
                ranks = self.members[i["comm"]]
                if i["kind"] == "all_reduce":
                    total["scalars" if i["n"] == 1 else "all_reduce"] += 2 * (ranks - 1) * i["n"] / ranks
                else:
                    total[i["kind"]] += (ranks - 1) * i["n"]
        return total

    def kept(self, type):
        """Elements of this type that collectives gather once a step, before its microbatches."""
        return sum(self.members[i["comm"]] * i["n"] for block, _, _ in self.program["entries"]["train"]
                   for i in self.program["blocks"][block]
                   if i["op"] == "coll" and i["kind"] == "all_gather" and i["type"] == type)

    def local(self, name):
        return math.prod(self.layouts[name]["local"])

    def bytes(self, wanted):
        sizes = {"f32": 4, "i64": 8, "i32": 4, "i1": 1, "bf16": 2}
        return sum(sizes[b["type"]] * math.prod(b["shape"]) * len(b["at"]) for b in self.program["buffers"]
                   if b.get("space", "dev") == "dev" and wanted(b))


def spread(bundle, ranks):
    """Parameters whose states lie on shards, with their size on all ranks together, padding included; and the
    others."""
    parts, whole = {}, {}
    for state, name in bundle.states.items():
        if state.endswith(".m"):
            local, size = bundle.local(state), bundle.parameters[name]
            (whole if local == size else parts)[name] = size if local == size else local * ranks
    return parts, whole


def hold_spread(claims, title, bundle, parts):
    """All that is large enough is spread, so that no closed form holds of nothing."""
    large = sum(size for size in bundle.parameters.values() if size >= 1024)
    claims.equal(f"{title}: spread", sum(bundle.parameters[name] for name in parts), large)


def read_backward(name):
    """GPT-2's backward part reads the weights of matmuls and norms, not biases and looked-up tables."""
    return not name.endswith(".bias") and not name.endswith("wpe.weight")


def structures(options):
    """(file, name, the most microbatches on so many ranks) of the models whose bytes are counted."""
    if not options.structure:
        return [(HERE / "gpt2/model.onnx", "gpt2", lambda ranks: max(1, 8 // ranks))]
    return [(file, file.name.partition(".")[0], lambda ranks: 2) for file in options.structure]


def check_bytes(runs, claims, options):
    for model, name, most in structures(options):
        for ranks in options.ranks or (2, 4, 8):
            for microbatches in sorted({1, most(ranks)}):
                level0 = None
                for level, once in ((0, ""), (1, ""), (2, ""), (3, ""), (3, ", gather: step")):
                    plan = (f"mesh: {{dp: {ranks}}}\nbatch: {{microbatches: {microbatches}}}\n"
                            f"zero: {{level: {level}{once}}}\n")
                    title = f"{name} zero {level}{once} dp {ranks} m {microbatches}"
                    total = hold_bytes(claims, title, Bundle(runs.compile(model, plan + ADAMW)), ranks, microbatches,
                                       level, once)
                    level0 = level0 or total
                    print(f"{title}: {total / level0:.3f} of level 0", flush=True)


def hold_bytes(claims, title, bundle, ranks, microbatches, level, once):
    """Bytes that a rank sends in a step, each kind of collective held against its closed form."""
    sent = bundle.sent()
    parts, whole = spread(bundle, ranks) if level else ({}, bundle.parameters)
    if level:
        hold_spread(claims, title, bundle, parts)
    psi, rest, exact = sum(parts.values()), sum(whole.values()), sum(bundle.parameters[name] for name in parts)
    share = (ranks - 1) / ranks
    backward = sum(size for name, size in parts.items() if read_backward(name))
    gathers = {0: 0, 1: psi, 2: psi, 3: psi if once else microbatches * (psi + backward)}[level]
    scatters = psi * (microbatches if level > 1 else 1)
    claims.hold(f"{title}: all-reduced - 2 {rest} (N-1)/N", abs(sent["all_reduce"] - 2 * rest * share), 0.01)
    claims.hold(f"{title}: scattered - {scatters} (N-1)/N", abs(sent["reduce_scatter"] - scatters * share), 0.01)
    claims.hold(f"{title}: gathered - {gathers} (N-1)/N", abs(sent["all_gather"] - gathers * share), 0.01)
    claims.equal(f"{title}: all-to-all", sent["all_to_all"], 0)
    total = F32 * sum(sent.values())
    print(f"{title}: {total:.0f} B sent; Psi {exact} + {psi - exact} of padding spread, {rest} whole")
    return total


def check_two_axes(runs, claims, options):
    """Rank 0 of 2 x 2: over one of two batch axes shards are summed over the other once a step; beside tensor
    parallelism what tp leaves of a parameter is spread, and what tp sends stays as it was."""
    model, microbatches = HERE / "gpt2/model.onnx", 2
    for title, plan in (("rep 2 x dp 2", "mesh: {rep: 2, dp: 2}\nbatch: {microbatches: 2, over: [rep, dp]}\n"),
                        ("dp 2 x tp 2", "use: [megatron]\nmesh: {dp: 2, tp: 2}\nbatch: {microbatches: 2}\n")):
        title = f"gpt2 zero 3 on {title}"
        tensor = "tp" in title
        inner, outer = ([0, 2], [0, 1]) if tensor else ([0, 1], [0, 2])
        base = Bundle(runs.compile(model, plan + ADAMW))
        bundle = Bundle(runs.compile(model, plan + f"zero: {{level: 3, over: dp}}\n" + ADAMW))
        parts = {name: 2 * bundle.local(name) for name in bundle.parameters if bundle.local(name) < base.local(name)}
        hold_spread(claims, title, bundle, parts)
        psi, backward = sum(parts.values()), sum(size for name, size in parts.items() if read_backward(name))
        sent, across = bundle.sent(inner), bundle.sent(outer)
        claims.equal(f"{title}: scattered", sent["reduce_scatter"], microbatches * psi / 2)
        claims.equal(f"{title}: gathered", sent["all_gather"], microbatches * (psi + backward) / 2)
        if tensor:
            # The norm's scalars are summed over both axes at once.
            kinds = [kind for kind in across if kind != "scalars"]
            claims.equal(f"{title}: over tp, as without",
                         *([sent[kind] for kind in kinds] for sent in (across, base.sent(outer))))
        else:
            claims.equal(f"{title}: shards summed over rep", across["all_reduce"], psi / 2)
            claims.equal(f"{title}: nothing else over rep", across["reduce_scatter"] + across["all_gather"], 0)


def check_memory(runs, claims, options):
    for model, name, most in structures(options):
        for ranks in options.ranks or (2, 4, 8):
            for level in (0, 1, 2, 3):
                microbatches = min(2, most(ranks))
                plan = f"mesh: {{dp: {ranks}}}\nbatch: {{microbatches: {microbatches}}}\nzero: {level}\n" + ADAMW
                bundle = Bundle(runs.compile(model, plan))
                hold_memory(claims, f"{name} zero {level} dp {ranks}", bundle, ranks, microbatches, level)


def hold_memory(claims, title, bundle, ranks, microbatches, level):
    """Bytes of a rank's parameters, states and gradients; these where there are microbatches to sum over."""
    kinds = {t["name"]: t["kind"] for t in bundle.manifest["tensors"]}
    parts, whole = spread(bundle, ranks) if level else ({}, bundle.parameters)
    if level:
        hold_spread(claims, title, bundle, parts)
    rest, psi = sum(whole.values()), sum(bundle.parameters[name] for name in parts)
    shard = sum(parts.values()) // ranks
    state = lambda *wanted: bundle.bytes(lambda b: b["kind"] == "state" and kinds.get(b.get("tensor")) in wanted)
    divided = lambda at: F32 * ((shard if level >= at else psi) + rest)
    padding = sum(parts.values()) - psi  # for which whole parameters that are updated in shares have room
    claims.equal(f"{title}: params", state("parameter"), divided(3) + (F32 * padding if level in (1, 2) else 0))
    claims.equal(f"{title}: states", state("state"), 2 * divided(1))
    sums = bundle.bytes(lambda b: ".sum." in b["name"] and b["name"].rsplit(".sum.")[1] in bundle.parameters)
    if microbatches > 1:
        claims.equal(f"{title}: grads", sums, divided(2))
    print(f"{title}: Psi {psi} + {padding} of padding over {ranks} ranks, {rest} whole, peak "
          f"{bundle.manifest['peak'][0]}")


def check_masters(runs, claims, options):
    for model, name, most in structures(options):
        for ranks in options.ranks or (2, 4, 8):
            for level in (1, 2):
                plan = f"mesh: {{dp: {ranks}}}\nbatch: {{microbatches: {most(ranks)}}}\nzero: {level}\n" + ADAMW + BF16
                title = f"{name} bf16 zero {level} dp {ranks}"
                hold_masters(claims, title, Bundle(runs.compile(model, plan)), ranks, level)


def hold_masters(claims, title, bundle, ranks, level):
    """Bytes of the masters, their states, their gradients, and what is gathered of them."""
    masters = {name: size for name, size in bundle.parameters.items() if bundle.local(name) < size}
    claims.equal(f"{title}: masters", sorted(masters), sorted(
        name for name, size in bundle.parameters.items() if size >= 1024))
    psi, padded = sum(masters.values()), sum(bundle.local(name) * ranks for name in masters)
    kinds = {t["name"]: t["kind"] for t in bundle.manifest["tensors"]}
    state = lambda wanted: bundle.bytes(lambda b: b["kind"] == "state" and kinds.get(b["tensor"]) == wanted and
                                        bundle.states.get(b["tensor"], b["tensor"]) in masters)
    sums = bundle.bytes(lambda b: ".sum." in b["name"] and b["name"].rsplit(".sum.")[1] in masters)
    rounded = 2 * bundle.kept("bf16")
    claims.equal(f"{title}: masters and states, 12 / N", state("parameter") + state("state"), 12 * padded // ranks)
    claims.equal(f"{title}: gradients", sums, F32 * (padded // ranks if level == 2 else psi))
    claims.equal(f"{title}: rounded, 2", rounded, 2 * padded)
    claims.equal(f"{title}: gathered, elements", bundle.sent()["all_gather"], padded * (ranks - 1) // ranks)
    print(f"{title}: {(state('parameter') + state('state') + sums + rounded) / psi:.2f} bytes of each of {psi}")


def check_saves(runs, claims, options):
    model, data = HERE / "gpt2/model.onnx", HERE / "gpt2/data.safetensors"
    plans = {"one": "", "zero0": "mesh: {dp: 4}\n",
             **{case: None for case in CASES if "hsdp" not in case or "3" in case}}
    fake = types.SimpleNamespace(name="gpt2", file=model)
    for name in plans:
        if plans[name] is None:
            plans[name] = CASES[name].of(fake, runs.binaries)[0]
    saved = {}
    for name, plan in plans.items():
        if options.case and name not in options.case:
            continue  # of the plans that save; all resume
        folder = runs.work / f"saves-{name}"
        bundle = runs.compile(model, plan + ADAMW)
        lines, weights = runs.train(bundle, data, 4, "--save", folder, "--save-every", "2")
        saved[name] = folder, [line["loss"] for line in lines], weights.read_bytes()
    for source, (folder, losses, whole) in saved.items():
        for target, plan in plans.items():
            copy = runs.work / "resumed"
            shutil.rmtree(copy, ignore_errors=True)
            copy.mkdir()
            shutil.copytree(folder / "2", copy / "2")
            title = f"gpt2 saved by {source}, resumed by {target}"
            with claims.watch(title):
                lines, weights = runs.train(runs.compile(model, plan + ADAMW), data, 4, "--resume", copy / "2")
                claims.hold(f"{title}: losses",
                            largest(abs(line["loss"] - loss) for line, loss in zip(lines, losses[2:])), 2e-5)
                claims.equal(f"{title}: steps", len(lines), 2)
                if source == target:
                    claims.equal(f"{title}: weights are the same bits", weights.read_bytes() == whole, True)


PARTS = {"numbers": numbers, "bf16": narrow, "phases": phases, "bytes": check_bytes, "axes": check_two_axes,
         "memory": check_memory, "masters": check_masters, "saves": check_saves}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", help="default: on the PATH",
                        default=pathlib.Path(shutil.which("par-compile") or ".").parent)
    parser.add_argument("--part", action="append", choices=sorted(PARTS), help="default: all")
    parser.add_argument("--models", type=pathlib.Path, default=HERE,
                        help="of numbers, bf16 and phases; default: this script's folder")
    parser.add_argument("--only", action="append", help="of these: a model's name; default: all")
    parser.add_argument("--case", action="append", choices=sorted(CASES))
    parser.add_argument("--optimizer", action="append", choices=["sgd", "adamw"])
    parser.add_argument("--ranks", action="append", type=int, help="of bytes and memory; default: 2, 4 and 8")
    parser.add_argument("--structure", action="append", type=pathlib.Path,
                        help="of bytes and memory: a model file; repeat")
    options = parser.parse_args()
    claims = Claims()
    with tempfile.TemporaryDirectory(prefix="par-zero-") as work:
        for part in options.part or PARTS:
            PARTS[part](Runs(options.bin, work), claims, options)
    claims.finish()


if __name__ == "__main__":
    main()

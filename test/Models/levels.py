#!/usr/bin/env python3
"""Collectives in two levels (collectives.algorithm: hierarchical) on hosts of two or four ranks, a line a claim.

    levels.py --bin build/bin [--part numbers|bytes|sim|checks]... [--only gpt2] [--case dp4]...

numbers  models of this folder under each plan equal one rank within the bounds of distributed.py (in bf16 only losses,
         within that of precision.py), and par-verify proves the bundle
bytes    bytes that leave a host in a step, by closed form, from the emitted program. For n bytes over h hosts of r
         ranks each:
             all-reduce                      2 n (h-1)/h       in one, by a ring: 2 n (hr-1)/hr
             all-gather of shards of n/hr    n (h-1)/h                            n (hr-1)/hr
             reduce-scatter                  n (h-1)/h                            n (hr-1)/hr
         (r links share it), and bytes of each rank within its host: 2 n (r-1)/r, n (r-1)/r, n (r-1)/r
sim      20 interleavings on simulated queues: no race, the same bits
checks   --check-phases: the interpreter agrees after every phase
Only Python's standard library is used. Exit status 0: all hold.
"""
import argparse
import json
import pathlib
import shutil
import tempfile

from distributed import Pair, Plan
from models import find
from runs import HERE, Claims, Runs
from zero import Bundle

CASES = {  # ranks a host, plan
    "dp4": (2, Plan({"dp": 4}, 2)),
    "dp4-overlapped": (2, Plan({"dp": 4}, 1, collectives="{bucket: 64KiB}", train={"clip": 0.5})),
    "dp4-zero1": (2, Plan({"dp": 4}, 2, zero="{level: 1, min_size: 0}", train={"clip": 0.5})),
    "dp4-zero2": (2, Plan({"dp": 4}, 2, zero=2)),
    "dp4-zero3": (2, Plan({"dp": 4}, 2, zero="{level: 3, min_size: 0}")),
    "dp4-zero3-step": (2, Plan({"dp": 4}, 2, zero="{level: 3, gather: step}")),
    "tp4": (2, Plan({"tp": 4})),
    "dp4tp2": (4, Plan({"dp": 4, "tp": 2}, zero=1)),
    "pp2dp4": (2, Plan({"pp": 2, "dp": 4}, 2, pipeline="{cuts: auto}", zero=1)),
    "dp4-bf16": (2, Plan({"dp": 4}, 2, precision="{compute: bf16, reduce: bf16}", train={"clip": 0.5})),
    "dp4-zero2-bf16": (2, Plan({"dp": 4}, 2, zero=2, precision="{compute: bf16, reduce: bf16}")),
    "dp8": (4, Plan({"dp": 8}, collectives="{overlap: false}")),
}


def hardware(runs, each, between=True):
    """A slow way out of each host: the file that plans name. Without `between` ranks have one link everywhere."""
    file = pathlib.Path(runs.work) / f"{each}-a-host{'' if between else '-flat'}.yaml"
    file.write_text(f"name: {each}-a-host\npeak: {{f32: 220000, f64: 110000}}\nmemory: 38000\nlink: 10000\nlatency: "
                    f"4000\n"
                    f"launch: 250\noverlap: false\ncores: host\nranks: {each}\n"
                    + "between: {link: 100, latency: 30000}\n" * between)
    return file


def with_levels(runs, case, algorithm="hierarchical"):
    each, plan = CASES[case]
    keys = dict(plan.keys)
    collectives = keys.get("collectives", "{}").removesuffix("}")
    keys["collectives"] = f"{collectives}{', ' if len(collectives) > 1 else ''}algorithm: {algorithm}}}"
    keys["target"] = f"{{device: cpu, hardware: {hardware(runs, each)}}}"
    made = Plan(plan.mesh, plan.microbatches, plan.shard, over=("dp",), train=plan.train, **keys)
    return made


def numbers(runs, claims, options):
    for model in [model for model in find(HERE, options.only, ["plain"]) if not model.lost()]:
        for case in options.case or CASES:
            title = f"{model.name} {case}"
            with claims.watch(title):
                pair, narrow = Pair(runs, model, with_levels(runs, case)), "bf16" in case
                if narrow:
                    pair.one += "precision: bf16\n"
                runs.run(runs.binaries / "par-verify", runs.compile(model.file, pair.plan))
                loss, share, worst = pair.compare()
                if narrow:  # its bound is that of precision.py
                    claims.hold(f"{title}: losses to one rank's", loss / min(pair.alone()[0]), 2e-4, unit="relative")
                    continue
                claims.hold(f"{title}: losses to one rank's", loss, 2e-5)
                claims.hold(f"{title}: weights, worst {worst[-40:]}", share, 1, unit="of the bound")


class Traffic:
    """Elements that pass the ways out of a host, and each rank within its host, in a step; sums of one number apart."""

    def __init__(self, folder, each):
        manifest = json.loads((folder / "manifest.json").read_text())
        self.program = json.loads((folder / "role-0.json").read_text())
        self.groups = {c["name"]: c["groups"][0] for c in manifest["communicators"]}
        self.each = each
        self.out, self.within, self.hosts = 0, 0, set()
        for block, _, _ in self.program["entries"]["train"]:
            for i in self.program["blocks"][block]:
                if i["op"] == "coll" and i["n"] > 1:
                    self.add(i)

    def add(self, i):
        ranks = self.groups[i["comm"]]
        hosts = len({rank // self.each for rank in ranks})
        moved = {"all_reduce": 2 / len(ranks), "reduce_scatter": 1,
                 "all_gather": 1}[i["kind"]] * (len(ranks) - 1) * i["n"]
        self.hosts.add(hosts)
        if hosts > 1:
            self.out += moved * (self.each if hosts == len(ranks) else 1)  # each rank's own group has a part of it
        else:
            self.within += moved


def bytes_of(runs, claims, options):
    """GPT-2's matrices are divided by every number of ranks here, so that little is padded and nothing stays in one."""
    model, train = HERE / "gpt2/model.onnx", "train: {optimizer: {kind: sgd, lr: 0.1}}\n"
    for each, ranks in ((2, 8), (4, 8)):
        hosts = ranks // each
        for level in (0, 1, 3):
            plan = f"mesh: {{dp: {ranks}}}\nzero: {{level: {level}, min_size: 0}}\n" + train
            title = f"gpt2 dp {ranks} on hosts of {each}, zero {level}"
            flat = Traffic(runs.compile(model,
                                        f"{plan}target: {{device: cpu, hardware: {hardware(runs, each, False)}}}\n"),
                           each)
            made = {word: Traffic(runs.compile(model,
                                               f"{plan}target: {{device: cpu, hardware: {hardware(runs, each)}}}\n"
                                               f"collectives: {{algorithm: {word}}}\n"), each)
                    for word in ("auto", "hierarchical")}
            two = made["hierarchical"]
            # of all collectives: twice the all-reduced bytes, the gathered and scattered ones
            n = flat.out * ranks / (ranks - 1)
            if level == 0:
                claims.equal(f"{title}: all-reduced in one, elements", n,
                             2 * sum(Bundle(runs.compile(model, plan)).parameters.values()))
            claims.equal(f"{title}: groups", two.hosts, {1, hosts})
            claims.hold(f"{title}: out of a host - n (h-1)/h, elements", abs(two.out - n * (hosts - 1) / hosts), 1e-6)
            claims.hold(f"{title}: within - n (r-1)/r, elements", abs(two.within - n * (each - 1) / each), 1e-6)
            claims.hold(f"{title}: auto, of what leaves a host in one", made["auto"].out / flat.out, 1)


def sim(runs, claims, options):
    for case in options.case or ("dp4-overlapped", "dp4-zero3", "pp2dp4"):
        with claims.watch(f"gpt2 {case}: sim"):
            plan = with_levels(runs, case).of(find(HERE, ["gpt2"], ["plain"])[0], runs.binaries)[0]
            bundle = runs.compile(HERE / "gpt2/model.onnx",
                                  plan + "train: {optimizer: {kind: sgd, lr: 0.1}}\n" * ("train:" not in plan))
            said = runs.run(*runs.command(bundle, HERE / "gpt2/data.safetensors", 2, "--device", "sim",
                                          "--interleavings", "20"))
            claims.equal(f"gpt2 {case}: 20 interleavings", "no race, bits alike" in said, True)


def checks(runs, claims, options):
    for case in options.case or ("dp4-overlapped", "dp4-zero3", "dp4tp2"):
        with claims.watch(f"gpt2 {case}: --check-phases"):
            model = find(HERE, ["gpt2"], ["plain"])[0]
            file = runs.work / "checked.yaml"
            file.write_text(with_levels(runs, case).of(model, runs.binaries)[0]
                            + "train: {optimizer: {kind: sgd, lr: 0.1}}\n")
            said = runs.run(runs.binaries / "par-compile", model.file, file, "--check", "--check-phases")
            claims.equal(f"gpt2 {case}: phases that were checked", said.count("checked "), 11)


def main():
    parts = {"numbers": numbers, "bytes": bytes_of, "sim": sim, "checks": checks}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", help="default: on the PATH",
                        default=pathlib.Path(shutil.which("par-compile") or ".").parent)
    parser.add_argument("--part", action="append", choices=parts, help="default: all")
    parser.add_argument("--only", action="append", help="a model's name; repeat")
    parser.add_argument("--case", action="append", choices=CASES, help="default: all")
    options = parser.parse_args()
    claims = Claims()
    with tempfile.TemporaryDirectory(prefix="par-levels-") as work:
        runs = Runs(options.bin, work)
        for name in options.part or parts:
            parts[name](runs, claims, options)
    claims.finish()


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Every model of a folder under every schedule, compared with one rank and with each other, a line a claim.

    schedules.py --bin build/bin --models FOLDER [--only bert] [--mesh pp2dp2] [--microbatches 4] [--steps 3]

For each mesh (stages beside nothing, dp 2, tp 2), each number of microbatches that divides the model's batch and each
number of stages (2, 4) the schedules of one stage a rank, and those of two:
  verify  par-verify proves the bundle
  rank    losses and weights are one rank's, within the bounds of distributed.py
  bits    losses and weights are bit for bit those of the first schedule with the same cuts: all sum from microbatch 0
          on. If backward is in two parts, a kernel of the second may recompute a value that would have been read from
          memory otherwise, and the compiler then rounds a multiplication and an addition of two kernels only once
          (fused multiply-add): such weights differ by roundings, and are counted
A model that cannot be split so is refused with a located message, and counted. Half an hour on two cores for the shared
models without variants; for microbatches of 3, which divides none of their batches, see zoo/sixes.py. Only Python's
standard library is used. Exit status 0: all hold.
"""
import argparse
import pathlib
import re
import shutil
import sys
import tempfile
import time

from distributed import Pair, Plan, WHOLE_BATCH, flow, has_batch_norm, refusal
from models import find
from runs import Claims, Failed, Runs

MESHES = {"pp": {}, "ppdp2": {"dp": 2}, "pptp2": {"tp": 2}}
ONE_STAGE, TWO_STAGES = ["1f1b", "gpipe", "zb-h1", "auto"], ["interleaved", "zb-v", "auto"]


class Case:
    """A model under all schedules with one mesh beside the stages and one number of microbatches."""

    def __init__(self, runs, claims, model, beside, microbatches, steps):
        self.runs, self.claims, self.model, self.steps = runs, claims, model, steps
        self.beside, self.microbatches = beside, microbatches
        self.first = {}  # what the first schedule computed, by its cuts
        self.refused = []

    def plan(self, stages, chunks, schedule):
        pipeline = flow({"stages": stages, "schedule": schedule, "cuts": "auto"})
        return Plan({"pp": stages // chunks, **MESHES[self.beside]}, self.microbatches, pipeline=pipeline)

    def cuts(self, plan):
        """Which stage each op of the model is in."""
        file = self.runs.work / "cuts.yaml"
        file.write_text(plan)
        text = self.runs.run(self.runs.binaries / "par-compile", self.model.file, file, "--stop-after=annotate",
                             "--emit=annotate")
        return tuple(re.findall(r"stage = (\d+)", text))

    def check(self, title, stages, chunks, schedule):
        pair = Pair(self.runs, self.model, self.plan(stages, chunks, schedule), "sgd", self.steps)
        bundle = self.runs.compile(self.model.file, pair.plan)
        self.runs.run(self.runs.binaries / "par-verify", bundle)
        loss, share, worst = pair.compare()
        self.claims.hold(f"{title}: losses to one rank's", loss, 2e-5)
        self.claims.hold(f"{title}: weights, worst {worst[-30:]}", share, 1, unit="of the bound")
        found = pair.found
        name, other = self.first.setdefault((stages, self.cuts(pair.plan)), (schedule, found))
        if other is not found:
            self.compare(f"{title}: bits of {name}", found, other)

    def compare(self, title, found, other):
        if found == other:
            return self.claims.equal(title, True, True)
        pairs = [(a, b) for name in other[1] for a, b in zip(found[1][name][1], other[1][name][1])]
        differ = [(a, b) for a, b in pairs if a != b]
        largest_of_all = max(abs(b) for _, b in pairs)
        # A rounding of a matmul's sum is 2^-24 of it, and a step of sgd adds a tenth of that to a weight; three steps
        # carry it on.
        self.claims.hold(f"{title}: but {len(differ)} of {len(pairs)}, by at most",
                         max((abs(a - b) for a, b in differ), default=0.0),
                         2**-21 * largest_of_all)

    def run(self, mesh, stages):
        for chunks, schedules in ((1, ONE_STAGE), (2, TWO_STAGES)):
            if stages // chunks < 2:
                continue
            for schedule in schedules:
                ranks = mesh.replace("pp", f"pp{stages // chunks}")
                title = f"{self.model.title} {ranks} s{stages} m{self.microbatches} {schedule}"
                try:
                    self.check(title, stages, chunks, schedule)
                except Failed as failure:
                    sentence = refusal(str(failure))
                    self.refused.append(title)
                    print(f"{title}: {'refused: ' + sentence if sentence else 'FAIL'}", flush=True)
                    if not sentence:
                        self.claims.failures.append(f"{title}: {failure}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", help="default: on the PATH",
                        default=pathlib.Path(shutil.which("par-compile") or ".").parent)
    parser.add_argument("--models", required=True, type=pathlib.Path)
    parser.add_argument("--only", action="append", help="a model's name; repeat")
    parser.add_argument("--mesh", action="append", choices=sorted(MESHES), help="default: all")
    parser.add_argument("--stages", action="append", type=int, choices=[2, 4, 8], help="default: 2 and 4")
    parser.add_argument("--microbatches", action="append", type=int, help="default: 1, 2, 3 and 8")
    parser.add_argument("--steps", type=int, default=3)
    options = parser.parse_args()
    claims, begin, refused = Claims(), time.monotonic(), 0
    for model in find(options.models, options.only, ["plain"]):
        batch = model.batch
        for mesh in options.mesh or MESHES:
            for count in options.microbatches or (1, 2, 3, 8):
                ways = MESHES[mesh].get("dp", 1) * count
                # A group of one sample has no variance where a feature map is one pixel.
                if batch % ways or (has_batch_norm(model)
                                    and batch // ways < 2) or (model.name in WHOLE_BATCH and count > 1):
                    continue
                with tempfile.TemporaryDirectory(prefix="par-schedules-") as work:
                    case = Case(Runs(options.bin, work), claims, model, mesh, count, options.steps)
                    for stages in options.stages or (2, 4):
                        case.run(mesh, stages)
                    refused += len(case.refused)
    print("\n".join(f"FAIL {line}" for line in claims.failures))
    print(f"{claims.count} claims, {len(claims.failures)} failed, {refused} refused, {time.monotonic() - begin:.0f} s")
    sys.exit(1 if claims.failures else 0)


if __name__ == "__main__":
    main()

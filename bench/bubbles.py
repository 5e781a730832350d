#!/usr/bin/env python3
"""How long pipeline stages wait for each other: measured on CPU ranks, against the order table played with the measured
times.

    bubbles.py MODEL.onnx DATA.safetensors [--loss cross_entropy] [--ranks 2] [--microbatches 4] [--batch 16]
               [--dim seq=128] [--schedule zb-h1]...

Each schedule trains a few steps, of which the middle ones are traced. In a traced step the part from the first forward
to the end of the last backward counts; a rank is idle there while it runs neither kernel nor call. From the same trace
come the times of each stage's forward, backward and weight gradient (medians over microbatches) and the order in which
each rank ran them; `par-opt --par-problem` plays that order with those times, transfers free, and prints the idle time
of the order itself. The remaining idle time is communication and noise. The figure of the order means nothing with more
ranks than cores. Python's standard library only.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

# Instructions of a rank that has nothing to compute.
WAITS = {"coll", "send", "recv", "group", "wait"}

CHUNKS = {"1f1b": 1, "gpipe": 1, "zb-h1": 1, "auto": 1, "interleaved": 2, "zb-v": 2}
V_PLACED = {"zb-v"}
BLOCK = re.compile(r"train\.(forward|backward|weight)(?:\.s(\d+))?(?:\.\w+)?$")


class Step:
    """Slots of one step as the ranks ran them: seconds by rank and by slot, and when each rank began each of its
    slots."""

    def __init__(self):
        self.busy, self.slots, self.begins = collections.Counter(), collections.Counter(), collections.defaultdict(dict)
        self.begin, self.end = float("inf"), 0.0

    def add(self, event, slot):
        seconds = event["dur"] / 1e6
        self.busy[event["pid"]] += seconds
        self.slots[slot] += seconds
        self.begins[event["pid"]].setdefault(slot, event["ts"])
        self.begin, self.end = min(self.begin, event["ts"] / 1e6), max(self.end, (event["ts"] + event["dur"]) / 1e6)

    def idle(self, ranks):
        return 1 - sum(self.busy.values()) / (ranks * (self.end - self.begin))

    def table(self, ranks):
        """Each rank's slots in their order, as lines of a problem: auto's order is of predicted times, and would be
        another for these."""
        for rank in range(ranks):
            line = [f"device {rank}"]
            for slot in sorted(self.begins[rank], key=self.begins[rank].get):
                kind, stage, microbatch = slot
                # The first stage hands no gradient on, so that all of its backward may be its weights'.
                kinds = "BW" if kind == "weight" and ("backward", stage,
                                                      microbatch) not in self.begins[rank] else kind[0].upper()
                line += [f"{letter}{microbatch}.{stage // ranks}" for letter in kinds]
            yield " ".join(line)


def read_steps(trace):
    steps = collections.defaultdict(Step)
    for event in json.loads(trace.read_text())["traceEvents"]:
        role, _, place = event["name"].partition("/")
        block = BLOCK.match(place.rpartition(":")[0])
        if event.get("ph") != "X" or not block or event["cat"] in WAITS:
            continue
        stage = int(block[2] if block[2] is not None else role.removeprefix("s"))
        steps[event["args"]["step"]].add(event, (block[1], stage, event["args"]["microbatch"]))
    return list(steps.values())


def times(steps, stages):
    """Nanoseconds of each stage's forward, backward and weight gradient: medians over microbatches and steps."""
    found = collections.defaultdict(list)
    for step in steps:
        for (kind, stage, _), seconds in step.slots.items():
            found[kind, stage].append(seconds)
    return {kind: [int(1e9 * statistics.median(found.get((kind, stage), [0]))) for stage in range(stages)]
            for kind in ("forward", "backward", "weight")}


def played(options, schedule, stages, slots, table):
    """The idle share of a table with these times."""
    lines = ["problem order_table", f"stages {stages}", f"devices {options.ranks}",
             f"microbatches {options.microbatches}", "barrier"]
    lines += ["placement v"] if schedule in V_PLACED else []
    weights = any(slots["weight"])
    for kind in ("forward", "backward", "weight")[: 3 if weights else 2]:
        lines.append(f"{kind} " + " ".join(map(str, slots[kind])))
    lines += table
    with tempfile.NamedTemporaryFile("w", suffix=".problem") as file:
        file.write("\n".join(lines) + "\n")
        file.flush()
        out = subprocess.run([options.bin / "par-opt", f"--par-problem={file.name}"], capture_output=True, text=True)
    if out.returncode:
        sys.exit("\n".join(lines) + "\n" + out.stderr)
    return float(re.search(r"bubble ([\d.]+) %", out.stdout)[1]) / 100


def measure(options, schedule, work):
    stages = options.ranks * CHUNKS[schedule]
    bundle, trace = work / f"{schedule}.par", work / f"{schedule}.json"
    pipeline = f"pipeline={{schedule: {schedule}, stages: {stages}, cuts: {options.cuts}}}"
    loss = f"loss: {options.loss}, " if options.loss else ""
    settings = [f"mesh={{pp: {options.ranks}}}",
                f"batch={{size: {options.batch}, microbatches: {options.microbatches}}}", pipeline,
                f"train={{{loss}optimizer: sgd}}"]
    settings += ["dims={" + ", ".join(dim.replace("=", ": ") for dim in options.dim) + "}"] if options.dim else []
    command = [options.bin / "par-compile", options.model, "-o", bundle]
    for setting in settings:
        command += ["--set", setting]
    said = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True).stdout
    steps = options.steps
    command = [options.bin / "par-run", bundle, "--init", "--data", options.data, "--threads", "1", "--steps",
               steps + 2, "--trace",
               f"{trace}:2-{steps + 1}"]
    subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True)
    found = read_steps(trace)
    slots = times(found, stages)
    predicted = re.search(r"predicted step .*bubble (\d+) %", said)
    return (statistics.median(step.idle(options.ranks) for step in found),
            played(options, schedule, stages, slots, found[0].table(options.ranks)),
            statistics.median(step.end - step.begin for step in found), predicted[1] if predicted else "-", slots)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("data", type=pathlib.Path, help="arrays for its inputs, .safetensors")
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/bin"))
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--microbatches", type=int, default=4)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--dim", action="append")
    parser.add_argument("--cuts", default="auto")
    parser.add_argument("--loss", help="train.loss, where the model gives scores")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--schedule", action="append", choices=sorted(CHUNKS))
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores, {options.ranks} ranks, {options.microbatches} microbatches of "
          f"{options.batch // options.microbatches}; {options.model.name}")
    print(f"{'schedule':12} {'ms':>8} {'idle':>7} {'played':>7} {'predicted bubble':>17}   ms of forward, backward, "
          f"weight by stage")
    with tempfile.TemporaryDirectory(prefix="par-bubbles-") as work:
        for schedule in options.schedule or CHUNKS:
            idle, table, seconds, predicted, slots = measure(options, schedule, pathlib.Path(work))
            text = "; ".join(" ".join(f"{ns / 1e6:.1f}" for ns in slots[kind]) for kind in slots)
            print(f"{schedule:12} {1e3 * seconds:8.1f} {100 * idle:6.1f}% {100 * table:6.1f}% {predicted:>15} %   "
                  f"{text}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

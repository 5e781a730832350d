#!/usr/bin/env python3
"""Predicted and measured steps on this machine, after par-run --calibrate: a line for each model and plan.

    calibrate.py --models MODELS [--bin build/bin] [--gpt2 gpt2-124m-b4t256.onnx.gz] [--minutes 14] [MODEL ...]

MODELS is a folder of NAME/model.onnx with NAME/data.safetensors. In each turn the bundle is compiled, the machine is
calibrated with it, the model is compiled again with that hardware file, and steps are run. All columns are medians
over turns: the prediction, the median step on the wall, the fastest but 2 % (an undisturbed one, while other work
shares the cores and steps are short), and the CPU time of a rank for a step, of two runs' difference, waiting
included. Errors are those of the prediction against the two times on the wall. With --refine the trace of the run
makes the file better where no more ranks than cores run, and the last column is the error of the prediction after it.

Cases are drawn in an order that is always the same and mixes models and plans; those that the minutes do not reach are
counted. GPT-2 124M runs under three of the plans. Needs numpy and safetensors for --gpt2.
"""

import argparse
import json
import os
import pathlib
import random
import re
import resource
import statistics
import subprocess
import sys
import time

PLANS = {
    "one rank": ["mesh={}"],
    "one rank, 2 microbatches": ["mesh={}", "batch.microbatches=2"],
    "one rank, recompute": ["mesh={}", "recompute=full"],
    "dp 2": ["mesh={dp: 2}"],
    "dp 2, zero 1": ["mesh={dp: 2}", "zero=1"],
    "dp 2, zero 2": ["mesh={dp: 2}", "zero=2"],
    "dp 2, zero 3": ["mesh={dp: 2}", "zero=3"],
    "dp 2, small buckets": ["mesh={dp: 2}", "collectives.bucket=64KiB"],
    "dp 2, recompute": ["mesh={dp: 2}", "recompute=full"],
    "pp 2": ["mesh={pp: 2}"],
    "pp 2, gpipe": ["mesh={pp: 2}", "pipeline.schedule=gpipe"],
    "pp 2, zb-h1": ["mesh={pp: 2}", "pipeline.schedule=zb-h1"],
    "pp 2, recompute": ["mesh={pp: 2}", "recompute=full"],
    "tp 2": ["mesh={tp: 2}", "use=[megatron]"],
    "tp 2, sequence": ["mesh={tp: 2}", "use=[megatron-sp]"],
    "dp 2, tp 2": ["mesh={dp: 2, tp: 2}", "use=[megatron]"],
    "pp 2, dp 2": ["mesh={pp: 2, dp: 2}"],
    "pp 2, tp 2": ["mesh={pp: 2, tp: 2}", "use=[megatron]"],
    "dp 4": ["mesh={dp: 4}"],
    "pp 4": ["mesh={pp: 4}"],
}
LARGE_PLANS = ["one rank", "dp 2", "pp 2"]
OPTIMIZER = "train={optimizer: {kind: adamw, lr: 1e-4}}"
SECONDS = 1.5  # of the longer run


class Case:
    """One model under one plan."""

    def __init__(self, options, name, model, data, plan):
        self.options, self.name, self.model, self.data, self.plan = options, name, model, data, plan
        self.bundle = options.work / re.sub(r"\W+", "-", f"{name} {plan}")
        self.bundle = self.bundle.with_suffix(".par")
        self.hardware = self.bundle.with_suffix(".yaml")

    def call(self, tool, *arguments):
        command = [str(self.options.bin / tool), *map(str, arguments)]
        environment = os.environ | {"PAR_CACHE": str(self.options.work / "cache")}
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
        if done.returncode != 0:
            raise RuntimeError(f"{tool}: " + " ".join(done.stderr.strip().splitlines()[:1]))
        return done.stdout

    def compile(self, target):
        settings = [word for setting in (OPTIMIZER, target, *PLANS[self.plan]) for word in ("--set", setting)]
        self.call("par-compile", "-q", self.model, *settings, "-o", self.bundle)
        manifest = json.loads((self.bundle / "manifest.json").read_text())
        self.ranks = len(manifest["ranks"])
        return manifest["predicted_ns"] / 1e6

    def run(self, steps, *more):
        """The steps on the wall, ms, but for the first two, and all CPU seconds."""
        metrics = self.bundle.with_suffix(".jsonl")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.call("par-run", self.bundle, "--init", "--data", self.data, "--steps", steps, "-q", "--metrics", metrics,
                  *more)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times = [json.loads(line)["ms"] for line in metrics.read_text().splitlines()]
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return times[2:], cpu

    def turn(self):
        self.compile("target=cpu")
        self.hardware.unlink(missing_ok=True)
        self.call("par-run", self.bundle, f"--calibrate={self.hardware}", "-q")
        predicted = self.compile(f"target.hardware={self.hardware}")
        few = 5
        times, less = self.run(few)
        many = few + max(10, min(500, int(SECONDS * 1000 / max(statistics.median(times), 0.01))))
        refines = self.options.refine and self.ranks <= os.cpu_count()
        trace = self.bundle.with_suffix(".json")
        times, more = self.run(many, *(["--trace", f"{trace}:{few}-{min(many, 60)}"] if refines else []))
        cpu = (more - less) * 1000 / (many - few) / self.ranks
        refined = float("nan")
        if refines:
            self.call("par-run", self.bundle, f"--calibrate={self.hardware}", "--trace", trace, "-q")
            refined = self.compile(f"target.hardware={self.hardware}")
        return predicted, statistics.median(times), sorted(times)[len(times) // 50], cpu, refined


def token_file(options, vocabulary=50257, batch=4, sequence=256):
    import numpy
    from safetensors.numpy import save_file

    from model_step import token_data
    path = options.work / "tokens.safetensors"
    save_file(token_data(numpy.random.default_rng(0), batch, sequence, vocabulary), path)
    return path


def cases_of(options):
    models = [(name, options.models / name / "model.onnx", options.models / name / "data.safetensors", options.plans)
              for name in options.names]
    if options.gpt2:
        plans = [plan for plan in LARGE_PLANS if plan in options.plans]
        models.append(("gpt2-124m", options.gpt2, token_file(options), plans))
    cases = [Case(options, name, model, data, plan) for name, model, data, plans in models for plan in plans]
    random.Random(1).shuffle(cases)
    return cases


def percent(predicted, measured):
    return 100 * (predicted / measured - 1)


def measure(options, case, errors):
    """Prints the line of a case and adds its errors, by the number of ranks; false if it is refused."""
    try:
        turns = [case.turn() for _ in range(options.turns)]
    except RuntimeError as error:
        print(f"| {case.name} | {case.plan} | {error} | | | | | | |", flush=True)
        return False
    predicted, wall, least, cpu, refined = (statistics.median(column) for column in zip(*turns))
    kind = f"{case.ranks} rank" + ("s" if case.ranks > 1 else "")
    kind += " on fewer cores" if case.ranks > os.cpu_count() else ""
    errors.setdefault(kind, []).append((percent(predicted, wall), percent(predicted, least), percent(refined, wall)))
    print(f"| {case.name} | {case.plan} | {predicted:.2f} | {wall:.2f} | {percent(predicted, wall):+.1f} % | "
          f"{least:.2f} | {percent(predicted, least):+.1f} % | {cpu:.2f} | {percent(refined, wall):+.1f} % |",
          flush=True)
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=pathlib.Path, required=True)
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/bin"))
    parser.add_argument("--gpt2", type=pathlib.Path)
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("build/calibrate"))
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=14)
    parser.add_argument("--refine", action="store_true")
    parser.add_argument("--plans", nargs="+", default=list(PLANS), choices=list(PLANS))
    parser.add_argument("names", nargs="*",
                        default=["bert", "gpt2", "llama", "mixtral", "resnet", "t5", "unet", "vit"])
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    print("| model | plan | predicted, ms | median step | error | undisturbed | error | CPU of a rank | refined |\n"
          "| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    began, errors, refused, left = time.monotonic(), {}, 0, 0
    for case in cases_of(options):
        if time.monotonic() - began > 60 * options.minutes:
            left += 1
        else:
            refused += not measure(options, case, errors)
    for kind, rows in sorted(errors.items()):
        median, least, refined = zip(*rows)
        print(f"\n{len(rows)} of {kind}: mean error {statistics.mean(map(abs, median)):.1f} % of the median step "
              f"(signed {statistics.mean(median):+.1f} %, largest {max(map(abs, median)):.1f} %), "
              f"{statistics.mean(map(abs, least)):.1f} % of the undisturbed one, "
              f"{statistics.mean(map(abs, refined)):.1f} % refined")
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; {refused} refused, {left} not reached in "
          f"{options.minutes:g} minutes")
    return 0 if errors else 1


if __name__ == "__main__":
    sys.exit(main())

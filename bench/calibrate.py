#!/usr/bin/env python3
"""Predicted and measured steps on this machine, after par-run --calibrate: a line for each model and plan.

    calibrate.py --models MODELS [--bin build/bin] [--gpt2 gpt2-124m-b4t256.onnx.gz] [MODEL ...]

MODELS is a folder of NAME/model.onnx with NAME/data.safetensors. In each turn the bundle is compiled, the machine is
calibrated with it, the model is compiled again with that hardware file, and steps are run. All columns are medians
over turns: the prediction, the median step on the wall, the fastest but 2 % (an undisturbed one, while other work
shares the cores and steps are short), and the CPU time of a rank for a step, of two runs' difference, waiting
included. Errors are those of the prediction against the two times on the wall. Needs numpy and safetensors for
--gpt2.
"""

import argparse
import json
import os
import pathlib
import re
import resource
import statistics
import subprocess
import sys

PLANS = {
    "one rank": ["mesh={}"],
    "dp 2": ["mesh={dp: 2}"],
    "dp 2, zero 1": ["mesh={dp: 2}", "zero=1"],
    "dp 2, zero 3": ["mesh={dp: 2}", "zero=3"],
    "pp 2": ["mesh={pp: 2}"],
    "pp 2, gpipe": ["mesh={pp: 2}", "pipeline.schedule=gpipe"],
    "tp 2": ["mesh={tp: 2}", "use=[megatron]"],
    "dp 2, tp 2": ["mesh={dp: 2, tp: 2}", "use=[megatron]"],
    "pp 2, dp 2": ["mesh={pp: 2, dp: 2}"],
}
OPTIMIZER = "train={optimizer: {kind: adamw, lr: 1e-4}}"
SECONDS = 2  # of the longer run


class Case:
    """One model under one plan."""

    def __init__(self, options, name, model, data, plan):
        self.options, self.name, self.model, self.data, self.plan = options, name, model, data, plan
        self.bundle = options.work / re.sub(r"\W+", "-", f"{name} {plan}")
        self.bundle = self.bundle.with_suffix(".par")
        self.hardware = self.bundle.with_suffix(".yaml")

    def call(self, tool, *arguments):
        command = [str(self.options.bin / tool), *map(str, arguments)]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip().splitlines()[:1]}")
        return done.stdout

    def compile(self, target):
        settings = [word for setting in (OPTIMIZER, target, *PLANS[self.plan]) for word in ("--set", setting)]
        self.call("par-compile", "-q", self.model, *settings, "-o", self.bundle)
        manifest = json.loads((self.bundle / "manifest.json").read_text())
        self.ranks = len(manifest["ranks"])
        return manifest["predicted_ns"] / 1e6

    def run(self, steps):
        """The steps on the wall, ms, but for the first two, and all CPU seconds."""
        metrics = self.bundle.with_suffix(".jsonl")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.call("par-run", self.bundle, "--init", "--data", self.data, "--steps", steps, "-q", "--metrics", metrics)
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
        times, more = self.run(many)
        cpu = (more - less) * 1000 / (many - few) / self.ranks
        return predicted, statistics.median(times), sorted(times)[len(times) // 50], cpu


def token_file(options, vocabulary=50257, batch=4, sequence=256):
    import numpy
    from safetensors.numpy import save_file

    from model_step import token_data
    path = options.work / "tokens.safetensors"
    save_file(token_data(numpy.random.default_rng(0), batch, sequence, vocabulary), path)
    return path


def cases_of(options):
    models = [(name, options.models / name / "model.onnx", options.models / name / "data.safetensors")
              for name in options.names]
    if options.gpt2:
        models.append(("gpt2-124m", options.gpt2, token_file(options)))
    for name, model, data in models:
        for plan in options.plans:
            yield Case(options, name, model, data, plan)


def percent(predicted, measured):
    return 100 * (predicted / measured - 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=pathlib.Path, required=True)
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/bin"))
    parser.add_argument("--gpt2", type=pathlib.Path)
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("build/calibrate"))
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--plans", nargs="+", default=list(PLANS), choices=list(PLANS))
    parser.add_argument("names", nargs="*",
                        default=["bert", "gpt2", "llama", "mixtral", "resnet", "t5", "unet", "vit"])
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    print("| model | plan | predicted, ms | median step | error | undisturbed | error | CPU of a rank |\n"
          "| --- | --- | --- | --- | --- | --- | --- | --- |")
    errors, refused = {}, 0
    for case in cases_of(options):
        try:
            turns = [case.turn() for _ in range(options.turns)]
        except RuntimeError as error:
            refused += 1
            print(f"| {case.name} | {case.plan} | {error} | | | | | |", flush=True)
            continue
        predicted, wall, least, cpu = (statistics.median(column) for column in zip(*turns))
        kind = "ranks <= cores" if case.ranks <= os.cpu_count() else "more ranks than cores"
        errors.setdefault(kind, []).append((abs(percent(predicted, wall)), abs(percent(predicted, least))))
        print(f"| {case.name} | {case.plan} | {predicted:.2f} | {wall:.2f} | {percent(predicted, wall):+.1f} % | "
              f"{least:.2f} | {percent(predicted, least):+.1f} % | {cpu:.2f} |", flush=True)
    for kind, pairs in errors.items():
        median, least = (statistics.mean(column) for column in zip(*pairs))
        print(f"\n{len(pairs)} of {kind}: mean error {median:.1f} % of the median step, {least:.1f} % of the "
              "undisturbed one")
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; {refused} refused")
    return 0 if errors else 1


if __name__ == "__main__":
    sys.exit(main())

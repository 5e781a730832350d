#!/usr/bin/env python3
"""Compiles a model of test/Models under plans and interprets what each phase leaves.

    check-plans.py [--par-compile PATH] [--model gpt2] [CASE ...]      default: all cases of train_reference.py

Every phase of every case must compute what Import's step computes: outputs, gradient accumulators, written variables,
on all ranks, and from Train on as many of each. The last line counts cases; the exit status is 1 if one failed.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

MODELS = pathlib.Path(__file__).resolve().parent.parent / "Models"
sys.path.insert(0, str(MODELS))
from train_reference import CASES  # noqa: E402

TRAIN = "par: 1\ntrain: {optimizer: {kind: adamw, lr: 1e-3}, clip: 1.0}\n"


def check(options, case, work):
    plan = work / "plan.yaml"
    plan.write_text(TRAIN + CASES[case])
    command = [options.par_compile, MODELS / options.model / "model.onnx", plan, "--check-phases", "-o",
               work / f"{case}.par"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=600)
    checked = re.findall(r"^checked (\w+) +(.*)$", done.stdout, re.MULTILINE)
    compared = {what for phase, what in checked if phase != "annotate"}
    if done.returncode or len(compared) != 1 or re.search(r"\b0 ", *compared):
        print(f"{case}: exit {done.returncode}\n{done.stdout[-1000:]}{done.stderr[-2000:]}")
        return False
    print(f"{case}: {len(checked)} phases, each {compared.pop()}")
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--par-compile", default="par-compile")
    parser.add_argument("--model", default="gpt2")
    parser.add_argument("cases", nargs="*")
    options = parser.parse_args()
    cases = options.cases or list(CASES)
    with tempfile.TemporaryDirectory(prefix="par-check-") as work:
        failed = sum(not check(options, case, pathlib.Path(work)) for case in cases)
    print(f"{len(cases)} cases, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Trains every model of a folder with what `offload` names in the host's memory, and without: the same bits, a line a
claim.

    offload.py --bin build/bin --models FOLDER [--only gpt2] [--plan zero3] [--what params]

FOLDER is as models.py describes it; four steps of its data. A copy changes no number, so losses and exported weights
are equal bit by bit, whatever the plan. Only Python's standard library is used. Exit status 0: all hold.
"""
import argparse
import pathlib
import re
import sys
import tempfile

from distributed import WHOLE_BATCH
from models import find
from runs import Claims, Runs
from train_reference import optimizer_of

STEPS = 4
PLANS = {
    "one": "batch: {microbatches: 2}\n",
    "zero3": "mesh: {dp: 2}\nzero: {level: 3, min_size: 0}\nbatch: {microbatches: 2}\nrecompute: full\n",
    "pp2": "mesh: {pp: 2}\nbatch: {microbatches: 4}\npipeline: {cuts: auto}\n",
}
WHAT = {"params": "[params]", "states": "[states]", "saved": "[saved]", "all": "[params, states, saved]"}


def check(runs, claims, model, plan, kinds):
    text = re.sub(r"microbatches: \d", "microbatches: 1", PLANS[plan]) if model.name in WHOLE_BATCH else PLANS[plan]
    text += optimizer_of("adamw", model.reference["runs"]["adamw"]["options"])
    found = {}
    for what in ["", *kinds]:
        bundle = runs.compile(model.file, text + (f"offload: {WHAT[what]}\n" if what else ""))
        lines, weights = runs.train(bundle, model.folder / "data.safetensors", STEPS)
        found[what] = [line["loss"] for line in lines], weights.read_bytes()
    for what in kinds:
        same = [one == other for one, other in zip(found[what], found[""])]
        claims.equal(f"{model.title} {plan} {what}: losses and weights as without", same, [True, True])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--models", type=pathlib.Path, required=True)
    parser.add_argument("--only", action="append", help="a model's folder; repeat")
    parser.add_argument("--plan", action="append", choices=PLANS)
    parser.add_argument("--what", action="append", choices=WHAT)
    options = parser.parse_args()
    claims = Claims()
    with tempfile.TemporaryDirectory(prefix="par-offload-") as work:
        runs = Runs(options.bin, work, timeout=900)
        for model in find(options.models, options.only, ["plain"]):
            if model.lost():
                continue
            for plan in options.plan or PLANS:
                with claims.watch(f"{model.title} {plan}"):
                    check(runs, claims, model, plan, options.what or list(WHAT))
    print("\n".join(f"FAIL {line}" for line in claims.failures))
    print(f"{claims.count} claims, {len(claims.failures)} failed")
    sys.exit(1 if claims.failures or not claims.count else 0)


if __name__ == "__main__":
    main()

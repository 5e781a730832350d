#!/usr/bin/env python3
"""Evaluates averages of the weights (train.ema, eval) where they are gathered once a step, and where two stages share a
tied weight: losses and evaluations are one rank's.

    evaluated-averages.py FOLDER       writes the model, its data and its plans there
"""
import json
import pathlib
import shutil
import sys

from dropout import Model, write_tokens

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "Models"))
from runs import Claims, Runs, largest  # noqa: E402

STEPS = 4
TRAIN = ("train: {loss: cross_entropy, optimizer: {kind: momentum, lr: 1e-3}, ema: {decay: 0.5, eval: true}, "
         "tie: {h.3.up.weight: h.0.up.weight}}\n")
PLANS = {
    "zero3 step": "mesh: {dp: 2}\nbatch: {size: 8, microbatches: 2}\nzero: {level: 3, min_size: 0, gather: step}\n",
    "pp2": "mesh: {pp: 2}\nbatch: {size: 8, microbatches: 4}\npipeline: {cuts: {h.*: even}}\n",
    "pp2dp2 step": "mesh: {pp: 2, dp: 2}\nbatch: {size: 8, microbatches: 2}\npipeline: {cuts: {h.*: even}}\n"
                   "zero: {level: 3, min_size: 0, gather: step}\n",
}


def main():
    work, claims = pathlib.Path(sys.argv[1]), Claims()
    work.mkdir(parents=True, exist_ok=True)
    write_tokens(work / "data.safetensors")
    (work / "model.onnx").write_bytes(Model(0.0, layers=4).build())
    runs = Runs(pathlib.Path(shutil.which("par-compile")).parent, work)

    def train(plan):
        bundle, metrics = runs.compile(work / "model.onnx", plan + TRAIN), work / "metrics.jsonl"
        metrics.unlink(missing_ok=True)
        runs.run(*runs.command(bundle, work / "data.safetensors", STEPS, "--metrics", metrics, "--eval-every", 2,
                               "--eval-data", work / "data.safetensors"))
        lines = [json.loads(line) for line in metrics.read_text().splitlines()]
        return [[line[key] for line in lines if key in line] for key in ("loss", "eval_loss")]

    losses, evaluations = train("batch: {size: 8, microbatches: 1}\n")
    claims.hold("averages differ from weights", abs(evaluations[-1] - losses[-1]), 1e-3, least=True)
    for title, plan in PLANS.items():
        with claims.watch(title):
            found, evaluated = train(plan)
            # Other orders of additions move the last digits of losses near 4.
            claims.hold(f"{title}: losses off by",
                        largest(abs(a - b) for a, b in zip(found, losses, strict=True)), 2e-5)
            claims.hold(f"{title}: evaluations off by",
                        largest(abs(a - b) for a, b in zip(evaluated, evaluations, strict=True)), 2e-5)
    claims.finish()


main()

#!/usr/bin/env python3
"""A loop of one's own over a compiled bundle: train, evaluate, keep the best state, go on from it.

    PAR_HOME=build python3 examples/session.py [FOLDER]

Needs nothing but Python and a built Par: batches are buffers of numbers here, as numpy arrays and torch tensors may be.
"""
from __future__ import annotations

import array
import pathlib
import random
import sys
import tempfile
from typing import Any, Dict, Iterator

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))
import par  # noqa: E402


def batches(seed: int, count: int, rows: int, width: int) -> Iterator[Dict[str, Any]]:
    """Random points; the label is the place of the largest of the first ten numbers."""
    draw = random.Random(seed)
    for _ in range(count):
        points = array.array("f", [draw.gauss(0, 1) for _ in range(rows * width)])
        labels = array.array("q", [max(range(10), key=lambda k: points[row * width + k]) for row in range(rows)])
        yield {"x": memoryview(points).cast("B").cast("f", [rows, width]), "labels": memoryview(labels)}


def main(folder: pathlib.Path) -> None:
    bundle = par.compile(HERE / "mlp.onnx", {"train": {"optimizer": {"kind": "adamw", "lr": 0.01}}},
                         out=folder / "mlp.par")
    held_out = list(batches(1, 4, 16, 32))
    with par.open(bundle, init=True, save=folder / "saves") as job:
        for step, batch in enumerate(batches(0, 100, job.batch, 32)):
            job.set(lr=0.01 * (1 - step / 200))  # a schedule of one's own
            out = job.train(batch)
            if step % 25 == 0:
                print(f"step {job.step:3}  loss {out.loss:.3f}  |g| {out['grad_norm']:.2f}")
        best = par.BestCheckpoint(folder / "best")
        fitted = job.fit(batches(2, 1000, job.batch, 32), steps=200, eval=held_out, eval_every=50,
                         callbacks=[best, par.EarlyStopping(patience=2)], progress=False)
        print(f"{len(fitted.losses)} more steps, eval {[round(one['loss'], 3) for one in fitted.evals]}")
        job.resume(best.path)
        print(f"best save is of step {job.step}; its loss there is {job.eval(held_out[0]).loss:.3f}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(pathlib.Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(pathlib.Path(folder))

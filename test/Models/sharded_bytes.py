#!/usr/bin/env python3
"""Compares the bytes that an mlp sends, with all parameters and the batch sharded over dp, with closed forms.

    sharded_bytes.py --bin build/bin [--ranks 8]...

A rank holds ceil(r / N) rows of a parameter of r rows of c elements on N ranks: 10 classes over 8 ranks are padded to
16. A gather or a scatter moves (N-1)/N of the padded parameter, an all-reduce 2(N-1)/N of its operand. Every
parameter's gradient is scattered once a step. A bias and the first weight are gathered once, for forward; the other
weights are gathered for backward, too, which needs them for the gradient of its input; the loss, its count and the norm
add one number each. Each is one collective, on one communicator a queue, for any number of prime factors of N. Exit
status 0: all hold.
"""
import argparse
import collections
import json
import pathlib
import shutil
import sys
import tempfile

from runs import HERE, Claims, Runs

PARAMETERS = {"fc1.weight": (64, 32, 1), "fc1.bias": (64, 1, 1), "fc2.weight": (64, 64, 2), "fc2.bias": (64, 1, 1),
              "fc3.weight": (10, 64, 2), "fc3.bias": (10, 1, 1)}  # rows, elements of a row, gathers
SCALARS, F32 = 3, 4
TRAIN = "train: {optimizer: {kind: sgd, lr: 0.1}}\n"


def shard(name, ranks):
    rows, columns, _ = PARAMETERS[name]
    return -(-rows // ranks) * columns


def closed(ranks):
    """(kind, elements of the instruction) of every collective of a step, and the bytes that a rank sends."""
    expected = collections.Counter({("all_reduce", 1): SCALARS})
    sent = SCALARS * 2 * (ranks - 1) * F32 / ranks
    for name, (_, _, gathers) in PARAMETERS.items():
        expected["all_gather", shard(name, ranks)] += gathers
        expected["reduce_scatter", shard(name, ranks)] += 1
        sent += (gathers + 1) * (ranks - 1) * shard(name, ranks) * F32
    return expected, sent


def check(runs, claims, ranks):
    plan = f'mesh: {{dp: {ranks}}}\nbatch: {{over: [dp]}}\nshard: {{weight: {{0: dp}}, bias: {{0: dp}}}}\n{TRAIN}'
    bundle = runs.compile(HERE / "mlp/model.onnx", plan)
    metrics, _ = runs.train(bundle, HERE / "mlp/data.safetensors", 3)
    whole, _ = runs.train(runs.compile(HERE / "mlp/model.onnx", TRAIN), HERE / "mlp/data.safetensors", 3)
    manifest = json.loads((bundle / "manifest.json").read_text())
    program = json.loads((bundle / "role-0.json").read_text())
    done = [i for block, _, _ in program["entries"]["train"] for i in program["blocks"][block] if i["op"] == "coll"]
    expected, sent = closed(ranks)
    claims.equal(f"mlp dp{ranks}: collectives of a step", sorted((i["kind"], i["n"]) for i in done),
                 sorted(expected.elements()))
    claims.equal(f"mlp dp{ranks}: communicators", {c["name"] for c in manifest["communicators"]},
                 {"dp", "dp.all_gather", "dp.reduce_scatter"})
    claims.hold(f"mlp dp{ranks}: sent in a step minus the closed form, all ranks",
                abs(metrics[-1]["sent_bytes"] - ranks * sent), 4 * ranks, unit="bytes")
    claims.hold(f"mlp dp{ranks}: losses to one rank's",
                max(abs(a["loss"] - b["loss"]) for a, b in zip(metrics, whole, strict=True)), 2e-5)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", help="default: on the PATH",
                        default=pathlib.Path(shutil.which("par-compile") or ".").parent)
    parser.add_argument("--ranks", action="append", type=int, choices=(2, 4, 8), help="default: all")
    options = parser.parse_args()
    claims = Claims()
    with tempfile.TemporaryDirectory(prefix="par-sharded-bytes-") as work:
        for ranks in options.ranks or (2, 4, 8):
            check(Runs(options.bin, work), claims, ranks)
    print(f"{claims.count} claims, {len(claims.failures)} failed")
    sys.exit(1 if claims.failures else 0)


if __name__ == "__main__":
    main()

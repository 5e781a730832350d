#!/usr/bin/env python3
"""Compiles a model of this folder for inference, predicts the data, and holds the results against PyTorch and one rank.

    predict.py [--bin build/bin] --model gpt2 --case pp2dp2tp2 [--rows 12] [--work DIR]

The model gives its logits and its loss. The loss of the first batch is PyTorch's (reference.json, float64, 2e-5); the
loss of every batch is that of the logits beside it; and the logits are those that one rank gives (1e-5 of the largest).
--rows takes so many samples, which need not be whole batches. Only Python's standard library is used.
"""
import argparse
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile

from runs import CODES, read_safetensors, write_safetensors
from train_reference import CASES, HERE


def cross_entropy(logits, labels):
    """Mean over the labels that are not -100."""
    classes, total, count = len(logits) // len(labels), 0.0, 0
    for i, label in enumerate(labels):
        if label >= 0:
            row = logits[i * classes:(i + 1) * classes]
            largest = max(row)
            total += math.log(sum(math.exp(x - largest) for x in row)) + largest - row[label]
            count += 1
    return total / count


def shifted(labels, length):
    """Predictions of a language model that shifts its own labels: each next token, and none after the last."""
    return [labels[i + 1] if (i + 1) % length else -100 for i in range(len(labels))]


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=240)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\nexit {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")


def predict(options, work, case, data):
    plan, bundle, results = work / f"{case}.yaml", work / f"{case}.par", work / f"{case}.safetensors"
    plan.write_text(re.sub(r"schedule: \w+, |recompute: .*\n", "", CASES[case])) # these are about training
    tools = (lambda tool: options.bin / tool) if options.bin else str
    run(tools("par-compile"), HERE / options.model / "model.onnx", plan, "-o", bundle, "-q")
    run(tools("par-run"), bundle, "--data", data, "--output", results)
    return read_safetensors(results, CODES)


def check(options, work):
    reference = json.loads((HERE / options.model / "reference.json").read_text())
    arrays = read_safetensors(HERE / options.model / "data.safetensors", CODES)
    rows = options.rows or arrays["labels"][0][0]
    taken = {name: ([rows] + shape[1:], numbers[:rows * len(numbers) // shape[0]])
             for name, (shape, numbers) in arrays.items()}
    write_safetensors(work / "data.safetensors", taken)
    got = predict(options, work, options.case, work / "data.safetensors")
    one = predict(options, work, "one", work / "data.safetensors") if options.case != "one" else got
    batch, (shape, logits) = reference["B"], got["logits"]
    assert shape[0] == rows and shape == one["logits"][0], f"logits are {shape}"
    largest = max(map(abs, one["logits"][1]))
    apart = max(abs(a - b) for a, b in zip(logits, one["logits"][1]))
    assert apart <= 1e-5 * largest, f"logits differ by {apart} of {largest} from one rank's"
    expected = next(iter(reference["runs"].values()))["losses_f64"][0]
    losses = got["loss"][1]
    assert abs(losses[0] - expected) < 2e-5, f"loss {losses[0]}, PyTorch has {expected}"
    per_row, labels = len(logits) // rows, taken["labels"][1]
    per_label = len(labels) // rows
    for i in range(rows // batch):
        own = list(labels[i * batch * per_label:(i + 1) * batch * per_label])
        own = shifted(own, per_label) if per_label > 1 else own
        loss = cross_entropy(logits[i * batch * per_row:(i + 1) * batch * per_row], own)
        assert abs(loss - losses[i]) < 2e-5, f"batch {i}: loss {losses[i]}, its logits give {loss}"
    print(f"{options.model} {options.case}: {rows} rows, {len(losses)} batches, loss {losses[0]:.6f}, "
          f"logits within {apart / largest:.1e} of one rank's")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, help="default: the PATH")
    parser.add_argument("--model", default="gpt2")
    parser.add_argument("--case", default="one", choices=CASES)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--work")
    options = parser.parse_args()
    work = pathlib.Path(options.work or tempfile.mkdtemp(prefix="par-predict-"))
    work.mkdir(parents=True, exist_ok=True)
    check(options, work)


main()

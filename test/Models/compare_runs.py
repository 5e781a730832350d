#!/usr/bin/env python3
"""Holds runs of gpt2 against the interpreter in float64 and against each other, and arenas against their prediction.

    compare_runs.py --bin build/bin [--case pp2dp2tp2]... [--show clip] [--show ignored] [--show bits] [--show arena]

clip: `clip: 1.0`, active in the first steps. ignored: labels of rows 0 and 1 and half of row 5 are -100, so that a mean
of microbatches' means is wrong. Both: ten losses, norms of the gradient and of the parameters equal the one-rank
interpreter's. bits: two runs, inproc and shm, and a run that was killed and resumed export the same bytes. arena:
memory that is poisoned before every step changes no bit, and is touched up to 0.9 to 1 of the predicted peak. Exit
status 0: all hold.
"""
import argparse
import json
import os
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time

from runs import HERE, Claims, Runs, largest, read_safetensors
from train_reference import CASES

MODEL, DATA = HERE / "gpt2/model.onnx", HERE / "gpt2/data.safetensors"
STEPS = 10
SGD = "{kind: sgd, lr: 0.1}"


def ignoring(source, to):
    """A copy of the data with labels of rows 0, 1 and the first half of row 5 of every batch of 8 set to -100."""
    data = bytearray(source.read_bytes())
    (length,) = struct.unpack("<Q", data[:8])
    entry = json.loads(data[8:8 + length])["labels"]
    rows, columns = entry["shape"]
    begin = 8 + length + entry["data_offsets"][0]
    for row in range(rows):
        count = {0: columns, 1: columns, 5: columns // 2}.get(row % 8, 0)
        struct.pack_into(f"<{count}q", data, begin + row * columns * 8, *[-100] * count)
    to.write_bytes(data)
    return to


class Oracle:
    """The training run on one rank, interpreted in float64 from the exported weights."""

    def __init__(self, runs, train, data):
        bundle = runs.compile(MODEL, CASES["one"] + train)
        start = runs.train(bundle, data, 1, "--set", "lr=0")[1]
        plan, step = runs.work / "oracle.yaml", runs.work / "oracle.mlir"
        plan.write_text(CASES["one"] + train)
        step.write_text(runs.run(runs.binaries / "par-compile", MODEL, plan, "--stop-after=train"))
        said = runs.run(runs.binaries / "par-opt", step, f"--par-interpret=values={start},{data} steps={STEPS}", "-o",
                        "/dev/null")
        outputs = re.findall(r'^train call \d+ output "(\w+)" tensor<f32> (\S+)$', said, re.M)
        self.losses = [float(value) for name, value in outputs if name == "loss"]
        self.gradients = [float(value) for name, value in outputs if name == "grad_norm"]
        self.norms = {name: float(value) for name, value in re.findall(r'^train norm "(\S+)" (\S+)$', said, re.M)}
        if not len(self.losses) == len(self.gradients) == STEPS or not self.norms:
            sys.exit(f"the interpreter said:\n{said[-2000:]}")


class Comparison:
    def __init__(self, runs, claims):
        self.runs, self.claims = runs, claims

    def with_oracle(self, what, train, data, cases):
        oracle = Oracle(self.runs, train, data)
        for case in cases:
            metrics, weights = self.runs.train(self.runs.compile(MODEL, CASES[case] + train), data, STEPS)
            title = f"gpt2 {case} {what}"
            if not self.claims.equal(f"{title}: steps", len(metrics), STEPS):
                continue
            self.claims.hold(f"{title}: losses to interpreter's",
                             largest(abs(line["loss"] - loss) for line, loss in zip(metrics, oracle.losses)), 2e-5)
            self.claims.hold(f"{title}: gradient norms",
                             largest(abs(line["grad_norm"] / norm - 1)
                                     for line, norm in zip(metrics, oracle.gradients)), 1e-5,
                             unit="relative")
            self.claims.hold(f"{title}: parameter norms", self.norms(weights, oracle.norms), 1e-5, unit="relative")
        return oracle

    def norms(self, weights, wanted):
        found = read_safetensors(weights)
        return largest(abs(sum(x * x for x in found[name][1]) ** 0.5 - norm) / (norm or 1)
                       for name, norm in wanted.items())

    def ignored(self, cases):
        data = ignoring(DATA, self.runs.work / "ignored.safetensors")
        self.with_oracle("ignored labels", f"train: {{optimizer: {SGD}}}\n", data, cases)

    def clip(self, cases):
        oracle = self.with_oracle("clip 1.0", f"train: {{optimizer: {SGD}, clip: 1.0}}\n", DATA, cases)
        self.claims.hold("gpt2 clip 1.0: first norm, so that it is active", oracle.gradients[0], 1.0, least=True)

    def bundle(self, case):
        return self.runs.compile(MODEL, CASES[case] + "train: {optimizer: {kind: adamw, lr: 1e-3}}\n")

    def bits(self, cases):
        for case in cases:
            bundle, exports = self.bundle(case), {}
            transports = [("again", []), ("shm", ["--comm", "shm"]), ("inproc", ["--comm", "inproc"])]
            for name, more in transports:
                exports[name] = self.runs.work / f"{name}.safetensors"
                self.runs.run(*self.runs.command(bundle, DATA, 30, "--export", exports[name], *more))
            exports["killed, resumed"] = self.killed(bundle, case)
            first = exports["again"].read_bytes()
            different = [name for name, path in exports.items() if path.read_bytes() != first]
            self.claims.equal(f"gpt2 {case}: bits unlike the first run's of {', '.join(list(exports)[1:])}", different,
                              [])

    def killed(self, bundle, case):
        saves, export = self.runs.work / f"saves-{bundle.stem}", self.runs.work / "resumed.safetensors"
        command = [str(part) for part in self.runs.command(bundle, DATA, 30, "--save", saves, "--save-every", "2")]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   start_new_session=True)
        while process.poll() is None and not any(path.name.isdigit() for path in saves.glob("*")):
            time.sleep(0.002)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        steps = sorted(int(path.name) for path in saves.glob("[0-9]*") if path.name.isdigit())
        self.claims.hold(f"gpt2 {case}: last save of 30 when killed", steps[-1] if steps else float("nan"), 28)
        self.runs.run(*command, "--resume", "auto", "--export", export)
        return export

    def arena(self, cases):
        for case in cases:
            bundle, plain, poisoned = self.bundle(case), *(self.runs.work / f"{name}.safetensors"
                                                           for name in ("plain", "poisoned"))
            self.runs.run(*self.runs.command(bundle, DATA, 3, "--export", plain))
            said = self.runs.run(*self.runs.command(bundle, DATA, 3, "--export", poisoned, "--check-arena"))
            lines = re.findall(r"^arena   rank \d+: touched ([\d,]+) of ([\d,]+) bytes$", said, re.M)
            shares = [int(touched.replace(",", "")) / int(bound.replace(",", "")) for touched, bound in lines]
            ranks = len(json.loads((bundle / "manifest.json").read_text())["ranks"])
            self.claims.equal(f"gpt2 {case}: ranks that say what they touched", len(shares), ranks)
            self.claims.hold(f"gpt2 {case}: touched of the predicted peak, at most", largest(shares), 1.0)
            self.claims.hold(f"gpt2 {case}: touched of the predicted peak, at least", min(shares, default=0), 0.9,
                             least=True)
            self.claims.equal(f"gpt2 {case}: weights after steps in poisoned memory",
                              "equal" if plain.read_bytes() == poisoned.read_bytes() else "different", "equal")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", required=True)
    shows = ["clip", "ignored", "bits", "arena"]
    parser.add_argument("--case", action="append", choices=sorted(CASES))
    parser.add_argument("--show", action="append", choices=shows)
    options = parser.parse_args()
    claims = Claims()
    with tempfile.TemporaryDirectory(prefix="par-runs-") as work:
        comparison = Comparison(Runs(options.bin, work), claims)
        for show in options.show or shows:
            getattr(comparison, show)(options.case or ["pp2dp2tp2", "dp2tp3-vocab"])
    sys.exit(1 if claims.failures else 0)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Holds runs of gpt2 against each other: under plans, transports, repetitions and kills; and arenas against predictions.

    compare_runs.py --bin build/bin [--show ignored] [--show clip] [--show bits] [--show arena]

ignored: labels of rows 0 and 1 and half of row 5 are -100: losses equal one rank's within 2e-5. clip: so do losses and
norms under `clip: 1.0`, active in the first step. bits: two runs, inproc and shm, and a run that was killed and resumed export the same
bytes. arena: --check-arena's own verdict. Exit status 0: all hold.
"""
import argparse
import json
import os
import pathlib
import signal
import struct
import subprocess
import sys
import tempfile
import time

from train_reference import CASES, HERE

DATA = HERE / "gpt2/data.safetensors"
DISTRIBUTED = ["dp2", "one-m8", "dp8", "tp4", "pp2dp2tp2"]


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


class Runs:
    def __init__(self, binaries, work):
        self.binaries, self.work, self.failures = binaries, pathlib.Path(work), []

    def run(self, *command):
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=300)
        if done.returncode:
            sys.exit(f"{' '.join(map(str, command))}\nexit {done.returncode}\n{done.stdout[-1500:]}{done.stderr[-3000:]}")
        return done.stdout + done.stderr

    def compile(self, case, train="{optimizer: {kind: adamw, lr: 1e-3}}"):
        bundle, plan = self.work / f"{case}.par", self.work / "plan.yaml"
        plan.write_text(CASES[case] + f"train: {train}\n")
        self.run(f"{self.binaries}/par-compile", HERE / "gpt2/model.onnx", plan, "-o", bundle, "-q")
        return bundle

    def command(self, bundle, steps, data=DATA):
        return [f"{self.binaries}/par-run", bundle, "--data", data, "--order", "sequential", "--steps", str(steps)]

    def metrics(self, bundle, data=DATA):
        path = self.work / "metrics.jsonl"
        path.unlink(missing_ok=True)
        self.run(*self.command(bundle, 10, data), "--metrics", path)
        return [json.loads(line) for line in path.read_text().splitlines()]

    def equal_to_one(self, what, train, data):
        wanted = self.metrics(self.compile("one", train), data)
        for case in DISTRIBUTED:
            got = self.metrics(self.compile(case, train), data)
            losses = max(abs(a["loss"] - b["loss"]) for a, b in zip(got, wanted))
            norms = max(abs(a["grad_norm"] - b["grad_norm"]) / b["grad_norm"] for a, b in zip(got, wanted))
            print(f"{what:8} {case:12} losses within {losses:.1e}, norms within {norms:.1e} relative, "
                  f"first norm {got[0]['grad_norm']:.4f}", flush=True)
            if len(got) != 10 or not losses <= 2e-5 or not norms <= 1e-4:
                self.failures.append(f"{what}: {case} differs from one rank")

    def ignored(self):
        data = self.work / "ignored.safetensors"
        ignoring(DATA, data)
        self.equal_to_one("ignored", "{optimizer: {kind: sgd, lr: 0.1}}", data)

    def clip(self):
        self.equal_to_one("clip", "{optimizer: {kind: sgd, lr: 0.1}, clip: 1.0}", DATA)

    def bits(self):
        for case in ["pp2dp2tp2", "dp2tp3-vocab"]:
            bundle, exports = self.compile(case), {}
            for name, more in [("again", []), ("shm", ["--comm", "shm"]), ("inproc", ["--comm", "inproc"])]:
                exports[name] = self.work / f"{name}.safetensors"
                self.run(*self.command(bundle, 30), "--export", exports[name], *more)
            exports["resumed"] = self.killed(bundle, case)
            first = exports["again"].read_bytes()
            for name, path in exports.items():
                same = path.read_bytes() == first
                print(f"bits     {case:12} {name:8} {'equal' if same else 'DIFFERS'}", flush=True)
                if not same:
                    self.failures.append(f"bits: {case} {name} differs")

    def killed(self, bundle, case):
        saves, export = self.work / f"saves-{case}", self.work / "resumed.safetensors"
        command = [str(part) for part in self.command(bundle, 30)] + ["--save", str(saves), "--save-every", "2"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        while process.poll() is None and not any(path.name.isdigit() for path in saves.glob("*")):
            time.sleep(0.005)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        steps = sorted(int(path.name) for path in saves.glob("[0-9]*") if path.name.isdigit())
        print(f"bits     {case:12} killed with saves {steps}", flush=True)
        if not steps or steps[-1] >= 30:
            self.failures.append(f"bits: {case} was not killed in the middle: {steps}")
        self.run(*command, "--resume", "auto", "--export", export)
        return export

    def arena(self):
        for case in ["pp2dp2tp2", "pp4-1f1b", "pp4-auto"]:
            said = self.run(*self.command(self.compile(case), 3), "--check-arena")
            print("\n".join(f"arena    {case:12} {line}" for line in said.splitlines() if "arena" in line), flush=True)
            if "arena" not in said:
                self.failures.append(f"arena: {case} says nothing of its arena")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", required=True)
    shows = ["ignored", "clip", "bits", "arena"]
    parser.add_argument("--show", action="append", choices=shows)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="par-runs-") as work:
        runs = Runs(options.bin, work)
        for show in options.show or shows:
            getattr(runs, show)()
    print("\n".join(runs.failures) or "all equal")
    sys.exit(1 if runs.failures else 0)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Jobs of which a rank is killed go on under --restart and end with the bits of a run without faults. A line a plan.

    going_on.py --bin build/bin [--case zero3]... [--kills 1] [--steps 126] [--seed S]

Each plan of tiny-gpt trains once without faults and once with --restart while that many ranks are killed (SIGKILL),
each at a random time. Final weights, metrics (without times), evaluations and the data of saves must be the same. Only
Python's standard library is used. Exit status 0: all are.
"""
import argparse
import json
import pathlib
import random
import shutil
import signal
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "cluster"))
from results import BASE, CASES

ROOT = pathlib.Path(__file__).resolve().parents[2]
MORE = {
    "zero1": ["mesh.dp=2", "zero={level: 1, min_size: 0}", "batch.size=8"],
    "zero2": ["mesh.dp=2", "zero={level: 2, min_size: 0}", "batch.size=8"],
    "fp16": ["mesh.dp=2", "batch.size=8", "precision=fp16"],
    "bf16": ["mesh.dp=2", "batch.size=8", "precision=bf16"],
}


def children(pid):
    try:
        text = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(one) for one in text.split()]


def facts(folder):
    """All that must be the same."""
    lines = []
    for line in (folder / "metrics.jsonl").read_text().splitlines():
        values = json.loads(line)
        values.pop("ms", None)
        values.pop("peak_bytes", None)
        lines.append(values)
    saves = {}
    for file in sorted(folder.glob("ckpt/*/rank*.safetensors")):
        data = file.read_bytes()
        saves[str(file.relative_to(folder))] = data[8 + int.from_bytes(data[:8], "little"):]
    return {"weights": (folder / "w.safetensors").read_bytes(), "metrics": lines, "saves": saves}


class Trial:
    def __init__(self, arguments):
        self.bin, self.steps, self.kills = pathlib.Path(arguments.bin).resolve(), arguments.steps, arguments.kills
        self.random = random.Random(arguments.seed)
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="par-going-on-"))
        self.failed = 0

    def compile(self, case, settings):
        path = self.work / f"{case}.par"
        flags = [part for setting in [*BASE, *settings] for part in ("--set", setting)]
        made = subprocess.run([self.bin / "par-compile", ROOT / "examples/tiny-gpt.onnx", *flags, "-q", "-o", path],
                              capture_output=True, text=True)
        if made.returncode:
            print(f"{case}: not compiled: {made.stderr[-300:]}")
            return None
        return path

    def command(self, bundle, folder, more=()):
        ranks = len(json.loads((bundle / "manifest.json").read_text())["ranks"])
        folder.mkdir()
        text = ROOT / "README.md"
        return [self.bin / "par-run", bundle, "-n", str(ranks), "--text", text, "--init", "--steps", str(self.steps),
                "--metrics", folder / "metrics.jsonl", "--export", folder / "w.safetensors", "--save", folder / "ckpt",
                "--save-every", str(self.steps // 5), *more]

    def run(self, case, settings):
        bundle = self.compile(case, settings)
        if not bundle:
            self.failed += 1
            return
        straight, lost = self.work / f"{case}-straight", self.work / f"{case}-lost"
        began = time.monotonic()
        first = subprocess.run(self.command(bundle, straight), capture_output=True, text=True)
        took = time.monotonic() - began
        if first.returncode:
            print(f"{case}: {first.stderr[-300:]}")
            self.failed += 1
            return
        job = subprocess.Popen(self.command(bundle, lost, ["--restart"]), stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True)
        killed = 0
        for _ in range(self.kills):
            time.sleep(self.random.uniform(0.1, max(0.2, took / self.kills)))
            if ranks := children(job.pid):
                os.kill(self.random.choice(ranks), signal.SIGKILL)
                killed += 1
        out = job.communicate()[0]
        same = {}
        if job.returncode == 0:
            a, b = facts(straight), facts(lost)
            same = {key: a[key] == b[key] for key in a}
        holds = job.returncode == 0 and all(same.values())
        self.failed += not holds
        went = [line.split("goes on after ")[1].split(",")[0] for line in out.splitlines() if "goes on after " in line]
        print(f"{case}: {killed} killed, went on after {', '.join(went) or 'none'}: "
              f"{'pass' if holds else f'FAIL {job.returncode} {same} {out[-1200:]}'}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--case", action="append", choices=[*CASES, *MORE])
    parser.add_argument("--kills", type=int, default=1)
    parser.add_argument("--steps", type=int, default=126, help="a multiple of 3, after which pipedream flushes")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    trial = Trial(arguments)
    for case, settings in {**CASES, **MORE}.items():
        if not arguments.case or case in arguments.case:
            trial.run(case, settings)
    shutil.rmtree(trial.work)
    return trial.failed != 0


if __name__ == "__main__":
    sys.exit(main())

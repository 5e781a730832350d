#!/usr/bin/env python3
"""A long run under --restart with a fault now and then: nothing grows. A line a claim.

    soak.py [--bin build/bin] [--minutes 60] [--every 20] [--case dp2] [--seed S]

Tiny-gpt trains with saves until the time is up, and is then asked to stop. Every 20 seconds a rank is killed or
stopped. Each second in which all ranks run, memory (anonymous and shared, of par-run and its ranks) and open
descriptors are taken, and between two faults the ranks' processor time a step, of whole processes. The slope of each is
estimated (Theil and Sen's: the median of the slopes between pairs, which single outliers do not move), and its share of
the whole run must stay below a limit: memory 2 %, descriptors 1, processor time 10 %. Wall time a step is printed: it
says more about what else the machine does. Only Python's standard library is used. Exit status 0: all hold.
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "cluster"))
from faulty import OneHost, signal_to

ROOT = pathlib.Path(__file__).resolve().parents[2]
BASE = ["train.loss=cross_entropy", "train.optimizer=adamw", "dims.seq=32"]
CASES = {
    "dp2": (2, ["mesh.dp=2", "batch.size=8"]),
    "dp2pp2": (4, ["mesh.pp=2", "mesh.dp=2", "batch.size=8", "batch.microbatches=4", "pipeline.cuts={h.*: even}"]),
    "zero3": (4, ["mesh.dp=4", "zero={level: 3, min_size: 0}", "batch.size=8"]),
}
BEGIN = 0.1  # the share of the run that is left out at the begin: memory is touched for the first time
ROUNDS = 300  # points of a line at most, of which all pairs are taken


def slope(points):
    """Theil and Sen's estimate; 0 of fewer than two points."""
    thinned = points[::max(1, len(points) // ROUNDS)]
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for i, a in enumerate(thinned) for b in thinned[i + 1:] if b[0] > a[0]]
    return statistics.median(slopes) if slopes else 0.0


def undisturbed(times, windows=40):
    """The tenth percentile of each window of steps."""
    size = max(10, len(times) // windows)
    chunks = [times[at:at + size] for at in range(0, len(times) - size + 1, size)]
    return [(chunk[0][0], sorted(value for _, value in chunk)[len(chunk) // 10]) for chunk in chunks]


def memory(pids):
    """Bytes, or nothing where a process has ended."""
    total, shared = 0, {}
    try:
        for pid in pids:
            lines = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            total += sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss_Anon:"))
            for file in pathlib.Path(f"/proc/{pid}/fd").iterdir():
                if os.readlink(file).startswith("/memfd:"):
                    facts = file.stat()
                    shared[facts.st_dev, facts.st_ino] = 512 * facts.st_blocks
    except (OSError, ValueError):
        return None
    return total + sum(shared.values())


def processor_seconds(pids):
    """All threads of these processes; nothing where one has ended."""
    try:
        stats = [pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split() for pid in pids]
    except OSError:
        return None
    return sum(int(stat[11]) + int(stat[12]) for stat in stats) / os.sysconf("SC_CLK_TCK")


def descriptors(pids):
    try:
        return sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in pids)
    except OSError:
        return None


class Soak:
    def __init__(self, arguments):
        self.arguments, self.failed = arguments, 0
        self.bin = pathlib.Path(arguments.bin).resolve()
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="par-soak-"))
        self.random = random.Random(arguments.seed)
        self.samples = {"memory": [], "descriptors": [], "processor time": []}
        self.faults, self.first = 0, None

    def claim(self, text, holds, detail=""):
        self.failed += not holds
        print(f"{text}: {'pass' if holds else 'FAIL ' + str(detail)[-2000:]}", flush=True)

    def start(self):
        self.world, plan = CASES[self.arguments.case]
        bundle, self.metrics = self.work / "soak.par", self.work / "metrics.jsonl"
        flags = [part for setting in [*BASE, *plan] for part in ("--set", setting)]
        subprocess.run([self.bin / "par-compile", ROOT / "examples/tiny-gpt.onnx", *flags, "-q", "-o", bundle],
                       check=True)
        self.job = OneHost(self.bin / "par-run", self.work)
        self.job.start(bundle, self.world, ["--init", "--no-tuning", "--text", ROOT / "README.md", "--steps", 10 ** 9,
                                            "--metrics", self.metrics, "--save", self.work / "ckpt", "--save-every",
                                            50, "--keep", 2, "--restart", "-q"])

    def take(self, second):
        """A sample of par-run and all its ranks."""
        pids = [self.job.supervisors[0].pid, *self.job.ranks()]
        if len(pids) != 1 + self.world:
            return
        for name, value in (("memory", memory(pids)), ("descriptors", descriptors(pids))):
            if value is not None:
                self.samples[name].append((second, value))
        seconds = processor_seconds(pids[1:])
        if seconds is not None and (not self.first or self.first[0] != pids):
            self.first = pids, seconds, self.steps()
        if seconds is not None:
            self.last = second, seconds, self.steps()

    def steps(self):
        return self.metrics.read_bytes().count(b"\n") if self.metrics.exists() else 0

    def end_interval(self):
        """The processor time of a step since the last fault: milliseconds of all ranks."""
        first, self.first = self.first, None
        if first and self.last[2] > first[2] + 10:
            self.samples["processor time"].append(
                (self.last[0], 1000 * (self.last[1] - first[1]) / (self.last[2] - first[2])))

    def play(self):
        """Samples, and steps at each second."""
        began, seconds, following = time.monotonic(), 60 * self.arguments.minutes, self.arguments.every
        made = 0
        while self.job.runs() and (second := time.monotonic() - began) < seconds:
            # A rank that starts has not all of its memory and descriptors yet.
            if second > following - 0.5 * self.arguments.every:
                self.take(second)
            # A rank that is lost three times in one step ends the job: on a busy machine a fault is mended slowly.
            if second > following and self.steps() > made + 1:
                following, made = second + self.arguments.every, self.steps()
                self.end_interval()
                if ranks := self.job.ranks():
                    signal_to(self.random.choice(ranks), self.random.choice([signal.SIGKILL, signal.SIGSTOP]))
                    self.faults += 1
            time.sleep(1)
        self.seconds = time.monotonic() - began
        signal_to(self.job.supervisors[0].pid, signal.SIGTERM)
        try:
            self.job.supervisors[0].wait(60)
        except subprocess.TimeoutExpired:
            pass
        self.job.close()

    def judge(self, name, points, share, unit):
        """`share`: of the median that the whole run may add."""
        points = [point for point in points if point[0] > BEGIN * points[-1][0]] if points else []
        if len(points) < 15:
            self.claim(f"{name}: {len(points)} samples are enough", False)
            return
        middle = statistics.median(value for _, value in points)
        added = slope(points) * (points[-1][0] - points[0][0])
        most = share * middle if share < 1 else share
        self.claim(f"{name}: {unit(middle)}, and {unit(added)} more over the run (at most {unit(most)})", added <= most,
                   points[::max(1, len(points) // 50)])

    def run(self):
        self.start()
        self.play()
        title = f"{self.arguments.case}, {self.seconds / 60:.1f} minutes, {self.faults} faults"
        self.claim(f"{title}: par-run ends as it was asked to",
                   self.job.codes() == [128 + signal.SIGTERM] and self.faults > 0,
                   f"{self.job.codes()} {self.job.said()}")
        lines = [json.loads(line) for line in self.metrics.read_text().splitlines()]
        times = [(number, line["ms"]) for number, line in enumerate(lines) if "ms" in line]
        self.judge("memory", self.samples["memory"], 0.02, lambda value: f"{value / 2 ** 20:.2f} MiB")
        self.judge("descriptors", self.samples["descriptors"], 1, lambda value: f"{value:.1f}")
        self.judge("processor time a step", self.samples["processor time"], 0.1, lambda value: f"{value:.2f} ms")
        print(f"wall time a step: {', '.join(f'{value:.1f}' for _, value in undisturbed(times, 20))} ms", flush=True)
        shutil.rmtree(self.work, ignore_errors=True)
        return self.failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=str(ROOT / "build/bin"))
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--every", type=float, default=20)
    parser.add_argument("--case", choices=list(CASES), default="dp2")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    os.environ.pop("PAR_DEVICE", None)
    return Soak(arguments).run() != 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Jobs that lose hosts and get them back. par-run --shrink must end with the bits of a run without faults.

    shrink.py [--bin build/bin] [--case dp4]... [--steps 3000] [--faults 8] [--every 4] [--seed N]

Each rank has a par-run of its own under another host name, so that nothing is shared between them. A run without
faults makes the steps on one host; then the same steps are made while every so many seconds a host is lost (its
par-run is killed with its rank) and comes again later, and a rank's process is killed now and then: mostly while the
job shrinks or grows. A line a claim: the ranks end well, the exported weights and the metrics (without times) are the
same, the job has shrunk and grown, no process is left over. Under ZeRO jobs save, go back to the newest save, and end
with losses that are the same within rounding. Only Python's standard library is used. Exit status 0: all hold.
"""
import argparse
import json
import os
import pathlib
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BASE = ["train={loss: cross_entropy, optimizer: adamw, clip: 0.5}", "dims.seq=8", "batch.microbatch_size=1",
        "collectives.deterministic=true"]
CASES = {
    "dp4": (4, ["mesh.dp=4", "batch.size=12"], ["mesh.dp=3", "mesh.dp=2", "mesh.dp=1"]),
    "pp2dp2": (4, ["mesh={pp: 2, dp: 2}", "batch.size=8", "pipeline.cuts={h.*: even}"], ["mesh.dp=1"]),
    "dp2": (2, ["mesh.dp=2", "batch.size=8"], ["mesh.dp=1"]),
    "zero1": (4, ["mesh.dp=4", "batch.size=12", "zero={level: 1, min_size: 0}", "collectives.sums=ranks"],
              ["mesh.dp=3", "mesh.dp=2"]),
    "zero3": (4, ["mesh.dp=4", "batch.size=12", "zero={level: 3, min_size: 0}", "collectives.sums=ranks"],
              ["mesh.dp=3", "mesh.dp=2"]),
}
# Shards that were lost with a host come from a save, and members add in another order.
ZERO, SAVE_EVERY, ROUNDING = ("zero1", "zero3"), 20, 1e-3
SHRINK = 1


def unused_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def children(pid):
    try:
        return [int(one) for one in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def metrics(folder):
    lines = []
    for line in (folder / "metrics.jsonl").read_text().splitlines():
        values = json.loads(line)
        lines.append({key: values[key] for key in ("step", "loss", "grad_norm", "lr") if key in values})
    return lines


class Hosts:
    """A job with a par-run for each rank."""

    def __init__(self, command, ranks, folder):
        self.command, self.port, self.folder = command, unused_port(), folder
        self.runs, self.logs, self.pids = [None] * ranks, [[] for _ in range(ranks)], set()
        for rank in range(ranks):
            self.start(rank)

    def start(self, rank):
        log = self.folder / f"log{rank}.{len(self.logs[rank])}"
        self.logs[rank].append(log)
        with open(log, "w") as out:
            self.runs[rank] = subprocess.Popen(
                [*self.command, "--rank", str(rank), "--world", str(len(self.runs)), "--master",
                 f"127.0.0.1:{self.port}"],
                env={**os.environ, "PAR_HOST": f"host{rank}"}, stdout=out, stderr=subprocess.STDOUT)
        self.pids.add(self.runs[rank].pid)

    def lose(self, rank):
        self.pids.update(children(self.runs[rank].pid))
        self.runs[rank].kill()
        self.runs[rank].wait()

    def kill_rank(self, rank):
        for pid in children(self.runs[rank].pid):
            try:
                os.kill(pid, 9)
            except ProcessLookupError:
                pass

    def ended(self):
        return self.runs[0].poll() is not None

    def text(self, rank):
        return "".join(log.read_text(errors="replace") for log in self.logs[rank])

    def codes(self, seconds):
        codes = []
        for run in self.runs:
            try:
                codes.append(run.wait(seconds))
            except subprocess.TimeoutExpired:
                codes.append("no end")
                run.kill()
        return codes


class Trials:
    """Trials of jobs whose hosts come and go, each of a claim or more."""

    def __init__(self, arguments):
        self.bin, self.arguments = pathlib.Path(arguments.bin).resolve(), arguments
        self.random = random.Random(arguments.seed)
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="par-rejoining-"))
        self.failed = 0

    @staticmethod
    def parser(doc, cases, **defaults):
        """The flags of all trials; `defaults`: those of more, with their numbers."""
        parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
        parser.add_argument("--bin", default=ROOT / "build/bin")
        parser.add_argument("--case", action="append", choices=cases)
        parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
        for name, number in defaults.items():
            parser.add_argument(f"--{name}", type=type(number), default=number)
        return parser

    @classmethod
    def main(cls, parser, cases):
        arguments = parser.parse_args()
        print(f"seed {arguments.seed}", flush=True)
        trials = cls(arguments)
        for case in arguments.case or cases:
            trials.run(case)
        return trials.end()

    def claim(self, what, holds, more=""):
        self.failed += not holds
        print(f"{what}: {'pass' if holds else 'FAIL ' + str(more)[-4000:]}", flush=True)

    def end(self):
        time.sleep(1)
        left = subprocess.run(["pgrep", "-f", str(self.work)], capture_output=True, text=True).stdout.split()
        self.claim("no process is left over", not left, left)
        shutil.rmtree(self.work)
        print(f"{self.failed} claims failed")
        return self.failed != 0


class Trial(Trials):
    def compile(self, case):
        ranks, settings, also = CASES[case]
        path = self.work / f"{case}.par"
        flags = [part for setting in [*BASE, *settings] for part in ("--set", setting)]
        flags += [part for member in also for part in ("--also", member)]
        subprocess.run([self.bin / "par-compile", ROOT / "examples/tiny-gpt.onnx", *flags, "-q", "-o", path],
                       check=True)
        return path, ranks

    def command(self, bundle, folder, steps, more):
        folder.mkdir()
        return [str(part) for part in
                [self.bin / "par-run", bundle, "--text", ROOT / "README.md", "--init", "--steps", steps, "--metrics",
                 folder / "metrics.jsonl", "--export", folder / "w.safetensors", *more]]

    def harm(self, job):
        """Loses a host, and returns it; a rank is killed meanwhile in two of three cases."""
        pick = self.random
        victim, other = pick.randrange(1, len(job.runs)), pick.randrange(len(job.runs))
        job.lose(victim)
        time.sleep(pick.uniform(0, 2 * SHRINK + 1))
        if pick.random() < 0.33 and other != victim:
            job.kill_rank(other)
        time.sleep(pick.uniform(0, 1))
        job.start(victim)
        if pick.random() < 0.33:
            time.sleep(pick.uniform(0, 0.6))
            job.kill_rank(other)
        time.sleep(pick.uniform(0, self.arguments.every))

    def run(self, case):
        bundle, ranks = self.compile(case)
        straight, shrunk, steps = self.work / f"{case}-straight", self.work / case, self.arguments.steps
        saves = ["--save", shrunk / "ckpt", "--save-every", SAVE_EVERY] if case in ZERO else []
        subprocess.run([*self.command(bundle, straight, steps, ["-q"]), "-n", str(ranks)], check=True)
        command = self.command(bundle, shrunk, steps, ["--comm", "tcp", "--timeout", "5", f"--shrink={SHRINK}",
                                                       *saves])
        job = Hosts(command, ranks, shrunk)
        faults, began = 0, time.monotonic()
        time.sleep(3)
        while saves and not job.ended() and not list(shrunk.glob("ckpt/*/index.json")):
            time.sleep(0.05)
        # The last host comes again before the end, or it would wait for a job that is no more.
        while not job.ended() and (faults < self.arguments.faults):
            self.harm(job)
            faults += 1
        codes, text = job.codes(300), job.text(0)
        took = time.monotonic() - began
        went = re.findall(r"with (\d+) of \d+ ranks, ([\d.]+) s after (the loss|that step)", text)
        fewer, grown = [one for one in went if int(one[0]) < ranks], [one for one in went if one[2] == "that step"]
        story = "".join(job.text(rank) for rank in range(ranks))
        self.claim(f"{case}: {steps} steps in {took:.0f} s, {faults} hosts lost, {len(fewer)} times with fewer ranks, "
                   f"{len(grown)} times grown, ends well", set(codes) == {0}, f"{codes} {story}")
        if codes[0] != 0:
            return
        self.claim(f"{case}: it has shrunk and grown", fewer and grown, text)
        if case in ZERO:
            pairs = list(zip(metrics(straight), metrics(shrunk), strict=True))
            most = max(abs(one["loss"] - other["loss"]) for one, other in pairs)
            self.claim(f"{case}: {len(pairs)} losses differ by at most {most:.1e}", most < ROUNDING, story)
            back = len(re.findall(r"is back from \S+/ckpt/\d+: no rank that is left holds all of", text))
            self.claim(f"{case}: went back to a save {back} times", back > 0, text)
            return
        same = (straight / "w.safetensors").read_bytes() == (shrunk / "w.safetensors").read_bytes()
        self.claim(f"{case}: weights are the same bytes", same, story)
        self.claim(f"{case}: metrics are the same", metrics(straight) == metrics(shrunk), story)


if __name__ == "__main__":
    sys.exit(Trial.main(Trials.parser(__doc__, CASES, steps=3000, faults=8, every=4.0), CASES))

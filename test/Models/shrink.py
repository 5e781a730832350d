#!/usr/bin/env python3
"""Jobs that lose hosts and get them back. par-run --shrink must end with the bits of a run without faults.

    shrink.py [--bin build/bin] [--case dp4]... [--faults 8] [--every 4] [--seed N]

Each rank has a par-run of its own under another host name, so that nothing is shared between them. Every so many
seconds a host is lost (its par-run is killed with its rank) and comes again later, and a rank's process is killed now
and then: mostly while the job shrinks or grows. The first host comes again after the job has shrunk. When the last one
is back and the job whole, SIGTERM to rank 0 stops it with a save, however many steps it has made. One more step from
that save, and as many steps of a run without faults on one host, are compared. A line a claim: the job stops, it has
shrunk and grown, weights and metrics (without times) are the same, no process is left over. Under ZeRO jobs save, go
back to the newest save, and have losses that are the same within rounding. Only Python's standard library is used.
Exit status 0: all hold.
"""
import argparse
import json
import os
import pathlib
import random
import re
import shutil
import signal
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
# Shards that were lost with a host come from a save, and members add in another order: losses differ by 2e-7 at first,
# and by ten times as much every 60 steps. Another state would show in the step after the job has shrunk.
ZERO, SAVE_EVERY, ROUNDING, COMPARED = ("zero1", "zero3"), 20, 1e-3, 50
SHRINK = 1
ENDLESS = 1 << 30  # steps; a signal is the end


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


def sizes(job):
    """Numbers of ranks with which the job went on, one after each loss and each return."""
    return [int(one) for one in re.findall(r"goes on .*with (\d+) of \d+ ranks", job.text(0))]


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
                [self.bin / "par-run", bundle, "--text", ROOT / "README.md", "--steps", steps,
                 *([] if "--resume" in more else ["--init"]), "--metrics", folder / "metrics.jsonl",
                 "--export", folder / "w.safetensors", *more]]

    def harm(self, job, shrinks):
        """Loses a host, and has it back: after the job has shrunk, or whenever. A rank is killed now and then."""
        pick = self.random
        victim, other = pick.randrange(1, len(job.runs)), pick.randrange(len(job.runs))
        before = len(sizes(job))
        job.lose(victim)
        if shrinks:
            self.wait(lambda: sizes(job)[before:] or job.ended())
        else:
            time.sleep(pick.uniform(0, 2 * SHRINK + 1))
            if pick.random() < 0.33 and other != victim:
                job.kill_rank(other)
            time.sleep(pick.uniform(0, 1))
        job.start(victim)
        if pick.random() < 0.33:
            time.sleep(pick.uniform(0, 0.6))
            job.kill_rank(other)
        time.sleep(pick.uniform(0, self.arguments.every))

    @staticmethod
    def wait(until, seconds=120):
        end = time.monotonic() + seconds
        while not until() and time.monotonic() < end:
            time.sleep(0.05)

    def wait_for_steps(self, job, folder, count=20):
        """Until so many steps have been made from now on."""
        lines = folder / "metrics.jsonl"
        def made():
            return lines.read_bytes().count(b"\n") if lines.exists() else 0
        last = made() + count
        self.wait(lambda: job.ended() or made() >= last)

    def play(self, command, ranks, folder, saves):
        """A job under faults until it is stopped. Returns it, and whether it was whole then."""
        job = Hosts(command, ranks, folder)
        self.wait(lambda: job.ended() or not saves or any(folder.glob("ckpt/*/index.json")))
        for fault in range(self.arguments.faults):
            self.wait_for_steps(job, folder)
            if not job.ended():
                self.harm(job, fault == 0)
        self.wait_for_steps(job, folder)  # the last loss is seen by then
        self.wait(lambda: job.ended() or sizes(job)[-1:] == [ranks])
        self.wait_for_steps(job, folder)
        whole = sizes(job)[-1:] == [ranks]
        job.runs[0].send_signal(signal.SIGTERM)
        return job, whole

    def run(self, case):
        bundle, ranks = self.compile(case)
        straight, shrunk, more = self.work / f"{case}-straight", self.work / case, self.work / f"{case}-more"
        saves, began = case in ZERO, time.monotonic()
        flags = ["--comm", "tcp", "--timeout", "5", f"--shrink={SHRINK}", "--save", shrunk / "ckpt", "--save-every",
                 SAVE_EVERY if saves else ENDLESS]
        job, whole = self.play(self.command(bundle, shrunk, ENDLESS, flags), ranks, shrunk, saves)
        codes, text, took = job.codes(60), job.text(0), time.monotonic() - began
        story = "".join(job.text(rank) for rank in range(ranks))
        kept = sorted(int(one.name) for one in shrunk.glob("ckpt/*") if one.name.isdigit())
        steps = kept[-1] if kept else 0
        grown = re.findall(r"with \d+ of \d+ ranks, [\d.]+ s after that step", text)
        fewer = [size for size in sizes(job) if size < ranks]
        self.claim(f"{case}: {steps} steps in {took:.0f} s, {self.arguments.faults} hosts lost, {len(fewer)} times "
                   f"with fewer ranks, {len(grown)} times grown, stops when whole",
                   whole and steps and set(codes) == {128 + signal.SIGTERM}, f"{codes} {story}")
        if not steps:
            return
        self.claim(f"{case}: it has shrunk and grown", fewer and grown, text)
        here = ["-n", ranks, "-q"]
        subprocess.run(self.command(bundle, straight, steps + 1, here), check=True)
        subprocess.run(self.command(bundle, more, steps + 1, [*here, "--resume", shrunk / "ckpt" / str(steps)]),
                       check=True)
        self.compare(case, metrics(straight), metrics(shrunk) + metrics(more), text)
        if not saves:
            same = (straight / "w.safetensors").read_bytes() == (more / "w.safetensors").read_bytes()
            self.claim(f"{case}: weights are the same bytes", same, story)

    def compare(self, case, straight, shrunk, text):
        if case not in ZERO:
            self.claim(f"{case}: metrics are the same", straight == shrunk, text)
            return
        apart = [abs(one["loss"] - other["loss"]) for one, other in zip(straight, shrunk)]
        shrank = int(re.search(r"goes on after step (\d+) with", text)[1])
        most = max(apart[:shrank + COMPARED])
        self.claim(f"{case}: {shrank + COMPARED} losses differ by at most {most:.1e}, all by {max(apart):.1e}",
                   len(straight) == len(shrunk) and most < ROUNDING, text)
        back = len(re.findall(r"is back from \S+/ckpt/\d+: no rank that is left holds all of", text))
        self.claim(f"{case}: went back to a save {back} times", back > 0, text)


if __name__ == "__main__":
    sys.exit(Trial.main(Trials.parser(__doc__, CASES, faults=8, every=4.0), CASES))

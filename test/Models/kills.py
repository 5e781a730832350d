#!/usr/bin/env python3
"""Kills in a row, at the moments that matter: the last good state is always found. A line a round, and one in all.

    kills.py [--bin build/bin] [--kills 500] [--case dp2]... [--seed S]

Rounds of a tiny model train for some hundred steps with a save every 5. In each round 25 processes are killed, at
random instructions (SIGKILL, the moment drawn by the seed):
save   a rank, within 20 ms of the begin of a save
copy   a rank, within the first steps after a loss, each of which copies the state of all ranks
mend   a rank, and within 0.15 s another one, or the same: while lost ranks are being started again
any    a rank at any time
job    par-run itself: another one goes on with --resume auto
In rounds under --mirror each rank has a par-run of its own under another host name, and
send   a rank, or a host (its par-run and rank), while mirrors are on their way
again  a host, and within 0.5 s another one, a rank, or the same: while mirrors are sent again
Hosts come again at once, without state. Host 0, whose loss is the end of a job, loses only its rank.
Each round must end well with the weights of the run without faults, bit for bit, and with each step's loss where
par-run was never killed. Only Python's standard library is used. Exit status 0: all do.
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "cluster"))
from faulty import children, signal_to
from shrink import Hosts

ROOT = pathlib.Path(__file__).resolve().parents[2]
BASE = ["train.loss=cross_entropy", "train.optimizer=adamw", "dims.seq=8"]
CASES = {
    "dp2": ["mesh.dp=2", "batch.size=4"],
    "zero1": ["mesh.dp=2", "zero={level: 1, min_size: 0}", "batch.size=4"],
    "pp2": ["mesh.pp=2", "batch.size=4", "batch.microbatches=2", "pipeline.cuts={h.*: even}"],
    "tp2": ["mesh.tp=2", "use=[megatron]", "batch.size=4"],
    "zero3": ["mesh.dp=4", "zero={level: 3, min_size: 0}", "batch.size=4"],
}
MIRRORED = {
    "mirror-pp2": (2, ["mesh.pp=2", "batch.size=4", "batch.microbatches=2", "pipeline.cuts={h.*: even}"]),
    "mirror-zero3": (3, ["mesh.dp=3", "zero={level: 3, min_size: 0}", "batch.size=6"]),
    "mirror-pp2tp2": (4, ["mesh={pp: 2, tp: 2}", "use=[megatron]", "batch.size=4", "batch.microbatches=2",
                          "pipeline.cuts={h.*: even}"]),
}
KINDS = {"save": 5, "copy": 4, "mend": 4, "any": 4, "job": 1}  # how often, relatively
MIRROR_KINDS = {"send": 5, "again": 5, "save": 3, "any": 2}
ENOUGH = 600  # seconds for the rest of a round, however busy the machine is
STEPS, SAVE_EVERY, KILLS = 400, 5, 25  # of a round


class Round:
    """Runs of par-run in one folder until the last step is made."""
    kinds = KINDS

    def __init__(self, command, folder, choose):
        self.command, self.folder, self.choose = command, folder, choose
        self.killed, self.counts, self.starts = 0, dict.fromkeys(self.kinds, 0), 0
        folder.mkdir()
        self.start()

    def start(self):
        self.starts += 1
        self.metrics = self.folder / f"metrics{self.starts}.jsonl"
        self.log = self.folder / f"log{self.starts}"
        more = ["--resume", "auto"] if self.starts > 1 else []
        with self.log.open("w") as log:
            self.job = subprocess.Popen([*self.command, "--metrics", self.metrics, "--restart", *more], stdout=log,
                                        stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)

    def runs(self):
        return self.job.poll() is None

    def steps(self):
        return self.metrics.read_bytes().count(b"\n") if self.metrics.exists() else 0

    def until(self, condition, seconds):
        """Whether it holds in time, while the job runs."""
        began = time.monotonic()
        while self.runs() and time.monotonic() - began < seconds:
            if condition():
                return True
            time.sleep(0.001)
        return False

    def moves(self, steps):
        """Waits until that many more steps are made: a rank that is lost three times in one step ends the job."""
        made = self.steps()
        return self.until(lambda: self.steps() >= made + steps, 60)

    def saves(self):
        return set(os.listdir(self.folder / "ckpt")) if (self.folder / "ckpt").exists() else set()

    def wait(self, most):
        time.sleep(self.choose.random() * most)

    def kill(self):
        ranks = children(self.job.pid)
        if self.runs() and ranks and signal_to(self.choose.choice(ranks), signal.SIGKILL):
            self.killed += 1

    def save(self):
        before = self.saves()
        self.until(lambda: self.saves() - before, 5)
        self.wait(0.02)
        self.kill()

    def copy(self):
        self.kill()
        self.moves(1)
        self.wait(0.03)
        self.kill()

    def mend(self):
        self.kill()
        self.wait(0.15)
        self.kill()

    def any(self):
        self.wait(0.3)
        self.kill()

    def whole(self):
        """par-run, within 0.1 s, mostly while it saves or mends."""
        getattr(self, self.choose.choice(["save", "any"]))()
        self.wait(0.1)
        if self.runs():
            self.killed += 1
            self.job.kill()
        self.job.wait()
        if self.job.returncode == -signal.SIGKILL:
            self.start()

    def play(self, most):
        """Kills until the end, or until that many are played."""
        while self.runs():
            if self.killed >= most or not self.moves(2):
                break
            kind = self.choose.choices(list(self.kinds), list(self.kinds.values()))[0]
            self.counts[kind] += 1
            self.whole() if kind == "job" else getattr(self, kind)()
        return self.end()

    def end(self):
        """Waits, and returns the exit code."""
        try:
            return self.job.wait(ENOUGH)
        except subprocess.TimeoutExpired:
            self.job.kill()
            return f"no end within {ENOUGH} s"

    def said(self):
        return self.log.read_text(errors="replace")

    def losses(self):
        return [json.loads(line).get("loss") for line in self.metrics.read_text().splitlines()]


class MirrorRound(Round):
    """A job of a par-run for each rank, under --mirror."""
    kinds = MIRROR_KINDS

    def __init__(self, command, folder, choose, ranks):
        self.ranks = ranks
        super().__init__(command, folder, choose)

    def start(self):
        self.starts += 1
        self.metrics = self.folder / "metrics.jsonl"
        every = str(self.choose.choice([1, 2, 5]))
        flags = ["--metrics", self.metrics, "--comm", "tcp", "--restart", "--mirror", every]
        self.job = Hosts([str(part) for part in [*self.command, *flags]], self.ranks, self.folder)
        # A host that is lost earlier than the first save with the holder of its mirror ends the job.
        self.until(lambda: any(self.folder.glob("ckpt/*/index.json")), ENOUGH)

    def runs(self):
        return not self.job.ended()

    def kill(self):
        rank = self.choose.randrange(self.ranks)
        if self.runs() and any(signal_to(pid, signal.SIGKILL) for pid in children(self.job.runs[rank].pid)):
            self.killed += 1

    def lose(self):
        """A host, which comes again."""
        host = self.choose.randrange(1, self.ranks)
        if self.runs():
            self.job.lose(host)
            self.job.start(host)
            self.killed += 1

    def either(self):
        self.lose() if self.choose.random() < 0.5 else self.kill()

    def send(self):
        self.moves(1)
        self.wait(0.02)
        self.either()

    def again(self):
        self.lose()
        self.wait(0.5)
        self.either()

    def end(self):
        codes = self.job.codes(ENOUGH)
        return 0 if set(codes) == {0} else codes

    def said(self):
        return "".join(f"rank {rank}:\n{self.job.text(rank)[-1500:]}" for rank in range(self.ranks))


class Trial:
    def __init__(self, arguments):
        self.bin, self.kills = pathlib.Path(arguments.bin).resolve(), arguments.kills
        self.random = random.Random(arguments.seed)
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="par-kills-"))
        self.straight = {}

    def command(self, case, folder):
        return [self.bin / "par-run", self.work / f"{case}.par", "--init", "--no-tuning", "--text", ROOT / "README.md",
                "--steps", str(STEPS), "--export", folder / "w.safetensors", "--save", folder / "ckpt", "--save-every",
                str(SAVE_EVERY), "--keep", "2", "-q"]

    def without(self, case):
        """Weights and losses of a run without faults."""
        if case not in self.straight:
            plan = MIRRORED[case][1] if case in MIRRORED else CASES[case]
            flags = [part for setting in [*BASE, *plan] for part in ("--set", setting)]
            subprocess.run([self.bin / "par-compile", ROOT / "examples/tiny-gpt.onnx", *flags, "-q", "-o",
                            self.work / f"{case}.par"], check=True)
            folder = self.work / case
            folder.mkdir()
            metrics = folder / "metrics.jsonl"
            subprocess.run([*self.command(case, folder), "--metrics", metrics], check=True)
            losses = [json.loads(line).get("loss") for line in metrics.read_text().splitlines()]
            self.straight[case] = (folder / "w.safetensors").read_bytes(), losses
        return self.straight[case]

    def play(self, cases):
        began, killed, failed, number, counts = time.monotonic(), 0, 0, 0, {}
        while killed < self.kills:
            case, number = cases[number % len(cases)], number + 1
            weights, losses = self.without(case)
            folder = self.work / f"round{number}"
            command = self.command(case, folder)
            one = (MirrorRound(command, folder, self.random, MIRRORED[case][0]) if case in MIRRORED else
                   Round(command, folder, self.random))
            code = one.play(min(KILLS, self.kills - killed))
            killed += one.killed
            for kind, count in one.counts.items():
                counts[kind] = counts.get(kind, 0) + count
            exported = folder / "w.safetensors"
            same = code == 0 and exported.exists() and exported.read_bytes() == weights
            same = same and (one.starts > 1 or one.losses() == losses)
            failed += not same
            print(f"round {number}, {case}: {one.killed} killed, {one.starts} times started: "
                  f"{'pass' if same else f'FAIL {code} {one.said()[-6000:]}'}", flush=True)
            if same:
                shutil.rmtree(folder)
        kinds = ", ".join(f"{kind} {count}" for kind, count in counts.items())
        print(f"{killed} kills in {time.monotonic() - began:.0f} s ({kinds}): {failed} of {number} rounds failed")
        if not failed:
            shutil.rmtree(self.work)
        return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=str(ROOT / "build/bin"))
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--case", action="append", choices=[*CASES, *MIRRORED])
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    os.environ.pop("PAR_DEVICE", None)
    return Trial(arguments).play(arguments.case or [*CASES, *MIRRORED]) != 0


if __name__ == "__main__":
    sys.exit(main())

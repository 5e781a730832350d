#!/usr/bin/env python3
"""Jobs that lose hosts whose state no other rank has. par-run --mirror must end with the bits of a run without faults.

    mirror.py [--bin build/bin] [--case pp4]... [--steps 400] [--faults 6] [--seed N]

Each rank has a par-run of its own under another host name, so that a host that is killed takes its rank's memory along.
It comes again at once, without state, and has it from its mirror at a neighbour. Hosts are killed at random moments:
while a mirror is on its way, in a step, in a save; and in half of the cases a rank's process, of whichever host, once
more within 0.3 s, while the first loss is being mended. At the end of each case a host and the neighbour that holds its
mirror are killed together: all go back to the newest save. A line a claim: the job ends well, hosts had their state
from mirrors, weights and metrics (without times) are those of a run without faults, no process is left over. Only
Python's standard library is used. Exit status 0: all hold.
"""
import pathlib
import re
import subprocess
import sys
import time

from shrink import Hosts, Trials, metrics

ROOT = pathlib.Path(__file__).resolve().parents[2]
BASE = ["train={loss: cross_entropy, optimizer: adamw, clip: 0.5}", "dims.seq=8", "batch.size=8",
        "collectives.deterministic=true"]
CASES = {
    "pp4": ["mesh.pp=4", "batch.microbatches=2", "pipeline.cuts={h.*: even}"],
    "zero1": ["mesh.dp=4", "zero={level: 1, min_size: 0}"],
    "zero3": ["mesh.dp=4", "zero={level: 3, min_size: 0}"],
    "pp2tp2": ["mesh={pp: 2, tp: 2}", "use=[megatron]", "batch.microbatches=2", "pipeline.cuts={h.*: even}"],
}
RANKS, SAVE_EVERY = 4, 20


class Trial(Trials):
    def compile(self, case):
        path = self.work / f"{case}.par"
        flags = [part for setting in [*BASE, *CASES[case]] for part in ("--set", setting)]
        subprocess.run([self.bin / "par-compile", ROOT / "examples/tiny-gpt.onnx", *flags, "-q", "-o", path],
                       check=True)
        return path

    def command(self, bundle, folder, more):
        folder.mkdir()
        return [str(part) for part in
                [self.bin / "par-run", bundle, "--text", ROOT / "README.md", "--init", "--no-tuning", "--steps",
                 self.arguments.steps, "--metrics", folder / "metrics.jsonl", "--export", folder / "w.safetensors",
                 "--save", folder / "ckpt", "--save-every", SAVE_EVERY, "--log-every", 50, *more]]

    def steps(self, folder):
        path = folder / "metrics.jsonl"
        return path.read_bytes().count(b"\n") if path.exists() else 0

    def moves(self, job, steps):
        """Waits until that many more steps are made: the mirrors of the last loss are whole then."""
        made, began = self.steps(job.folder), time.monotonic()
        while not job.ended() and self.steps(job.folder) < made + steps and time.monotonic() - began < 120:
            time.sleep(0.002)
        time.sleep(self.random.uniform(0, 0.05))

    def lose(self, job, hosts):
        for host in hosts:
            job.lose(host)
        for host in hosts:
            job.start(host)

    def run(self, case):
        every = self.random.choice([1, 3, 7])
        bundle, straight, folder = self.compile(case), self.work / f"{case}-straight", self.work / case
        subprocess.run([*self.command(bundle, straight, ["-q"]), "-n", str(RANKS)], check=True)
        command = self.command(bundle, folder, ["--comm", "tcp", "--restart", "--mirror", every])
        job, lost, began = Hosts(command, RANKS, folder), 0, time.monotonic()
        while lost < self.arguments.faults and self.steps(folder) < self.arguments.steps * 3 // 4:
            self.moves(job, 2 * every + 2)
            if job.ended():
                break
            self.lose(job, [self.random.randrange(1, RANKS)])
            lost += 1
            if self.random.random() < 0.5:
                time.sleep(self.random.uniform(0, 0.3))
                job.kill_rank(self.random.randrange(RANKS))
        self.moves(job, SAVE_EVERY + 2 * every)
        both = not job.ended()
        if both:
            self.lose(job, [1, 2])  # the mirror of rank 1 is at rank 2
        codes, text, took = job.codes(300), job.text(0), time.monotonic() - began
        story = "".join(job.text(rank) for rank in range(RANKS))
        self.claim(f"{case}: {self.arguments.steps} steps in {took:.0f} s under --mirror {every}, {lost} hosts lost, "
                   "ends well", set(codes) == {0}, f"{codes} {story}")
        if set(codes) != {0}:
            return
        mirrored = len(re.findall(r"rank \d has its state from (?:rank \d and )?its mirror at rank \d", text))
        self.claim(f"{case}: {mirrored} had their state from mirrors", mirrored > 0, story)
        saved = re.findall(r"is back from \S+/ckpt/\d+: rank \d is lost with its memory", text)
        self.claim(f"{case}: both of a pair lost, {len(saved)} from saves", not both or saved, story)
        same = (straight / "w.safetensors").read_bytes() == (folder / "w.safetensors").read_bytes()
        self.claim(f"{case}: weights are the same bytes", same, story)
        self.claim(f"{case}: metrics are the same", metrics(straight) == metrics(folder), story)
        for line in re.findall(r"mirror: .*", text)[:1] + re.findall(r"mirror: .*", text)[-1:]:
            print(f"  {line}")


if __name__ == "__main__":
    sys.exit(Trial.main(Trials.parser(__doc__, CASES, steps=400, faults=6), CASES))

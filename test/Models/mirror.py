#!/usr/bin/env python3
"""Jobs that lose hosts whose state no other rank has. par-run --mirror must end with the bits of a run without faults.

    mirror.py [--bin build/bin] [--case pp4]... [--steps 400] [--faults 6] [--seed N]

Each rank has a par-run of its own under another host name, so that a host that is killed takes its rank's memory along.
It comes again at once, without state, and has it from its mirror at a neighbour; so does rank 0's, where ranks meet,
which is lost first. Hosts are killed at random moments:
while a mirror is on its way, in a step, in a save; and in half of the cases a rank's process, of whichever host, once
more within 0.3 s, while the first loss is being mended. At the end of each case a host and the neighbour that holds its
mirror are killed together: all go back to the newest save. In cases "-spares" two hosts are lost for good, and spares
take their places; in cases "-shrink" a host is lost and comes again when the job has gone on without it. A line a
claim: the job ends well, hosts had their state from mirrors, weights and metrics (without times) are those of a run
without faults (losses within rounding where the number of ranks changes), no process is left over. Only Python's
standard library is used. Exit status 0: all hold.
"""
import pathlib
import re
import signal
import subprocess
import sys
import time

from shrink import BASE as FAMILY, CASES as FAMILIES, ROUNDING, Hosts, Trials, metrics

ROOT = pathlib.Path(__file__).resolve().parents[2]
BASE = ["train={loss: cross_entropy, optimizer: adamw, clip: 0.5}", "dims.seq=8", "batch.size=8",
        "collectives.deterministic=true"]
CASES = {
    "pp4": ["mesh.pp=4", "batch.microbatches=2", "pipeline.cuts={h.*: even}"],
    "zero1": ["mesh.dp=4", "zero={level: 1, min_size: 0}"],
    "zero3": ["mesh.dp=4", "zero={level: 3, min_size: 0}"],
    "pp2tp2": ["mesh={pp: 2, tp: 2}", "use=[megatron]", "batch.microbatches=2", "pipeline.cuts={h.*: even}"],
}
CASES["pp4-spares"], CASES["zero3-spares"] = CASES["pp4"], CASES["zero3"]
SHRINKING = {f"{case}-shrink": FAMILIES[case] for case in ("zero1", "zero3")}
RANKS, SAVE_EVERY, SPARES = 4, 20, 2
# Members add in another order: 2e-7 at first, ten times as much every 60 steps. Another state shows in the first one.
COMPARED = 80


class Trial(Trials):
    def compile(self, case):
        path = self.work / f"{case}.par"
        base, plan, also = (FAMILY, *SHRINKING[case][1:]) if case in SHRINKING else (BASE, CASES[case], [])
        flags = [part for setting in [*base, *plan] for part in ("--set", setting)]
        flags += [part for member in also for part in ("--also", member)]
        subprocess.run([self.bin / "par-compile", ROOT / "examples/tiny-gpt.onnx", *flags, "-q", "-o", path],
                       check=True)
        return path

    def command(self, bundle, folder, steps, more):
        folder.mkdir()
        return [str(part) for part in
                [self.bin / "par-run", bundle, "--text", ROOT / "README.md", "--init", "--no-tuning", "--steps",
                 steps, "--metrics", folder / "metrics.jsonl", "--export", folder / "w.safetensors",
                 "--save", folder / "ckpt", "--save-every", SAVE_EVERY, "--resume", "auto", "--log-every", 50, *more]]

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

    def start(self, case, processes, *flags, steps=None):
        """A run without faults, and then the begin of a job under --mirror, of which each process is a host. `steps`:
        those of the run without faults, if the job goes on until it is asked to stop."""
        every = self.random.choice([1, 3, 7])
        bundle, straight, folder = self.compile(case), self.work / f"{case}-straight", self.work / case
        most = steps or self.arguments.steps
        subprocess.run([*self.command(bundle, straight, most, ["-q"]), "-n", str(RANKS)], check=True)
        command = self.command(bundle, folder, 10 ** 9 if steps else most,
                               ["--comm", "tcp", "--restart", "--mirror", every, *flags])
        return straight, folder, every, Hosts(command, processes, folder)

    def same(self, case, straight, folder, story):
        same = (straight / "w.safetensors").read_bytes() == (folder / "w.safetensors").read_bytes()
        self.claim(f"{case}: weights are the same bytes", same, story)
        self.claim(f"{case}: metrics are the same", metrics(straight) == metrics(folder), story)

    def run(self, case):
        if case.endswith("-spares"):
            self.run_with_spares(case)
        elif case in SHRINKING:
            self.run_shrinking(case)
        else:
            self.run_replaced(case)

    def run_with_spares(self, case):
        straight, folder, every, job = self.start(case, RANKS + SPARES, f"--spares={SPARES}")
        lost = self.random.sample(range(1, RANKS), SPARES)
        for host in lost:
            self.moves(job, 2 * every + SAVE_EVERY)
            job.lose(host)
        codes, text = job.codes(300), job.text(0)
        story = "".join(job.text(rank) for rank in range(RANKS + SPARES))
        expected = [-9 if process in lost else 0 for process in range(RANKS + SPARES)]
        self.claim(f"{case}: hosts of ranks {', '.join(map(str, lost))} lost under --mirror {every}, ends well",
                   codes == expected, f"{codes} {story}")
        if codes != expected:
            return
        taken = len(re.findall(r"spare \d \(pid \d+ on host\d\) takes the place of rank \d", text))
        mirrored = len(re.findall(r"rank \d has its state from (?:rank \d and )?its mirror at rank \d", text))
        self.claim(f"{case}: {taken} spares, {mirrored} had their state from mirrors",
                   taken == SPARES and mirrored > 0, story)
        self.same(case, straight, folder, story)

    def run_shrinking(self, case):
        """Goes on until enough hosts are lost and have come again, and is then asked to stop."""
        straight, folder, every, job = self.start(case, RANKS, "--shrink=1", "--timeout", "5", steps=COMPARED)
        lost = max(1, self.arguments.faults // 2)
        for _ in range(lost):
            self.moves(job, 2 * every + 2)
            host, before = self.random.randrange(1, RANKS), self.times_gone_on(job)
            job.lose(host)
            time.sleep(self.random.choice([0.2, 1.5]))
            self.moves(job, self.random.choice([0, 2 * every + 2]))
            job.start(host)
            self.until(job, lambda before=before: self.times_gone_on(job) > before)
        self.until(job, lambda: self.steps(folder) >= COMPARED)
        job.runs[0].send_signal(signal.SIGTERM)
        codes, text = job.codes(300), job.text(0)
        story = "".join(job.text(rank) for rank in range(RANKS))
        self.claim(f"{case}: {lost} hosts lost under --mirror {every} --shrink, ends as it was asked to",
                   set(codes) == {128 + signal.SIGTERM}, f"{codes} {story}")
        mirrored = len(re.findall(r"moved from 4 ranks to 3, in part from mirrors", text))
        again = len(re.findall(r"rank \d has its state from (?:rank \d and )?its mirror at rank \d", text))
        saved = len(re.findall(r"is back from \S+/ckpt/\d+: ", text))
        self.claim(f"{case}: went on with fewer ranks from mirrors {mirrored} times, with as many {again} times, from "
                   f"saves {saved} times", mirrored + again > 0, story)
        pairs = list(zip(metrics(straight), metrics(folder)))
        most = max(abs(one["loss"] - other["loss"]) for one, other in pairs)
        self.claim(f"{case}: {len(pairs)} losses differ by at most {most:.1e}",
                   most < ROUNDING and len(pairs) == COMPARED, story)

    @staticmethod
    def times_gone_on(job):
        """After losses, with all ranks."""
        return len(re.findall(r"goes on after step \d+(?: with 4 of 4 ranks)?, ", job.text(0)))

    def until(self, job, condition, seconds=300):
        began = time.monotonic()
        while not job.ended() and not condition() and time.monotonic() - began < seconds:
            time.sleep(0.02)

    def run_replaced(self, case):
        straight, folder, every, job = self.start(case, RANKS)
        lost, began = 0, time.monotonic()
        while lost < self.arguments.faults and self.steps(folder) < self.arguments.steps * 3 // 4:
            self.moves(job, 2 * every + 2)
            if job.ended():
                break
            self.lose(job, [self.random.randrange(RANKS) if lost else 0])
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
        self.same(case, straight, folder, story)
        for line in re.findall(r"mirror: .*", text)[:1] + re.findall(r"mirror: .*", text)[-1:]:
            print(f"  {line}")


if __name__ == "__main__":
    sys.exit(Trial.main(Trials.parser(__doc__, [*CASES, *SHRINKING], steps=400, faults=6), [*CASES, *SHRINKING]))

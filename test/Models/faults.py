#!/usr/bin/env python3
"""Training under faults. par-run --restart must end with the weights of a run without faults, bit for bit.

    faults.py [--bin build/bin] [--case dp8]... [--hosts 1|2]... [--every 15 | --each STEPS]
              [--minutes 20 | --steps N]
              [--timed MINUTES] [--faults kill,stop,link,disk] [--seed N]

A run without faults and without --restart makes N steps (as many as fit into the minutes), then a run under --restart
makes the same steps while every 15 seconds, or after so many steps, a fault is drawn:
kill  SIGKILL to a rank chosen at random
stop  SIGSTOP
pair  two ranks are killed, the second one within 0.3 s: mostly while the first one is being started again
link  of two hosts: the link of one is down for 0.3 to 4 s; a host that is silent for 2 s is lost (--timeout)
disk  the disk of the saves is full until a save has been given up
Both runs save. With --timed the run without faults comes last, for the weights; its throughput is that of a run of so
many minutes which comes first. Hosts are network namespaces of this one, their ranks by tcp.
A line a claim: both end well, the exported weights are the same bytes, each loss is mended within 2 s (--back) of the
loss, or of the link's return, the throughput outside the time without a link is at least 97.7 % (--share) of that
without faults, by the clock and at the speed of the steps of the same run, each full disk costs a save and no more, no
process is left over, and supervisors hold as many descriptors at the end as at the begin. Only Python's standard
library is used. Needs root, ip and mount. Exit status 0: all hold.
"""
import argparse
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "cluster"))
from faulty import TIMEOUT, Disk, OneHost, TwoHosts, is_alive, signal_to

ROOT = pathlib.Path(__file__).resolve().parents[2]
BASE = ["--set", "train.loss=cross_entropy", "--set", "train.optimizer=adamw", "--set", "dims.seq=32"]
CASES = {
    "dp8": (8, ["mesh.dp=8", "batch.size=8"]),
    "dp2pp2tp2": (8, ["mesh.pp=2", "mesh.dp=2", "mesh.tp=2", "use=[megatron]", "batch.size=8", "batch.microbatches=4",
                      "pipeline.cuts={h.*: even}"]),
    "zero3": (4, ["mesh.dp=4", "zero={level: 3, min_size: 0}", "batch.size=8"]),
    "dp2": (2, ["mesh.dp=2", "batch.size=8"]),
}
SAVES = 40  # MiB of the disk: two saves, and one that is being written
SKIPPED = "the run goes on without this save"


class Faults:
    """Draws faults and plays them on a job. `metrics`: the file in which each step is a line."""

    def __init__(self, kinds, choose, job, disk, metrics):
        self.kinds, self.choose, self.job, self.saves, self.metrics = kinds, choose, job, disk, metrics
        self.counts, self.outage, self.back = dict.fromkeys(kinds, 0), 0.0, []
        self.of_links = set()  # numbers of the losses that a missing link made
        self.unsaid = 0        # full disks for which no save was given up

    def one(self):
        kind = self.choose.choice(self.kinds)
        self.counts[kind] += bool(getattr(self, kind)())

    def steps(self):
        return self.metrics.read_bytes().count(b"\n") if self.metrics.exists() else 0

    def losses(self):
        return [float(text) for text in re.findall(r"goes on after step \d+, ([\d.]+) s after the loss",
                                                   self.job.text())]

    def harm(self, number):
        ranks = self.job.ranks()
        return bool(ranks) and signal_to(self.choose.choice(ranks), number)

    def kill(self):
        return self.harm(signal.SIGKILL)

    def stop(self):
        return self.harm(signal.SIGSTOP)

    def pair(self):
        first = self.kill()
        time.sleep(self.choose.random() * 0.3)
        return self.kill() and first

    def await_(self, condition, seconds=30):
        """Seconds until the condition holds, or the job has ended."""
        began = time.monotonic()
        while not condition() and self.job.runs() and time.monotonic() - began < seconds:
            time.sleep(0.01)
        return time.monotonic() - began

    def link(self):
        before, down = len(self.losses()), self.choose.uniform(0.3, 2 * TIMEOUT)
        self.job.link("down")
        time.sleep(down)
        self.job.link("up")
        made = self.steps()
        self.back.append(self.await_(lambda: self.steps() > made or len(self.losses()) > before))
        self.outage += down
        self.of_links.update(range(before, len(self.losses())))
        return True

    def disk(self):
        before = self.job.text().count(SKIPPED)
        self.saves.fill()
        self.await_(lambda: self.job.text().count(SKIPPED) > before)
        self.saves.free()
        given_up = self.job.text().count(SKIPPED) > before
        self.unsaid += not given_up and self.job.runs()
        return given_up

    def times_back(self):
        """Seconds after each loss, or after the return of the link."""
        return [seconds for number, seconds in enumerate(self.losses()) if number not in self.of_links] + self.back


class Trial:
    def __init__(self, arguments):
        self.arguments, self.failed = arguments, 0
        self.bin = pathlib.Path(arguments.bin).resolve()
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="par-faults-"))
        self.random = random.Random(arguments.seed)

    def claim(self, text, holds, detail=""):
        self.failed += not holds
        print(f"{text}: {'pass' if holds else 'FAIL ' + str(detail)[-2000:]}", flush=True)

    def bundle(self, case):
        path = self.work / f"{case}.par"
        plan = [part for setting in CASES[case][1] for part in ("--set", setting)]
        subprocess.run([str(self.bin / "par-compile"), str(ROOT / "examples/tiny-gpt.onnx"), *BASE, *plan, "-q", "-o",
                        str(path)], check=True)
        return path

    def flags(self, steps, name, more=()):
        """`name`: of the files that a run writes."""
        return ["--init", "--no-tuning", "--text", ROOT / "README.md", "--steps", steps, "--export",
                self.work / f"{name}.safetensors", "--metrics", self.work / f"{name}.jsonl", "--log-every", steps,
                "--save", self.disk.folder / name, "--save-every", self.every_save, "--keep", 1, *more]

    def alone(self, job, case, bundle, steps, name):
        """Seconds of a run without faults."""
        began = time.monotonic()
        job.start(bundle, CASES[case][0], self.flags(steps, name))
        while job.runs():
            time.sleep(0.02)
        if any(job.codes()):
            sys.exit(f"{case} without faults: exit codes {job.codes()}: {job.said()[-2000:]}")
        shutil.rmtree(self.disk.folder / name)
        return time.monotonic() - began

    def steps_of(self, job, case, bundle):
        """Steps that fit into the minutes. From here on a save is made about every two seconds."""
        self.every_save = 1000
        seconds, tried = self.alone(job, case, bundle, 20, "begun"), 120
        rate = (tried - 20) / max(0.1, self.alone(job, case, bundle, tried, "tried") - seconds)
        self.every_save = max(10, int(2 * rate))
        return self.arguments.steps or max(tried, int(rate * 60 * self.arguments.minutes))

    def timed(self, job, case, bundle, steps, name):
        """Seconds that so many steps take without faults, and how many of them are outside of the steps."""
        count = min(steps, int(steps * (self.arguments.timed or self.arguments.minutes) / self.arguments.minutes))
        seconds = self.alone(job, case, bundle, count, name)
        _, start = self.beside_steps(name, seconds, "")
        return start + (seconds - start) * steps / count, start

    def harmed(self, job, bundle, world, steps, name):
        """The run under faults: seconds, the faults, processes that are left, and descriptors early and late."""
        kinds = [kind for kind in self.arguments.faults.split(",") if kind != "link" or isinstance(job, TwoHosts)]
        faults = Faults(kinds, self.random, job, self.disk, self.work / f"{name}.jsonl")
        seen, held, made = set(), [], 0
        began = time.monotonic()
        job.start(bundle, world, self.flags(steps, name, ["--restart"]))
        following = began + self.arguments.every
        each = self.arguments.each or 4
        while job.runs():
            seen.update(job.ranks())
            time.sleep(0.05)
            # Three losses in one step end the job: on a slow machine the next fault waits for steps.
            if (not self.arguments.each and time.monotonic() < following) or faults.steps() < made + each:
                continue
            following, made = time.monotonic() + self.arguments.every, faults.steps()
            # The save after the last step is not given up.
            faults.kinds = [kind for kind in kinds if kind != "disk" or made + 2 * self.every_save < steps]
            if len(job.ranks()) == world:
                held.append(job.descriptors())
            faults.one()
        seconds = time.monotonic() - began
        time.sleep(0.2)
        return seconds, faults, [pid for pid in seen if is_alive(pid)], held

    def beside_steps(self, name, took, text):
        """Seconds of the steps of a run that took so many, and the other ones. The first step after a loss counts as
        the one after it does, so that its cold memory is part of the loss; one that waited for a link as the median."""
        times = [json.loads(line)["ms"] / 1000 for line in (self.work / f"{name}.jsonl").read_text().splitlines()]
        for step in map(int, re.findall(r"goes on after step (\d+)", text)):
            if step + 1 < len(times):
                times[step] = times[step + 1]
        median = sorted(times)[len(times) // 2]
        steps = sum(median if time > 5 * median else time for time in times)
        return steps, took - steps

    def run(self, case, job):
        title, world, bundle = f"{case} on {job.title}", CASES[case][0], self.bundle(case)
        whole, mended = (f"{title}-{kind}".replace(" ", "-") for kind in ("whole", "mended"))
        steps = self.steps_of(job, case, bundle)
        seconds, start = self.timed(job, case, bundle, steps, whole)
        print(f"{title}: {steps} steps without faults in {seconds:.1f} s, a save every {self.every_save}", flush=True)
        took, faults, left, held = self.harmed(job, bundle, world, steps, mended)
        codes, said, text, back = job.codes(), job.said(), job.text(), faults.times_back()
        for line in text.splitlines():
            if any(words in line for words in ("starting it again", "goes on after", "error", SKIPPED, "waited for")):
                print("   ", line)
        if self.arguments.timed:
            print(f"{title}: {steps} steps under faults in {took:.1f} s; now those without, untimed", flush=True)
            self.alone(job, case, bundle, steps, whole)
        played = ", ".join(f"{kind} {count}" for kind, count in faults.counts.items())
        self.claim(f"{title}: {steps} steps under {played} end well",
                   not any(codes) and sum(faults.counts.values()) > 0, f"{codes} {said}")
        files = [self.work / f"{name}.safetensors" for name in (whole, mended)]
        self.claim(f"{title}: weights are the same bytes",
                   all(file.exists() for file in files) and files[0].read_bytes() == files[1].read_bytes())
        losses = [[json.loads(line).get("loss") for line in (self.work / f"{name}.jsonl").read_text().splitlines()]
                  for name in (whole, mended)]
        self.claim(f"{title}: losses of all steps are the same", losses[0] == losses[1])
        average = sum(back) / max(1, len(back))
        self.claim(f"{title}: back after at most {max(back, default=0):.2f} s, {average:.2f} s on the average of "
                   f"{len(back)}", max(back, default=0) <= self.arguments.back, back)
        share = seconds / (took - faults.outage)
        self.claim(f"{title}: {100 * share:.1f} % of the throughput without faults, beside {faults.outage:.1f} s "
                   "without a link", share >= self.arguments.share)
        # The machine's speed may differ between the two runs.
        steady, lost = self.beside_steps(mended, took - faults.outage, text)
        share = (steady + start) / (steady + lost)
        self.claim(f"{title}: {100 * share:.1f} % at the speed of its own steps, {lost - start:.2f} s beside them, "
                   f"{(lost - start) / max(1, sum(faults.counts.values())):.2f} s a fault",
                   share >= self.arguments.share)
        self.claim(f"{title}: a full disk costs a save each time", not faults.unsaid, text)
        self.claim(f"{title}: no process is left over", not left, left)
        self.claim(f"{title}: supervisors hold {held[0] if held else 0} descriptors at first, "
                   f"{held[-1] if held else 0} at last", not held or abs(held[-1] - held[0]) <= 2, held)

    def play(self):
        self.disk = Disk(self.work / "disk", SAVES)
        try:
            for hosts in self.arguments.hosts or [1, 2]:
                job = (TwoHosts if hosts == 2 else OneHost)(self.bin / "par-run", self.work)
                try:
                    for case in self.arguments.case or ["dp8", "dp2pp2tp2"]:
                        self.run(case, job)
                finally:
                    job.close()
        finally:
            self.disk.close()
            shutil.rmtree(self.work, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=os.path.dirname(shutil.which("par-run") or str(ROOT / "build/bin/par-run")))
    parser.add_argument("--case", action="append", choices=list(CASES))
    parser.add_argument("--hosts", action="append", type=int, choices=[1, 2])
    parser.add_argument("--every", type=float, default=15)
    parser.add_argument("--each", type=int, help="a fault after so many steps, however quick they are")
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--timed", type=float, help="minutes of the run without faults that is timed")
    parser.add_argument("--faults", default="kill,stop,link,disk")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    parser.add_argument("--back", type=float, default=2)
    parser.add_argument("--share", type=float, default=0.977)
    arguments = parser.parse_args()
    if os.geteuid() or not shutil.which("ip"):
        sys.exit("faults.py needs root and ip, to make a small disk and network namespaces")
    print(f"seed {arguments.seed}", flush=True)
    os.environ.pop("PAR_DEVICE", None)
    trial = Trial(arguments)
    trial.play()
    print(f"{trial.failed} claims failed")
    return 1 if trial.failed else 0


if __name__ == "__main__":
    sys.exit(main())

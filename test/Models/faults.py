#!/usr/bin/env python3
"""Training under faults. par-run --restart must end with the weights of a run without faults, bit for bit.

    faults.py [--bin build/bin] [--case dp8]... [--every 15] [--minutes 20 | --steps N] [--faults kill,stop] [--seed N]

A run without faults and without --restart makes N steps (as many as fit into the minutes), then a run under --restart
makes the same steps while a rank chosen at random is harmed every 15 seconds:
kill  SIGKILL
stop  SIGSTOP
pair  two ranks are killed, the second one within 0.3 s: mostly while the first one is being started again
A line a claim: both end well, the exported weights are the same bytes, each loss is mended within 2 s (--back), the
throughput is at least 97.7 % (--share) of that without faults, no process is left over, and par-run holds as many
descriptors at the end as at the begin. Only Python's standard library is used. Exit status 0: all hold.
"""
import argparse
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

ROOT = pathlib.Path(__file__).resolve().parents[2]
BASE = ["--set", "train.loss=cross_entropy", "--set", "train.optimizer=adamw", "--set", "dims.seq=32"]
CASES = {
    "dp8": (8, ["mesh.dp=8", "batch.size=8"]),
    "dp2pp2tp2": (8, ["mesh.pp=2", "mesh.dp=2", "mesh.tp=2", "use=[megatron]", "batch.size=8", "batch.microbatches=4",
                      "pipeline.cuts={h.*: even}"]),
    "zero3": (4, ["mesh.dp=4", "zero={level: 3, min_size: 0}", "batch.size=8"]),
    "dp2": (2, ["mesh.dp=2", "batch.size=8"]),
}


def children(pid):
    try:
        return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []


def is_alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def send(pid, number):
    try:
        os.kill(pid, number)
        return True
    except ProcessLookupError:
        return False


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

    def command(self, case, bundle, steps, weights, more=()):
        return [str(self.bin / "par-run"), str(bundle), "-n", str(CASES[case][0]), "--init", "--no-tuning", "--text",
                str(ROOT / "README.md"), "--steps", str(steps), "--export", str(weights), "--log-every", str(steps),
                *more]

    def alone(self, command):
        """Seconds from the first step to the end, and the output."""
        began = time.monotonic()
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        return time.monotonic() - began, result

    def steps_of(self, case, bundle):
        """Steps that fit into the minutes."""
        if self.arguments.steps:
            return self.arguments.steps
        began = time.monotonic()
        tried = 200
        self.alone(self.command(case, bundle, tried, self.work / "tried.safetensors"))
        rate = tried / (time.monotonic() - began)
        return max(tried, int(rate * 60 * self.arguments.minutes))

    def harm(self, pid, kind):
        """The processes that a fault harms."""
        ranks = children(pid)
        if not ranks:
            return []
        first, second = self.random.choice(ranks), self.random.choice(ranks)
        send(first, signal.SIGSTOP if kind == "stop" else signal.SIGKILL)
        if kind != "pair":
            return [first]
        time.sleep(self.random.random() * 0.3)
        send(second, signal.SIGKILL)
        return [first, second]

    def harmed(self, command, world):
        """The run under faults: seconds, its output, faults, and descriptors of par-run early and late."""
        kinds, faults, seen, held = self.arguments.faults.split(","), 0, set(), []
        log, metrics = self.work / "harmed.log", self.work / "harmed.jsonl"
        metrics.unlink(missing_ok=True)
        with log.open("w") as output:
            began = time.monotonic()
            job = subprocess.Popen([*command, "--metrics", str(metrics)], stdout=output, stderr=subprocess.STDOUT)
            following, made = began + self.arguments.every, 0
            while job.poll() is None:
                seen.update(children(job.pid))
                time.sleep(0.05)
                if time.monotonic() < following:
                    continue
                following = time.monotonic() + self.arguments.every
                # Three losses in one step end the job: on a slow machine the next fault waits for steps.
                lines = len(metrics.read_text().splitlines()) if metrics.exists() else 0
                if lines < made + 4:
                    continue
                made = lines
                if len(children(job.pid)) == world:
                    held.append(len(list(pathlib.Path(f"/proc/{job.pid}/fd").iterdir())))
                kind = self.random.choice(kinds)
                faults += bool(self.harm(job.pid, kind))
            seconds = time.monotonic() - began
        time.sleep(0.2)
        return seconds, job.returncode, log.read_text(), faults, held, [pid for pid in seen if is_alive(pid)]

    def run(self, case):
        bundle = self.bundle(case)
        steps = self.steps_of(case, bundle)
        whole, mended = self.work / f"{case}-whole.safetensors", self.work / f"{case}-mended.safetensors"
        seconds, result = self.alone(self.command(case, bundle, steps, whole))
        self.claim(f"{case}: {steps} steps without faults in {seconds:.1f} s", result.returncode == 0, result.stderr)
        took, code, text, faults, held, left = self.harmed(
            self.command(case, bundle, steps, mended, ["--restart"]), CASES[case][0])
        for line in text.splitlines():
            if "starting it again" in line or "goes on after" in line or "error" in line:
                print("   ", line)
        back = [float(match) for match in re.findall(r"goes on after step \d+, ([\d.]+) s after the loss", text)]
        self.claim(f"{case}: {steps} steps under {faults} faults end well", code == 0 and faults > 0, text)
        self.claim(f"{case}: weights are the same bytes",
                   mended.exists() and whole.exists() and mended.read_bytes() == whole.read_bytes())
        self.claim(f"{case}: back after at most {max(back, default=0):.2f} s, {sum(back) / max(1, len(back)):.2f} s on "
                   f"the average of {len(back)}", bool(back) and max(back) <= self.arguments.back)
        share = seconds / took
        self.claim(f"{case}: {100 * share:.1f} % of the throughput without faults", share >= self.arguments.share)
        self.claim(f"{case}: no process is left over", not left, left)
        self.claim(f"{case}: par-run holds {held[0] if held else 0} descriptors at first, {held[-1] if held else 0} at "
                   "last", not held or abs(held[-1] - held[0]) <= 2, held)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=os.path.dirname(shutil.which("par-run") or str(ROOT / "build/bin/par-run")))
    parser.add_argument("--case", action="append", choices=list(CASES))
    parser.add_argument("--every", type=float, default=15)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--faults", default="kill,stop,pair")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    parser.add_argument("--back", type=float, default=2)
    parser.add_argument("--share", type=float, default=0.977)
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    os.environ.pop("PAR_DEVICE", None)
    trial = Trial(arguments)
    for case in arguments.case or ["dp8", "dp2pp2tp2"]:
        trial.run(case)
    print(f"{trial.failed} claims failed")
    return 1 if trial.failed else 0


if __name__ == "__main__":
    sys.exit(main())

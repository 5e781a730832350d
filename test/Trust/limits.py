#!/usr/bin/env python3
"""Runs jobs with too little of a resource, and checks their messages and saves: the trials `limits` of trust.py.

    limits.py --bin build/bin [--count N] [--seed S] [--first N] [--keep]

par-run goes on from a save, and saves, exports and writes metrics, and par-verify proves, with little address space,
with files that may not grow, with few descriptors, with a full device in the place of a file. Each ends within 10 s,
without a signal, well or with a sentence that names the missing resource. A job can still go on from the earlier save.
"""
import pathlib
import random
import re
import resource
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import trials

MODEL = pathlib.Path(__file__).resolve().parent.parent / "Models/mlp"
PLANS = {"one": [], "two": ["--set", "mesh={dp: 2}"]}
# Messages that each sort may give; the loader of programs has one of its own.
LOADER = "error while loading shared libraries"
SAYS = {
    "memory": r"out of memory: \d+ bytes|cannot map \d+ bytes|cannot create shared memory of \d+ bytes|with a stack of "
              r"\d+ bytes"
              r"|cannot start (thread|rank) \d+|Cannot allocate memory|out of memory|status 1\b",
    "size": r"cannot write: File too large|cannot create shared memory of \d+ bytes: File too large|in memory of [\d,"
            r"]+ bytes: File too large"
            r"|standard output: ",
    "files": r"Too many open files",
    "device": r"cannot write: (No space left on device|No such file or directory|Permission denied)",
}


def prepare(folder, tools):
    """Bundles of one rank and of two, and a save of each."""
    for name, flags in PLANS.items():
        for command in ([tools / "par-compile", MODEL / "model.onnx", "--set", "train={}", *flags, "-o", f"{name}.par",
                         "-q"],
                        [tools / "par-run", f"{name}.par", "--init", "--data", MODEL / "data.safetensors", "--steps",
                         "1", "--save",
                         f"{name}-ckpt", "-q"]):
            outcome = trials.Outcome([str(word) for word in command], folder, limit=120)
            if outcome.status != 0:
                sys.exit(f"limits: {' '.join(map(str, command))} failed:\n{outcome.text}")


class Trials:
    def __init__(self, base, arguments, counts):
        self.tools, self.base, self.keep, self.counts = pathlib.Path(
            arguments.bin).resolve(), base, arguments.keep, counts
        prepare(base, self.tools)

    def command(self, name, more=()):
        return [str(self.tools / "par-run"), f"{name}.par", "--data", str(MODEL / "data.safetensors"), "--resume",
                "auto", "--save",
                "ckpt", *more]

    def run(self, number):
        choose = random.Random(self.counts.seed * 1000003 + number)
        name, sort = choose.choice(sorted(PLANS)), choose.choice(sorted(SAYS))
        here = self.base / f"trial-{number}"
        here.mkdir()
        shutil.copytree(self.base / f"{name}.par", here / f"{name}.par")
        shutil.copytree(self.base / f"{name}-ckpt", here / "ckpt")
        command = self.command(name,
                               ["--steps", "3", "--save-every", "1", "--export", "w.safetensors", "--metrics",
                                "m.jsonl"])
        verifies = sort in ("memory", "files") and choose.random() < 0.25
        if verifies:
            command = [str(self.tools / "par-verify"), f"{name}.par"]
        elif sort == "device":
            place = choose.choice(["--export", "--metrics"])
            command[command.index(place) + 1] = "/dev/full"
            if place == "--export":
                command[command.index(place) + 1] = choose.choice(["/proc/w.safetensors", "ckpt/w/w.safetensors",
                                                                   "/sys/w.safetensors"])
        limits = {"memory": (resource.RLIMIT_AS, choose.randrange(20, 140) << 20),
                  "size": (resource.RLIMIT_FSIZE, choose.randrange(1 << 16)),
                  "files": (resource.RLIMIT_NOFILE, choose.randrange(3, 24))}
        before = (lambda kind,
                  most: lambda: resource.setrlimit(kind, (most, most)))(*limits[sort]) if sort in limits else None
        outcome = trials.Outcome(command, here, before=before)
        title = f"{name}, {sort} {limits[sort][1] if sort in limits else ''}: {' '.join(command[1:])}"
        self.judge(number, title, sort, outcome)
        left = trials.Outcome(self.command(name, ["--steps", "4"]), here)
        if left.status != 0 or not re.search(r"saved ckpt/4|nothing to do", left.text):
            self.counts.fault("wrong", number, f"{title}: what was saved before cannot be gone on from", left.text)
        if not self.keep:
            shutil.rmtree(here, ignore_errors=True)

    def judge(self, number, title, sort, outcome):
        self.counts.notes[f"{sort} refused"] += outcome.status != 0
        if outcome.status is None:
            self.counts.fault("hangs", number, title, outcome.text)
        elif outcome.status == 127 and LOADER in outcome.text:
            pass
        elif outcome.crashed():
            self.counts.fault("crashes", number, title, outcome.text)
        elif outcome.status != 0 and not ("error" in outcome.text and re.search(SAYS[sort], outcome.text)):
            self.counts.fault("unnamed", number, title, outcome.text or "(it says nothing)")


if __name__ == "__main__":
    sys.exit(trials.main("limits", 200, __doc__.splitlines()[0], lambda *setting: Trials(*setting).run))

#!/usr/bin/env python3
"""Signals at random moments, in every state of a job: the trials `signals` of trust.py.

    signals.py --bin build/bin [--count N] [--seed S] [--first N] [--keep]

Each trial starts a job (processes of par-run -n, threads, or ranks of a launcher), waits for a random moment of a state
that it picks (loading, meeting, the first step, steps, saving, evaluating, the end), and sends SIGINT, SIGTERM or
SIGHUP to par-run or to one rank. The job must end within 10 s with the signal's exit code, say which process got it and
how the job ended, and its saves must load. A job that ends before its signal must end well, and is started again.
"""
import glob
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

import trials
from launches import LAUNCHERS, FOREIGN, MODEL, free_port, handles_signals, make_setting

SIGNALS = {"SIGINT": signal.SIGINT, "SIGTERM": signal.SIGTERM, "SIGHUP": signal.SIGHUP}
STATES = ["loading", "meeting", "first", "steps", "saving", "evaluating", "end"]
# States in which ranks of a launcher may not have met yet.
ALONE = ["loading", "meeting", "first"]
WORLD = 4
# A job of few steps may be over before its signal comes; its duration then bounds the next moment.
ATTEMPTS = 20


def children(pid):
    """Processes that a process has started."""
    try:
        return [int(child) for child in open(f"/proc/{pid}/task/{pid}/children").read().split()]
    except OSError:
        return []


def has_met(process):
    """Whether a rank of a launcher shares memory with the others, or has ended."""
    try:
        return process.poll() is not None or "par-board" in open(f"/proc/{process.pid}/maps").read()
    except OSError:
        return True


class Trial:
    """One job, the state in which its signal comes, and what went wrong."""

    def __init__(self, rng, setting):
        self.rng = rng
        self.run, self.bundle, self.top = setting
        self.state = rng.choice(STATES)
        self.form = "launched" if self.state == "meeting" else rng.choice(["forked", "threads", "launched"])
        self.name = rng.choice(list(SIGNALS))
        self.saves = self.state == "saving" or rng.random() < 0.5
        self.span = {"loading": 0.05, "meeting": 1.0, "first": 0.6, "end": 0.8}.get(self.state, 1.5)
        self.processes, self.faults = [], []

    def flags(self):
        """Flags of the job, besides those of its ranks."""
        steps = "4" if self.state == "end" else "1000000"
        flags = ["--init", "--data", str(MODEL / "data.safetensors"), "--steps", steps, "-q"]
        if self.saves:
            flags += ["--save", os.path.join(self.folder, "ckpt"), "--save-every", "1" if self.state == "saving"
                      else "50"]
        if self.state == "evaluating":
            flags += ["--eval-every", "1", "--eval-data", str(MODEL / "data.safetensors")]
        return flags

    def start(self):
        """Starts the job, in a folder of its own."""
        self.folder = tempfile.mkdtemp(dir=self.top)
        clean = {k: v for k, v in os.environ.items() if not k.startswith(FOREIGN)}
        pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", cwd=self.folder)
        if self.form != "launched":
            comm = ["--comm", "inproc" if self.form == "threads" else "shm"]
            self.processes = [subprocess.Popen([self.run, self.bundle, "-n", "4", *comm, *self.flags()], env=clean,
                                               **pipes)]
            return
        launcher, port = LAUNCHERS[self.rng.choice(list(LAUNCHERS))], free_port()
        for rank in range(WORLD - 1 if self.state == "meeting" else WORLD):
            variables, flags = launcher(rank, WORLD, port)
            environment = {**clean, **{k: str(v) for k, v in variables.items()}}
            self.processes.append(subprocess.Popen([self.run, self.bundle, *flags, *self.flags()], env=environment,
                                                   **pipes))

    def wait_for_state(self):
        """Waits for a random moment of the state; a step shows by its save."""
        for process in self.processes:
            until = time.monotonic() + 20
            while not handles_signals(process.pid) and process.poll() is None and time.monotonic() < until:
                time.sleep(0.001)
        # Before the rendezvous each rank ends by itself: collect() handles these states.
        if self.form == "launched" and self.state not in ALONE:
            until = time.monotonic() + 20
            while not all(has_met(process) for process in self.processes) and time.monotonic() < until:
                time.sleep(0.002)
        if self.state == "saving" or (self.saves and self.state == "steps"):
            until = time.monotonic() + 20
            while not glob.glob(os.path.join(self.folder, "ckpt", "[0-9]*")) and time.monotonic() < until:
                time.sleep(0.002)
        begun = time.monotonic()
        moment = begun + self.rng.random() * self.span
        while time.monotonic() < moment:
            if self.has_ended():
                self.span = time.monotonic() - begun
                return
            time.sleep(0.001)

    def has_ended(self):
        """Whether no process of the job is left."""
        return all(process.poll() is not None for process in self.processes)

    def shoot(self):
        """Sends the signal to a process of the job; False where that, or the job, has ended."""
        victims = [process.pid for process in self.processes]
        if self.form == "forked" and self.rng.random() < 0.5:
            victims = [pid for pid in children(victims[0]) if handles_signals(pid)] or victims
        self.pid = self.rng.choice(victims)
        if self.has_ended():
            return False
        try:
            os.kill(self.pid, SIGNALS[self.name])
        except ProcessLookupError:
            return False
        return True

    def collect(self):
        """Exit codes and messages. Before all ranks have met, one may end without the others, which then get the
        signal, too."""
        begun = time.monotonic()
        if self.form == "launched" and self.state in ALONE:
            time.sleep(1.5)
            for process in self.processes:
                if process.pid != self.pid and process.poll() is None:
                    process.send_signal(SIGNALS[self.name])
        return self.collect_ends(trials.LIMIT - (time.monotonic() - begun))

    def collect_ends(self, seconds):
        """Exit codes and messages of all processes."""
        deadline = time.monotonic() + seconds
        codes, said = [], ""
        for process in self.processes:
            try:
                out, err = process.communicate(timeout=max(0.1, deadline - time.monotonic()))
                said += err
                codes.append(process.returncode)
            except subprocess.TimeoutExpired:
                self.faults.append(("hangs", f"pid {process.pid} has not ended 10 s after the signal"))
                process.kill()
                process.communicate()
        return codes, said

    def judge_unsignalled(self):
        """Checks a job that ended before its signal: only a job of few steps may, and it must end well."""
        codes, said = self.collect_ends(trials.LIMIT)
        if self.state != "end" or any(codes):
            self.faults.append(("wrong", f"the job ended before a signal came to it, exit {codes}: {said!r}"))

    def judge(self, codes, said):
        """Checks that the job ended as a signal demands."""
        number = SIGNALS[self.name]
        crashed = [code for code in codes if code in (-4, -6, -7, -8, -11, 70)]
        if crashed:
            self.faults.append(("crashes", f"exit {codes}: {said}"))
            return
        # A job that had ended when the signal came has ended well.
        good = {128 + number, 0} if self.state == "end" else {128 + number}
        if any(code not in good for code in codes):
            self.faults.append(("wrong", f"exit {codes}, expected {sorted(good)}: {said!r}"))
        named = re.search(rf"{self.name} came to (par-run|rank \d+) \(pid {self.pid}\)", said)
        did = re.search(r"before the first step: the job ended|the job ended after step \d+; (nothing was saved|last "
                        r"save |wrote )"
                        r"|after the job had ended", said)
        if any(code != 0 for code in codes) and not (named and did):
            self.faults.append(("unnamed",
                                f"exit {codes}, says {said!r}, and the signal was {self.name} to pid {self.pid}"))
        if self.saves and "the job ended after step" in said and "; last save " not in said:
            self.faults.append(("wrong", f"nothing was saved, though --save asks for it: {said!r}"))
        if any(self.form == "launched" and code == 0 for code in codes) and self.state != "end":
            self.faults.append(("wrong", f"a rank went on: {codes}"))

    def check_saves(self):
        """Checks that the saves load."""
        folder = os.path.join(self.folder, "ckpt")
        if not glob.glob(os.path.join(folder, "[0-9]*")):
            return
        resumed = subprocess.run([self.run, self.bundle, "--data", str(MODEL / "data.safetensors"), "--resume", folder,
                                  "--dry-run"],
                                 capture_output=True, text=True, timeout=60)
        if resumed.returncode != 0:
            self.faults.append(("wrong", f"what was saved does not load: {resumed.stderr}"))

    def close(self):
        """Leaves no process."""
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.communicate()


def begin(folder, arguments, counts):
    setting = make_setting(arguments.bin, folder)

    def trial(number):
        job = Trial(random.Random(f"{arguments.seed} {number}"), setting)
        sent = False
        for _ in range(ATTEMPTS):
            try:
                job.start()
                job.wait_for_state()
                sent = job.shoot()
                if sent:
                    job.judge(*job.collect())
                    job.check_saves()
                else:
                    job.judge_unsignalled()
            finally:
                job.close()
            if sent or job.faults:
                break
        if not sent and not job.faults:
            job.faults.append(("wrong", f"the job was over before its signal, {ATTEMPTS} times"))
        for fault, what in job.faults:
            counts.fault(fault, number, f"{job.form}, {job.state}, {job.name}", what)

    return trial


if __name__ == "__main__":
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup par-run would let it pass, as it should
    sys.exit(trials.main("signals", 50, __doc__.splitlines()[0], begin))

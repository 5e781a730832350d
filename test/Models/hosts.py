#!/usr/bin/env python3
"""Jobs on two hosts, which are network namespaces of this one joined by a veth pair. A line a claim.

    hosts.py --bin build/bin [--part numbers|trouble]... [--case zero3]... [--rate 1gbit]

numbers  tiny-gpt under each plan, ranks 0 and 1 on host a, 2 and 3 on host b: by --comm tcp of ranks started by hand,
         and by --comm mpi under mpirun (if it is installed), the losses are bit for bit those of one host (shm)
trouble  a rank killed, a leader stopped, the link down, a host name that is unknown, another PAR_TOKEN: each
         host's output names the culprit within 10 s, and no process is left over
Needs root, ip, and for --rate tc. Only Python's standard library is used. Exit status 0: all hold.
"""
import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
ADDRESS = {"a": "10.77.0.1", "b": "10.77.0.2"}
BASE = ["--set", "train.loss=cross_entropy", "--set", "train.optimizer=adamw", "--set", "dims.seq=32"]
CASES = {  # plans of four ranks
    "dp4": ["mesh.dp=4", "batch.size=8"],
    "dp2tp2": ["mesh.dp=2", "mesh.tp=2", "use=[megatron]", "batch.size=8"],
    "pp2dp2": ["mesh.pp=2", "mesh.dp=2", "batch.size=8", "batch.microbatches=4", "pipeline.cuts={h.*: even}"],
    "zero3": ["mesh.dp=4", "zero={level: 3, min_size: 0}", "batch.size=8"],
    "interleaved": ["mesh.pp=2", "mesh.dp=2", "batch.size=8", "batch.microbatches=4", "pipeline.stages=4",
                    "pipeline.schedule=interleaved", "pipeline.cuts={h.*: even}"],
}


def sh(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class Hosts:
    """Two namespaces and their link, removed at the end."""

    def __init__(self, rate):
        self.names = {host: f"par-{os.getpid()}-{host}" for host in ADDRESS}
        self.links = {host: f"par{os.getpid() % 100000}{host}" for host in ADDRESS}
        for name in self.names.values():
            sh("ip", "netns", "add", name)
        sh("ip", "link", "add", self.links["a"], "type", "veth", "peer", "name", self.links["b"])
        for host, name in self.names.items():
            sh("ip", "link", "set", self.links[host], "netns", name)
            inside = ("ip", "-n", name)
            sh(*inside, "addr", "add", ADDRESS[host] + "/24", "dev", self.links[host])
            sh(*inside, "link", "set", self.links[host], "up")
            sh(*inside, "link", "set", "lo", "up")
            if rate:
                sh("ip", "netns", "exec", name, "tc", "qdisc", "add", "dev", self.links[host], "root", "tbf", "rate",
                   rate, "burst", "1mb", "latency", "50ms")

    def inside(self, host):
        return ["ip", "netns", "exec", self.names[host]]

    def link(self, state):
        sh("ip", "-n", self.names["b"], "link", "set", self.links["b"], state)

    def close(self):
        for name in self.names.values():
            subprocess.run(["ip", "netns", "del", name], check=False)


class Trial:
    def __init__(self, arguments):
        self.bin, self.failed = pathlib.Path(arguments.bin).resolve(), 0
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="par-hosts-"))
        self.hosts = Hosts(arguments.rate)
        self.port = 29600

    def claim(self, text, holds, detail=""):
        self.failed += not holds
        print(f"{text}: {'pass' if holds else 'FAIL ' + str(detail)[-600:]}", flush=True)

    def bundle(self, case):
        path = self.work / f"{case}.par"
        if not path.exists():
            plan = [part for setting in CASES[case] for part in ("--set", setting)]
            sh(str(self.bin / "par-compile"), str(ROOT / "examples/tiny-gpt.onnx"), *BASE, *plan, "-q", "-o", str(path))
        return path

    def flags(self, case, metrics, steps):
        return [str(self.bin / "par-run"), str(self.bundle(case)), "--init", "--text", str(ROOT / "README.md"),
                "--steps", str(steps), "--metrics", str(metrics), "-q"]

    def losses(self, metrics):
        return [json.loads(line)["loss"] for line in metrics.read_text().splitlines() if "loss" in line]

    def by_hand(self, case, metrics, steps, more=(), master=None, token="0123456789abcdef0123456789abcdef", last=None):
        """Four processes, two on each host; `last`: the environment of rank 3 where it differs."""
        self.port += 1
        ranks = []
        for rank in range(4):
            host = "ab"[rank // 2]
            environment = {**os.environ, "PAR_HOST": host, "PAR_TOKEN": token, **((last or {}) if rank == 3 else {})}
            command = [*self.hosts.inside(host), *self.flags(case, metrics, steps), "--rank", str(rank), "--world", "4",
                       "--master", f"{master or ADDRESS['a']}:{self.port}", *more]
            ranks.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                          text=True))
        return ranks

    def numbers(self, case):
        alone, by_tcp, by_mpi = (self.work / f"{case}-{kind}.jsonl" for kind in ("shm", "tcp", "mpi"))
        sh(*self.flags(case, alone, 6), "-n", "4")
        expected = self.losses(alone)
        outputs = [rank.communicate(timeout=240)[0] for rank in self.by_hand(case, by_tcp, 6, ["--comm", "tcp"])]
        got = (by_tcp.exists() and self.losses(by_tcp)) or outputs
        self.claim(f"{case}: two hosts by tcp have the losses of one, bit for bit",
                   len(expected) == 6 and got == expected, (expected, got))
        if not shutil.which("mpirun"):
            print(f"{case}: by mpi: skipped, no mpirun")
            return
        result = self.under_mpirun(case, by_mpi)
        got = (by_mpi.exists() and self.losses(by_mpi)) or result.stdout + result.stderr
        self.claim(f"{case}: two hosts by mpi have the losses of one, bit for bit", got == expected, (expected, got))

    def under_mpirun(self, case, metrics):
        """mpirun in a; its agent enters the namespace whose address it is given, as ssh would enter a host."""
        agent = self.work / "agent"
        agent.write_text(f"#!/bin/sh\nshift\nexec ip netns exec {self.hosts.names['b']} /bin/sh -c \"$*\"\n")
        agent.chmod(0o755)
        self.port += 1
        command = [*self.hosts.inside("a"), "mpirun", "--allow-run-as-root", "--bind-to", "none", "--mca",
                   "plm_rsh_agent", str(agent), "--host", ",".join(f"{address}:2" for address in ADDRESS.values()),
                   "-x", "PAR_TOKEN", "-x", "MASTER_ADDR", "-x", "MASTER_PORT", *self.flags(case, metrics, 6)]
        environment = {**os.environ, "PAR_TOKEN": "0123456789abcdef0123456789abcdef", "MASTER_ADDR": ADDRESS["a"],
                       "MASTER_PORT": str(self.port)}
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=False)

    def trouble(self, name, words, harm, after=4, **how):
        """`words`: of the output of host a, and of that of host b; "|" stands between alternatives."""
        ranks = self.by_hand("dp4", self.work / f"{name}.jsonl", 100000, ["--comm", "tcp", *how.pop("more", [])], **how)
        time.sleep(after)
        began = time.monotonic()
        harm(ranks)
        outputs, slowest = ["", ""], 0.0
        for number, rank in enumerate(ranks):
            try:
                outputs[number // 2] += rank.communicate(timeout=max(0.1, 20 - (time.monotonic() - began)))[0]
            except subprocess.TimeoutExpired:
                slowest = 99
                rank.kill()
                outputs[number // 2] += "(still running) " + rank.communicate()[0]
            slowest = max(slowest, time.monotonic() - began)
        for host in range(2):
            self.claim(f"trouble, {name}: host {'ab'[host]} says \"{words[host]}\"",
                       any(text in outputs[host] for text in words[host].split("|")), outputs[host])
        self.claim(f"trouble, {name}: all had ended after {slowest:.1f} s", slowest < 10, outputs)

    def troubles(self):
        self.trouble("killed", ["rank 3 (dp 3) on b ended in step"] * 2,
                     lambda ranks: ranks[3].send_signal(signal.SIGKILL))
        # Host b kills a rank that does not answer, and a sees its end if it has not missed host b before.
        self.trouble("stopped", ["host b (ranks 2, 3) stopped answering|rank 2 (dp 2) on b ended in step",
                                 "rank 2 (dp 2) on b stopped answering"],
                     lambda ranks: ranks[2].send_signal(signal.SIGSTOP))
        self.trouble("link", ["host b (ranks 2, 3) stopped answering", "host a (ranks 0, 1) stopped answering"],
                     lambda ranks: self.hosts.link("down"))
        self.hosts.link("up")
        nothing = lambda ranks: None
        self.trouble("name", ["host \"nosuch.invalid\" of the rendezvous is unknown here"] * 2, nothing, after=0,
                     master="nosuch.invalid", more=["--join-timeout", "6"])
        self.trouble("token", ["only 3 of 4 ranks came in time; missing: 3", "who listens there has another secret"],
                     nothing, after=0, more=["--join-timeout", "6"], last={"PAR_TOKEN": "another-secret-of-a-job"})
        left = subprocess.run([*self.hosts.inside("a"), "ip", "netns", "pids", self.hosts.names["b"]],
                              capture_output=True, text=True, check=False).stdout.split()
        self.claim("trouble: no process is left over", not left, left)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--part", action="append", choices=["numbers", "trouble"])
    parser.add_argument("--case", action="append", choices=list(CASES))
    parser.add_argument("--rate")
    arguments = parser.parse_args()
    trial = Trial(arguments)
    try:
        for case in arguments.case or CASES:
            if "numbers" in (arguments.part or ["numbers"]):
                trial.numbers(case)
        if "trouble" in (arguments.part or ["trouble"]):
            trial.troubles()
    finally:
        trial.hosts.close()
        shutil.rmtree(trial.work, ignore_errors=True)
    print(f"{trial.failed} failed")
    sys.exit(trial.failed > 0)


main()

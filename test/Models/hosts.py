#!/usr/bin/env python3
"""Jobs on several hosts, which are network namespaces of this one joined by a switch. A line a claim.

    hosts.py --bin build/bin [--part numbers|models|trouble|spares|kills]...
             [--case zero3]... [--models FOLDER [--only gpt2]...] [--rate 1gbit] [--delay MS]
             [--comm tcp|mpi]... [--group links]... [--kills 200 [--seed S]]

numbers  tiny-gpt under each plan, on two hosts of two ranks: by --comm tcp of ranks started by hand, and by --comm mpi
         under mpirun (if it is installed), losses and final weights are bit for bit those of one host (shm); tokens
         of a decoder that carries its caches are PyTorch's
models   every model of a folder (see models.py) under each plan, the same by tcp
trouble  ranks killed and stopped, links down and slow, a full pipe, jobs that were started wrong, two jobs at once:
         each host's output names rank, host and instruction, all has ended within 10 s, and nothing is left over
spares   a host is killed, and processes of a third one that waited take its place: weights as above
kills    that many jobs of one to four hosts and 2 to 16 ranks, each with a rank killed or stopped at a random time
Needs root, ip, and for rates and trouble tc. Only Python's standard library is used. Exit status 0: all hold.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "cluster"))
from jobs import Starter
from kills import Kills
from network import Network, sh
from results import BASE, CASES, Numbers
from spares import Spares
from troubles import GROUPS, Troubles

ROOT = pathlib.Path(__file__).resolve().parents[2]
PARTS = ["numbers", "models", "trouble", "spares", "kills"]


class Trial:
    """Claims, and the bundles of tiny-gpt that they are about."""

    def __init__(self, binaries):
        self.bin, self.text = pathlib.Path(binaries).resolve(), ROOT / "README.md"
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="par-hosts-"))
        self.claims = self.failed = 0
        self.bundles, self.whole = {}, {}
        self.stub_mpi = self.bin.parent / "runtime/stub-mpi/par-stub-mpi.so"

    def claim(self, text, holds, detail=""):
        self.claims += 1
        self.failed += not holds
        print(f"{text}: {'pass' if holds else 'FAIL ' + str(detail)[-1500:]}", flush=True)
        return holds

    def bundle(self, case, more=()):
        """A bundle of tiny-gpt: a name of CASES, or settings of its own by name."""
        if case not in self.bundles:
            path = self.work / f"{case}.par"
            settings = [part for setting in [*BASE, *(more or CASES[case])] for part in ("--set", setting)]
            sh(str(self.bin / "par-compile"), str(ROOT / "examples/tiny-gpt.onnx"), *settings, "-q", "-o", str(path))
            self.bundles[case] = path
        return self.bundles[case]

    def alone(self, case, steps):
        """Losses of one host."""
        if (case, steps) not in self.whole:
            metrics = self.work / f"alone-{case}-{steps}.jsonl"
            subprocess.run([self.bin / "par-run", self.bundle(case), "--init", "--text", self.text, "--steps",
                            str(steps), "--metrics", metrics, "-q"], check=True, capture_output=True)
            self.whole[case, steps] = Troubles.losses(metrics)
        return self.whole[case, steps]


def trouble(trial, comms, groups):
    network = Network("abcd", rate="10gbit")
    bundles = {"dp2": trial.bundle("dp2"), "dp4": trial.bundle("dp4"),
               "other": trial.bundle("other", ["mesh.dp=4", "batch.size=8", "seed=7"])}
    try:
        troubles = Troubles(trial, network, Starter(network, trial.bin / "par-run", trial.work), bundles)
        for comm in comms:
            if comm == "mpi" and not shutil.which("mpirun"):
                print("trouble by mpi: skipped, no mpirun")
                continue
            troubles.play(comm, groups)
    finally:
        network.close()


def numbers(trial, options, parts):
    network = Network("ab", options.rate, options.delay)
    try:
        compared = Numbers(trial, Starter(network, trial.bin / "par-run", trial.work))
        for case in options.case or list(CASES)[1:]:
            if "numbers" in parts:
                compared.tiny(case)
        if "numbers" in parts and not options.case:
            compared.carried()
        if "models" in parts:
            compared.models(options.models, options.only)
    finally:
        network.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--part", action="append", choices=PARTS, help="default: numbers, trouble and spares")
    parser.add_argument("--comm", action="append", choices=["tcp", "mpi"],
                        help="of trouble and kills: mpi, or tcp and shared memory; default: all")
    parser.add_argument("--case", action="append", choices=list(CASES))
    parser.add_argument("--group", action="append", choices=GROUPS, help="of trouble; default: all")
    parser.add_argument("--models", type=pathlib.Path)
    parser.add_argument("--only", action="append", help="a model's name; repeat")
    parser.add_argument("--rate", help="of numbers: of each host's link, as tc says it")
    parser.add_argument("--delay", type=float, default=0, help="of numbers: milliseconds from host to host")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    parts = options.part or ["numbers", "trouble", "spares"]
    if os.geteuid() or not shutil.which("ip"):
        sys.exit("hosts.py needs root and ip, to make network namespaces")
    if "models" in parts and not options.models:
        parser.error("--part models needs --models FOLDER")
    trial = Trial(options.bin)
    try:
        if {"numbers", "models"} & set(parts):
            numbers(trial, options, parts)
        if "trouble" in parts:
            trouble(trial, options.comm or ["tcp", "mpi"], options.group)
        if "spares" in parts:
            Spares(trial).play()
        if "kills" in parts:
            Kills(trial, options.seed, options.comm).play(options.kills)
    finally:
        shutil.rmtree(trial.work, ignore_errors=True)
    print(f"{trial.claims} claims, {trial.failed} failed")
    sys.exit(trial.failed > 0)


main()

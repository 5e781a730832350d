#!/usr/bin/env python3
"""Measures what Par promises of its models, a line a claim: the figure, its bound, pass or FAIL.

    shows.py --bin build/bin [--only 2,3] [--plan dp8]      or: ninja -C build shows

2  mlp and gpt2 on one rank against PyTorch: losses, norms, gradients
3  gpt2 under ten plans: the same; clipping and ignored labels against the interpreter in float64; bytes sent; bit for
   bit
4  gpt2 renamed and reordered trains the same; share of launches that are generated kernels
6  a thousand broken bundles are rejected, whole ones accepted
7  ranks that are killed or stopped end the job
8  poisoned memory is never read, and touched as far as predicted
9  every schedule in twenty hostile orders: no race, the same bits
About half an hour on two cores for all. Only Python's standard library is used. Exit status 0: all hold.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import communication
from compare_runs import Comparison
from rename_model import other_words, rename
from runs import HERE, Claims, Runs
from train_reference import CASES, MEGATRON, Trial

ROOT = HERE.parent.parent
GPT2 = HERE / "gpt2/model.onnx"
PLANS = ["pp2dp2tp2", "pp2dp2tp2-full", "pp2dp2tp2-each", "tp2pp2dp2", "dp8", "tp4", "pp4-gpipe", "pp4-auto",
         "dp2tp3-vocab",
         "one-m8"]
SGD = "train: {optimizer: {kind: sgd, lr: 0.1}}\n"


def show2(runs, claims, plans):
    for model, file in [("mlp", "model.onnx"), ("mlp", "model.legacy.onnx"), ("gpt2", "model.onnx")]:
        trial = Trial(runs, claims, model, file=HERE / model / file, title=f"{model} {file}")
        for optimizer in ("sgd", "momentum", "adamw"):
            trial.check_losses(optimizer)
        trial.check_gradients()


def show3(runs, claims, plans):
    for case in plans:
        trial = Trial(runs, claims, "gpt2", case)
        for optimizer in ("sgd", "adamw"):
            trial.check_losses(optimizer)
        trial.check_gradients()
    comparison = Comparison(runs, claims)
    comparison.clip(plans)
    comparison.ignored(plans)
    for case in plans:
        communication.check(runs, claims, case)
    comparison.bits(plans)


def renamed_data(names, to):
    """gpt2's data with its arrays under the new names of the inputs."""
    data = (HERE / "gpt2/data.safetensors").read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = {names.get(name, name): entry for name, entry in json.loads(data[8:8 + length]).items()}
    text = json.dumps(header).encode()
    to.write_bytes(len(text).to_bytes(8, "little") + text + data[8 + length:])
    return to


def generated_share(bundle):
    """Percentage of generated kernels in a training step's launches, without optimizer and cross-entropy."""
    generated = builtin = 0
    for path in sorted(bundle.glob("role-*.json")):
        program = json.loads(path.read_text())
        kernels = {kernel["name"]: kernel for kernel in program["kernels"]}
        for block, _, _ in program["entries"]["train"]:
            for instruction in program["blocks"][block]:
                if instruction["op"] != "kernel":  # products are calls of a library
                    continue
                name = kernels[instruction["k"]].get("builtin", "")
                if name in ("sgd", "momentum", "adamw") or name.startswith("cross_entropy"):
                    continue
                generated, builtin = generated + (not name), builtin + bool(name)
    return 100 * generated / (generated + builtin)


def show4(runs, claims, plans):
    model = runs.work / "renamed.onnx"
    names = rename(GPT2, model)
    data = renamed_data(names, runs.work / "renamed.safetensors")
    written = model.read_bytes()
    left = [name for name in names if "." in name and name.encode() in written]
    claims.equal("gpt2 renamed: parameters' old names in the file", left, [])
    # The names that the plan's own lines and Megatron's use are module paths too.
    megatron = (ROOT / "share/plans/megatron.yaml").read_text()
    for case in ["one", *plans]:
        plan = other_words(CASES[case].replace(MEGATRON, megatron))
        trial = Trial(runs, claims, "gpt2", case, model, data, plan, names, title=f"gpt2 renamed {case}")
        trial.check_losses("sgd")
    for case in ["one", *plans]:
        share = generated_share(runs.compile(GPT2, CASES[case] + SGD))
        claims.hold(f"gpt2 {case}: launches from generated kernels", share, 80, least=True, unit="%")


def show6(runs, claims, plans):
    bundle = runs.compile(GPT2, CASES["pp2dp2tp2"] + SGD)
    done = subprocess.run([runs.binaries / "mutations", bundle, "1300", "7", runs.work / "mutant.par"],
                          capture_output=True, text=True, timeout=1200)
    print(done.stdout.rstrip())
    counts = re.search(r"(\d+) mutations: (\d+) rejected, (\d+) equivalent .*, (\d+) escaped", done.stdout)
    if not counts:
        sys.exit(f"mutations: exit {done.returncode}\n{done.stderr}")
    claims.hold("gpt2 pp2dp2tp2: mutations rejected by par-verify", int(counts[2]), 1000, least=True)
    claims.hold("gpt2 pp2dp2tp2: mutations that escaped", int(counts[4]), 0)
    verify = {case: [runs.binaries / "par-verify", runs.compile(GPT2, CASES[case] + SGD)] for case in sorted(CASES)}
    refused = [case for case, command in verify.items() if subprocess.run(command, capture_output=True).returncode]
    claims.equal(f"gpt2: whole bundles of {len(CASES)} plans that are refused", refused, [])


PIPELINE = ("{mesh: {pp: 2}, dims: {seq: 32}, batch: {size: 8, microbatches: 4}, train: {loss: cross_entropy},\n"
            " pipeline: {schedule: %s}}\n")
SCHEDULES = {name: PIPELINE % more for name, more in {
    "gpipe": "gpipe", "1f1b": "1f1b", "interleaved": "interleaved, stages: 4", "zb-h1": "zb-h1",
    "zb-v": "zb-v, stages: 4",
    "auto": "auto", "pipedream-2bw": "pipedream-2bw, flush_every: 5"}.items()}
SCHEDULES["pipedream"] = PIPELINE.replace("microbatches: 4",
                                          "microbatches: 1") % "pipedream, vertical_sync: true, flush_every: 5"

# Jobs whose ranks are killed: the README's, several stages on a rank, which send while they compute, and batches that
# begin before the one before them has ended.
KILLED = {"8 ranks": (ROOT / "examples/3d.yaml").read_text(),
          **{name: SCHEDULES[name] for name in ("interleaved", "pipedream", "pipedream-2bw")}}


def show7(runs, claims, plans):
    for title, plan in KILLED.items():
        check_kills(runs, claims, f"tiny-gpt, {title}", runs.compile(ROOT / "examples/tiny-gpt.onnx", plan))


def check_kills(runs, claims, title, bundle):
    saves = runs.work / f"saves-{bundle.stem}"
    train = [runs.binaries / "par-run", bundle, "--init", "--text", ROOT / "README.md", "--save", saves]
    ranks = len(json.loads((bundle / "manifest.json").read_text())["ranks"])
    endless = " ".join(map(str, [ranks, *train, "--resume", "auto", "--steps", "1000000", "--save-every", "5"]))
    done = subprocess.run([runs.binaries / "runtime-Comm-tests", "--gtest_filter=Failures.ParRunRandomTrials"],
                          capture_output=True,
                          text=True, timeout=1500, env={**os.environ, "PAR_LONG": "1", "PAR_KILLS": endless})
    counts = re.search(r"(\d+) ranks killed or stopped; the slowest job had ended after (\S+) s", done.stdout)
    if not counts:
        sys.exit(f"runtime-Comm-tests: exit {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-1000:]}")
    if done.returncode:
        print(done.stdout[-6000:])
    claims.hold(f"{title}: killed or stopped", int(counts[1]), 40, least=True)
    claims.hold(f"{title}: the slowest job had ended after", float(counts[2]), 10, unit="s")
    claims.equal(f"{title}: rank named, nothing left, exit code 4", "yes" if done.returncode == 0 else "no", "yes")
    # A killed save leaves a part, which the next run takes away.
    steps = [int(path.name) for path in saves.iterdir() if path.name.isdigit()]
    runs.run(*train, "--steps", str(max(steps, default=0) + 5), "--resume", "auto") # to a flush
    left = [path.name for path in saves.iterdir() if not path.name.isdigit() and path.name != ".lock"]
    claims.equal(f"{title}: parts of saves that are left", left, [])


def show8(runs, claims, plans):
    Comparison(runs, claims).arena(["one", *plans])


def show9(runs, claims, plans):
    for title, plan in SCHEDULES.items():
        said = runs.run(runs.binaries / "par-run", runs.compile(ROOT / "examples/tiny-gpt.onnx", plan), "--init",
                        "--text",
                        ROOT / "README.md", "--steps", "5", "--device", "sim", "--interleavings", "20")
        claims.equal(f"tiny-gpt, {title}: in 20 orders no race, bits alike", "no race, bits alike" in said, True)


SHOWS = {"2": show2, "3": show3, "4": show4, "6": show6, "7": show7, "8": show8, "9": show9}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", help="default: on the PATH",
                        default=pathlib.Path(shutil.which("par-compile") or ".").parent)
    parser.add_argument("--only", help="comma-separated, of " + ", ".join(SHOWS))
    parser.add_argument("--plan", action="append", choices=sorted(CASES),
                        help="instead of all ten, where a claim is of plans")
    options = parser.parse_args()
    chosen = options.only.split(",") if options.only else list(SHOWS)
    if unknown := [name for name in chosen if name not in SHOWS]:
        parser.error(f"--only takes {', '.join(SHOWS)}, found {', '.join(unknown)}")
    claims, begin = Claims(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="par-shows-") as work:
        runs = Runs(options.bin, work)
        for name in chosen:
            started = time.monotonic()
            print(f"--- {name}", flush=True)
            SHOWS[name](runs, claims, options.plan or PLANS)
            print(f"--- {name} took {time.monotonic() - started:.0f} s", flush=True)
    print("\n".join(f"FAIL {line}" for line in claims.failures))
    print(f"{claims.count} claims, {len(claims.failures)} failed, {time.monotonic() - begin:.0f} s")
    sys.exit(1 if claims.failures else 0)


if __name__ == "__main__":
    main()

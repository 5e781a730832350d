#!/usr/bin/env python3
"""A training step on one rank and one thread: Par against PyTorch eager, and torch.compile if asked, in turns.

    model_step.py resnet50=resnet50-b8.onnx bert-base=bert-base-b8t128.onnx.gz gpt2-124m=gpt2-124m-b4t256.onnx.gz

Needs torch, torchvision, transformers, numpy and safetensors from PyPI. See README.md for the commands. Wall time is
what a user waits for; CPU time of the process is printed beside it, because only it means something while other work
shares the cores.
"""

import argparse
import gzip
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

from processes import cpu_seconds, tree
from step_profile import report
from torch_step import BUILDERS, high_water

ADAMW, MOMENTUM = "{kind: adamw, lr: 1e-4}", "{kind: momentum, lr: 1e-3, momentum: 0.9}"


def token_data(random, batch, sequence, vocabulary):
    tokens = random.integers(0, vocabulary, (2 * batch, sequence))
    return {"input_ids": tokens, "labels": tokens.copy()}


def bert_data(random):
    data = token_data(random, 8, 128, 30522)
    return data | {"attention_mask": (data["labels"] >= 0).astype("int64")}


def image_data(random):
    images = random.standard_normal((16, 3, 224, 224), dtype="float32")
    return {"pixel_values": images, "labels": random.integers(0, 1000, (16,))}


# For each model its data (two batches), optimizer (torch_step.py has the same) and batch size.
MODELS = {
    "gpt2-124m": ("4 x 256 tokens", lambda random: token_data(random, 4, 256, 50257), ADAMW, 4),
    "bert-base": ("8 x 128 tokens", bert_data, ADAMW, 8),
    "resnet50": ("8 images of 224 x 224", image_data, MOMENTUM, 8),
}


def run_par(options, folder, steps):
    """One turn of Par's steps: the rank's CPU time is read whenever a line of metrics appears."""
    metrics = folder / "metrics.jsonl"
    metrics.unlink(missing_ok=True)
    command = [options.bin / "par-run", folder / "model.par", "--init", "--data", folder / "data.safetensors",
               "--threads", "1", "--steps", str(steps + 1), "--metrics", metrics,
               "--trace", f"{folder / 'trace.json'}:2-{steps + 1}"]
    job = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL)
    marks, high = [], 0
    while job.poll() is None:
        try:
            pids = tree(job.pid)
            seen = metrics.read_text().count("\n") if metrics.exists() else 0
            if seen > len(marks):
                marks.append(cpu_seconds(pids))
            high = max([high] + [high_water(pid) for pid in pids])
        except OSError:
            pass  # a process ended between listing and reading
        time.sleep(0.01)
    if job.returncode != 0:
        sys.exit(f"par-run ended with {job.returncode}")
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    cpus = [after - before for before, after in zip(marks, marks[1:])]
    return [{"wall": line["ms"] / 1e3, "cpu": cpu, "loss": line["loss"], "hwm_kib": high}
            for line, cpu in zip(lines[1:], cpus)]


def run_torch(name, how, folder, steps):
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    script = pathlib.Path(__file__).with_name("torch_step.py")
    command = [sys.executable, script, name, how, str(steps), folder / "data.safetensors"]
    out = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True, check=True, env=environment).stdout
    return [json.loads(line) for line in out.splitlines() if line.startswith("{")][1:]


def prepare(options, name, model):
    """Writes plan, data and bundle of one model."""
    import numpy
    from safetensors.numpy import save_file

    folder = options.work / name
    folder.mkdir(parents=True, exist_ok=True)
    what, make_data, optimizer, batch = MODELS[name]
    plan = folder / "plan.yaml"
    plan.write_text(f"batch: {batch}\ntrain:\n  optimizer: {optimizer}\n")
    save_file(make_data(numpy.random.default_rng(0)), folder / "data.safetensors")
    if model.suffix == ".gz":
        unpacked = folder / "model.onnx"
        unpacked.write_bytes(gzip.decompress(model.read_bytes()))
        model = unpacked
    subprocess.run([options.bin / "par-compile", "-q", model, plan, "-o", folder / "model.par"], check=True)
    print(f"\n{name}, {what}, f32, {optimizer}, one thread")
    return folder


def compare(options, name, model):
    folder = prepare(options, name, model)
    hows = ["eager"] + (["compile"] if options.compile else [])
    steps = {"Par": []} | {how: [] for how in hows}
    for _ in range(options.blocks):
        last = run_par(options, folder, options.steps)
        steps["Par"] += last
        for how in hows:
            steps[how] += run_torch(name, how, folder, options.steps)
    middle = {who: {key: statistics.median(step[key] for step in of) for key in ("wall", "cpu", "hwm_kib")}
              for who, of in steps.items()}
    par = middle["Par"]
    for who, times in middle.items():
        title = who if who == "Par" else f"PyTorch {steps[who][0]['version']} {who}"
        ratio = "" if who == "Par" else (f"   Par is {times['wall'] / par['wall']:.2f} x as fast"
                                         f" (cpu {times['cpu'] / par['cpu']:.2f} x)")
        print(f"  {title:30} wall {times['wall']:7.3f} s  cpu {times['cpu']:7.3f} s"
              f"  VmHWM {times['hwm_kib'] / 1024:6.0f} MiB{ratio}")
    losses = ", ".join(f"{who} {of[-1]['loss']:.3f}" for who, of in steps.items())
    print(f"  medians of {len(steps['Par'])} steps each; losses of the last: {losses}")
    cpu = statistics.median(step["cpu"] for step in last)
    report(folder / "trace.json", folder / "model.par", options.library, options.steps, cpu, options.details)


def describe_machine():
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "?")
    family = next((line.partition(":")[2].strip() for line in lines if line.startswith("cpu family")), "?")
    print(f"machine: {name} (family {family}), {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")


def main():
    keep_lines = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=keep_lines)
    parser.add_argument("models", nargs="+", metavar="NAME=MODEL", help=f"NAME is one of {', '.join(MODELS)}")
    parser.add_argument("--bin", type=pathlib.Path, default="build/bin", help="where the tools are")
    parser.add_argument("--work", type=pathlib.Path, default="build/bench", help="folder for what is written")
    parser.add_argument("--library", help="the built matmuls.cpp; without it GF/s are left out")
    parser.add_argument("--compile", action="store_true", help="torch.compile as well; it needs a C++ compiler")
    parser.add_argument("--blocks", type=int, default=2, help="turns of Par and PyTorch")
    parser.add_argument("--steps", type=int, default=3, help="measured steps in each turn")
    parser.add_argument("--details", type=int, default=8, help="lines of each table")
    options = parser.parse_args()
    describe_machine()
    for pair in options.models:
        name, _, model = pair.partition("=")
        if name not in MODELS or not model:
            parser.error(f"'{pair}': expected NAME=MODEL with NAME one of {', '.join(MODELS)}")
        compare(options, name, pathlib.Path(model))


if __name__ == "__main__":
    main()

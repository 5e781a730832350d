#!/usr/bin/env python3
"""Compile time by layers, ranks, microbatches and batch: seconds of each phase and the most resident memory.

    compile_scale.py export FOLDER [NAME...]            models without weights: gpt3-LAYERS-BATCH, llama-LAYERS-BATCH
    compile_scale.py table FOLDER [--bin build/bin] [--only gpt3-96]... [--rows NAME,RANKS,MICROBATCHES]...

Models are GPT-3 175B (12,288 wide, 96 heads, 2,048 tokens) with some of its layers, and Llama-3.1-405B (16,384 wide,
128 heads and 8 of keys and values, 8,192 tokens), exported by transformers on fake tensors. Ranks are pp x dp x tp with
tp 8: GPT-3 with pp 8, `recompute: full`, 1f1b, megatron; Llama with pp 16, 32 stages interleaved, zero 1, megatron-sp.
CPU seconds depend little on what else the machine does, wall time does. Export needs torch and transformers; the rest
only Python's standard library.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ZOO = pathlib.Path(__file__).resolve().parents[1] / "test/Models/zoo"
# name, ranks, microbatches: layers; ranks at equal microbatches a pipeline; microbatches; the batch; the largest.
ROWS = [("gpt3-12-1536", 1024, 96), ("gpt3-24-1536", 1024, 96), ("gpt3-48-1536", 1024, 96), ("gpt3-96-1536", 1024, 96),
        ("gpt3-96-1536", 128, 6), ("gpt3-96-1536", 1024, 6), ("gpt3-96-1536", 16384, 6),
        ("gpt3-12-1536", 1024, 24), ("gpt3-12-1536", 1024, 48),
        ("gpt3-12-6144", 1024, 96),
        ("llama-126-2048", 16384, 16)]
PLAN = """target: cuda
precision: bf16
use: [{recipe}]
mesh: {{pp: {pp}, dp: {dp}, tp: 8}}
batch: {{size: {batch}, microbatches: {microbatches}}}
train: {{optimizer: {{kind: adamw, lr: 1e-4}}, clip: 1.0}}
pipeline: {{{pipeline}}}
recompute: full
"""
GPT3 = dict(recipe="megatron", pp=8, pipeline='schedule: 1f1b, cuts: {"h.*": even}')
LLAMA = dict(recipe="megatron-sp", pp=16, pipeline='stages: 32, schedule: interleaved, cuts: {"layers.*": even}')


def parts(name):
    family, layers, batch = name.split("-")
    return family, int(layers), int(batch)


def export(folder, names):
    sys.path[:0] = [str(ZOO)]
    from big import LAYERS, ROTARY
    from recipe import decoder
    from structure import export_big
    for name in names or dict.fromkeys(row[0] for row in ROWS):
        family, layers, batch = parts(name)
        if family == "gpt3":
            sizes = dict(vocab_size=51200, n_positions=2048, n_embd=12288, n_layer=layers, n_head=96)
            recipe = decoder(name, "GPT2LMHeadModel", sizes, length=2048, batch=batch)
        else:
            sizes = dict(vocab_size=128256, hidden_size=16384, num_hidden_layers=layers, num_attention_heads=128,
                         num_key_value_heads=8, intermediate_size=53248, max_position_embeddings=8192,
                         rope_parameters={**ROTARY, "rope_theta": 500000.0})
            recipe = decoder(name, "LlamaForCausalLM", sizes, length=8192, batch=batch)
        count = export_big(recipe, LAYERS, folder / f"{name}.onnx", lines=False)
        print(f"{name:16} {count / 1e9:6.1f} B parameters", flush=True)


def plan(name, ranks, microbatches):
    family, _, batch = parts(name)
    kind = GPT3 if family == "gpt3" else LLAMA
    text = PLAN.format(dp=ranks // kind["pp"] // 8, batch=batch, microbatches=microbatches, **kind)
    return text + ("zero: 1\n" if family == "llama" else "")


def measure(binary, model, text):
    """{phase: CPU seconds} in order, CPU seconds in all, wall seconds, MiB."""
    with tempfile.TemporaryDirectory() as folder:
        planned = pathlib.Path(folder, "plan.yaml")
        planned.write_text(text)
        command = [binary, model, planned, "--timing", "-o", os.path.join(folder, "out.par")]
        began = time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        said = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - began
    if status:
        sys.exit(f"{' '.join(map(str, command))}: exit {os.waitstatus_to_exitcode(status)}\n{said}")
    phases = {phase: float(cpu) for phase, cpu in re.findall(r"^timing  (\S+) .*cpu +([\d.]+) s$", said, re.M)}
    return phases, usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024


def table(folder, binary, rows):
    head = None
    for name, ranks, microbatches in rows:
        phases, cpu, wall, memory = measure(binary, folder / f"{name}.onnx", plan(name, ranks, microbatches))
        if head is None:
            head = list(phases)
            names = ["model-layers-batch", "ranks", "microbatches", "CPU s", "wall s", "MiB", "load", *head]
            print("| " + " | ".join(names) + " |")
            print("|" + " --- |" * len(names))
        figures = [f"{cpu:.1f}", f"{wall:.1f}", f"{memory:.0f}", f"{os.getloadavg()[0]:.0f}"]
        figures += [f"{phases.get(phase, 0):.2f}" for phase in head]
        print(f"| {name} | {ranks} | {microbatches} | " + " | ".join(figures) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("do", choices=["export", "table"])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--bin", type=pathlib.Path, default="build/bin")
    parser.add_argument("--only", action="append", default=[], help="rows whose model begins so")
    parser.add_argument("--rows", action="append", default=[], metavar="NAME,RANKS,MICROBATCHES")
    options = parser.parse_args()
    if options.do == "export":
        return export(options.folder, options.names)
    rows = [(name, int(ranks), int(count)) for name, ranks, count in (row.split(",") for row in options.rows)] or ROWS
    only = tuple(options.only)
    table(options.folder, options.bin / "par-compile", [row for row in rows if not only or row[0].startswith(only)])


main()

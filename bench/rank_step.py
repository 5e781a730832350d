#!/usr/bin/env python3
"""A training step of GPT-2 124M on several CPU ranks, one thread each: Par against PyTorch over Gloo, strategy by
strategy, in turns.

    rank_step.py --peer torch_ranks.py gpt2-124m.onnx          by par.export, vocabulary 50257, symbolic batch and
    sequence

PEER is called as `PEER STRATEGY RANKS BATCH SEQUENCE` and prints a line that ends in `T s a step, K tokens/s`; STRATEGY
is one of single, ddp, fsdp and tp, with AdamW, f32. Needs torch and transformers from PyPI. The time of Par's matmuls
comes from the trace of its last turn: that of the rank with the longest.
"""

import argparse
import collections
import os
import pathlib
import re
import statistics
import subprocess
import sys

from model_step import describe_machine, run_par, token_data
from step_profile import read_events, read_programs

# Strategy, Par's plan, the peer's word for the same.
STRATEGIES = {
    "one rank": ("mesh: {}", "single"),
    "dp": ("mesh: {dp: RANKS}", "ddp"),
    "zero 1": ("{mesh: {dp: RANKS}, zero: 1}", "ddp"),
    "zero 3": ("{mesh: {dp: RANKS}, zero: 3}", "fsdp"),
    "tp": ("{use: [megatron], mesh: {tp: RANKS}}", "tp"),
}
WAITS = {"coll", "send", "recv", "group", "wait"}


def prepare(options, name):
    import numpy
    from safetensors.numpy import save_file

    folder = options.work / name.replace(" ", "-")
    folder.mkdir(parents=True, exist_ok=True)
    plan = folder / "plan.yaml"
    plan.write_text(STRATEGIES[name][0].replace("RANKS", str(options.ranks)) + "\n")
    settings = [f"batch={options.batch}", f"dims={{seq: {options.sequence}}}",
                "train={optimizer: {kind: adamw, lr: 1e-4}}"]
    save_file(token_data(numpy.random.default_rng(0), options.batch, options.sequence, 50257),
              folder / "data.safetensors")
    command = [options.bin / "par-compile", "-q", options.model, plan, "-o", folder / "model.par"]
    for setting in settings:
        command += ["--set", setting]
    subprocess.run(list(map(str, command)), check=True)
    return folder


def run_peer(options, strategy):
    ranks = 1 if strategy == "single" else options.ranks
    command = [sys.executable, options.peer, strategy, str(ranks), str(options.batch), str(options.sequence)]
    out = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True, check=True,
                         env=dict(os.environ, OMP_NUM_THREADS="1")).stdout
    return float(re.search(r"([\d.]+) s a step", out)[1])


def shares(folder, steps):
    """Seconds a step in matmuls, of the rank with the longest, and in exposed communication (on the queue of compute),
    of the ranks that wait longest and shortest. The longest wait includes waiting for the slower rank."""
    spent = collections.defaultdict(collections.Counter)
    for rank, instruction, seconds in read_events(folder / "trace.json", read_programs(folder / "model.par")):
        waits = instruction["op"] in WAITS and instruction.get("q", "compute") == "compute"
        kind = "matmuls" if "lib" in instruction else "waits" if waits else "rest"
        spent[rank][kind] += seconds / steps
    waits = [rank["waits"] for rank in spent.values()]
    return {"matmuls": max(rank["matmuls"] for rank in spent.values()), "most": max(waits), "least": min(waits)}


def main():
    keep_lines = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=keep_lines)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--peer", type=pathlib.Path, required=True)
    parser.add_argument("--bin", type=pathlib.Path, default="build/bin", help="where the tools are")
    parser.add_argument("--work", type=pathlib.Path, default="build/bench/ranks", help="folder for what is written")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--batch", type=int, default=2, help="of all ranks together")
    parser.add_argument("--sequence", type=int, default=256)
    parser.add_argument("--blocks", type=int, default=2, help="turns of Par and PyTorch")
    parser.add_argument("--steps", type=int, default=5, help="Par's measured steps in each turn; the peer has its own")
    parser.add_argument("--only", action="append", choices=STRATEGIES, help="repeat")
    options = parser.parse_args()
    describe_machine()
    print(f"GPT-2 124M, batch {options.batch} x {options.sequence}, f32, AdamW, {options.ranks} ranks, one thread each")
    tokens = options.batch * options.sequence
    for name in options.only or STRATEGIES:
        folder, par, peer, cpu = prepare(options, name), [], [], []
        for _ in range(options.blocks):
            steps = run_par(options, folder, options.steps)
            par += [step["wall"] for step in steps]
            cpu += [step["cpu"] for step in steps]
            peer.append(run_peer(options, STRATEGIES[name][1]))
        mine, theirs, share = statistics.median(par), statistics.median(peer), shares(folder, options.steps)
        print(f"  {name:9} {mine:7.3f} s (cpu {statistics.median(cpu):7.3f}) {tokens / mine:6.0f} tokens/s"
              f"   PyTorch {STRATEGIES[name][1]:6} {theirs:7.3f} s {tokens / theirs:6.0f}   Par is {theirs / mine:.2f} "
              f"x as fast"
              f"   matmuls {share['matmuls'] / mine:.1%}, communication waited for {share['least'] / mine:.1%} to "
              f"{share['most'] / mine:.1%}", flush=True)


if __name__ == "__main__":
    main()

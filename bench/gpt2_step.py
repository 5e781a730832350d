#!/usr/bin/env python3
"""A training step of GPT-2 124M on one rank and one thread: Par against PyTorch eager, in turns.

Needs torch, transformers, numpy and safetensors from PyPI. See README.md for the commands. Wall time is what
a user waits for; CPU time of the process is printed beside it, because only it means something while other
work shares the cores.
"""

import argparse
import collections
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

BATCH, SEQUENCE, VOCABULARY = 4, 256, 50257
PLAN = f"batch: {BATCH}\ntrain:\n  optimizer: {{kind: adamw, lr: 1e-4}}\n"


def peer(steps):
    """PyTorch's side, in a process of its own: one JSON line per step, the first of them a warm-up."""
    import torch
    import transformers

    torch.set_num_threads(1)
    torch.manual_seed(0)
    config = transformers.GPT2Config(resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, attn_implementation="sdpa")
    model = transformers.GPT2LMHeadModel(config).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    tokens = torch.randint(0, VOCABULARY, (BATCH, SEQUENCE))
    for step in range(steps + 1):
        wall, cpu = time.perf_counter(), time.process_time()
        optimizer.zero_grad()
        loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        value = loss.item()
        record = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu, "loss": value}
        record |= {"hwm_kib": high_water(os.getpid()), "torch": torch.__version__}
        print(json.dumps(record | {"transformers": transformers.__version__}), flush=True)


def high_water(pid):
    """VmHWM of a process in KiB."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1])
    return 0


def tree(pid):
    """A process and its descendants."""
    found = [pid]
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text().split():
            found += tree(int(child))
    return found


def cpu_seconds(pids):
    ticks = 0
    for pid in pids:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def run_par(options, data, steps, trace):
    """One block of Par's steps: the rank's CPU time is read whenever a line of metrics appears."""
    metrics = options.work / "metrics.jsonl"
    metrics.unlink(missing_ok=True)
    command = [options.bin / "par-run", options.work / "gpt2.par", "--init", "--data", data, "--threads", "1",
               "--steps", str(steps + 1), "--metrics", metrics, "--trace", f"{trace}:2-{steps + 1}"]
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
        time.sleep(0.02)
    if job.returncode != 0:
        sys.exit(f"par-run ended with {job.returncode}")
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    walls = [line["ms"] / 1e3 for line in lines[1:]]
    return walls, [after - before for before, after in zip(marks, marks[1:])], high, lines[-1]["loss"]


def run_peer(steps):
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    out = subprocess.run([sys.executable, __file__, "--peer", str(steps)], stdout=subprocess.PIPE, text=True,
                         check=True, env=environment).stdout
    return [json.loads(line) for line in out.splitlines() if line.startswith("{")][1:]


def profile(trace, bundle):
    """Seconds, number and program text of every kernel and call in the traced steps."""
    program = json.loads((bundle / "role-0.json").read_text())
    calls = {call["name"]: call for call in program["calls"]}
    seconds, count = collections.Counter(), collections.Counter()
    for event in json.loads(trace.read_text())["traceEvents"]:
        if event.get("ph") != "X":
            continue
        block, _, index = event["name"].partition("/")[2].rpartition(":")
        instruction = program["blocks"][block][int(index)]
        name = instruction.get("lib") or instruction.get("k") or instruction["op"]
        seconds[name] += event["dur"] / 1e6
        count[name] += 1
    return calls, seconds, count


def matrices(call):
    product = 1
    for size in call["batch"]:
        product *= size
    return product


def direct(options, calls):
    """Seconds of each call's product by oneDNN's sgemm alone."""
    lines = []
    for call in calls:
        fields = [int(call["trans_a"]), int(call["trans_b"]), call["m"], call["n"], call["k"]]
        fields += [call["lda"], call["ldb"], call["ldc"], matrices(call), int(call["beta"])]
        lines.append(" ".join(map(str, fields)))
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    out = subprocess.run([options.products, "3"], input="\n".join(lines) + "\n", text=True, check=True,
                         stdout=subprocess.PIPE, env=environment).stdout
    return [float(line.split()[1]) for line in out.splitlines()]


def report_profile(options, trace, steps, step_cpu):
    """Trace times are wall times: scaled to the step's CPU time, they hold on a shared machine, too."""
    calls, seconds, count = profile(trace, options.work / "gpt2.par")
    total = step_cpu * steps
    scale = total / sum(seconds.values())
    for name in seconds:
        seconds[name] *= scale
    used = [name for name in calls if count[name]]
    products = sum(seconds[name] for name in used)
    print(f"where Par's time goes (trace, {steps} steps):"
          f" products {products / total:.1%} of {step_cpu:.3f} s CPU")
    if options.products:
        work = alone = 0
        for name, once in zip(used, direct(options, [calls[name] for name in used])):
            call = calls[name]
            flops = 2 * call["m"] * call["n"] * call["k"] * matrices(call)
            work, alone = work + flops * count[name], alone + once * count[name]
            kind = "nt"[call["trans_a"]] + "nt"[call["trans_b"]]
            print(f"  {name:8} {count[name] // steps:4} x {matrices(call):3}"
                  f" x {call['m']} x {call['n']} x {call['k']} {kind} beta {call['beta']}:"
                  f" {seconds[name] / total:6.1%}, {flops * count[name] / seconds[name] / 1e9:6.1f} GF/s;"
                  f" sgemm alone {flops / once / 1e9:6.1f}")
        print(f"  products {work / products / 1e9:.1f} GF/s, sgemm alone {work / alone / 1e9:.1f}:"
              f" ratio {alone / products:.2f}")
    others = [(name, spent) for name, spent in seconds.most_common() if name not in calls]
    for name, spent in others[:12]:
        print(f"  {name:16} {count[name] // steps:5} a step {spent / total:6.1%}"
              f" {spent / steps * 1e3:8.1f} ms")


def describe_machine():
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "?")
    print(f"machine: {name}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")


def main():
    keep_lines = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=keep_lines)
    parser.add_argument("model", nargs="?", type=pathlib.Path, help="GPT-2 124M as ONNX, batch 4 x 256")
    parser.add_argument("--bin", type=pathlib.Path, default="build/bin", help="where the tools are")
    parser.add_argument("--work", type=pathlib.Path, default="build/bench", help="folder for what is written")
    parser.add_argument("--products", help="the built products.cpp; without it GF/s are left out")
    parser.add_argument("--blocks", type=int, default=2, help="turns of Par and PyTorch")
    parser.add_argument("--steps", type=int, default=3, help="measured steps in each turn")
    parser.add_argument("--peer", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peer is not None:
        return peer(options.peer)
    if not options.model:
        parser.error("no model")
    compare(options)


def compare(options):
    import numpy
    from safetensors.numpy import save_file

    describe_machine()
    options.work.mkdir(parents=True, exist_ok=True)
    plan, data, trace = (options.work / name for name in ("plan.yaml", "data.safetensors", "trace.json"))
    plan.write_text(PLAN)
    tokens = numpy.random.default_rng(0).integers(0, VOCABULARY, (32, SEQUENCE))
    save_file({"input_ids": tokens, "labels": tokens.copy()}, data)
    bundle = options.work / "gpt2.par"
    subprocess.run([options.bin / "par-compile", options.model, plan, "-o", bundle], check=True)
    walls, cpus, peers, high = [], [], [], 0
    for _ in range(options.blocks):
        more_walls, more_cpus, block_high, loss = run_par(options, data, options.steps, trace)
        walls, cpus, high = walls + more_walls, cpus + more_cpus, max(high, block_high)
        peers += run_peer(options.steps)
    median = statistics.median
    print(f"GPT-2 124M, batch {BATCH} x {SEQUENCE}, f32, AdamW, one thread;"
          f" medians of {len(walls)} and {len(peers)} steps")
    par = median(walls), median(cpus)
    torch = tuple(median(record[key] for record in peers) for key in ("wall", "cpu"))
    print(f"  Par                        wall {par[0]:7.3f} s  cpu {par[1]:7.3f} s"
          f"  VmHWM {high / 1024:7.0f} MiB  (loss {loss:.3f})")
    print(f"  PyTorch {peers[0]['torch']:18} wall {torch[0]:7.3f} s  cpu {torch[1]:7.3f} s"
          f"  VmHWM {peers[-1]['hwm_kib'] / 1024:7.0f} MiB  (transformers {peers[0]['transformers']})")
    print(f"  speed of Par over PyTorch  wall {torch[0] / par[0]:.2f}    cpu {torch[1] / par[1]:.2f}"
          f"    memory of Par over PyTorch {high / peers[-1]['hwm_kib']:.2f}")
    report_profile(options, trace, options.steps, median(more_cpus))


if __name__ == "__main__":
    main()

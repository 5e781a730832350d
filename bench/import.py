#!/usr/bin/env python3
"""Seconds and memory that par-compile takes to read a model (--stop-after=import) and to make a bundle of it.

    import.py MODEL [--bin build/bin] [--gigabytes 2] [--turns 5]

MODEL is any ONNX file, such as test/Models/gpt2/model.onnx with 651 nodes. Beside it two chains of matmuls are made:
one of 100 MB with its weights inside, whose peer is reading the file once (cat, from the page cache as par-compile
does), and one whose weights, --gigabytes, lie in a sparse file beside it. Prints medians of the turns, and the largest
resident memory of all. Only Python's standard library is used.
"""
import argparse
import multiprocessing
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "test/Phases/Import/Inputs"))
from encode import block, metadata, node, number, value_info

WIDTH = 1024
BYTES = 4 * WIDTH * WIDTH  # of one weight
PLAN = "batch: {microbatches: 1}\ntrain: {optimizer: {kind: sgd, lr: 0.1}}\n"


def chain(path, layers, beside=None):
    """x, multiplied by `layers` weights in turn; their bytes are zeros in the file, or lie in the file `beside`."""
    graph = block(11, value_info("x", f"f32[8,{WIDTH}]")) + block(12, value_info("loss", "f32[]"))
    for i in range(layers):
        tensor = number(1, WIDTH) + number(1, WIDTH) + number(2, 1) + block(8, f"layers.{i}.weight")
        if beside:
            place = {"location": beside, "offset": str(i * BYTES), "length": str(BYTES)}
            tensor += b"".join(metadata(13, key, value) for key, value in place.items()) + number(14, 1)
        else:
            tensor += block(9, bytes(BYTES))
        graph += block(5, tensor)
        graph += block(1, node(f"n{i} MatMul {'x' if i == 0 else f'v{i}'},layers.{i}.weight -> v{i + 1}", "", ""))
    graph += block(1, node(f"mean ReduceMean v{layers} -> loss keepdims=0", "", ""))
    path.write_bytes(number(1, 10) + block(7, graph) + block(8, block(1, "") + number(2, 20)))
    if beside:
        with open(path.parent / beside, "wb") as file:
            file.truncate(layers * BYTES)


def measure(command, turns):
    """Medians of wall and CPU seconds, and the largest resident memory in MiB."""
    walls, cpus, peak = [], [], 0
    for _ in range(turns):
        begin = time.monotonic()
        process = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = status
        if status:
            sys.exit(f"{' '.join(map(str, command))}: status {status}")
        walls.append(time.monotonic() - begin)
        cpus.append(usage.ru_utime + usage.ru_stime)
        peak = max(peak, usage.ru_maxrss / 1024)
    return statistics.median(walls), statistics.median(cpus), peak


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--bin", default="build/bin", type=pathlib.Path)
    parser.add_argument("--gigabytes", default=2, type=int)
    parser.add_argument("--turns", default=5, type=int)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="par-import-") as work:
        work = pathlib.Path(work)
        plan, inside, outside = work / "one.yaml", work / "inside.onnx", work / "outside.onnx"
        plan.write_text(PLAN)
        # By other processes: a child's resident memory counts from its parent's at the start.
        for made in ((inside, 10**8 // BYTES + 1), (outside, options.gigabytes * 10**9 // BYTES + 1, "outside.bin")):
            maker = multiprocessing.Process(target=chain, args=made)
            maker.start()
            maker.join()
        compiler = [options.bin / "par-compile"]
        print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores, {options.turns} turns; wall s, CPU s, resident "
              f"MiB")
        for name, command in {
            f"{options.model.name}: import": [*compiler, options.model, plan, "--stop-after=import"],
            "100 MB inside: cat": ["cat", inside],
            "100 MB inside: import": [*compiler, inside, plan, "--stop-after=import"],
            "100 MB inside: bundle": [*compiler, inside, plan, "-o", work / "inside.par", "-q"],
            f"{options.gigabytes} GB beside: import": [*compiler, outside, plan, "--stop-after=import"],
            f"{options.gigabytes} GB beside: bundle": [*compiler, outside, plan, "-o", work / "outside.par", "-q"],
        }.items():
            wall, cpu, peak = measure(command, options.turns)
            print(f"{name:32} {wall:8.3f} {cpu:8.3f} {peak:8.0f}", flush=True)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""CPU seconds of every phase of par-compile, by number of layers.

usage: phase_time.py MODEL.onnx... --plan PLAN [--bin build/bin] [--set KEY=VALUE]

Each model is compiled once; models are told apart by their names (gpt-32.onnx, gpt-64.onnx). The last lines are wall
time and the most resident memory. CPU time does not depend much on what else the machine does, wall time does;
Codegen's is the sum over its threads.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time


def measure(binary, model, plan, settings):
    """{part: CPU seconds} in order, wall seconds, MiB."""
    with tempfile.TemporaryDirectory() as folder:
        command = [binary, model, plan, "--timing", "-o", os.path.join(folder, "out.par")]
        for setting in settings:
            command += ["--set", setting]
        began = time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        text = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - began
    if status:
        sys.exit(f"{' '.join(map(str, command))}: exit {os.waitstatus_to_exitcode(status)}\n{text}")
    parts = {name: float(cpu) for name, cpu in re.findall(r"^timing  (\S+) .*cpu +([\d.]+) s$", text, re.M)}
    return parts, wall, usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--plan", required=True)
    parser.add_argument("--bin", default="build/bin")
    parser.add_argument("--set", action="append", default=[])
    arguments = parser.parse_args()
    binary = os.path.join(arguments.bin, "par-compile")
    columns = [measure(binary, model, arguments.plan, arguments.set) for model in arguments.models]
    print("| CPU s | " + " | ".join(pathlib.Path(model).stem for model in arguments.models) + " |")
    print("| --- |" + " --- |" * len(columns))
    for part in columns[0][0]:
        print(f"| {part} | " + " | ".join(f"{column[0].get(part, 0):.2f}" for column in columns) + " |")
    print("| all | " + " | ".join(f"{column[3]:.2f}" for column in columns) + " |")
    print("| wall s | " + " | ".join(f"{column[1]:.1f}" for column in columns) + " |")
    print("| resident MiB | " + " | ".join(f"{column[2]:.0f}" for column in columns) + " |")


main()

#!/usr/bin/env python3
"""Measures what saving costs: the time of a save and of a step with one par-run and with another, turn by turn.

    saves.py OLD NEW --bin build/bin [--rounds N] [--folder DIR] [--mib M]

OLD and NEW are par-run executables. A model of two matmuls, whose save is M MiB with AdamW's states, trains with a save
after each step; the time between two lines of the log less the step's own is the save's. On shared cores its processor
seconds say more: those of a run with a save a step less those of one that saves at the end. Printed: medians and least
values over all rounds, and their ratios. DIR decides what is measured: on /dev/shm writing is copying, elsewhere it is
the disk.

    saves.py OLD NEW --bundle B.par --every N [--steps M] [--rounds R] -- FLAGS of par-run (--init --text F ...)

The same of a job: it runs M steps with a save every N of them, and without. Printed: the seconds that a save takes
from the job, and its share of N steps. The last step's save is not counted: a job waits for it.
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "test" / "Phases" / "Import" / "Inputs"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "test" / "Trust"))
import encode
import trials

MODEL = """
input x f32[4,1024]
output loss f32[]
absent w f32[1024,{wide}] w.bin
absent v f32[{wide},1024] v.bin
node a MatMul x,w -> h
node b MatMul h,v -> y
node e Sub y,x -> d
node p Mul d,d -> q
node l ReduceMean q -> loss keepdims=0
"""
SAVES = 8


def measure(par_run, folder, saves, every=1):
    """Seconds of each save and of each step of one run, and processor seconds of all of it."""
    shutil.rmtree(saves, ignore_errors=True)
    metrics = folder / "metrics.jsonl"
    command = [par_run, folder / "m.par", "--init", "--data", folder / "x.safetensors", "--steps", str(SAVES),
               "--save", saves,
               "--save-every", str(every), "--log-every", "1", "--metrics", metrics, "--threads", "1"]
    lines = []
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    for line in process.stdout:
        if line.startswith("step "):
            lines.append(time.monotonic())
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{par_run} ended with {status}")
    steps = [json.loads(line)["ms"] / 1000 for line in metrics.read_text().splitlines()]
    shutil.rmtree(saves, ignore_errors=True)
    each = [after - before - step for before, after, step in zip(lines, lines[1:], steps[1:])]
    return each, steps[1:], usage.ru_utime + usage.ru_stime


def seconds_of_steps(par_run, arguments, saves, every):
    """Wall seconds between the first step's line and the last but one's."""
    shutil.rmtree(saves, ignore_errors=True)
    command = [par_run, arguments.bundle, "--steps", str(arguments.steps), "--log-every", "1", *arguments.flags]
    if every:
        command += ["--save", str(saves), "--save-every", str(every)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    lines = [time.monotonic() for line in process.stdout if line.startswith("step ")]
    if process.wait() != 0:
        sys.exit(f"{par_run} ended with {process.returncode}")
    return lines[-2] - lines[0]


def shares(arguments, saves):
    """Prints the cost of saves of a job."""
    count = (arguments.steps - 2) // arguments.every  # begun after the first line and before the last but one
    if count < 1:
        sys.exit(f"--steps {arguments.steps} has no save every {arguments.every} that steps follow")
    taken = {(par_run, every): [] for par_run in (arguments.old, arguments.new) for every in (0, arguments.every)}
    for _ in range(arguments.rounds):
        for (par_run, every), times in taken.items():
            times.append(seconds_of_steps(par_run, arguments, saves, every))
    for par_run in dict.fromkeys((arguments.old, arguments.new)):
        without, with_saves = (statistics.median(taken[par_run, every]) for every in (0, arguments.every))
        step = without / (arguments.steps - 2)
        save = (with_saves - without) / count
        print(f"{par_run}: a step {step:.3f} s, a save {save:.3f} s, {100 * save / (step * arguments.every):.2f} % of "
              f"{arguments.every} steps (medians of {arguments.rounds})")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--bin", metavar="FOLDER", help="where par-compile is")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", default=tempfile.gettempdir(), metavar="DIR", help="where saves are written")
    parser.add_argument("--mib", type=int, default=192, help="of a save")
    parser.add_argument("--bundle", help="of the job, in place of the model of two matmuls")
    parser.add_argument("--every", type=int, default=50, metavar="N", help="with --bundle: steps between saves")
    parser.add_argument("--steps", type=int, default=102, metavar="M", help="with --bundle")
    own = sys.argv[1:sys.argv.index("--")] if "--" in sys.argv else sys.argv[1:]
    arguments = parser.parse_args(own)
    arguments.flags = sys.argv[len(own) + 2:]
    if not arguments.bundle and not arguments.bin:
        parser.error("--bin says where par-compile is, for the model of two matmuls")
    if arguments.bundle:
        with tempfile.TemporaryDirectory(dir=arguments.folder) as saves:
            return shares(arguments, pathlib.Path(saves) / "ckpt")
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory(dir=arguments.folder) as saves:
        folder, saves = pathlib.Path(folder), pathlib.Path(saves) / "ckpt"
        wide = max(1, arguments.mib * 2 ** 20 // (3 * 2 * 1024 * 4))
        (folder / "m.onnx").write_bytes(encode.encode(MODEL.format(wide=wide).splitlines()))
        (folder / "m.yaml").write_text("train: {optimizer: adamw, init: {'*': normal(0.01)}}\n")
        numbers = random.Random(1)
        data = b"".join(encode.struct.pack("<f", numbers.gauss(0, 1)) for _ in range(8 * 1024))
        trials.write_arrays(folder / "x.safetensors", {"x": ("F32", [8, 1024], data)})
        subprocess.run([pathlib.Path(arguments.bin) / "par-compile", folder / "m.onnx", folder / "m.yaml", "-o",
                        folder / "m.par", "-q"], check=True)
        taken = {par_run: {"save": [], "step": [], "save, CPU": []} for par_run in (arguments.old, arguments.new)}
        for number in range(arguments.rounds):
            for par_run in (arguments.old, arguments.new) if number % 2 == 0 else (arguments.new, arguments.old):
                each, steps, seconds = measure(par_run, folder, saves)
                taken[par_run]["save"] += each
                taken[par_run]["step"] += steps
                taken[par_run]["save, CPU"].append((seconds - measure(par_run, folder, saves, SAVES)[2]) / (SAVES - 1))
    for name in taken[arguments.old]:
        old, new = taken[arguments.old][name], taken[arguments.new][name]
        median = [statistics.median(times) * 1000 for times in (old, new)]
        least = [min(times) * 1000 for times in (old, new)]
        print(f"{name:10} median {median[0]:8.2f} and {median[1]:8.2f} ms, ratio {median[1] / median[0]:.3f}; "
              f"least {least[0]:8.2f} and {least[1]:8.2f} ms, ratio {least[1] / least[0]:.3f}   ({len(old)} each)")


if __name__ == "__main__":
    main()

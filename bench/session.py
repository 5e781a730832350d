#!/usr/bin/env python3
"""Host time of a session over par-run's own loop, a step, on one rank and a model of a few microseconds; and of a
command that sets a rate.

    PAR_HOME=build python3 bench/session.py [--steps 4000]
    PAR_HOME=build python3 bench/session.py --rows 262144        # batches that are told ahead, two ranks

Both train the same rows. A side's cost is the difference of two runs, of N and of 2 N steps, so that starting and
loading fall out: user instructions by `perf stat` where it counts them, and the processor's time, the least of five.

--rows: wall time of a step of two ranks on batches of so many rows (136 bytes each), where each step is told the next
batch and where it is not, in turns of ten steps; medians. Needs torch.
"""
import argparse
import pathlib
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(SOURCE / "python"), str(SOURCE / "python/tests")]
import par  # noqa: E402
from par import libraries  # noqa: E402

MLP, DATA = SOURCE / "test/Models/mlp/model.onnx", SOURCE / "test/Models/mlp/data.safetensors"
LOOP = """
import sys
sys.path[:0] = {path!r}
import par, test_session
arrays = test_session.read_arrays(test_session.DATA)
batches = [{{name: test_session.rows(view, i * 16, 16) for name, view in arrays.items()}} for i in range(10)]
batches = [{{name: memoryview(bytearray(view.tobytes())).cast(view.format, view.shape) for name, view in each.items()}}
           for each in batches]
with par.open({bundle!r}) as job:
    for step in range({steps}):
        {before}
        job.train(batches[step % 10]{told})
"""


def cost(command):
    """(instructions or None, seconds of the processor) of a command."""
    perf = ["perf", "stat", "-x,", "-e", "instructions:u"] if shutil.which("perf") else []
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([*perf, *command], capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(done.stderr)
    found = re.search(r"^(\d+),,instructions", done.stderr, re.M)
    return int(found[1]) if found else None, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def a_step(command_of, steps):
    """(instructions, microseconds) of a step: the difference of runs of N and 2 N steps."""
    runs = [[cost(command_of(count)) for _ in range(5)] for count in (steps, 2 * steps)]
    least = [[min(one[kind] for one in run) if run[0][kind] is not None else None for kind in (0, 1)] for run in runs]
    instructions = None if least[0][0] is None else (least[1][0] - least[0][0]) / steps
    return instructions, (least[1][1] - least[0][1]) / steps * 1e6


def told_ahead(rows):
    """Prints the wall time of a step with the next batch told, and without."""
    import torch

    class Classifier(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scores = torch.nn.Linear(32, 10)

        def forward(self, x, labels):
            return torch.nn.functional.cross_entropy(self.scores(x), labels)

    example = {"x": torch.zeros(4, 32), "labels": torch.zeros(4, dtype=torch.int64)}
    plan = {"batch": rows, "mesh": {"dp": 2}, "train": {"optimizer": {"kind": "sgd", "lr": 0.01}}}
    with tempfile.TemporaryDirectory() as folder:
        bundle = par.compile(Classifier(), example, plan, out=f"{folder}/two.par",
                             dynamic={"x": ["batch"], "labels": ["batch"]})
        batches = [{"x": memoryview(bytearray(rows * 128)).cast("f", (rows, 32)),
                    "labels": memoryview(bytearray(rows * 8)).cast("q", (rows,))} for _ in range(2)]
        found = {True: [], False: []}
        with par.open(bundle, threads=1) as job:
            for step in range(200):
                told, before = step // 10 % 2 == 0, time.perf_counter()
                job.train(batches[step % 2], next=batches[1 - step % 2] if told else None)
                if step % 10 > 0:  # the first of a turn finds what the turn before told
                    found[told].append(1e3 * (time.perf_counter() - before))
    told, untold = (statistics.median(found[one]) for one in (True, False))
    print(f"two ranks, batches of {rows * 136 / 2**20:.0f} MiB: {untold:.1f} ms a step, {told:.1f} with the next one "
          f"told, ratio {untold / told:.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--rows", type=int)
    options = parser.parse_args()
    if options.rows:
        return told_ahead(options.rows)
    steps = options.steps
    with tempfile.TemporaryDirectory() as folder:
        bundle = par.compile(MLP, {"train": {"optimizer": {"kind": "sgd", "lr": 0.01}}}, out=f"{folder}/one.par")
        run = str(libraries.find("bin/par-run"))

        def loop(count, before, told=""):
            return [sys.executable, "-S", "-c",
                    LOOP.format(path=sys.path[:2], bundle=str(bundle.path), steps=count, before=before, told=told)]

        sides = {
            "par-run": lambda count: [run, str(bundle.path), f"--data={DATA}", "--order=sequential", "-q",
                                      f"--steps={count}", "--log-every=1000000"],
            "session": lambda count: loop(count, "pass"),
            "next batch told": lambda count: loop(count, "pass", ", next=batches[(step + 1) % 10]"),
            "with 10 rates set": lambda count: loop(count, "for _ in range(10): job.set(lr=0.01)")}
        found = {name: a_step(command, steps) for name, command in sides.items()}
    for name, (instructions, micros) in found.items():
        print(f"{name:17} {micros:7.1f} us a step" + (f", {instructions:10,.0f} instructions" if instructions else ""))
    print(f"session over par-run: {found['session'][1] - found['par-run'][1]:.1f} us a step")
    print(f"a command: {(found['with 10 rates set'][1] - found['session'][1]) / 10:.1f} us")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Host time of a session over par-run's own loop, a step, on one rank and a model of a few microseconds; and of a
command that sets a rate.

    PAR_HOME=build python3 bench/session.py [--steps 4000]

Both train the same rows. A side's cost is the difference of two runs, of N and of 2 N steps, so that starting and
loading fall out: user instructions by `perf stat` where it counts them, and the processor's time, the least of five.
"""
import argparse
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile

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
        job.train(batches[step % 10])
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=4000)
    steps = parser.parse_args().steps
    with tempfile.TemporaryDirectory() as folder:
        bundle = par.compile(MLP, {"train": {"optimizer": {"kind": "sgd", "lr": 0.01}}}, out=f"{folder}/one.par")
        run = str(libraries.find("bin/par-run"))

        def loop(count, before):
            return [sys.executable, "-S", "-c",
                    LOOP.format(path=sys.path[:2], bundle=str(bundle.path), steps=count, before=before)]

        sides = {
            "par-run": lambda count: [run, str(bundle.path), f"--data={DATA}", "--order=sequential", "-q",
                                      f"--steps={count}", "--log-every=1000000"],
            "session": lambda count: loop(count, "pass"),
            "with 10 rates set": lambda count: loop(count, "for _ in range(10): job.set(lr=0.01)")}
        found = {name: a_step(command, steps) for name, command in sides.items()}
    for name, (instructions, micros) in found.items():
        print(f"{name:17} {micros:7.1f} us a step" + (f", {instructions:10,.0f} instructions" if instructions else ""))
    print(f"session over par-run: {found['session'][1] - found['par-run'][1]:.1f} us a step")
    print(f"a command: {(found['with 10 rates set'][1] - found['session'][1]) / 10:.1f} us")


if __name__ == "__main__":
    main()

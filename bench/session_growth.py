#!/usr/bin/env python3
"""Whether sessions keep their size: memory, descriptors and threads over steps, predictions, and openings.

    PAR_HOME=build python3 bench/session_growth.py [--steps 10000] [--openings 200]

Counts resident bytes, descriptors and threads of this process and of the ranks. The slope is that of the line through
the samples of the second half; it is 1 where a slope is over its limit. Needs nothing but Python and a built Par.
"""
import argparse
import os
import pathlib
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(SOURCE / "python"), str(SOURCE / "python/tests")]
import test_session as given  # noqa: E402
from test_session_ranks import PAIR, children_of  # noqa: E402

par = given.par
SAMPLES = 40
# Limits a step, and an opening: a page every 64 steps is what an allocator may still take from the system.
LIMITS = {"step": {"bytes": 64, "descriptors": 0.001, "threads": 0.001},
          "opening": {"bytes": 16384, "descriptors": 0.01, "threads": 0.01}}


def sizes():
    """Resident bytes, descriptors and threads of this process and of all that it started."""
    total = {"bytes": 0, "descriptors": 0, "threads": 0}
    for pid in (os.getpid(), *children_of(os.getpid())):
        folder = pathlib.Path("/proc") / str(pid)
        total["bytes"] += int((folder / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        total["descriptors"] += len(os.listdir(folder / "fd"))
        total["threads"] += len(os.listdir(folder / "task"))
    return total


def slopes(call, count):
    """Growth a call of each size, from `count` calls."""
    samples = []
    for index in range(count):
        call(index)
        if (index + 1) % max(1, count // SAMPLES) == 0:
            samples.append((index + 1, sizes()))
    samples = samples[len(samples) // 2:]
    middle = sum(at for at, _ in samples) / len(samples)
    spread = sum((at - middle) ** 2 for at, _ in samples)
    return {name: sum((at - middle) * found[name] for at, found in samples) / spread for name in samples[0][1]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=10000)
    parser.add_argument("--openings", type=int, default=200)
    options = parser.parse_args()
    arrays = given.read_arrays(given.DATA)
    batches = [{name: given.rows(view, i * given.BATCH, given.BATCH) for name, view in arrays.items()}
               for i in range(10)]
    over = []

    def show(what, unit, call, count):
        found = slopes(call, count)
        bad = [name for name, slope in found.items() if slope > LIMITS[unit][name]]
        over.extend(f"{what}: {name}" for name in bad)
        print(f"{what:28} {count:6} " + "  ".join(f"{slope:9.3f} {name}" for name, slope in found.items()) +
              f" per {unit}" + ("" if not bad else "   OVER THE LIMIT: " + ", ".join(bad)), flush=True)

    with tempfile.TemporaryDirectory() as folder:
        one = par.compile(given.MLP, given.ADAM, out=f"{folder}/one.par")
        four = par.compile(given.MLP, [given.ADAM, PAIR], out=f"{folder}/four.par")
        serve = par.compile(given.SCORES, out=f"{folder}/serve.par")
        for what, bundle in (("train, one rank", one), ("train, four ranks", four)):
            with par.open(bundle) as job:
                show(what, "step", lambda i: job.train(batches[i % 10]), options.steps)
        for what, isolated in (("predict, in this process", False), ("predict, its own process", True)):
            with par.open(serve, isolated=isolated) as job:
                show(what, "step", lambda i: job.predict(batches[i % 10]), options.steps)

        def cycle(bundle):
            with par.open(bundle) as job:
                job.train(batches[0])

        show("open and close, one rank", "opening", lambda i: cycle(one), options.openings)
        show("open and close, four ranks", "opening", lambda i: cycle(four), max(SAMPLES, options.openings // 4))
    sys.exit(f"over the limit: {'; '.join(over)}" if over else 0)


if __name__ == "__main__":
    main()

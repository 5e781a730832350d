#!/usr/bin/env python3
"""Holds `on_nan: skip` to a run that never saw the bad batches, a line a claim: figure, bound, pass or FAIL.

    on_nan.py --bin build/bin [--plan zero1]...

The model of keys.py is trained by AdamW with a warm-up, clipping and averages on eight batches, three of which hold a
NaN. Weights, averages and all states are those of the other five batches, bit for bit, under every plan of keys.py, and
so is a run that goes on from a save between two bad steps. Exit status 0: all hold.
"""
import math
import pathlib
import shutil
import subprocess
import tempfile

import keys
from keys import BATCH, INPUTS, PLANS
from runs import Claims, Runs, plan_parser, read_safetensors, split_safetensors, write_safetensors

BAD, STEPS = {2, 3, 6}, 8
TRAIN = ("train: {optimizer: {lr: {peak: 1e-2, warmup: 4, decay: cosine, steps: 9}}, clip: 1.0, loss: cross_entropy, "
         "ema: 0.8, on_nan: %s}\n")


def draw(work):
    keys.STEPS = STEPS
    model, _, data, x, labels = keys.draw(work)
    arrays = read_safetensors(data, ("F32", "I64"))
    x, labels = list(arrays["x"][1]), list(arrays["labels"][1])

    def write(name, batches, poisoned):
        rows, names = [], []
        for batch in batches:
            part = x[batch * BATCH * INPUTS:(batch + 1) * BATCH * INPUTS]
            if batch in poisoned:  # in the last microbatch, which only one of two replicas has
                part[-1] = math.nan
            rows += part
            names += [max(label, 0) for label in labels[batch * BATCH:(batch + 1) * BATCH]]
        write_safetensors(work / name, {"x": ([len(names), INPUTS], rows), "labels": ([len(names)], names)})
        return work / name

    return model, write("bad.safetensors", range(STEPS), BAD), write(
        "good.safetensors", [batch for batch in range(STEPS) if batch not in BAD], set())


def state_of(save):
    """All arrays of a save but the count of skipped steps, by file and name."""
    arrays = {}
    for file in sorted(save.glob("rank*.safetensors")):
        header, body = split_safetensors(file)
        for name, entry in header.items():
            begin, end = entry["data_offsets"]
            if not name.startswith("skipped_steps"):
                arrays[file.name, name] = body[begin:end]
    return arrays


def hold(runs, claims, model, bad, good, plan):
    bundle = runs.compile(model, PLANS[plan] + TRAIN % "skip")
    runs.run(runs.binaries / "par-verify", bundle)
    saves = [runs.work / name for name in ("bad", "good", "again")]
    lines, _ = runs.train(bundle, bad, STEPS, "--save", saves[0], "--save-every", "3", "--keep", "9")
    runs.train(bundle, good, STEPS - len(BAD), "--save", saves[1])
    runs.train(bundle, bad, STEPS, "--save", saves[2], "--resume", saves[0] / "3")
    claims.equal(f"{plan}: skipped", [i for i, line in enumerate(lines) if line["skipped"]], sorted(BAD))
    states = [state_of(save / str(step)) for save, step in zip(saves, (STEPS, STEPS - len(BAD), STEPS))]
    claims.hold(f"{plan}: arrays of a rank's state", len(states[0]), 10, least=True)
    claims.equal(f"{plan}: state is that of the good batches", states[0] == states[1], True)
    claims.equal(f"{plan}: and of a run that was resumed", states[2] == states[1], True)
    for save in saves:
        shutil.rmtree(save)


def fails(runs, *command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=runs.timeout)
    return f"exit {done.returncode}: {done.stderr.strip().splitlines()[0].split(': ', 1)[1]}"


def limits(runs, claims, model, bad):
    """The flag, of bundles of both kinds."""
    skips, stops = (runs.compile(model, TRAIN % word) for word in ("skip", "stop"))
    found = fails(runs, *runs.command(skips, bad, STEPS, "--on-nan", "skip:1", "-q"))
    claims.equal("limit", found.split(";")[0],
                 "exit 5: error: 2 steps in a row are not finite, and --on-nan skip:1 skips fewer")
    found = fails(runs, *runs.command(skips, bad, STEPS, "--on-nan", "stop", "-q"))
    claims.equal("stop", found.split(" on rank")[0], "exit 5: error: loss is NaN")
    found = fails(runs, *runs.command(stops, bad, STEPS, "--on-nan", "skip", "-q"))
    claims.equal("not compiled so", found, "exit 2: error: --on-nan skip needs a bundle whose updates are left out "
                 "then: compile it with --set train.on_nan=skip")


def main():
    options = plan_parser(__doc__, PLANS).parse_args()
    claims = Claims()
    with tempfile.TemporaryDirectory(prefix="par-on-nan-") as work:
        runs = Runs(options.bin, work)
        model, bad, good = draw(pathlib.Path(work))
        for plan in options.plan or PLANS:
            with claims.watch(plan):
                hold(runs, claims, model, bad, good, plan)
        limits(runs, claims, model, bad)
    claims.finish()


if __name__ == "__main__":
    main()

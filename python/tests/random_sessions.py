#!/usr/bin/env python3
"""Sessions of par.open under random plans, whose calls are mixed at random, beside one rank and beside par-run, a line
a claim.

    PAR_HOME=build python3 python/tests/random_sessions.py [--count 20] [--seed 1]

A case draws a model and two plans as test/Models/random_keys.py does and a list of calls: train, eval of any number of
rows, state, load of an earlier state, save, resume of any save, export, a call that is refused. A session of each plan
and one of one rank make the same calls: their losses, norms, evaluations and states are one rank's. A resumed save may
be another session's. Without load and resume, par-run on the same rows gives the session's losses and weights, bit for
bit. Exit status 0: all hold.
"""
import argparse
import math
import os
import pathlib
import random
import shutil
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(SOURCE / "python"), str(SOURCE / "python/tests"), str(SOURCE / "test/Models")]
import par  # noqa: E402
import random_keys  # noqa: E402
from distributed import flow, refusal  # noqa: E402
from random_keys import Drawn, Trial, apart, cases_of, draw_plan, read_safetensors  # noqa: E402
from runs import FLOATS, Claims, Failed, Runs, largest  # noqa: E402
from stored import read_arrays  # noqa: E402


def rows(view, first, count):
    """Some rows of an array, as a buffer of their own."""
    width = len(view.cast("B")) // view.shape[0]
    part = memoryview(view.cast("B")[first * width:(first + count) * width].tobytes())
    return part.cast(view.format, [count, *view.shape[1:]])


def draw_calls(choose):
    """(name, argument); a state or a save by its number."""
    calls, states, saves = [], 0, 0
    for _ in range(choose.randrange(8, 16)):
        name = choose.choice(["train"] * 4 + ["eval", "eval", "state", "save", "load", "resume", "export", "refused"])
        if name == "eval":
            calls.append((name, choose.randrange(1, random_keys.HELD_OUT + 1)))
        elif name == "load" and states:
            calls.append((name, choose.randrange(states)))
        elif name == "resume" and saves:
            calls.append((name, choose.randrange(saves)))
        elif name not in ("load", "resume"):
            calls.append((name, 0))
            states += name == "state"
            saves += name == "save"
    return [*calls, ("train", 0), ("state", 0)]


def finite(number):
    """None, as in metrics, in place of NaN, which equals nothing."""
    return number if math.isfinite(number) else None


class Player:
    """Makes the calls in a session."""

    def __init__(self, work, bundle, drawn, folder, others=None):
        self.work, self.bundle, self.drawn, self.folder = work, bundle, drawn, work / folder
        self.data, self.held_out = read_arrays(drawn.data), read_arrays(drawn.held_out)
        self.numbers, self.states, self.saves, self.exports = [], [], [], 0
        self.others = others  # saves of another plan, which are resumed in place of one's own

    def play(self, calls, **flags):
        with par.open(self.bundle, **flags) as job:
            self.row = 0
            for name, argument in calls:
                getattr(self, name)(job, argument)
        return self

    def train(self, job, _):
        batch = job.batch
        given = {name: rows(view, job.step * batch % view.shape[0], batch) for name, view in self.data.items()}
        out = job.train(given)
        self.numbers += [(name, finite(out.get(name, 0.0))) for name in ("loss", "lr", "grad_norm")]

    def eval(self, job, count):
        out = job.eval({name: rows(view, 0, count) for name, view in self.held_out.items()})
        self.numbers.append(("eval", out.loss))

    def state(self, job, _):
        self.states.append({name: bytes(memoryview(value).cast("B")) for name, value in job.state().items()})
        self.kept = getattr(self, "kept", []) + [job.state()]

    def load(self, job, number):
        job.load(self.kept[number])

    def save(self, job, _):
        self.saves.append(job.save(self.folder / str(len(self.saves))))

    def resume(self, job, number):
        job.resume((self.others or self.saves)[number])
        self.numbers.append(("step", job.step))

    def export(self, job, _):
        job.export(self.folder.with_suffix(".safetensors"))

    def refused(self, job, _):
        try:
            job.train({"no such input": memoryview(b"1234").cast("f")})
        except par.Error as error:
            self.numbers.append(("code", error.code))
        else:
            self.numbers.append(("code", 0))


def floats(state):
    """name -> numbers of the f32 tensors"""
    return {name: list(memoryview(value).cast("f")) for name, value in state.items() if len(value) % 4 == 0}


def farthest(one, other):
    """The largest difference of a tensor as a share of its largest number."""
    worst = 0.0
    for name, numbers in floats(one).items():
        others = floats({name: other[name]})[name]
        size = largest(map(abs, numbers))
        worst = max(worst, largest(abs(a - b) for a, b in zip(numbers, others, strict=True)) / (size + 1e-3))
    return worst


def check(runs, claims, choose, cases, title):
    case = choose.choice(cases)
    drawn = Drawn(choose, runs, case)
    if choose.random() < 0.5:  # nothing that amplifies rounding: the bounds are those of sums
        drawn.precision, drawn.narrow = "f32", False
    trial = Trial(runs, drawn)
    plan, mesh = draw_plan(choose, runs, case)
    calls = draw_calls(choose)
    said = f"{title} {case.title} {flow(mesh)}"
    try:
        one, bundle = trial.one(), trial.compile(plan)
    except Failed as failure:
        print(f"{said}: {'refused: ' + refusal(str(failure)) if refusal(str(failure)) else 'FAIL'}", flush=True)
        if not refusal(str(failure)):
            claims.failures.append(f"{said}: {failure}")
        return
    before = len(claims.failures)
    try:
        alone = Player(runs.work, one, drawn, f"{title} one").play(calls, isolated=choose.random() < 0.3)
        own = Player(runs.work, bundle, drawn, f"{title} own").play(calls)
        crossed = Player(runs.work, bundle, drawn, f"{title} crossed", alone.saves).play(calls)
        again = Player(runs.work, bundle, drawn, f"{title} again").play(calls)
    except par.Error as error:
        claims.failures.append(f"{said}: {error.code} {error.message} {error.notes}")
        print(f"{said}: {error.code} {error.message}   FAIL\n{calls}\n{plan}{drawn.text()}", flush=True)
        return
    claims.equal(f"{said}: the same bits again", (again.numbers, again.states) == (own.numbers, own.states), True)
    # Rounding grows by the rate a step where an optimizer takes signs or divides by what is near 0.
    bound = 3e-2 if drawn.narrow else 2e-5 if "kind: sgd" in drawn.train or "kind: momentum" in drawn.train else 2e-2
    for name, player in (("own saves", own), ("one rank's saves", crossed)):
        claims.equal(f"{said}: {name}, names", [what for what, _ in player.numbers],
                     [what for what, _ in alone.numbers])
        claims.hold(f"{said}: {name}, numbers",
                    largest(apart(a[1], b[1]) for a, b in zip(alone.numbers, player.numbers)), bound)
        claims.hold(f"{said}: {name}, last state", farthest(alone.states[-1], player.states[-1]), 10 * bound)
    steps = sum(name == "train" for name, _ in calls)
    if not any(name in ("load", "resume") for name, _ in calls):
        lines, weights = runs.train(bundle, drawn.data, steps)
        losses = [number for name, number in own.numbers if name == "loss"]
        claims.equal(f"{said}: losses of par-run", [line["loss"] for line in lines], losses)
        state = own.kept[-1]
        found = read_safetensors(weights, FLOATS)
        same = [name for name, (_, numbers) in found.items()
                if name in state and list(memoryview(state[name]).cast("B").cast("f")) != list(numbers)]
        claims.equal(f"{said}: weights of par-run that differ", same, [])
    if len(claims.failures) > before:
        print(f"{calls}\n{plan}{drawn.text()}")
    for folder in runs.work.glob(f"{title} *"):
        shutil.rmtree(folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    claims = Claims()
    with tempfile.TemporaryDirectory(prefix="par-random-sessions-") as work:
        runs = Runs(pathlib.Path(os.environ.get("PAR_HOME", SOURCE / "build")) / "bin", work, timeout=120)
        cases = cases_of(runs, [])
        for seed in range(options.seed, options.seed + options.count):
            check(runs, claims, random.Random(seed), cases, f"seed {seed}")
            while runs.bundles:
                shutil.rmtree(runs.bundles.popitem()[1], ignore_errors=True)
    claims.finish()


if __name__ == "__main__":
    main()

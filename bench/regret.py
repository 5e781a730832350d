#!/usr/bin/env python3
"""The plan that a search picks beside all plans of a small space, each of them run on this machine's CPU.

    regret.py [prepare] [measure] [judge] [--model FILE] [--set K=V]... [--ranks 2] [--batch 8] [--rounds 3]
              [--calls 5] [--seed 1] [--tolerance 3] [--bin build/bin] [--work build/regret]

prepare    compiles each plan of the space: all meshes of dp, tp (megatron) and pp, powers of two of samples a
           microbatch, zero levels, schedules
measure    needs an idle machine: calibrates it with two plans of each axis, of the fewest and the most microbatches,
           whose rows are joined into WORK/here.yaml, searches by it, then runs all plans in rounds, each in an order
           that the seed shuffles; a plan's time is the median of its rounds' median calls, so a slow while of the
           machine is no plan's own. A plan that --auto finds beyond the space is compiled and run, too. Under
           `chrt -f 10` the ranks run before all other processes, on a machine with other work
judge      predicts each plan by here.yaml, and prints a table by measured time: the regret (by how much the plan that
           --auto takes is slower than the fastest one, both as measured), and the rank correlation of predicted and
           measured times. Exit status 1 above the tolerance, in percent.
Without a step: all three, which take an idle machine of two cores under four minutes. The default model is
examples/tiny-gpt.onnx with 64 tokens.
"""
import argparse
import itertools
import json
import pathlib
import random
import re
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parents[1]


def plans(options):
    """{name: settings} of the space."""
    divisors = [n for n in range(1, options.ranks + 1) if options.ranks % n == 0]
    out = {}
    for tp, pp in itertools.product(divisors, divisors):
        if options.ranks % (tp * pp):
            continue
        dp = options.ranks // tp // pp
        axes = {name: size for name, size in (("pp", pp), ("dp", dp), ("tp", tp)) if size > 1}
        for samples in (1, 2, 4, 8, 16):
            if options.batch % (dp * samples):
                continue
            count = options.batch // dp // samples
            for zero in ((0, 1, 2, 3) if dp > 1 else (0,)):
                for schedule in (("1f1b", "zb-h1", "gpipe") if pp > 1 else (None,)):
                    plan = ["mesh={" + ", ".join(f"{axis}: {size}" for axis, size in axes.items()) + "}",
                            f"batch.microbatches={count}", f"zero={zero}"]
                    plan += ["use=[megatron]"] if tp > 1 else []
                    plan += [f"pipeline.schedule={schedule}"] if schedule else []
                    name = " ".join([*(f"{axis}{size}" for axis, size in axes.items()), f"m{count}",
                                     *([f"zero{zero}"] if zero else []), *([schedule] if schedule else [])])
                    out[name] = plan
    return out


def compile_(options, settings, *flags):
    command = [options.bin / "par-compile", options.model, "--set", f"batch.size={options.batch}", "--cache",
               options.work / "cache"]
    for setting in [*options.set, *settings]:
        command += ["--set", setting]
    return subprocess.run([*map(str, command), *map(str, flags)], capture_output=True, text=True)


def bundle_of(options, name):
    return options.work / (re.sub(r"\W+", "-", name) + ".par")


def prepare(options):
    made = {}
    for name, settings in plans(options).items():
        run = compile_(options, settings, "-q", "-o", bundle_of(options, name))
        if run.returncode == 0:
            made[name] = settings
        elif run.returncode not in (1, 3):
            sys.exit(f"{name}: exit {run.returncode}\n{run.stderr}")
    (options.work / "plans.json").write_text(json.dumps(made))
    print(f"{len(made)} of {len(plans(options))} plans compile", flush=True)


def join(files):
    """The first calibration, with the rows of work and messages of the others that it lacks. How ranks meet is of the
    machine, and each file has it at other lengths."""
    head, rows = [], {}
    for number, file in enumerate(files):
        kind = None
        for line in file.read_text().splitlines():
            if line.startswith("    - ") and kind:
                *key, ns = line[7:-1].split(", ")
                if number == 0 or kind not in ("wakeups", "spread", "together"):
                    rows[kind].setdefault(tuple(key), ns)
            elif found := re.match(r"  (\w+): +#|  (\w+): *$", line):
                kind = found[1] or found[2]
                rows.setdefault(kind, {})
            elif number == 0:
                head.append(line)
    lines = [line for line in head if line.strip() != "measured:"] + ["measured:"]
    for kind, found in rows.items():
        lines += [f"  {kind}:", *(f"    - [{', '.join([*key, ns])}]" for key, ns in found.items())]
    return "\n".join(lines) + "\n"


def calibrate(options, made):
    """A plan of each axis has the kinds of communication of that axis; one with many small microbatches and one with
    few large ones have the sizes of all plans between them."""
    files, microbatches = [], lambda name: int(re.search(r"\bm(\d+)", name)[1])
    for axis in ("dp", "tp", "pp"):
        names = [name for name in made if name.startswith(axis)]
        for name in sorted({pick(names, key=microbatches) for pick in (max, min) if names}):
            files.append(options.work / f"{name.replace(' ', '-')}.yaml")
            files[-1].unlink(missing_ok=True)  # of a run before, which --calibrate does not write over
            subprocess.run([options.bin / "par-run", bundle_of(options, name), f"--calibrate={files[-1]}"],
                           check=True, stdout=subprocess.DEVNULL)
    (options.work / "here.yaml").write_text(join(files))


def search(options, made):
    """Finds the plan with the costs of this machine; one that is not of the space joins it as "found"."""
    found = predict(options, [], "--auto", "-n", options.ranks)
    chosen = name_of(found, made)
    if chosen is None:
        chosen = "found: " + found["search"]["alternatives"][0]["plan"]
        run = compile_(options, [f"target.hardware={options.work / 'here.yaml'}"], "--auto", "-n", options.ranks, "-q",
                       "-o", bundle_of(options, chosen))
        if run.returncode:
            sys.exit(f"{chosen}: exit {run.returncode}\n{run.stderr}")
        made[chosen] = None
    (options.work / "found.json").write_text(json.dumps([chosen, found["prediction"]["step_ns"] / 1e6]))
    (options.work / "plans.json").write_text(json.dumps(made))


def measure(options):
    made = json.loads((options.work / "plans.json").read_text())
    calibrate(options, made)
    search(options, made)
    dice, times = random.Random(options.seed), {name: [] for name in made}
    print(f"seed {options.seed}", flush=True)
    for _ in range(options.rounds):
        order = list(made)
        dice.shuffle(order)
        for name in order:
            facts = options.work / "bench.json"
            subprocess.run([options.bin / "par-run", bundle_of(options, name), f"--bench={facts}", "--warm-up", "1",
                            "--iterations", str(options.calls)], check=True, stdout=subprocess.DEVNULL)
            times[name].append(json.loads(facts.read_text())["latency_ms"]["p50"])
    (options.work / "times.json").write_text(json.dumps(times))


def predict(options, settings, *flags):
    run = compile_(options, [*settings, f"target.hardware={options.work / 'here.yaml'}"], "--check", "--json", *flags)
    if run.returncode:
        sys.exit(f"{settings}: exit {run.returncode}\n{run.stderr}")
    return json.loads(run.stdout)


def ranks_of(values):
    """The place of each, equal ones the mean of theirs."""
    order = sorted(values)
    return [(2 * order.index(value) + order.count(value) - 1) / 2 for value in values]


def correlation(one, other):
    return statistics.correlation(ranks_of(one), ranks_of(other)) if len(one) > 2 else float("nan")


def name_of(report, made):
    """The plan of the space that is the one of a report."""
    keys = {key["key"]: key["value"] for key in report["keys"]}
    axes = [f"{axis}{keys['mesh.' + axis]}" for axis in ("pp", "dp", "tp") if int(keys.get("mesh." + axis, 1)) > 1]
    zero = int(keys.get("zero.level", 0))
    name = " ".join([*axes, f"m{report['plan']['microbatches']}", *([f"zero{zero}"] if zero else []),
                     *([report["plan"]["schedule"]] if report["plan"]["stages"] > 1 else [])])
    return name if name in made else None


def judge(options):
    made = json.loads((options.work / "plans.json").read_text())
    calls = json.loads((options.work / "times.json").read_text())
    times = {name: statistics.median(found) for name, found in calls.items()}
    chosen, ms = json.loads((options.work / "found.json").read_text())
    predicted = {name: ms if settings is None else predict(options, settings)["prediction"]["step_ns"] / 1e6
                 for name, settings in made.items()}
    print("| plan | measured, ms | predicted, ms | |\n| --- | --- | --- | --- |")
    for name in sorted(made, key=times.get):
        print(f"| {name} | {times[name]:.2f} | {predicted[name]:.2f} | {'found' if name == chosen else ''} |")
    best = min(times.values())
    regret = 100 * (times[chosen] / best - 1)
    rho = correlation([times[name] for name in made], [predicted[name] for name in made])
    print(f"\nregret {regret:.1f} % among {len(made)} plans; rank correlation {rho:.2f}")
    return regret > options.tolerance


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("steps", nargs="*", help="prepare, measure, judge")
    parser.add_argument("--model", type=pathlib.Path, default=HERE / "examples/tiny-gpt.onnx")
    parser.add_argument("--set", action="append", default=[])
    for flag, value in (("ranks", 2), ("batch", 8), ("rounds", 3), ("calls", 5), ("seed", 1)):
        parser.add_argument(f"--{flag}", type=int, default=value)
    parser.add_argument("--tolerance", type=float, default=3)
    parser.add_argument("--bin", type=pathlib.Path, default=HERE / "build/bin")
    parser.add_argument("--work", type=pathlib.Path, default=HERE / "build/regret")
    options = parser.parse_args()
    if options.model.name == "tiny-gpt.onnx" and not options.set:
        options.set = ["dims.seq=64", "train.loss=cross_entropy"]
    steps = {"prepare": prepare, "measure": measure, "judge": judge}
    if unknown := set(options.steps) - set(steps):
        parser.error(f"no step is called {', '.join(sorted(unknown))}; there are {', '.join(steps)}")
    options.work.mkdir(parents=True, exist_ok=True)
    return int(any([step(options) for name, step in steps.items() if name in (options.steps or steps)]))


if __name__ == "__main__":
    sys.exit(main())

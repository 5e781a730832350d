"""random_plans.py [--plans 200] [--seed S] [--ranks 4] [--within 2] [--jobs 2] PAR-COMPILE MODEL... -- FLAGS...:
`--auto` compiles a plan whose predicted step is at most so many percent longer than that of the best of N random plans:
any mesh of pp, dp and tp (tensor axes by `megatron` or `megatron-sp`, where these know the model), samples a
microbatch, zero level, schedule and mode of recomputation. Plans that do not compile do not count; the others are
compiled without machine code, as those of --what-if are. Prints a line a model, and `all N models: ...`."""
import argparse
import concurrent.futures
import json
import pathlib
import random
import subprocess
import sys

SCHEDULES = ("gpipe", "1f1b", "zb-h1", "interleaved")


def report_of(command):
    """Nothing where the plan is refused."""
    run = subprocess.run([*command, "--json"], capture_output=True, text=True)
    if run.returncode not in (0, 1, 3):
        raise SystemExit(f"{command}: exit {run.returncode}\n{run.stderr}")
    return json.loads(run.stdout) if run.returncode == 0 else None


def step_of(command, plan):
    """ns, or nothing where the plan is refused or does not fit, which --what-if only says."""
    report = report_of([*command, *(f"--what-if={setting}" for setting in plan)])
    if report is None:
        return None
    memory = report["after"]["memory"]
    peak = max(role["peak"] for role in memory["roles"])
    fits = memory.get("limit") is None or peak <= memory["limit"]
    return report["after"]["prediction"]["step_ns"] if fits else None


def draw(dice, ranks):
    """Settings of one plan."""
    meshes = [(pp, dp, ranks // pp // dp) for pp in range(1, ranks + 1) for dp in range(1, ranks + 1)
              if ranks % (pp * dp) == 0]
    pp, dp, tp = dice.choice(meshes)
    plan = [f"mesh={{pp: {pp}, dp: {dp}, tp: {tp}}}", f"batch.microbatches={dice.choice([1, 2, 4, 8])}"]
    plan.append(f"zero={dice.choice([0, 1, 2, 3]) if dp > 1 else 0}")
    plan.append(f"recompute={dice.choice(['none', 'none', 'full'])}")
    if tp > 1:
        plan.append(f"use=[{dice.choice(['megatron', 'megatron-sp'])}]")
    if pp > 1:
        schedule = dice.choice(SCHEDULES)
        plan += [f"pipeline.schedule={schedule}", f"pipeline.stages={2 * pp if schedule == 'interleaved' else pp}"]
    return tuple(plan)


def best_of(command, options):
    """The shortest step of random plans, that plan, and how many compiled."""
    dice = random.Random(options.seed)
    plans = list(dict.fromkeys(draw(dice, options.ranks) for _ in range(options.plans)))
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        drawn = dict(zip(plans, pool.map(lambda plan: step_of(command, plan), plans)))
    steps = {plan: step for plan, step in drawn.items() if step is not None}
    if not steps:
        return None, None, 0
    best = min(steps, key=steps.get)
    return steps[best], best, len(steps)


def main():
    sys.argv, flags = sys.argv[:sys.argv.index("--")], sys.argv[sys.argv.index("--") + 1:]
    parser = argparse.ArgumentParser()
    parser.add_argument("--plans", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--within", type=float, default=2)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("compile")
    parser.add_argument("models", nargs="+")
    options = parser.parse_args()
    slower = []
    for model in options.models:
        name = pathlib.Path(model).parent.name
        command = [options.compile, model, *flags]
        report = report_of([*command, "--auto", "-n", str(options.ranks), "--check"])
        if report is None:
            raise SystemExit(f"{name}: nothing found")
        found = report["prediction"]["step_ns"]
        step, plan, count = best_of(command, options)
        if count == 0:
            raise SystemExit(f"{name}: none of {options.plans} random plans compiles")
        percent = 100 * (found - step) / step
        print(f"{name}: found {found} ns, best of {count} random plans {step} ns ({percent:+.1f} %): {' '.join(plan)}",
              flush=True)
        if percent > options.within:
            slower.append(name)
    print(f"all {len(options.models)} models: "
          + (f"slower {', '.join(slower)}" if slower else f"none slower by more than {options.within:g} %"))
    return bool(slower)


sys.exit(main())

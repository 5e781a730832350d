"""exhaustive.py [--random N] [--seed S] [--ranks 2,4] [--within PERCENT] -- COMMAND...: the plan of
`COMMAND --auto -n R` is predicted to take no longer than any plan that is written down by hand, one by one: all
meshes of dp, tp and pp, zero levels, powers of two of samples and schedules. With --random, N machines are drawn, each
with its own rates, latencies and launch. The bound that is printed must be below all. Prints a line for each space,
`N plans, ... slower by ...`, and at the end `all N spaces: ...`."""
import argparse
import itertools
import json
import random
import re
import subprocess
import tempfile

MACHINE = """name: drawn
peak: {{f32: {peak}, f64: {peak}}}
memory: {memory}
launch: {launch}
kernels: {{flops: {peak}, overhead: 0}}
levels:
  - {{name: node, ranks: {ranks}, link: {link}, latency: {latency}}}
  - {{name: fabric, link: {slow}, latency: {late}}}
"""


def draw(seed, folder):
    dice = random.Random(seed)
    text = MACHINE.format(peak=dice.choice([10**5, 10**6, 10**7]), memory=dice.choice([10**4, 10**5, 10**6]),
                          launch=dice.choice([0, 500, 5000]), ranks=dice.choice([1, 2, 4]),
                          link=dice.choice([10**3, 10**4, 10**5]), latency=dice.choice([0, 1000, 20000]),
                          slow=dice.choice([10**2, 10**3, 10**4]), late=dice.choice([1000, 50000]))
    path = f"{folder}/machine-{seed}.yaml"
    with open(path, "w") as file:
        file.write(text)
    return path, dice


def report_of(command):
    """None where the plan is refused."""
    run = subprocess.run([*command, "--json"], capture_output=True, text=True)
    if run.returncode not in (0, 1, 3):
        raise SystemExit(f"{command}: exit {run.returncode}\n{run.stderr}")
    return json.loads(run.stdout) if run.returncode == 0 else None


def step_of(command, settings):
    """ns, or None where the plan is refused; without machine code, which --check makes."""
    report = report_of([*command, *(f"--what-if={setting}" for setting in settings)])
    return report["after"]["prediction"]["step_ns"] if report else None


def bound_of(plan):
    """ns that the head of a written plan says no plan takes less than, as low as it was rounded."""
    with open(plan) as file:
        number, unit = re.search(r"takes less than ([0-9.]+) (us|ms)", file.readline()).groups()
    scale = 1000 if unit == "us" else 1e6
    return float(number) * scale - scale / (20 if "." in number else 2)


def plans(ranks, batch, tensors):
    divisors = [n for n in range(1, ranks + 1) if ranks % n == 0]
    for tp, pp in itertools.product(divisors, divisors):
        if ranks % (tp * pp) or (tp > 1 and not tensors):
            continue
        dp = ranks // tp // pp
        for samples in (1, 2, 4, 8, 16):
            if batch % (dp * samples):
                continue
            count = batch // dp // samples
            for zero in ((0, 1, 2, 3) if dp > 1 else (0,)):
                for schedule in (("1f1b", "zb-h1") if pp > 1 else (None,)):
                    axes = {"pp": pp, "dp": dp, "tp": tp}
                    plan = ["mesh={" + ", ".join(f"{name}: {size}" for name, size in axes.items() if size > 1) + "}",
                            f"batch.microbatches={count}", f"zero={zero}"]
                    if tp > 1:
                        plan.append("use=[megatron]")
                    if schedule:
                        plan.append(f"pipeline.schedule={schedule}")
                    yield plan


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ranks", default="2")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--tensors", action="store_true")
    parser.add_argument("--within", type=float, default=0)
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    worst, total = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        spaces = [draw(options.seed + i, folder) for i in range(options.random)] or [(None, random.Random(0))]
        for machine, dice in spaces:
            command = options.command + (["--target", machine] if machine else [])
            ranks = dice.choice([int(n) for n in options.ranks.split(",")])
            written = f"{folder}/found.yaml"
            report = report_of([*command, "--auto", "-n", str(ranks), f"--write-plan={written}", "--check"])
            assert report is not None, f"nothing found for {ranks} ranks by {command}"
            found = report["prediction"]["step_ns"]
            steps = [step_of(command, plan) for plan in plans(ranks, options.batch, options.tensors)]
            steps = [step for step in steps if step is not None]
            total += len(steps)
            bound = bound_of(written)
            assert bound <= min(steps), f"{ranks} ranks by {command}: a plan of {min(steps)} ns is below {bound} ns"
            slower = 100 * (found - min(steps)) / min(steps)
            worst = max(worst, slower)
            print(f"{ranks} ranks: {len(steps)} plans, {min(steps)} to {max(steps)} ns, found {found} ns, "
                  f"bound {bound:.0f} ns, slower by {max(0, slower):.2f} %")
    print(f"all {len(spaces)} spaces, {total} plans:", "none is faster" if worst <= options.within
          else f"one is faster by {worst:.2f} %")


main()

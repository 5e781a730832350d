#!/usr/bin/env python3
"""Compares `cuts: auto` with the cuts that a user may write: the predicted step of every combination of module borders.

usage: cuts.py MODEL.onnx... --stages P... [--plan PLAN] [--set KEY=VALUE] [--inside] [--most N]

A border is the first module of a stage: an element of a list of modules (h.3), or an innermost module outside of lists;
with --inside every innermost module. The first of them begins no stage. Of more than N combinations N are drawn, with a fixed seed;
the line says so. A cut that par-compile refuses (a stage without an op, the wrong order) is no candidate; others that
fail end the program. The table has a line for each model and number of stages: the step of `auto`, of the best
combination, and what auto loses against it. Exit status 1 if one loses more than --within percent.
"""
import argparse
import concurrent.futures
import itertools
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile


class Compiler:
    def __init__(self, arguments):
        self.binary = os.path.join(arguments.bin, "par-compile")
        self.settings = arguments.set
        self.plan = [arguments.plan] if arguments.plan else []
        self.cache = tempfile.mkdtemp(prefix="cuts-")

    def run(self, model, stages, cuts):
        """Predicted ms, or None if the cut is refused."""
        command = [self.binary, model, *self.plan, "--check", "--json", "-q", f"--cache={self.cache}",
                   "--set", f"mesh.pp={stages}", "--set", f"pipeline.cuts={cuts}"]
        if not self.plan:
            command += ["--set", "train={}"]
        for setting in self.settings:
            command += ["--set", setting]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode == 0:
            return json.loads(done.stdout)["prediction"]["step_ns"] / 1e6
        if "the cuts leave stage" in done.stderr or "modules or nodes; a cut names" in done.stderr:
            return None
        sys.exit(f"{' '.join(command)}: exit {done.returncode}\n{done.stderr}")

    def modules(self, model):
        command = [self.binary, model, *self.plan, "--list=modules"]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return [line.split()[0] for line in text.splitlines()[1:] if line.split()]


def borders(names, inside):
    """Elements of the outermost lists (h.3), and the innermost modules outside of lists; `inside`: all innermost ones."""
    names = list(dict.fromkeys(names))
    holders = {".".join(name.split(".")[:end]) for name in names for end in range(1, name.count(".") + 1)}
    chosen = []
    for name in names:
        parts = name.split(".")
        numbers = [index for index, part in enumerate(parts) if part.isdigit()]
        element = ".".join(parts[:numbers[0] + 1]) if numbers else None
        if name not in holders if inside or not element else name == element:
            chosen.append(name)
    return chosen


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--stages", type=int, nargs="+", default=[2, 3, 4])
    parser.add_argument("--plan")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--inside", action="store_true")
    parser.add_argument("--most", type=int, default=200)
    parser.add_argument("--within", type=float, default=0.5)
    parser.add_argument("--bin", default="build/bin")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--verbose", action="store_true", help="prints every combination")
    arguments = parser.parse_args()
    compiler, lost = Compiler(arguments), False
    print("| model | stages | combinations | auto, ms | best, ms | auto loses | best cuts |\n| --- |" + " --- |" * 6)
    for model, stages in itertools.product(arguments.models, arguments.stages):
        names = borders(compiler.modules(model), arguments.inside)[1:]
        every = list(itertools.combinations(names, stages - 1))
        some = every if len(every) <= arguments.most else random.Random(51).sample(every, arguments.most)
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            texts = ["[" + ", ".join(f'"^{name}"' for name in cuts) + "]" for cuts in some]
            steps = list(pool.map(lambda cuts: compiler.run(model, stages, cuts), texts))
        auto = compiler.run(model, stages, "auto")
        legal = sorted((step, cuts) for step, cuts in zip(steps, some) if step is not None)
        if arguments.verbose:
            for step, cuts in legal:
                print(f"  {step:.4f} {' '.join(cuts)}")
        title = pathlib.Path(model)
        title = title.parent.name if title.stem == "model" else title.name.split(".")[0]
        count = f"{len(legal)}" if some is every else f"{len(legal)} (of {len(every)}, drawn)"
        if not legal:
            print(f"| {title} | {stages} | {count} | {auto:.4f} | | | |")
            continue
        loss = 100 * (auto / legal[0][0] - 1)
        lost |= loss > arguments.within
        print(f"| {title} | {stages} | {count} | {auto:.4f} | {legal[0][0]:.4f} | {loss:+.2f} % | "
              f"{', '.join(legal[0][1])} |", flush=True)
    sys.exit(1 if lost else 0)


main()

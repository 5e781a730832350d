#!/usr/bin/env python3
"""Published runs beside what Par predicts for them, from the plans and rows of bench/published.

    published.py [steps] [layers] [pipelines] [memory] [search] [alternatives] [--bin build/bin]
                 [--work build/published] [--only PLAN]...

steps      seconds of a step of whole runs, with the mean and the largest error of those that are not fitted
layers     one layer of the 22B model, forward, backward and its activations' bytes: half of what four layers take more
           than two
pipelines  bubble rates of orders, played with the published times of one stage
memory     bytes a parameter of ZeRO's levels beside their closed forms
search     the step of each published plan beside that of the plan which --auto finds for as many ranks and the same
           samples of a step, with as much memory as the published one takes; a slower one is a fault
alternatives  plans of one model on one machine, by their published times: the rank correlation of these with the
           predicted ones, and the regret (by how much the plan that is predicted fastest was slower than the best)
Without a part: all. Runs marked `large` are predicted if --only names them. Models are made in the work folder
(bench/published/models.py, which needs torch; the rest needs only Python 3.11), and the code of kernels is kept there.
Nothing runs: predictions are those of `par-compile --check --json`. The exit status is 1 if a run is not predicted, or
a found plan is slower than the published one.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import tomllib

HERE = pathlib.Path(__file__).resolve().parent / "published"
sys.path.insert(0, str(HERE))
import models  # noqa: E402


class Refused(Exception):
    """par-compile gives no prediction; the text is its first error."""


class Predictor:
    def __init__(self, options, rows):
        self.bin, self.work, self.models = options.bin, options.work, rows["models"]
        self.refused = self.slower = False
        # Times do not depend on machine code, whose making takes most of a compilation.
        self.environment = {**os.environ, "PAR_PTXAS": ""}

    def compile(self, model, plan, settings, *flags):
        path = self.work / f"{model}.onnx"
        if not path.exists():
            print(f"making {path} ...", file=sys.stderr)
            self.work.mkdir(parents=True, exist_ok=True)
            models.make(self.models[model], path)
        command = [self.bin / "par-compile", path, *plan, "--check", "--cache", self.work / "cache", *flags]
        for setting in settings:
            command += ["--set", setting]
        (self.work / "cache").mkdir(exist_ok=True)
        return subprocess.run(list(map(str, command)), capture_output=True, text=True, env=self.environment)

    def report(self, model, plan, settings=(), *flags):
        done = self.compile(model, plan, settings, "--json", *flags)
        if done.returncode:
            self.refused = True
            raise Refused(done.stderr.strip().splitlines()[0] if done.stderr.strip() else f"exit {done.returncode}")
        return json.loads(done.stdout)

    def blocks(self, model, plan, settings):
        """Milliseconds from the first to the last instruction of each block on rank 0."""
        done = self.compile(model, plan, settings, "--emit=trace")
        if done.returncode:
            self.refused = True
            raise Refused(done.stderr.strip().splitlines()[0])
        spans = {}
        for event in json.loads(done.stdout)["traceEvents"]:
            if event.get("ph") == "X" and event["pid"] == 0:
                block = event["args"]["at"].rpartition("/")[2].rpartition(":")[0]
                begin, end = spans.get(block, (event["ts"], 0))
                spans[block] = min(begin, event["ts"]), max(end, event["ts"] + event["dur"])
        return {block: (end - begin) / 1e3 for block, (begin, end) in spans.items()}


def table(title, columns):
    print(f"\n{title}\n\n| {' | '.join(columns)} |\n|{' --- |' * len(columns)}", flush=True)


def line(*cells):
    print(f"| {' | '.join(cells)} |", flush=True)


def error(predicted, published):
    return 100 * (predicted / published - 1)


def steps(predictor, rows, options):
    table("Steps", ["run", "published, s", "predicted, s", "error, %", "compute, bubble, communication, %", "fitted"])
    errors = []
    for row in rows["steps"]:
        name, published = row["plan"], row["seconds"]
        if options.only and name not in options.only or row.get("large") and name not in options.only:
            continue
        try:
            said = predictor.report(row.get("model", name), [HERE / f"plans/{name}.yaml"])["prediction"]
        except Refused as refused:
            line(name, f"{published:.3f}", f"refused: {refused}", "", "", "")
            continue
        seconds = said["step_ns"] / 1e9
        shares = ", ".join(f"{said[f'{kind}_permille'] / 10:.1f}" for kind in ("compute", "bubble", "communication"))
        fitted = row.get("fitted", False)
        line(name, f"{published:.3f}", f"{seconds:.3f}", f"{error(seconds, published):+.1f}", shares,
             "yes" if fitted else "")
        if not fitted:
            errors.append(abs(error(seconds, published)))
    if errors:
        print(f"\n{len(errors)} not fitted: mean error {sum(errors) / len(errors):.1f} %, largest {max(errors):.1f} %")


def layers(predictor, rows, options):
    table("One layer of the 22B model", ["run", "forward, ms", "predicted", "backward, ms", "predicted",
                                         "activations, MB", "predicted"])
    plan, sizes = [HERE / "plans/korthikanti-22b-full.yaml"], rows["models"]["korthikanti-4-layers"]
    for row in rows["layers"]:
        settings = [*row["settings"], "collectives.bucket=0"]
        closed = eval(row["bytes"], {}, {**{key: sizes[key] for key in "ahs"}, "b": 4, "t": 8})
        cells = [row["name"], f"{row['forward']}", "", f"{row['backward']}", "", f"{closed / 1e6:.0f}", ""]
        try:
            taken, kept = [], []
            for count in (2, 4):
                model = f"korthikanti-{count}-layers"
                taken.append(predictor.blocks(model, plan, settings))
                kept.append(sum(saved["bytes"] for saved in predictor.report(model, plan, settings)["saved"]))
            for at, block in ((2, "train.forward"), (4, "train.backward")):
                cells[at] = f"{(taken[1][block] - taken[0][block]) / 2:.1f}"
            cells[6] = f"{(kept[1] - kept[0]) / 2e6:.0f}"
        except Refused as refused:
            cells[2] = f"refused: {refused}"
        line(*cells)


def zb_h2(stages, microbatches):
    """ZB-H2's order: a stage has 2 (p - s) - 1 forwards before its first backward, and its weight gradients lag 2s."""
    for stage in range(stages):
        ahead = min(2 * (stages - stage) - 1, microbatches)
        slots, forwards, weights = [f"F{i}" for i in range(ahead)], ahead, 0
        for microbatch in range(microbatches):
            slots.append(f"B{microbatch}")
            if microbatch - weights >= 2 * stage:
                slots.append(f"W{weights}")
                weights += 1
            if forwards < microbatches:
                slots.append(f"F{forwards}")
                forwards += 1
        yield f"device {stage} " + " ".join(slots + [f"W{i}" for i in range(weights, microbatches)])


def play(predictor, lines):
    with tempfile.NamedTemporaryFile("w", suffix=".problem") as file:
        file.write("\n".join(["problem order_table", *lines]) + "\n")
        file.flush()
        done = subprocess.run([str(predictor.bin / "par-opt"), f"--par-problem={file.name}"], capture_output=True,
                              text=True, check=True)
    return float(done.stdout.rsplit("idle", 1)[1].split()[0]) / 100


def orders(model, row):
    """The problems of the table's columns."""
    stages, count = model["stages"], row["m"]
    forward, backward, weight, transfer = (round(1e6 * row[key]) for key in "fbwc")
    shared = [f"microbatches {count}", f"transfer {transfer}"]
    apart = [f"forward {forward}", f"backward {backward}", f"weight {weight}", *shared]
    chunks = model["chunks"]
    return {
        "1f1b": ["schedule 1f1b", f"stages {stages}", f"forward {forward}", f"backward {backward + weight}", *shared],
        "zb-h1": ["schedule zb-h1", f"stages {stages}", *apart],
        "interleaved": ["schedule interleaved", f"stages {stages * chunks}", f"devices {stages}",
                        f"forward {forward // chunks}", f"backward {(backward + weight) // chunks}", *shared],
        "zb-h2": [*zb_h2(stages, count), *apart],
        "zb-2p": ["schedule auto", f"stages {stages}", f"limit {2 * stages}", *apart],
    }


def pipelines(predictor, rows, options):
    names = ["1f1b", "zb-h1", "interleaved", "zb-h2", "zb-2p"]
    table("Bubble rates, published and played", ["model", "microbatches", *names])
    for model in rows["pipelines"]:
        for row in model["rows"]:
            problems = orders(model, row)
            cells = [f"{published:.4f} {play(predictor, problems[name]):.4f}"
                     for name, published in zip(names, row["bubbles"])]
            line(model["name"], str(row["m"]), *cells)


def memory(predictor, rows, options):
    """Par keeps no rounded copy of the f32 weights between steps. At levels 1 and 2 it gathers one for each step, which
    is among the buffers and not counted here."""
    ranks = 64
    forms = ["4 + 2 + 8", f"2 + 12/{ranks}", f"14/{ranks}", f"14/{ranks}"]
    zero = ["2 + 2 + 12", f"4 + 12/{ranks}", f"2 + 14/{ranks}", f"16/{ranks}"]
    table(f"Bytes a parameter on {ranks} ranks, gradients in 16 bits", ["zero", "Rajbhandari et al.", "Par's form",
                                                                        "predicted"])
    for level, (published, form) in enumerate(zip(zero, forms)):
        settings = [f"mesh={{dp: {ranks}}}", f"zero={level}", "batch={size: 64, microbatch_size: 1}",
                    "precision={compute: bf16, accumulate: bf16}"]
        try:
            said = predictor.report("mpt-1.3b-1k", [HERE / "plans/mpt-1.3b-1k.yaml"], settings)
        except Refused as refused:
            line(str(level), f"{eval(published):.2f}", f"{eval(form):.2f}", f"refused: {refused}")
            continue
        role = said["memory"]["roles"][0]
        held = role["params"] + role["grads"] + role["states"]
        line(str(level), f"{eval(published):.2f}", f"{eval(form):.2f}", f"{held / said['model']['elements']:.2f}")


def open_plan(text):
    """The plan without what a search fills: mesh, rules, microbatches, zero, pipeline, recomputation."""
    kept = [line for line in text.splitlines()
            if not re.match(r"(mesh|use|zero|pipeline|recompute):", line)]
    return re.sub(r", microbatch_size: \d+", "", "\n".join(kept)) + "\n"


def found_beside(predictor, name, model):
    """The published plan's report, and that of the plan which is found at its memory."""
    file = HERE / f"plans/{name}.yaml"
    published = predictor.report(model, [file])
    ranks, peak = published["plan"]["ranks"], max(role["peak"] for role in published["memory"]["roles"])
    open_file = predictor.work / f"{name}-open.yaml"
    open_file.write_text(open_plan(file.read_text()))
    found = predictor.report(model, [open_file], [f"target.memory={peak}"], "--auto", "-n", str(ranks))
    return published, found


def search(predictor, rows, options):
    table("Plans found at the memory of the published ones", [
        "run", "ranks", "memory of a rank, GiB", "published, simulated, s", "found, s", "faster, %", "gap, %", "plan"])
    for row in rows["steps"]:
        name = row["plan"]
        if options.only and name not in options.only or row.get("large") and name not in options.only:
            continue
        try:
            published, found = found_beside(predictor, name, row.get("model", name))
        except Refused as refused:
            line(name, "", "", "", f"refused: {refused}", "", "", "")
            continue
        peak = max(role["peak"] for role in published["memory"]["roles"])
        seconds = [report["prediction"]["step_ns"] / 1e9 for report in (published, found)]
        predictor.slower |= seconds[1] > seconds[0]
        line(name, str(published["plan"]["ranks"]), f"{peak / 2**30:.1f}", f"{seconds[0]:.3f}", f"{seconds[1]:.3f}",
             f"{100 * (seconds[0] / seconds[1] - 1):+.1f}", f"{found['search']['gap_percent']:.1f}",
             found["search"]["alternatives"][0]["plan"])


def places(values):
    """The place of each, equal ones the mean of theirs."""
    order = sorted(values)
    return [(2 * order.index(value) + order.count(value) - 1) / 2 for value in values]


def alternatives(predictor, rows, options):
    table("Alternative plans of one model", ["table", "plan", "published, s", "predicted, s",
                                             "compute, bubble, communication, %"])
    for each in rows["alternatives"]:
        if options.only and each["name"] not in options.only:
            continue
        published, predicted = [], []
        for row in sorted(each["rows"], key=lambda row: row["seconds"]):
            name = " ".join(setting for setting in row["set"] if not setting.startswith("use="))
            try:
                said = predictor.report(each["model"], [HERE / f"plans/{each['plan']}.yaml"], row["set"])["prediction"]
            except Refused as refused:
                line(each["name"], name, f"{row['seconds']:.2f}", f"refused: {refused}", "")
                continue
            published.append(row["seconds"])
            predicted.append(said["step_ns"] / 1e9)
            shares = ", ".join(f"{said[f'{kind}_permille'] / 10:.1f}" for kind in ("compute", "bubble",
                                                                                   "communication"))
            line(each["name"], name, f"{published[-1]:.2f}", f"{predicted[-1]:.2f}", shares)
        if len(published) > 2:
            chosen = published[predicted.index(min(predicted))]
            rho = statistics.correlation(places(published), places(predicted))
            print(f"\n{each['name']}: rank correlation {rho:.2f} of {len(published)} plans, regret "
                  f"{100 * (chosen / min(published) - 1):.1f} %\n", flush=True)


PARTS = {"steps": steps, "layers": layers, "pipelines": pipelines, "memory": memory, "search": search,
         "alternatives": alternatives}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/bin"))
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("build/published"))
    parser.add_argument("--only", action="append", default=[], help="a plan of steps")
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no part is called {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    rows = tomllib.loads((HERE / "rows.toml").read_text())
    predictor = Predictor(options, rows)
    for name in options.parts or PARTS:
        PARTS[name](predictor, rows, options)
    return int(predictor.refused or predictor.slower)


if __name__ == "__main__":
    sys.exit(main())

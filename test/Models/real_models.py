#!/usr/bin/env python3
"""A zoo of architectures at their published sizes: exported by par.export, compiled, and compared with PyTorch.

    real_models.py --bin build/bin [--only gpt2,swin_t] [--stages export,loss,plans,time] [--jobs 1] [--json FILE]
    real_models.py --bin build/bin --big FOLDER [--only llama-2-7b]
    real_models.py --table FILE...   files of --json as one table: the last result of each stage of each architecture;
                                     a FILE.md is a table of --table, whose rows stay unless a later FILE has newer ones

A line each: parameters, seconds to export and to compile, the first loss and the norm of the first gradient beside
PyTorch's, ten steps under dp2, pp2 (4 microbatches) and tp2 beside one rank's (of texts of 32 symbols: zoo/plans.py), a
step's CPU time on one thread and peak memory beside PyTorch eager's. Weights are random from fixed seeds; nothing is
downloaded. Models too large for steps on one CPU have fewer layers and heads, listed in the recipe (zoo/*.py). Exports
and PyTorch's numbers are kept in --cache by a hash of the recipe; its time is measured again, besides Par's.

Bounds, relative above 1. The first loss and norm: 1e-5 beside PyTorch's in float32, the order of sums of up to 1e5
terms. Beyond that (batch norm and deep nets of images amplify rounding), Par may lie as far from float64 as three times
PyTorch's own float32, at least 1e-5: the farther of its two memory formats, which add in different orders. These two
samples may happen to be close: beyond that, too, Par's step in float64 must be PyTorch's (1e-9, the norm 1e-6), and its
float32 at most ten times as far as flipped last bits of its images or weights move it. Plans: 2e-5, the maximum effect
of the order of additions in ten steps. Many nets of images, and T5, amplify it: there a plan may be ten times as far
from one rank as one rank is from itself with the last bit of every number of its images (of its weights) flipped. That
could hide a fault, so such a plan takes two steps in float64, too, where its losses are one rank's to 1e-9 (to two
units of float32's last place if the model itself rounds to that: losses of OPT, norms of T5). A plan's weights, which
differ only by rounding, may also be on the other side of a kink (relu), which hardly any flip of last bits meets: a
plan beyond that bound holds if one rank, with the plan's weights before each step, gives that step's loss and norm to
2e-5.

A step may take 1.5 times PyTorch eager's CPU time. A refusal is the compiler's located message about the model; more
than 3 are a failure. Exit status 0: all hold.
Needs torch, transformers, torchvision, timm, onnx, onnxscript and safetensors; `--big FOLDER` exports what the folder
lacks.
"""
import argparse
import concurrent.futures
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "zoo"))
import par_side  # noqa: E402
import plans  # noqa: E402
import table  # noqa: E402
from par_side import Stopped  # noqa: E402
from recipe import STEPS  # noqa: E402
from zoo import RECIPES, SHORTER, find  # noqa: E402

TIMED = 4  # steps after the first
STAGES = ("export", "loss", "plans", "time")
MOST_REFUSED = 3
MOST_RATIO = 1.5
BOUND, PLAN_BOUND, NUDGES = 1e-5, 2e-5, 10
DOUBLE_STEPS, DOUBLE_BOUND = 2, 1e-9
SINGLE_BOUND = 2.5e-7  # two units in the last place of float32, where the model itself rounds to that
FIRST_DOUBLE_BOUNDS = {"loss": 1e-9, "norm": 1e-6}  # the norm is written in float32
METRICS = {"loss": "loss", "norm": "grad_norm"}


def apart(found, wanted):
    """How far, relative above 1; a NaN is far."""
    distance = abs(found - wanted) / max(1.0, abs(wanted))
    return math.inf if math.isnan(distance) else distance


def torch_side(name, folder, what):
    """Runs PyTorch's part unless its result is in the cache, where a time stays that of the machine as it was."""
    result = folder / f"{'facts' if what == 'export' else what}.json"
    if what == "time" or not result.exists():
        environment = dict(os.environ, OMP_NUM_THREADS="1") if what == "time" else None
        try:
            done = subprocess.run([sys.executable, HERE / "zoo/torch_side.py", name, folder, what], capture_output=True,
                                  text=True, env=environment, timeout=par_side.TIMEOUT)
        except subprocess.TimeoutExpired:
            raise Stopped(124, f"{what}: no end after {par_side.TIMEOUT} s") from None
        if done.returncode:
            said = done.stderr.strip().splitlines() or [f"exit {done.returncode}"]  # a signal says nothing
            raise Stopped(done.returncode, f"{what}: " + said[-1])
    return json.loads(result.read_text())


class Trial:
    """One architecture's way through the stages; what it found is in `row`, what does not hold in its `failed`, by
    name."""

    def __init__(self, options, recipe):
        self.binaries, self.recipe, self.steps, self.cache = options.bin, recipe, options.steps, options.cache
        self.folder, self.bundles = self.folder_of(recipe.name), {}  # bundles by folder and plan
        self.doubled = {}  # losses of one rank in float64, by its plan
        self.row = {"name": recipe.name, "cut": recipe.cut, "failed": {}}

    def run(self, stages):
        for stage in STAGES:
            if stage not in stages:
                continue
            try:
                getattr(self, stage)()
            except Stopped as stopped:
                self.row["refused" if stopped.sentence else "stopped"] = f"{stage}: {stopped}"
                if not stopped.sentence:
                    self.row["failed"]["stopped"] = f"{stage} (exit {stopped.status})"
                break
        return self.row

    def folder_of(self, name):
        folder = self.cache / f"{name}-{find(name).key()}"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def export(self):
        self.facts = torch_side(self.recipe.name, self.folder, "export")
        self.row.update(parameters=self.facts["parameters"], export_s=self.facts["export_s"])

    def loss(self):
        """The first step on one rank."""
        reference = torch_side(self.recipe.name, self.folder, "first")
        plan = plans.one(self.facts["batch_norm"])
        self.one, self.row["compile_s"] = par_side.compile_model(self.binaries, self.folder, "one", plan)
        first = par_side.run_steps(self.binaries, self.folder, self.one, 1)[0]
        self.row.update(loss=first["loss"], norm=first.get("grad_norm") or math.nan)
        self.row.update(torch_loss=reference["loss"], torch_norm=reference["norm"])
        for what in ("loss", "norm"):
            self.compare(what, self.row[what], self.row[f"torch_{what}"])

    def compare(self, what, found, wanted):
        self.row[f"{what}_apart"] = distance = apart(found, wanted)
        if distance <= BOUND:
            return
        exact = torch_side(self.recipe.name, self.folder, "exact")[what]
        ours, theirs = apart(found, exact), max(apart(wanted, exact), apart(self.reordered(what, wanted), exact))
        self.row[f"{what}_to_f64"], self.row[f"torch_{what}_to_f64"] = ours, theirs
        if ours <= max(BOUND, 3 * theirs):
            return
        nudged, double = self.first_nudged(what, found), apart(self.first_double(what), exact)
        self.row[f"{what}_nudged"], self.row[f"{what}_f64"] = nudged, double
        if not (ours <= NUDGES * nudged and double <= FIRST_DOUBLE_BOUNDS[what]):
            self.row["failed"][what] = (f"{what} {found:.7g}, PyTorch {wanted:.7g}, float64 {exact:.7g}, "
                                        f"Par's to that {double:.1e}")

    def reordered(self, what, wanted):
        """PyTorch's number from its other memory format; the one that is known where it dies there, as of repvgg_a0."""
        try:
            return torch_side(self.recipe.name, self.folder, "reordered")[what]
        except Stopped:
            return wanted

    def first_nudged(self, what, found):
        """How far the first step goes by the last bits of its images, or of its weights where it reads symbols."""
        flags, data = self.nudging(self.recipe.name, self.folder)
        return apart(par_side.run_steps(self.binaries, self.folder, self.one, 1, *flags, data=data)[0][METRICS[what]],
                     found)

    def first_double(self, what):
        """The first step in float64."""
        torch_side(self.recipe.name, self.folder, "double")
        folder = self.folder / "f64"
        bundle, _ = par_side.compile_model(self.binaries, folder, "one", plans.one(self.facts["batch_norm"]))
        return par_side.run_steps(self.binaries, folder, bundle, 1)[0][METRICS[what]]

    def nudging(self, name, folder):
        """Flags and data of a run whose numbers differ in the last bit from the start."""
        if self.recipe.feed[0] == "words":
            torch_side(name, folder, "nudge")
            return ("--weights", folder / "nudged-weights.safetensors"), "data.safetensors"
        par_side.write_nudged(folder, "nudged.safetensors")
        return (), "nudged.safetensors"

    def plans(self):
        name = self.recipe.name + SHORTER
        if find(name) == self.recipe:
            name = self.recipe.name
        folder, whole = self.folder_of(name), {}  # losses of one rank, by its plan
        self.row["plans_cut"] = find(name).cut if name.endswith(SHORTER) else ""
        batch_norm = torch_side(name, folder, "export")["batch_norm"]
        for plan in plans.PLANS:
            try:
                text, alone = plans.of(plan, self.binaries, folder / "model.onnx", batch_norm)
                if alone not in whole:
                    whole[alone] = self.losses(folder, f"alone{len(whole)}", alone)
                self.row[plan] = max(map(apart, self.losses(folder, plan, text), whole[alone]))
                bound = PLAN_BOUND
                if self.row[plan] > bound:
                    bound = max(bound, NUDGES * self.nudge(name, folder, alone, whole[alone]))
                    self.double(name, folder, plan, text, alone)
                if self.row[plan] > bound:
                    self.row[f"{plan}_restepped"] = self.resteps(folder, text, alone)
                    bound = math.inf if self.row[f"{plan}_restepped"] <= PLAN_BOUND else bound
                if not (math.isfinite(self.row[plan]) and self.row[plan] <= bound):
                    self.row["failed"][plan] = f"{plan}: losses {self.row[plan]:.1e} from one rank's, bound {bound:.0e}"
            except Stopped as stopped:
                self.row[plan] = str(stopped)
                if not stopped.sentence:
                    self.row["failed"][plan] = f"{plan} (exit {stopped.status})"
        for bundle in self.bundles.values():
            shutil.rmtree(bundle, ignore_errors=True)

    def nudge(self, name, folder, plan, whole):
        """How far one rank goes from itself by the last bits of its images, or of its weights where it reads
        symbols."""
        flags, data = self.nudging(name, folder)
        found = self.losses(folder, "nudged", plan, *flags, data=data)
        self.row["nudged"] = max(map(apart, found, whole))
        return self.row["nudged"]

    def double(self, name, folder, plan, text, alone):
        """The same plan beside one rank in float64, where what amplifies the order of additions cannot hide
        anything."""
        single = torch_side(name, folder, "double")["single"]
        found = self.losses(folder / "f64", plan, text, steps=DOUBLE_STEPS)
        if alone not in self.doubled:
            self.doubled[alone] = self.losses(folder / "f64", f"alone-{plan}", alone, steps=DOUBLE_STEPS)
        self.row[f"{plan}_f64"] = distance = max(map(apart, found, self.doubled[alone]))
        bound = SINGLE_BOUND if single else DOUBLE_BOUND
        if not distance <= bound:
            self.row["failed"][f"{plan}_f64"] = (f"{plan}: losses in float64 {distance:.1e} from one rank's, "
                                                 f"bound {bound:.0e}")

    def resteps(self, folder, text, alone):
        """The farthest that a loss or norm of the plan lies from that which one rank finds in the plan's own
        weights."""
        def run(plan, *flags, **data):
            return par_side.run_steps(self.binaries, folder, self.bundles[folder, plan], *flags, **data)
        found, weights, worst = run(text, self.steps), folder / "before.safetensors", 0.0
        for step, planned in enumerate(found):
            if step:
                run(text, step, "--export", weights)
            par_side.write_samples(folder, "step.safetensors", step, self.steps)
            again = run(alone, 1, *(("--weights", weights) if step else ()), data="step.safetensors")[0]
            worst = max(worst, *(apart(planned[what], again[what]) for what in METRICS.values()))
        return worst

    def losses(self, folder, name, plan, *flags, steps=0, **data):
        key, steps = (folder, plan), steps or self.steps
        if key not in self.bundles:
            self.bundles[key], _ = par_side.compile_model(self.binaries, folder, name, plan)
        lines = par_side.run_steps(self.binaries, folder, self.bundles[key], steps, *flags, **data)
        if len(lines) != steps:
            raise Stopped(0, f"{len(lines)} losses, expected {steps}")
        return [line["loss"] for line in lines]

    def time(self):
        """Steps on one thread, with the norm of the gradient on both sides."""
        ours = par_side.measure(self.binaries, self.folder, self.one, TIMED + 1)
        theirs = torch_side(self.recipe.name, self.folder, "time")
        self.row.update(step_s=ours["cpu_s"], peak_mib=ours["peak_mib"])
        self.row.update(torch_step_s=theirs["cpu_s"], torch_peak_mib=theirs["peak_mib"],
                        ratio=self.row["step_s"] / theirs["cpu_s"])
        if self.row["ratio"] > MOST_RATIO:
            self.row["failed"]["ratio"] = (f"a step takes {self.row['ratio']:.2f} of PyTorch's CPU time, "
                                           f"at most {MOST_RATIO}")


def failures(rows):
    return sum(bool(row["failed"]) for row in rows) + (sum("refused" in row for row in rows) > MOST_REFUSED)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path)
    parser.add_argument("--only", default="", help="names, separated by commas")
    parser.add_argument("--stages", default=",".join(STAGES))
    parser.add_argument("--steps", type=int, default=STEPS, help="of the plans")
    parser.add_argument("--jobs", type=int, default=1, help="architectures at a time; times then say less")
    parser.add_argument("--json", type=pathlib.Path, help="rows are appended, a JSON object a line")
    default = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "par-zoo"
    parser.add_argument("--cache", type=pathlib.Path, default=default)
    parser.add_argument("--big", type=pathlib.Path, help="plan the big ones, exported here")
    parser.add_argument("--table", type=pathlib.Path, nargs="+",
                        help="print what --json wrote, or a page with the table")
    options = parser.parse_args()
    if options.table:
        sys.exit(1 if failures(table.print_rows(options.table)) else 0)
    if not options.bin:
        parser.error("--bin says where the tools are")
    if options.big:
        import planning
    known = [recipe.name for recipe in planning.BIG] if options.big else list(RECIPES)
    names = options.only.split(",") if options.only else known
    if unknown := [name for name in names if name not in known]:
        parser.error(f"no architecture is called {', '.join(unknown)}; they are {', '.join(known)}")
    if options.big:
        sys.exit(planning.main(options, names))
    begin, rows, stages = time.monotonic(), [], set(options.stages.split(","))
    if "time" in stages:
        stages.add("loss")
    if "loss" in stages:
        stages.add("export")
    print(table.head(), flush=True)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        trials = [pool.submit(lambda name=name: Trial(options, RECIPES[name]).run(stages)) for name in names]
        for trial in concurrent.futures.as_completed(trials):
            rows.append(trial.result())
            print(table.line_of(rows[-1]), flush=True)
            if options.json:
                with options.json.open("a") as file:
                    file.write(json.dumps(rows[-1]) + "\n")
    print(f"{time.monotonic() - begin:.0f} s")
    table.summarise(rows)
    sys.exit(1 if failures(rows) else 0)


if __name__ == "__main__":
    main()

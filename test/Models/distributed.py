#!/usr/bin/env python3
"""Trains every model of a folder on several ranks and holds it against one rank, a line a claim: figure, bound, pass or
FAIL.

    distributed.py --bin build/bin --models FOLDER [--only resnet] [--variant legacy] [--plan dp2tp2]
    distributed.py --bin build/bin --models FOLDER --random 100 [--seed 1]

FOLDER is as models.py describes it. Without --random: ten steps under every plan of PLANS; shardings are by a rule that
knows no model (see shards), cuts by cost. With it: plans are drawn (mesh, shardings, zero, offload, microbatches, cuts,
schedule, recompute, groups of batch norm, optimizer), a line each; a plan that the compiler refuses with a located
sentence is counted, not failed. One rank computes the same: the whole batch as one microbatch, batch norm in as many
groups. The bounds are of the order of additions, which is all that a plan may change: losses 2e-5, weights 2e-5 of the
tensor's largest and 1e-9 more for those whose gradient is zero in exact arithmetic. Ten minutes on two cores. Only
Python's standard library is used. Exit status 0: all hold.
"""
import argparse
import functools
import math
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

from models import find
from runs import FLOATS, Claims, Failed, Runs, largest, nudged, read_safetensors, types_of, write_safetensors
from train_reference import optimizer_of

# The balance loss of its experts is a product of means over the whole batch, which microbatches do not know.
WHOLE_BATCH = {"moe"}
BATCH_NORM = {"resnet"}
NUDGES = 3
TABLE = re.compile(r"embed|tables|wte|wpe|shared|lm_head|decoder.weight$")


@functools.lru_cache(maxsize=None)
def listed(binaries, file, kind):
    command = [binaries / "par-compile", file, f"--list={kind}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def parameters(binaries, file):
    """(name, shape) of what is trained."""
    lines = re.findall(r"^  (\S+)  f32\[([\d, ]*)\](.*)$", listed(binaries, file, "params"), re.M)
    return [(name, [int(size) for size in shape.split(",")] if shape else [])
            for name, shape, rest in lines if "not trained" not in rest]


def modules(binaries, file):
    return re.findall(r"^  (\S+)$", listed(binaries, file, "modules"), re.M)


def shards(parameters, size, turn=0):
    """Rows of tables; matmuls by turns on either dim, so a row-parallel matmul follows a column-parallel one; the
    output channels of convolutions; experts. Only dims that `size` divides; vectors at random."""
    rules = {}
    for name, shape in parameters:
        if len(shape) < 2:
            continue
        dims = [0]
        if len(shape) == 2 and not TABLE.search(name):
            dims, turn = [turn, 1 - turn], 1 - turn
        divided = [dim for dim in dims if shape[dim] % size == 0]
        if divided:
            rules[f"^{name}"] = {divided[0]: "tp"}
    return rules


def layouts(parameters, mesh):
    """By turns: a gradient over dp, states over dp, a gradient whole and states over tp or dp on the last dim."""
    rules = {}
    for turn, (name, shape) in enumerate(item for item in parameters if item[1]):
        last = next((axis for axis in ("tp", "dp") if shape[-1] >= mesh.get(axis, shape[-1] + 1)), None)
        if turn % 3 == 2 and last:
            rules |= {f"grad(^{name})": {"closed": "true"}, f"state(^{name})": {-1: last}}
        elif turn % 3 < 2 and shape[0] >= mesh["dp"]:
            rules[f"{('grad', 'state')[turn % 3]}(^{name})"] = {0: "dp"}
    return rules


def sums(parameters, modules):
    """Results of matmuls may stay sums over tp, by turns before and after the rules of weights; and their gradients
    over dp."""
    rules = {}
    for turn, (name, shape) in enumerate(item for item in parameters if len(item[1]) == 2):
        module = name.rpartition(".")[0]
        if module in modules:
            rules[f"out(^{module})"] = {"partial": "tp", "priority": 2 * (turn % 2)}
        rules[f"grad(^{name})"] = {"partial": "dp"}
    return rules


def has_batch_norm(model):
    return getattr(model, "batch_norm", model.name in BATCH_NORM)


class Plan:
    """The plan's keys besides the optimizer. `train` is further keys of `train`, which one rank has too. Each of
    several meshes is a stage's; the least common multiple of an axis' sizes counts."""

    def __init__(self, mesh, microbatches=1, shard=None, turn=0, groups=None, over=("dp",), train=None, rules=(),
                 **keys):
        self.meshes = mesh if isinstance(mesh, list) else []
        if self.meshes:
            axes = {axis: None for stage in mesh for axis in stage}
            mesh = {axis: math.lcm(*(stage.get(axis, 1) for stage in self.meshes)) for axis in axes}
        self.mesh, self.microbatches, self.shard = mesh, microbatches, shard
        self.turn, self.groups, self.keys = turn, groups, keys
        self.rules = rules  # further ones: layouts, sums
        self.over, self.train = [axis for axis in over if axis in mesh], train or {}

    def of(self, model, binaries):
        """The plan's text, and that of one rank that computes the same."""
        microbatches = 1 if model.name in WHOLE_BATCH else self.microbatches
        rules = self.shard
        if rules is None and self.mesh.get("tp", 1) > 1:
            rules = shards(parameters(binaries, model.file), self.mesh["tp"], self.turn)
        if "layouts" in self.rules:
            rules = {**(rules or {}), **layouts(parameters(binaries, model.file), self.mesh)}
        if "sums" in self.rules:
            rules = {**(rules or {}), **sums(parameters(binaries, model.file), modules(binaries, model.file))}
        over = f", over: [{', '.join(self.over)}]" if self.over else ""
        keys = dict(self.keys)
        if self.meshes:
            meshes = ", ".join(map(flow, self.meshes))
            keys["pipeline"] = f"{{meshes: [{meshes}], {keys.get('pipeline', '{cuts: auto}')[1:]}"
        lines = [*([] if self.meshes else [f"mesh: {flow(self.mesh)}"]),
                 f"batch: {{microbatches: {microbatches}{over}}}",
                 *(f"{key}: {value}" for key, value in keys.items())]
        if rules:
            lines += ["shard:", *(f'  "{name}": {flow(rule)}' for name, rule in rules.items())]
        one = ["batch: {microbatches: 1}"]
        if has_batch_norm(model):
            lines.append(f"batch_norm: {self.groups or 'microbatch'}")
            one.append(f"batch_norm: {microbatches * (self.ways() if self.groups == 'local' else 1)}")
        return "\n".join(lines) + "\n", "\n".join(one) + "\n"

    def ways(self):
        """Into how many parts the axes cut a microbatch."""
        return math.prod(self.mesh[axis] for axis in self.over)


def flow(mapping):
    return "{" + ", ".join(f"{key}: {value}" for key, value in mapping.items()) + "}"


PLANS = {
    "dp2tp2": Plan({"dp": 2, "tp": 2}),
    "dp2tp2-m2": Plan({"dp": 2, "tp": 2}, 2, turn=1, recompute="full"),
    "dp2tp2-local": Plan({"dp": 2, "tp": 2}, 2, groups="local"),
    "pp2dp2": Plan({"pp": 2, "dp": 2}, 4, pipeline="{cuts: auto}"),
    "pp2dp2-full": Plan({"pp": 2, "dp": 2}, 2, groups="local", pipeline="{cuts: auto, schedule: gpipe}",
                        recompute="full"),
    "pp2tp2": Plan({"pp": 2, "tp": 2}, 4, pipeline="{cuts: auto}"),
    "dp4": Plan({"dp": 4}, 2),
    "tp4": Plan({"tp": 4}),
    "pp4": Plan({"pp": 4}, 4, pipeline="{cuts: auto}"),
    "one-m4": Plan({}, 4, recompute="full"),
    "dp4-zero1": Plan({"dp": 4}, 2, zero="{level: 1, min_size: 0}", train={"clip": 0.5}),
    "dp2tp2-zero2": Plan({"dp": 2, "tp": 2}, 2, zero="{level: 2, min_size: 0}"),
    "dp2tp2-layouts": Plan({"dp": 2, "tp": 2}, 2, rules=["layouts"], train={"clip": 0.5}),
    "pp2dp2-layouts": Plan({"pp": 2, "dp": 2}, 4, rules=["layouts"], pipeline="{cuts: auto}"),
    "dp4-zero3-layouts": Plan({"dp": 4}, 2, rules=["layouts"], zero="{level: 3, min_size: 0}"),
    "pp2dp2-zero3": Plan({"pp": 2, "dp": 2}, 4, pipeline="{cuts: auto}", zero="{level: 3, min_size: 0}"),
    "2-1": Plan([{"dp": 2}, {"dp": 1}], 4, train={"clip": 0.5}),
    "1-2": Plan([{}, {"dp": 2}], 4, pipeline="{schedule: gpipe}"),
    "2-1-1": Plan([{"dp": 2}, {}, {}], 2, zero="{level: 2, min_size: 0}"),
    "1-2-1": Plan([{}, {"dp": 2}, {}], 2, groups="local", recompute="full"),
    "tp2-dp2": Plan([{"tp": 2}, {"dp": 2}], 2, train={"clip": 0.5}),
    "dp2tp2-dp2": Plan([{"dp": 2, "tp": 2}, {"dp": 2}], 2, turn=1),
    "dp2tp2-sums": Plan({"dp": 2, "tp": 2}, 2, turn=1, rules=["sums"], zero="{level: 2, min_size: 0}"),
}


MESHES = [{"dp": 2}, {"tp": 2}, {"tp": 3}, {"pp": 2}, {"tp": 4}, {"dp": 2, "tp": 2}, {"tp": 2, "dp": 2},
          {"pp": 2, "dp": 2},
          {"pp": 2, "tp": 2}, {"tp": 2, "pp": 2}, {"pp": 3}, {"pp": 2, "dp": 2, "tp": 2}, {"dp": 2, "tp": 3}, {"dp": 4}]


def draw_shards(choose, mesh, parameters):
    """Any dim of parameters over one axis or two, some with all other dims whole."""
    axes = [axis for axis in ("tp", "dp") if axis in mesh]
    rules, share = {}, choose.choice([0.2, 0.5, 0.9])
    for name, shape in parameters if axes else []:
        if shape and choose.random() < share:
            axis = choose.choice([*axes[:1] * 4, *axes, f"[{', '.join(axes)}]"])
            size = mesh[axis] if axis in mesh else math.prod(mesh[each] for each in axes)
            dims = [dim for dim, length in enumerate(shape) if length >= size]
            if dims:
                rules[f"^{name}"] = {choose.choice(dims): axis, **choose.choice([{}, {}, {"closed": "true"}]),
                                     **priority(choose)}
    return rules


def priority(choose):
    """Priority of the batch's rule, of values sharded by zero, or after it; mostly not set."""
    return choose.choice([{}] * 5 + [{"priority": 0}, {"priority": 2}, {"priority": 3}])


def draw_layouts(choose, mesh, parameters, modules):
    """Gradients and states over any axes, on any dim, some with all other dims replicated, or gradients that stay sums;
    dim 1 or 2 of some modules' results; results of matmuls that may stay sums."""
    axes, rules = [axis for axis in ("tp", "dp") if axis in mesh], {}
    for name, shape in parameters if axes and choose.random() < 0.5 else []:
        for what in ("grad", "state"):
            axis = choose.choice(axes)
            dims = [dim for dim, length in enumerate(shape) if length >= mesh[axis]]
            if dims and choose.random() < 0.3:
                late = priority(choose) if what == "state" else {}
                rules[f"{what}(^{name})"] = {choose.choice(dims): axis, **choose.choice([{}, {"closed": "true"}]),
                                             **late}
            elif what == "grad" and choose.random() < 0.1:
                rules[f"grad(^{name})"] = {"partial": choose.choice(axes)}
    if "tp" in mesh and choose.random() < 0.3:
        for name in choose.sample(modules, min(2, len(modules))):
            rules[f"out(^{name})"] = {choose.choice([1, 1, 2]): "tp", **priority(choose)}
    products = [name.rpartition(".")[0] for name, shape in parameters if len(shape) == 2]
    for name in products if axes and choose.random() < 0.3 else []:
        if name in modules and f"out(^{name})" not in rules:
            rules[f"out(^{name})"] = {"partial": choose.choice(axes), **priority(choose)}
    return rules


STAGES = [{}, {"dp": 2}, {"dp": 2}, {"tp": 2}, {"dp": 2, "tp": 2}, {"tp": 2, "dp": 2}, {"dp": 3}, {"dp": 4}, {"tp": 3},
          {"tp": 4}]


def draw_meshes(choose):
    """Two or three stages of any width, of at most eight ranks."""
    while True:
        meshes = [choose.choice(STAGES) for _ in range(choose.choice([2, 2, 3]))]
        if sum(math.prod(mesh.values()) for mesh in meshes) <= 8 and any(meshes):
            return meshes


def draw(choose, model, parameters, modules, meshes=False):
    """A random plan. Its text may be refused: cuts that leave a stage empty, for one."""
    if meshes:
        several = draw_meshes(choose)
        mesh = Plan(several).mesh
    else:
        mesh = choose.choice(MESHES)
    rules = draw_shards(choose, mesh, parameters) | draw_layouts(choose, mesh, parameters, modules)
    plan = Plan(several if meshes else mesh, shard=rules, groups=choose.choice([None, "local"]),
                over=choose.choice([["dp"], ["dp"], ["dp", "tp"]]) if mesh.get("tp") != 3 else ["dp"])
    plan.keys = {"recompute": choose.choice(["none", "full", "{each: \"" + choose.choice(modules) + "\"}"]),
                 "collectives": choose.choice(["{bucket: 0}", "{overlap: false}", "{}"])}
    if meshes or "pp" in mesh:
        schedules = ["1f1b", "gpipe", *["zb-h1"] * meshes]
        plan.keys["pipeline"] = flow({"cuts": "auto", "schedule": choose.choice(schedules)})
    # A group of one sample has no variance where a feature map is one pixel: the bounds would be of noise.
    most = getattr(model, "batch", 8) // (2 if has_batch_norm(model) else 1)
    plan.microbatches = max(1, min(choose.choice([1, 2, 4, 8]), most // plan.ways()))
    if choose.random() < 0.2:
        plan.train["clip"] = 1.0
    if choose.random() < 0.2:
        plan.train["freeze"] = "[" + ", ".join(f'"^{name}"' for name, _ in choose.sample(parameters, 2)) + "]"
    if plan.over and choose.random() < 0.5:
        over = choose.choice([plan.over, plan.over[:1]])
        plan.keys["zero"] = flow({"level": choose.choice([1, 2, 3]), "over": f"[{', '.join(over)}]",
                                  "min_size": choose.choice([0, 0, 1024])})
    if choose.random() < 0.3:
        what = [word for word in ("params", "states", "saved") if choose.random() < 0.6]
        what += [f'"^{name}"' for name, _ in choose.sample(parameters, 2)] if choose.random() < 0.3 else []
        plan.keys["offload"] = f"[{', '.join(what)}]"
    return plan


def worse(distance, bound):
    """The larger share of its bound, of the loss and of the weights."""
    share = largest((distance[0] / bound, distance[1]))
    return math.inf if math.isnan(share) else share


class Pair:
    """A model under a plan, and on one rank."""

    whole = {}  # what one rank computed, by model, plan and steps

    def __init__(self, runs, model, plan, optimizer="sgd", steps=10):
        self.runs, self.model, self.optimizer, self.steps = runs, model, optimizer, steps
        train = optimizer_of(optimizer, model.reference["runs"][optimizer]["options"]).removesuffix("}\n")
        train += "".join(f", {key}: {value}" for key, value in plan.train.items()) + "}\n"
        texts = plan.of(model, runs.binaries)
        self.plan, self.one = (text + train for text in texts)
        self.still = texts[1] + "train: {optimizer: {kind: sgd, lr: 0}}\n"

    def train(self, plan, seed=None):
        """Losses, and the weights that are left; with a seed, from weights with other last bits."""
        data, start = self.model.folder / "data.safetensors", []
        if seed is not None:
            _, initial = self.runs.train(self.runs.compile(self.model.file, self.still), data, 1)
            start = ["--weights", self.runs.work / "nudged.safetensors"]
            write_safetensors(start[1], nudged(read_safetensors(initial, FLOATS), seed), types_of(initial))
        lines, weights = self.runs.train(self.runs.compile(self.model.file, plan), data, self.steps, *start)
        return [line["loss"] for line in lines], read_safetensors(weights, FLOATS)

    def alone(self, seed=None):
        key = (self.model.file, self.one, self.steps, seed)
        if key not in self.whole:
            self.whole[key] = self.train(self.one, seed)
        return self.whole[key]

    def compare(self, bound=2e-5):
        """The largest difference of a loss, and that of a weight as a share of its bound with the parameter's name.
        Batch norms amplify rounding, at times to another path: if a loss is farther than `bound` or a weight than its
        own, plan and one rank are run with other last bits of the initial weights, and the nearest two count. A wrong
        result is far from all."""
        self.found = self.train(self.plan)
        nearest = self.distance(self.alone(), self.found)
        if has_batch_norm(self.model) and worse(nearest, bound) > 1:
            wholes, founds = [self.alone()], [self.found]
            for seed in range(NUDGES):
                wholes.append(self.alone(seed))
                founds.append(self.train(self.plan, seed))
            far, nearest = nearest, min((self.distance(whole, found) for whole in wholes for found in founds),
                                        key=lambda distance: worse(distance, bound))
            print(f"{self.model.title}: {worse(far, bound):.3g} of the bounds; of {NUDGES} with other last bits the "
                  f"nearest two count")
        return nearest

    def distance(self, whole, found):
        (losses, weights), (others, parts) = whole, found
        loss = largest(abs(a - b)
                       for a, b in zip(losses, others)) if len(losses) == len(others) == self.steps else math.nan
        shares = {name: self.share(name, weight[1], parts[name][1]) for name, weight in weights.items()}
        worst = max(shares, key=lambda name: math.inf if math.isnan(shares[name]) else shares[name])
        return loss, shares[worst], worst

    def share(self, name, whole, part):
        if self.optimizer == "adamw":
            # It makes steps of the learning rate of gradients that are nothing but noise; of the others the norm holds.
            if name in self.model.reference["runs"]["adamw"]["unstable_norms"]:
                return 0.0
            norm = math.sqrt(math.fsum(a * a for a in whole))
            return math.sqrt(math.fsum((a - b) ** 2 for a, b in zip(whole, part))) / (2e-2 * norm + 1e-3)
        return largest(abs(a - b) for a, b in zip(whole, part)) / (2e-5 * max(map(abs, whole), default=0) + 1e-9)


def show(runs, claims, models, plans):
    for model in models:
        for case in plans:
            title = f"{model.title} {case}"
            with claims.watch(title):
                loss, share, worst = Pair(runs, model, PLANS[case]).compare()
                claims.hold(f"{title}: losses to one rank's", loss, 2e-5)
                claims.hold(f"{title}: weights, worst {worst[-40:]}", share, 1, unit="of the bound")


def refusal(said):
    """The compiler's located sentence, or nothing: it crashed or found a fault of its own, or a run failed."""
    line = re.search(r"^\S+: error: .*$", said, re.M)
    fault = re.search(r"does not dominate|'par\.\w+' op|operand #|result #|before and after", said)
    return line[0] if line and not fault and "exit 1\n" in said and said.split()[0].endswith("par-compile") else ""


def play(runs, claims, models, count, seed, draw_case):
    """Random plans of random models: `draw_case(choose, model)` gives a title, the plan's text, and what holds the
    claims."""
    refused = 0
    for each in range(seed, seed + count):
        choose = random.Random(each)
        name, plan, hold = draw_case(choose, choose.choice(models))
        title = f"seed {each} {name}"
        try:
            hold(title)
        except (Failed, subprocess.TimeoutExpired) as failure:
            sentence = refusal(str(failure))
            refused += bool(sentence)
            print(f"{title}: {'refused: ' + sentence if sentence else 'FAIL'}", flush=True)
            if not sentence:
                claims.failures.append(f"{title}: {failure}\n{plan}")
        while runs.bundles:
            shutil.rmtree(runs.bundles.popitem()[1], ignore_errors=True)
    print(f"{count} plans drawn from seed {seed}, {refused} refused")


def drawn_pair(runs, claims, meshes, choose, model):
    optimizer = choose.choice(["sgd", "momentum", "adamw"])
    plan = draw(choose, model, parameters(runs.binaries, model.file), modules(runs.binaries, model.file), meshes)
    pair = Pair(runs, model, plan, optimizer, 4)

    def hold(title):
        # A difference of one rounding grows by the learning rate a step under adamw.
        bound = 1e-3 if optimizer == "adamw" else 2e-5
        loss, share, worst = pair.compare(bound)
        claims.hold(f"{title}: losses", loss, bound)
        claims.hold(f"{title}: weights, worst {worst[-40:]}", share, 1, unit="of the bound")

    mesh = " > ".join(map(flow, plan.meshes or [plan.mesh]))
    return f"{model.title} {mesh} m {plan.microbatches} {optimizer}", pair.plan, hold


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", help="default: on the PATH",
                        default=pathlib.Path(shutil.which("par-compile") or ".").parent)
    parser.add_argument("--models", required=True, type=pathlib.Path)
    parser.add_argument("--only", action="append", help="a model's name; repeat")
    parser.add_argument("--variant", action="append", help="plain, optimized, opset23 or legacy; repeat")
    parser.add_argument("--plan", action="append", choices=sorted(PLANS), help="default: all")
    parser.add_argument("--random", type=int, help="how many plans to draw")
    parser.add_argument("--meshes", action="store_true", help="draw plans whose stages have meshes of their own")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    models = [model for model in find(options.models, options.only, options.variant) if not model.lost()]
    if not models:
        parser.error(f"no such models in {options.models}")
    claims, begin = Claims(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="par-distributed-") as work:
        runs = Runs(options.bin, work)
        if options.random:
            play(runs, claims, models, options.random, options.seed,
                 functools.partial(drawn_pair, runs, claims, options.meshes))
        else:
            show(runs, claims, models, options.plan or PLANS)
    print("\n".join(f"FAIL {line}" for line in claims.failures))
    print(f"{claims.count} claims, {len(claims.failures)} failed, {time.monotonic() - begin:.0f} s")
    sys.exit(1 if claims.failures else 0)


if __name__ == "__main__":
    main()

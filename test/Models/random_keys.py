#!/usr/bin/env python3
"""Trains small models under random combinations of the plan's keys and holds them against one rank, a line a claim:
figure, bound, pass or FAIL.

    random_keys.py --bin build/bin [--models FOLDER] [--count 100] [--seed 1] [--only words]

Drawn are the loss, optimizer, rate, clipping, averages, frozen and tied parameters, precision, batches with NaN, mesh,
zero, shardings, schedule, microbatches, recompute and offload. Each case is three runs of six steps with evaluations:
one rank; the plan; the plan up to a save, and another plan from there on. Losses, rates, norms, evaluations, weights
and averages are one rank's; the first plan resumed from its own save computes the same bits. FOLDER has exported models
(models.py). A plan that the compiler refuses with a located sentence is counted and printed, not failed.

Bounds are of the order of additions. If a figure is farther, one rank is trained from weights with other last bits
as well (signs of lion and steps of adamw amplify them), and a figure counts in multiples of what that changed. Only
Python's standard library is used. Exit status 0: all hold.
"""
import argparse
import json
import math
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "Execute"), str(HERE.parent / "Phases/Import/Inputs")]
import dropout  # noqa: E402
from distributed import draw_shards, flow, listed, modules, parameters, refusal, shards  # noqa: E402
from encode import encode  # noqa: E402
from models import find  # noqa: E402
from runs import FLOATS, Claims, Failed, Runs, largest, read_safetensors, types_of, write_safetensors  # noqa: E402

STEPS, HALF, ROWS, HELD_OUT, CLASSES, INPUTS = 6, 3, 60, 29, 11, 10
MESHES = [{"dp": 2}, {"dp": 3}, {"dp": 4}, {"tp": 2}, {"tp": 3}, {"pp": 2}, {"pp": 3}, {"dp": 2, "tp": 2},
          {"tp": 2, "dp": 2}, {"pp": 2, "dp": 2}, {"dp": 2, "pp": 2}, {"pp": 2, "tp": 2}, {"pp": 2, "dp": 3},
          {"pp": 2, "dp": 2, "tp": 2}, {"dp": 2, "pp": 2, "tp": 2}, {"pp": 4, "dp": 2}, {"dp": 4, "tp": 2}]
RATES = ["1e-2", "{peak: 1e-2, decay: step, milestones: [2, 4], gamma: 0.5}",
         "{peak: 1e-2, decay: step, step_size: 2, warmup: 2}", "{peak: 2e-2, decay: one_cycle, steps: 6}",
         "{peak: 2e-2, decay: one_cycle, steps: 8, anneal: linear, three_phase: true}",
         "{peak: 1e-2, decay: cosine, steps: 5, warmup: 1, floor: 1e-3}", "{peak: 1e-2, decay: linear, steps: 4}",
         "{peak: 1e-2, decay: rsqrt, warmup: 2}"]


class Case:
    """A model: its file, batch, inputs of the data, and the losses that can be attached to it."""

    def __init__(self, title, file, batch, losses=("",), layers=None, floats=(), ties=(), balance=False):
        self.title, self.file, self.batch, self.losses, self.layers = title, file, batch, losses, layers
        self.floats, self.ties = floats, ties  # inputs that can be NaN; further names of parameters


def scores_model(choose):
    """Three blocks with a norm and a residual, scores of classes."""
    lines = ["opset 20", f"input x f32[batch,{INPUTS}]", f"output y f32[batch,{CLASSES}]"]

    def init(name, *shape, base=0.0):
        numbers = " ".join(f"{base + choose.gauss(0, 0.4):.6f}" for _ in range(math.prod(shape)))
        lines.append(f"init {name} f32[{','.join(map(str, shape))}] = {numbers}")
        return name

    lines += ["module first", f"node m0 MatMul x,{init('first.weight', INPUTS, 16)} -> m0",
              f"node a0 Add m0,{init('first.bias', 16)} -> h0"]
    for k in range(4):
        name = f"b.{k}"
        lines += [f"module {name}",
                  f"node n{k} LayerNormalization h{k},{init(name + '.ln.weight', 16, base=1.0)},"
                  f"{init(name + '.ln.bias', 16)} -> n{k} axis=-1",
                  f"node u{k} MatMul n{k},{init(name + '.up.weight', 16, 34)} -> u{k}",
                  f"node c{k} Add u{k},{init(name + '.up.bias', 34)} -> c{k}", f"node t{k} Tanh c{k} -> t{k}",
                  f"node d{k} MatMul t{k},{init(name + '.down.weight', 34, 16)} -> d{k}",
                  f"node r{k} Add h{k},d{k} -> h{k + 1}"]
    lines += ["module last", f"node m9 MatMul h4,{init('last.weight', 16, CLASSES)} -> m9",
              f"node y Add m9,{init('last.bias', CLASSES)} -> y"]
    return encode(lines)


def class_weights(choose, many):
    return "[" + ", ".join(f"{choose.choice([0, 0.25, 0.5, 1, 1.5, 3])}" for _ in range(many - 1)) + ", 1]"


def cross_entropies(choose, many):
    """(kind of labels, text of train.loss)"""
    weights = class_weights(choose, many)
    return [("hard", "loss: cross_entropy"), ("hard", "loss: {smoothing: 0.2}"),
            ("hard", f"loss: {{class_weights: {weights}, smoothing: 0.1}}"),
            ("full", f"loss: {{class_weights: {weights}, ignore: 2}}"), ("soft", "loss: {soft: true}"),
            ("soft", f"loss: {{soft: true, smoothing: 0.1, class_weights: {weights}}}")]


def write_data(work, choose):
    """Data of the two models of this folder by kind of labels: hard, soft, real."""
    vocabulary, length = dropout.VOCABULARY, dropout.LENGTH

    def shares(many, classes):
        out = []
        for _ in range(many):
            raw = [choose.random() ** 2 for _ in range(classes)]
            out += [x / sum(raw) for x in raw]
        return out

    for name, rows in (("data", ROWS), ("eval", HELD_OUT)):
        x = ([rows, INPUTS], [choose.gauss(0, 1) for _ in range(rows * INPUTS)])
        hard = ([rows], [choose.choice([choose.randrange(CLASSES), choose.randrange(3), -100]) for _ in range(rows)])
        real = ([rows, CLASSES], [choose.random() for _ in range(rows * CLASSES)])
        soft = ([rows, CLASSES], shares(rows, CLASSES))
        full = ([rows], [choose.randrange(CLASSES) for _ in range(rows)])
        for kind, labels in (("hard", hard), ("full", full), ("real", real), ("soft", soft)):
            write_safetensors(work / f"scores-{kind}-{name}.safetensors", {"x": x, "labels": labels})
        tokens = ([rows, length], [choose.randrange(vocabulary) for _ in range(rows * length)])
        hard = ([rows, length], [choose.choice([choose.randrange(vocabulary)] * 3 + [-100])
                                 for _ in range(rows * length)])
        soft = ([rows, length, vocabulary], shares(rows * length, vocabulary))
        full = ([rows, length], [max(label, 0) for label in hard[1]])
        for kind, labels in (("hard", hard), ("full", full), ("soft", soft)):
            write_safetensors(work / f"words-{kind}-{name}.safetensors", {"tokens": tokens, "labels": labels})


def with_nan(path, to, batch, choose):
    """A copy in which one number of the third batch is NaN."""
    arrays = read_safetensors(path, ("F32", "I64"))
    name = next(name for name, (_, numbers) in arrays.items() if isinstance(numbers[0], float) and name != "labels")
    shape, numbers = arrays[name]
    width = len(numbers) // shape[0]
    numbers = list(numbers)
    numbers[(2 * batch + choose.randrange(batch)) * width + choose.randrange(width)] = math.nan
    write_safetensors(to, {**arrays, name: (shape, tuple(numbers))})


def draw_optimizer(choose, runs, case):
    """Text of train.optimizer and groups."""
    rate = choose.choice(RATES)
    kind = choose.choice(["sgd", "momentum", "momentum", "adamw", "adamw", "lion", "muon"])
    more = {"sgd": ["", ", weight_decay: 0.1"],
            "momentum": ["", ", nesterov: true", ", momentum: 0.5, nesterov: true, weight_decay: 0.05"],
            "adamw": ["", ", betas: [0.8, 0.95], eps: 1e-6, weight_decay: 0.1"],
            "lion": ["", ", betas: [0.8, 0.95], weight_decay: 0.1"],
            "muon": ["", ", nesterov: false, momentum: 0.8, weight_decay: 0"]}[kind]
    text = f"optimizer: {{kind: {kind}, lr: {rate}{choose.choice(more)}}}"
    if kind == "muon":
        others = [f'"^{name}"' for name, shape in parameters(runs.binaries, case.file) if len(shape) != 2]
        other = choose.choice(["{kind: adamw, lr: 1e-3}", "{kind: momentum}", "{kind: lion, lr_scale: 0.1}"])
        text += ", groups: {" + ", ".join(f"{name}: {other}" for name in others) + "}" if others else ""
    elif choose.random() < 0.3:
        name = choose.choice(parameters(runs.binaries, case.file))[0]
        text += f', groups: {{"^{name}": ' + choose.choice(["{lr_scale: 0.5}", "{weight_decay: 0}", "{lr: 3e-3}",
                                                            "{kind: sgd}", "{kind: adamw, lr: 1e-3}"]) + "}"
    return text


class Drawn:
    """Keys that one rank has too: the train key, precision, seed, and the files of data."""

    def __init__(self, choose, runs, case):
        self.case, work = case, runs.work
        self.kind, loss = choose.choice(case.losses)
        keys = [loss] if loss else []
        keys.append(draw_optimizer(choose, runs, case))
        if choose.random() < 0.4:
            keys.append("clip: " + choose.choice(["0.3", "{norm: 1.0}", "{value: 0.01}"]))
        self.averages = choose.random() < 0.4
        if self.averages:
            keys.append("ema: " + choose.choice(["0.7", "{decay: 0.9, warmup: true}", "{decay: 0.8, eval: true}"]))
        self.nan = bool(case.floats) and choose.random() < 0.3
        if self.nan or choose.random() < 0.1:
            keys.append("on_nan: skip")
        if choose.random() < 0.25:
            names = [name for name, _ in parameters(runs.binaries, case.file)]
            keys.append(choose.choice(["freeze", "only"]) + ": [" + ", ".join(
                f'"^{name}"' for name in choose.sample(names, min(len(names), choose.choice([1, 2, 5])))) + "]")
        elif case.ties and choose.random() < 0.4:  # both of a tie are trained, or neither
            keys.append(case.ties)
        self.train = ", ".join(keys)
        self.precision = choose.choice(["f32"] * 5 + ["bf16", "fp16", "{states: bf16}", "{accumulate: bf16}",
                                                      "{compute: bf16, states: bf16}", "{loss_scale: 128}"])
        self.narrow = "16" in self.precision
        self.seed = choose.choice([0, 0, 7])
        self.data = case.data(work, self.kind, "data")
        self.held_out = case.data(work, self.kind, "eval")
        if self.nan:
            to = work / f"{case.title}-nan.safetensors"
            with_nan(self.data, to, case.batch, choose)
            self.data = to

    def text(self):
        seed = f"seed: {self.seed}\n" if self.seed else ""
        return f"train: {{{self.train}}}\nprecision: {self.precision}\n{seed}"


def draw_plan(choose, runs, case):
    """Text of a plan's keys besides those of Drawn, and the mesh."""
    mesh = choose.choice(MESHES)
    ways = mesh.get("dp", 1)
    divisors = [m for m in (1, 2, 3, 4, 6, 8) if case.batch % (m * ways) == 0]
    microbatches = choose.choice(divisors or [1])
    lines = [f"mesh: {flow(mesh)}", f"batch: {{size: {case.batch}, microbatches: {microbatches}}}"]
    if "dp" in mesh and choose.random() < 0.6:
        level = choose.choice([1, 2, 3])
        lines.append("zero: " + flow({"level": level, "min_size": choose.choice([0, 0, 64, 1024]),
                                      **(choose.choice([{}, {"gather": "step"}]) if level == 3 else {})}))
    if "tp" in mesh:
        known = parameters(runs.binaries, case.file)
        rules = shards(known, mesh["tp"], choose.choice([0, 1]))
        if choose.random() < 0.4:
            rules = draw_shards(choose, mesh, known) or rules
        lines += ["shard:", *(f'  "{name}": {flow(rule)}' for name, rule in rules.items())] if rules else []
    if "pp" in mesh:
        schedule = choose.choice(["1f1b", "gpipe", "zb-h1", "interleaved", "zb-v", "auto", "1f1b"])
        keys = {"schedule": schedule, "cuts": "auto"}
        if schedule in ("interleaved", "zb-v"):
            keys["stages"] = 2 * mesh["pp"]
        if case.layers and choose.random() < 0.5 and keys.get("stages", mesh["pp"]) <= 4:
            keys["cuts"] = "{" + case.layers + ": even}"
        if "dp" in mesh and microbatches % mesh["dp"] == 0 and choose.random() < 0.3:
            keys["replicas"] = "round_robin"
        if "tp" in mesh and choose.random() < 0.2:
            keys["scatter_gather"] = "true"
        lines.append(f"pipeline: {flow(keys)}")
    lines.append("recompute: " + choose.choice(["auto", "none", "full", "selective"]))
    if choose.random() < 0.25:
        what = choose.sample(["states", "params", "saved"], choose.choice([1, 2]))
        lines.append(f"offload: [{', '.join(what)}]")
    if choose.random() < 0.4:
        lines.append("collectives: " + choose.choice(["{bucket: 0}", "{overlap: false}", "{decompose: 2}",
                                                      "{deterministic: true}", "{bucket: auto}",
                                                      *["{sums: microbatches}"] * ("zero" not in "".join(lines))]))
    if choose.random() < 0.15 and len(mesh) > 1:
        lines.append("mesh_order: " + choose.choice(["auto", f"[{', '.join(reversed(mesh))}]"]))
    return "\n".join(lines) + "\n", mesh


class Result:
    """Metrics by step, evaluations, weights, averages."""

    def __init__(self, lines, evaluations, weights, averages):
        self.lines, self.evaluations, self.weights, self.averages = lines, evaluations, weights, averages


class Trial:
    def __init__(self, runs, drawn):
        self.runs, self.drawn, self.count = runs, drawn, 0

    def compile(self, plan):
        return self.runs.compile(self.drawn.case.file, plan + self.drawn.text())

    def train(self, bundle, steps, *more, save=None):
        runs, drawn = self.runs, self.drawn
        self.count += 1
        save = save or runs.work / f"save{self.count}"
        shutil.rmtree(save, ignore_errors=True)
        metrics, weights = runs.work / "metrics.jsonl", runs.work / f"weights{self.count}.safetensors"
        metrics.unlink(missing_ok=True)
        runs.run(*runs.command(bundle, drawn.data, steps, "--metrics", metrics, "--export", weights, "--eval-every", 2,
                               "--eval-data", drawn.held_out, "--save", save, *more))
        lines = [json.loads(line) for line in metrics.read_text().splitlines()]
        averages = {}
        if drawn.averages:
            file = runs.work / f"averages{self.count}.safetensors"
            runs.run(runs.binaries / "par-run", bundle, "--into", file, "--from", save / str(steps), "--ema")
            averages = read_safetensors(file, FLOATS)
        return Result([line for line in lines if "loss" in line], [line for line in lines if "eval_loss" in line],
                      read_safetensors(weights, FLOATS), averages), save, weights

    def one(self):
        return self.compile(f"batch: {{size: {self.drawn.case.batch}, microbatches: 1}}\n")

    def start(self):
        """The initial weights."""
        runs, drawn = self.runs, self.drawn
        bundle = self.one()
        out = runs.work / "start.safetensors"
        kept = runs.work / "start-kept.safetensors"
        # An export of a run of no steps is not there: one step at rate 0 changes nothing.
        still = runs.compile(drawn.case.file, f"batch: {{size: {drawn.case.batch}, microbatches: 1}}\n"
                             + self.loss_alone())
        runs.run(*runs.command(still, drawn.data, 1, "--export", out))
        shutil.copy(out, kept)
        return bundle, read_safetensors(kept, FLOATS), types_of(kept)

    def loss_alone(self):
        kind = next(loss for kind, loss in self.drawn.case.losses if not loss or loss in self.drawn.train)
        tie = self.drawn.case.ties if self.drawn.case.ties and self.drawn.case.ties in self.drawn.train else ""
        return "train: {" + ", ".join(filter(None, [kind, tie, "optimizer: {kind: sgd, lr: 0}"])) + "}\n"


def nudged(arrays, seed):
    """The last bit of f32 of every number another, or not: by its value, so alike in all names of a tied parameter."""
    return {name: (shape, tuple(x * (1 + (hash((x, seed)) % 3 - 1) * 2**-24) for x in numbers))
            for name, (shape, numbers) in arrays.items()}


def number(value):
    return math.nan if value is None else value


def apart(a, b):
    """The distance of two numbers; two NaNs are the same."""
    a, b = number(a), number(b)
    return 0.0 if math.isnan(a) and math.isnan(b) else abs(a - b) / max(1.0, abs(a)) if a != b else 0.0


def figures(start, whole, found, first=0):
    """name -> distance: of losses, rates, norms, evaluations, and of each tensor as a share of how far it was moved."""
    lines = whole.lines[first:]
    out = {"count of steps": abs(len(found.lines) - len(lines)),
           "steps": largest(abs(a["step"] - b["step"]) for a, b in zip(lines, found.lines)),
           "losses": largest(apart(a["loss"], b["loss"]) for a, b in zip(lines, found.lines)),
           "rates": largest(apart(a["lr"], b["lr"]) for a, b in zip(lines, found.lines)),
           "skipped": largest(apart(a.get("skipped", 0), b.get("skipped", 0)) for a, b in zip(lines, found.lines)),
           "scales": largest(apart(a.get("loss_scale", 1), b.get("loss_scale", 1)) for a, b in zip(lines, found.lines))}
    if all("grad_norm" in line for line in lines + found.lines):
        out["norms"] = largest(apart(a["grad_norm"], b["grad_norm"]) for a, b in zip(lines, found.lines))
    evaluations = [line for line in whole.evaluations if line["step"] > first]
    out["count of evaluations"] = abs(len(evaluations) - len(found.evaluations))
    out["evaluations"] = largest(apart(a["eval_loss"], b["eval_loss"]) for a, b in zip(evaluations, found.evaluations))
    for what in ("weights", "averages"):
        a, b = getattr(whole, what), getattr(found, what)
        out[f"names of {what}"] = len(a.keys() ^ b.keys())
        for name in a.keys() & b.keys():
            base = start.get(name, a[name])[1]
            moved = math.sqrt(math.fsum((x - y) ** 2 for x, y in zip(a[name][1], base)))
            size = math.sqrt(math.fsum(x * x for x in base))
            distance = math.sqrt(math.fsum((x - y) ** 2 for x, y in zip(a[name][1], b[name][1])))
            # An f32's rounding at each step is no share of a move that is as small.
            out[f"{what} {name}"] = max(0.0, distance - 4e-7 * size) / (moved + 1e-12) if distance else 0.0
    return out


EXACT = {"count of steps", "steps", "count of evaluations", "names of weights", "names of averages", "skipped",
         "scales"}


def worst(found, narrow, slack=None):
    """The figure that is farthest beyond its bound, as a multiple of it."""
    shares = {}
    for name, figure in found.items():
        if name in EXACT:
            bound = 1e-9
        elif name == "rates":
            bound = 1e-12
        elif name in ("losses", "norms", "evaluations"):
            bound = 3e-2 if narrow else 3e-5
        else:
            bound = 0.2 if narrow else 1e-3
        if slack and name not in EXACT:
            bound += 10 * max(each.get(name, 0) for each in slack)
        shares[name] = math.inf if math.isnan(figure) else figure / bound
    name = max(shares, key=shares.get)
    return name, shares[name]


class Alone:
    """The result of one rank, also from weights with other last bits."""

    def __init__(self, trial):
        self.trial = trial
        self.bundle, self.start, self.types = trial.start()
        self.whole, self.save, self.weights = trial.train(self.bundle, STEPS)
        self.nudged = []

    def slack(self):
        if not self.nudged:
            for seed in range(3):
                path = self.trial.runs.work / "nudged.safetensors"
                write_safetensors(path, nudged(self.start, seed), self.types)
                other = self.trial.train(self.bundle, STEPS, "--weights", path)[0]
                self.nudged.append(figures(self.start, self.whole, other))
        return self.nudged


def hold(claims, title, alone, found, first=0):
    drawn = alone.trial.drawn
    distances = figures(alone.start, alone.whole, found, first)
    name, share = worst(distances, drawn.narrow)
    if share > 1:
        name, share = worst(distances, drawn.narrow, alone.slack())
    return claims.hold(f"{title}: {name[-60:]}", share, 1, unit="of the bound")


def check(runs, claims, choose, cases, refused, title):
    case = choose.choice(cases)
    drawn = Drawn(choose, runs, case)
    trial = Trial(runs, drawn)
    (one, mesh), (other, others) = draw_plan(choose, runs, case), draw_plan(choose, runs, case)
    said = f"{title} {case.title} {flow(mesh)} > {flow(others)}"
    story = f"{one}--- then\n{other}--- both\n{drawn.text()}"
    bundles = []
    for plan in (f"batch: {{size: {case.batch}, microbatches: 1}}\n", one, other):
        try:
            bundles.append(trial.compile(plan))
        except Failed as failure:
            sentence = refusal(str(failure))
            print(f"{said}: {'refused: ' + sentence if sentence else 'FAIL'}", flush=True)
            refused.append(sentence)
            bundles.append(None)
            if not sentence:
                claims.failures.append(f"{said}: {str(failure)[-900:]}")
                print(f"{failure}\n{plan}{drawn.text()}")
    if bundles[0] is None:
        return
    before = len(claims.failures)
    with claims.watch(said):
        alone = Alone(trial)
        for bundle in filter(None, bundles[1:]):
            runs.run(runs.binaries / "par-verify", bundle)
        if bundles[1]:
            found, _, weights = trial.train(bundles[1], STEPS)
            hold(claims, f"{said}: plan", alone, found)
            half = trial.train(bundles[1], HALF)[1]
            again, _, same = trial.train(bundles[1], STEPS, "--resume", half / str(HALF))
            same_bits = same.read_bytes() == weights.read_bytes(), again.averages == found.averages
            claims.equal(f"{said}: resumed", (*same_bits, [line["loss"] for line in again.lines]),
                         (True, True, [line["loss"] for line in found.lines[HALF:]]))
        else:
            half = trial.train(bundles[0], HALF)[1]
        if bundles[2]:
            found = trial.train(bundles[2], STEPS, "--resume", half / str(HALF))[0]
            hold(claims, f"{said}: under another plan", alone, found, HALF)
    if len(claims.failures) > before:
        print(story)


def cases_of(runs, models):
    choose = random.Random(11)
    write_data(runs.work, choose)
    cases = []
    file = runs.work / "scores.onnx"
    file.write_bytes(scores_model(choose))
    losses = cross_entropies(choose, CLASSES) + [("real", f"loss: {kind}") for kind in ("mse", "l1", "bce")]
    cases.append(Case("scores", file, 12, losses, "b.*", ["x"]))
    losses = cross_entropies(choose, dropout.VOCABULARY)
    for title, ratio in (("words", 0.0), ("dropped", 0.2)):
        file = runs.work / f"{title}.onnx"
        file.write_bytes(dropout.Model(ratio, layers=4).build())
        cases.append(Case(title, file, 12, losses, "h.*", ties="tie: {h.3.up.weight: h.0.up.weight}"))
    for case in cases:
        stem = "words" if case.title == "dropped" else case.title
        case.data = lambda work, kind, part, stem=stem: work / f"{stem}-{kind}-{part}.safetensors"
    for model in models:
        arrays = read_safetensors(model.folder / "data.safetensors", ("F32", "I64"))
        floats = [name for name, (_, numbers) in arrays.items() if isinstance(numbers[0], float) and name != "labels"]
        case = Case(model.title, model.file, model.batch, [("own", "")], None, floats)
        part = runs.work / f"{model.title.replace(' ', '-')}-eval.safetensors"
        some = model.batch + 5
        write_safetensors(part, {name: ([some, *shape[1:]], numbers[:some * (len(numbers) // shape[0])])
                                 for name, (shape, numbers) in arrays.items()})
        case.data = lambda work, kind, what, part=part, model=model: (
            part if what == "eval" else model.folder / "data.safetensors")
        cases.append(case)
    return cases


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", help="default: on the PATH",
                        default=pathlib.Path(shutil.which("par-compile") or ".").parent)
    parser.add_argument("--models", type=pathlib.Path, help="a folder of exported models, beside those made here")
    parser.add_argument("--only", action="append", help="a model's name; repeat")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    claims, refused = Claims(), []
    with tempfile.TemporaryDirectory(prefix="par-random-keys-") as work:
        runs = Runs(options.bin, work, timeout=120)
        models = find(options.models, None, ["plain"]) if options.models else []
        # Statistics of a batch norm are those of a microbatch, and amplify rounding: distributed.py has them.
        models = [model for model in models if model.name not in ("resnet", "unet") and not model.lost()]
        cases = [case for case in cases_of(runs, models) if not options.only or case.title in options.only]
        for seed in range(options.seed, options.seed + options.count):
            check(runs, claims, random.Random(seed), cases, refused, f"seed {seed}")
            shutil.rmtree(runs.work / "save", ignore_errors=True)
            while runs.bundles:
                shutil.rmtree(runs.bundles.popitem()[1], ignore_errors=True)
        print(f"{options.count} cases drawn from seed {options.seed}, {len(refused)} plans refused")
        claims.finish()


if __name__ == "__main__":
    main()

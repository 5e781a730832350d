#!/usr/bin/env python3
"""Checks `sparse: true` against plan.md, a line a claim: figure, bound, pass or FAIL.

    sparse.py --bin build/bin [--optimizer adamw]... [--plan dp2]...

Two tables, one of them looked up twice, are trained six steps on one rank and under every plan of PLANS: losses, norms
of the gradient and weights are those of a step written here in Python's floats. Rows are looked up several times in one
microbatch, in several, on several ranks, and not at all; some labels are ignored. Plain sgd equals the dense one, too.
The formulas equal torch's: --torch compares them with torch.optim.SGD and SparseAdam on sparse gradients. Only Python's
standard library is used otherwise. Exit status 0: all hold.
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

from keys import ENCODE, IGNORED, rounded
from runs import Claims, Runs, largest, read_safetensors, write_safetensors
from train_reference import Trial, optimizer_of

STEPS, BATCH, BAG, WIDTH, CLASSES = 6, 8, 3, 8, 5
SHAPES = {"t": (13, WIDTH), "u": (6, WIDTH), "w": (WIDTH, CLASSES), "c": (CLASSES,)}
TABLES = ("t", "u")
MODEL = f"""input ids i64[{BATCH},{BAG}]
input item i64[{BATCH}]
input kind i64[{BATCH}]
{{inits}}
init axes i64[1] = 1
node bag Gather t,ids -> rows axis=0
node pool ReduceSum rows,axes -> pooled keepdims=0
node one Gather t,item -> other axis=0
node join Mul pooled,other -> h
module second
node second Gather u,kind -> scale axis=0
node scaled Mul h,scale -> z
node product MatMul z,w -> zw
node scores Add zw,c -> y
output y f32[{BATCH},{CLASSES}]
"""
PLANS = {
    "one": "batch: {microbatches: 1}\n",
    "one-m4": "batch: {microbatches: 4}\n",
    "dp2": "mesh: {dp: 2}\nbatch: {microbatches: 1}\n",
    "dp4-m2": "mesh: {dp: 4}\nbatch: {microbatches: 2}\n",
    "rows2": "mesh: {tp: 2}\nshard: {t: {0: tp}, u: {0: tp}}\n",  # 13 rows over 2 ranks: the last one is padding
    "columns2": "mesh: {tp: 2}\nbatch: {microbatches: 2}\nshard: {t: {1: tp}, u: {1: tp}}\n",
    "dp2rows2": "mesh: {dp: 2, tp: 2}\nbatch: {microbatches: 2}\nshard: {t: {0: tp}, u: {0: tp}}\n",
    "pp2": "mesh: {pp: 2}\nbatch: {microbatches: 4}\npipeline: {cuts: [second]}\n",
    "pp2dp2": "mesh: {pp: 2, dp: 2}\nbatch: {microbatches: 2}\npipeline: {cuts: [second]}\nshard: {w: {}}\n",
    # A parameter server: the table's ranks look up and update; u lies on a stage that has no such axis, and is whole
    # there.
    "ps2-dp2": "batch: {microbatches: 2}\nshard: {t: {0: ps}, u: {0: ps}}\npipeline: {meshes: [{ps: 2}, {dp: 2}], "
               "cuts: [second]}\n",
    "dp2-one": "batch: {microbatches: 2}\npipeline: {meshes: [{dp: 2}, {}], cuts: [second]}\n",
    "offload": "batch: {microbatches: 2}\noffload: [params, states]\n",
}


class Sgd:
    """torch.optim.SGD on looked-up rows; the others stay. Momentum, too, is only that of the looked-up rows."""

    def __init__(self, lr, momentum=0.0, nesterov=False, weight_decay=0.0):
        self.lr, self.momentum, self.nesterov, self.decay, self.velocity = lr, momentum, nesterov, weight_decay, {}

    def __call__(self, weights, gradient, elements):
        for i in elements:
            g = gradient[i] + self.decay * weights[i]
            if self.momentum:
                v = self.velocity[i] = self.momentum * self.velocity.get(i, 0.0) + g
                g = g + self.momentum * v if self.nesterov else v
            weights[i] -= self.lr * g


class Adamw:
    """torch.optim.AdamW on looked-up rows, in which every step counts, whichever rows it looks up; the others stay."""

    def __init__(self, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        self.lr, self.betas, self.eps, self.decay, self.step, self.states = lr, betas, eps, weight_decay, 0, {}

    def __call__(self, weights, gradient, elements):
        self.step += 1
        first, second = self.betas
        scale, root = self.lr / (1 - first ** self.step), math.sqrt(1 - second ** self.step)
        for i in elements:
            m, v = self.states.get(i, (0.0, 0.0))
            g = gradient[i]
            m, v = self.states[i] = first * m + (1 - first) * g, second * v + (1 - second) * g * g
            weights[i] -= self.lr * self.decay * weights[i] + scale * m / (math.sqrt(v) / root + self.eps)


OPTIMIZERS = {
    "sgd": ("{kind: sgd, lr: 0.5}", lambda: Sgd(0.5), None),
    "momentum": ("{kind: momentum, lr: 0.2, momentum: 0.8, weight_decay: 0.05}",
                 lambda: Sgd(0.2, momentum=0.8, weight_decay=0.05), None),
    "nesterov": ("{kind: momentum, lr: 0.2, momentum: 0.8, nesterov: true}",
                 lambda: Sgd(0.2, momentum=0.8, nesterov=True), 0.05),
    "adamw": ("{kind: adamw, lr: 1e-2, betas: [0.9, 0.95], eps: 1e-6, weight_decay: 0.1}",
              lambda: Adamw(1e-2, betas=(0.9, 0.95), eps=1e-6, weight_decay=0.1), None),
    "adamw-clip": ("{kind: adamw, lr: 1e-2, betas: [0.9, 0.95], eps: 1e-6, weight_decay: 0}",
                   lambda: Adamw(1e-2, betas=(0.9, 0.95), eps=1e-6, weight_decay=0.0), 0.05),
    "sgd-clip": ("{kind: sgd, lr: 0.5}", lambda: Sgd(0.5), 0.05),
}


def row(table, index):
    return table[index * WIDTH:(index + 1) * WIDTH]


def products(data, weights):
    """The loss and the gradients of one step, a mean over the labels that count, and the rows of each table that it
    looks up."""
    gradients = {name: [0.0] * len(weights[name]) for name in SHAPES}
    touched = {name: set() for name in TABLES}
    count, total = sum(label != IGNORED for label in data["labels"]), 0.0

    def add(table, index, parts):
        for j, part in enumerate(parts):
            gradients[table][index * WIDTH + j] += part

    for sample, label in enumerate(data["labels"]):
        bag, item, kind = data["ids"][sample * BAG:(sample + 1) * BAG], data["item"][sample], data["kind"][sample]
        touched["t"] |= {*bag, item}
        touched["u"].add(kind)
        if label == IGNORED:
            continue
        pooled = [sum(row(weights["t"], i)[j] for i in bag) for j in range(WIDTH)]
        other, scale = row(weights["t"], item), row(weights["u"], kind)
        h = [p * o for p, o in zip(pooled, other)]
        z = [x * s for x, s in zip(h, scale)]
        w = weights["w"]
        scores = [weights["c"][k] + sum(z[j] * w[j * CLASSES + k] for j in range(WIDTH)) for k in range(CLASSES)]
        lse = math.log(math.fsum(map(math.exp, scores)))
        total += lse - scores[label]
        slope = [(math.exp(score - lse) - (k == label)) / count for k, score in enumerate(scores)]
        back = [sum(w[j * CLASSES + k] * slope[k] for k in range(CLASSES)) for j in range(WIDTH)]
        for k in range(CLASSES):
            gradients["c"][k] += slope[k]
            for j in range(WIDTH):
                gradients["w"][j * CLASSES + k] += z[j] * slope[k]
        add("u", kind, [b * x for b, x in zip(back, h)])
        add("t", item, [b * s * p for b, s, p in zip(back, scale, pooled)])
        for index in bag:
            add("t", index, [b * s * o for b, s, o in zip(back, scale, other)])
    return total / count, gradients, touched


def train(optimizer, clip, start, data):
    """Losses, norms of the gradient, and weights after the steps, in Python's floats."""
    weights, losses, norms = {name: list(values) for name, values in start.items()}, [], []
    updates = {name: optimizer() for name in SHAPES}
    for step in range(STEPS):
        loss, gradients, touched = products(data[step], weights)
        losses.append(loss)
        norms.append(math.sqrt(math.fsum(g * g for gradient in gradients.values() for g in gradient)))
        share = min(1, clip / (norms[-1] + 1e-6)) if clip else 1
        for name, gradient in gradients.items():
            rows = touched.get(name, {0})
            width = WIDTH if name in TABLES else len(gradient)
            elements = [index * width + j for index in sorted(rows) for j in range(width)]
            updates[name](weights[name], [g * share for g in gradient], elements)
    return losses, norms, weights


def draw(work):
    """The model's file, its first weights, and the data of all steps in a file and as lists."""
    choose = random.Random(11)
    start = {name: rounded([choose.gauss(0, 0.7) for _ in range(math.prod(shape))]) for name, shape in SHAPES.items()}
    inits = "\n".join(f"init {name} f32[{','.join(map(str, SHAPES[name]))}] = {' '.join(map(repr, numbers))}"
                      for name, numbers in start.items())
    (work / "model.txt").write_text(MODEL.format(inits=inits))
    subprocess.run([sys.executable, ENCODE, work / "model.txt", work / "model.onnx"], check=True)
    steps = []
    for step in range(STEPS):
        # Another part of the tables in each step, so that rows rest between two of them.
        known = choose.sample(range(SHAPES["t"][0]), 6)
        steps.append({"ids": [choose.choice(known) for _ in range(BATCH * BAG)],
                      "item": [choose.choice(known) for _ in range(BATCH)],
                      "kind": [choose.randrange(step % 3, 6) for _ in range(BATCH)],
                      "labels": [IGNORED if choose.random() < 0.2 else choose.randrange(CLASSES)
                                 for _ in range(BATCH)]})
    rows = STEPS * BATCH
    shapes = {"ids": [rows, BAG], "item": [rows], "kind": [rows], "labels": [rows]}
    write_safetensors(work / "data.safetensors",
                      {name: (shape, [x for step in steps for x in step[name]]) for name, shape in shapes.items()})
    return work / "model.onnx", start, work / "data.safetensors", steps


def text_of(plan, name, sparse=True):
    optimizer, _, clip = OPTIMIZERS[name]
    clipped = f", clip: {clip}" if clip else ""
    groups = ", groups: {t: {sparse: true}, u: {sparse: true}}" if sparse else ""
    return PLANS[plan] + f"train: {{loss: cross_entropy, optimizer: {optimizer}{clipped}{groups}}}\n"


def hold(runs, claims, title, bundle, data, losses, norms, weights):
    lines, exported = runs.train(bundle, data, STEPS)
    found = read_safetensors(exported)
    whole = len(lines) == STEPS
    claims.hold(f"{title}: losses", largest(abs(line["loss"] - loss) for line, loss in zip(lines, losses)) if whole
                else math.nan,
                2e-5)
    claims.hold(f"{title}: norms", largest(abs(line["grad_norm"] / norm - 1) for line, norm in zip(lines, norms))
                if whole else math.nan, 1e-5, unit="relative")
    apart = {name: largest(abs(p - q) for p, q in zip(found[name][1], numbers)) / max(map(abs, numbers))
             for name, numbers in weights.items()}
    worst = max(apart, key=apart.get)
    claims.hold(f"{title}: weights, worst {worst}", apart[worst], 2e-5)


def against_torch(claims, start, data):
    """Tables with sparse gradients, where torch has an optimizer that says the same."""
    import torch
    for name, make in (("sgd", lambda tables: torch.optim.SGD(tables, lr=0.5)),
                       ("SparseAdam",
                        lambda tables: torch.optim.SparseAdam(tables, lr=1e-2, betas=(0.9, 0.95), eps=1e-12))):
        ours = (lambda: Sgd(0.5)) if name == "sgd" else lambda: Adamw(1e-2, betas=(0.9, 0.95), eps=1e-12,
                                                                      weight_decay=0.0)
        losses, _, weights = train(ours, None, start, data)
        value = {n: torch.tensor(v, dtype=torch.float64).reshape(SHAPES[n]) for n, v in start.items()}
        tables = {n: torch.nn.Embedding.from_pretrained(value[n], freeze=False, sparse=True) for n in TABLES}
        dense = {n: torch.nn.Parameter(value[n]) for n in ("w", "c")}
        others = {n: ours() for n in dense}
        optimizer = make([table.weight for table in tables.values()])
        for step in data:
            ids = torch.tensor(step["ids"]).reshape(BATCH, BAG)
            h = tables["t"](ids).sum(1) * tables["t"](torch.tensor(step["item"]))
            scores = h * tables["u"](torch.tensor(step["kind"])) @ dense["w"] + dense["c"]
            for parameter in (*dense.values(), *(table.weight for table in tables.values())):
                parameter.grad = None
            torch.nn.functional.cross_entropy(scores, torch.tensor(step["labels"])).backward()
            optimizer.step()
            for n, parameter in dense.items():
                flat, gradient = parameter.detach().reshape(-1).tolist(), parameter.grad.reshape(-1).tolist()
                others[n](flat, gradient, range(len(flat)))
                parameter.data = torch.tensor(flat, dtype=torch.float64).reshape(parameter.shape)
        for n in TABLES:
            found = tables[n].weight.detach().reshape(-1).tolist()
            claims.hold(f"torch {name}: {n}", largest(abs(p - q) for p, q in zip(found, weights[n])), 1e-9)


def communication(runs, claims, model):
    """Bytes that a rank's program sends in a train entry: rows and indices of all lookups are gathered, and no table is
    reduced."""
    sizes = {"f32": 4, "i64": 8}
    rows = BATCH // 2 * (BAG + 1 + 1)  # of a rank: both lookups of t and that of u
    for many in (1, 4):
        plan = f"mesh: {{dp: 2}}\nbatch: {{microbatches: {many}}}\ncollectives: {{bucket: 0}}\n"
        bundle = runs.compile(model,
                              plan + "train: {loss: cross_entropy, optimizer: sgd, groups: {t: {sparse: true}, u: "
                                     "{sparse: true}}}\n")
        program = json.loads((bundle / "role-0.json").read_text())
        sent = {}
        for name, instructions in program["blocks"].items():
            for instruction in instructions if name.startswith("train") else []:
                if instruction["op"] == "coll":
                    sent.setdefault(instruction["kind"], []).append(instruction["n"] * sizes[instruction["type"]])
        title = f"dp2 m{many} communication of both tables"
        claims.equal(f"{title}: bytes gathered", sum(sent.get("all_gather", [])), rows * (WIDTH * 4 + 8))
        claims.hold(f"{title}: largest sum", max(sent["all_reduce"]), WIDTH * CLASSES * 4)


class SparseTrial(Trial):
    """A model of a folder whose tables are sparse: under plain sgd the same numbers as the dense ones, which are
    PyTorch's."""

    def check_losses(self, name):
        run = self.reference["runs"][name]
        tables = [f'"{parameter}": {{sparse: true}}' for parameter in self.reference["trainable_initializers"]
                  if parameter.startswith("tables.")]
        train = optimizer_of(name, run["options"]).rstrip()[:-1] + f", groups: {{{', '.join(tables)}}}}}\n"
        metrics, weights = self.runs.train(self.runs.compile(self.model, self.plan + train), self.data, 10)
        worst = largest(abs(line["loss"] - loss) for line, loss in zip(metrics, run["losses_f64"]))
        self.claims.hold(f"{self.title} {name}: losses", worst if len(metrics) == 10 else math.nan, 2e-5)
        self.check_norms(name, run, self.read(weights))


RANKS = {
    "one": "batch: {microbatches: 1}\n",
    "dp4": "mesh: {dp: 4}\nbatch: {microbatches: 2}\n",
    "dp2rows2": "mesh: {dp: 2, tp: 2}\nbatch: {microbatches: 2}\nshard: {tables.*.weight: {0: tp}}\n",
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", help="default: on the PATH",
                        default=pathlib.Path(shutil.which("par-compile") or ".").parent)
    parser.add_argument("--optimizer", action="append", choices=sorted(OPTIMIZERS), help="default: all")
    parser.add_argument("--plan", action="append", choices=sorted(PLANS), help="default: all")
    parser.add_argument("--communication", action="store_true", help="only what is sent")
    parser.add_argument("--models", type=pathlib.Path,
                        help="a folder with dlrm: only this model, against PyTorch's numbers")
    parser.add_argument("--torch", action="store_true", help="hold the formulas against torch's alone")
    options = parser.parse_args()
    claims = Claims()
    with tempfile.TemporaryDirectory(prefix="par-sparse-") as work:
        runs = Runs(options.bin, work)
        model, start, data, steps = draw(pathlib.Path(work))
        if options.torch:
            against_torch(claims, start, steps)
        if options.communication:
            communication(runs, claims, model)
        for case in RANKS if options.models else []:
            with claims.watch(f"dlrm {case}"):
                SparseTrial(runs, claims, "dlrm", plan=RANKS[case], title=f"dlrm {case}",
                            folder=options.models / "dlrm").check_losses("sgd")
        for name in [] if options.torch or options.models or options.communication else options.optimizer or OPTIMIZERS:
            losses, norms, weights = train(OPTIMIZERS[name][1], OPTIMIZERS[name][2], start, steps)
            for plan in options.plan or PLANS:
                title = f"{name} {plan}"
                with claims.watch(title):
                    bundle = runs.compile(model, text_of(plan, name))
                    runs.run(runs.binaries / "par-verify", bundle)
                    hold(runs, claims, title, bundle, data, losses, norms, weights)
            if name.startswith("sgd"):
                with claims.watch(f"{name} dense"):
                    hold(runs, claims, f"{name} dense", runs.compile(model, text_of("one", name, sparse=False)), data,
                         losses,
                         norms, weights)
    claims.finish()


if __name__ == "__main__":
    main()

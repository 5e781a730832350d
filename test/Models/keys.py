#!/usr/bin/env python3
"""Holds single keys of the plan against PyTorch's formulas, a line a claim: figure, bound, pass or FAIL.

    keys.py --bin build/bin [--key clip-value]... [--plan dp2]...

A model of two layers, scores = (x a + b) w + c, whose gradients have closed forms, is trained five steps on one rank
and under every plan of PLANS: losses and weights are those of the step that is written down here in Python's floats.
Some labels are ignored, all of the second microbatch among them. Only Python's standard library is used. Exit status 0:
all hold.
"""
import math
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

from runs import HERE, Claims, Runs, largest, plan_parser, read_safetensors, write_safetensors

ENCODE = HERE.parent / "Phases/Import/Inputs/encode.py"
STEPS, BATCH, INPUTS, HIDDEN, CLASSES, IGNORED = 5, 8, 10, 8, 11, -100  # a tall matrix and a wide one
SHAPES = {"a": (INPUTS, HIDDEN), "b": (HIDDEN,), "w": (HIDDEN, CLASSES), "c": (CLASSES,)}
MODEL = f"""input x f32[{BATCH},{INPUTS}]
{{inits}}
node first MatMul x,a -> xa
node bias Add xa,b -> h
module second
node second MatMul h,w -> hw
node scores Add hw,c -> y
output y f32[{BATCH},{CLASSES}]
"""
PLANS = {
    "one": "",
    "one-m4": "batch: {microbatches: 4}\n",
    "dp2": "mesh: {dp: 2}\nbatch: {microbatches: 2}\n",
    "zero1": "mesh: {dp: 2}\nbatch: {microbatches: 2}\nzero: {level: 1, min_size: 0}\n",
    "zero2": "mesh: {dp: 2}\nbatch: {microbatches: 2}\nzero: {level: 2, min_size: 0}\n",
    "zero3": "mesh: {dp: 2}\nbatch: {microbatches: 2}\nzero: {level: 3, min_size: 0}\n",
    "tp2": "mesh: {tp: 2}\nshard: {a: {1: tp}, w: {1: tp}}\n",  # 11 classes over 2 ranks: the last one is padding
    "pp2": "mesh: {pp: 2}\nbatch: {microbatches: 4}\npipeline: {cuts: [second]}\n",
    "pp2dp2-zero2": "mesh: {pp: 2, dp: 2}\nbatch: {microbatches: 4}\npipeline: {cuts: [second]}\nzero: {level: 2, "
                    "min_size: 0}\n",
}


class Key:
    """A plan's keys below `train`, and their meaning: smoothing of labels, changes of a gradient, and the update of a
    parameter, from its name."""

    def __init__(self, train, update, smoothing=0.0, clip=lambda gradient: gradient, extra="", bound=2e-5):
        self.train, self.update, self.smoothing, self.clip = train, update, smoothing, clip
        self.extra, self.bound = extra, bound


class Sgd:
    """torch.optim.SGD"""

    def __init__(self, lr=1e-3, momentum=0.0, nesterov=False, weight_decay=0.0):
        self.lr, self.momentum, self.nesterov, self.decay, self.velocity = lr, momentum, nesterov, weight_decay, None

    def __call__(self, weights, gradient):
        gradient = [g + self.decay * w for g, w in zip(gradient, weights)]
        if self.momentum:
            last = self.velocity or [0.0] * len(gradient)
            self.velocity = [self.momentum * v + g for v, g in zip(last, gradient)]
            gradient = [g + self.momentum * v
                        for g, v in zip(gradient, self.velocity)] if self.nesterov else self.velocity
        return [w - self.lr * g for w, g in zip(weights, gradient)]


class Adamw:
    """torch.optim.AdamW"""

    def __init__(self, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        self.lr, self.betas, self.eps, self.decay, self.step, self.states = lr, betas, eps, weight_decay, 0, None

    def __call__(self, weights, gradient):
        self.step += 1
        first, second = self.betas
        last = self.states or [(0.0, 0.0)] * len(gradient)
        self.states = [(first * m + (1 - first) * g, second * v + (1 - second) * g * g)
                       for (m, v), g in zip(last, gradient)]
        scale = self.lr / (1 - first ** self.step)
        root = math.sqrt(1 - second ** self.step)
        return [w * (1 - self.lr * self.decay) - scale * m / (math.sqrt(v) / root + self.eps)
                for w, (m, v) in zip(weights, self.states)]


def bf16(number):
    """The nearest one, of two the even one."""
    (bits,) = struct.unpack("<I", struct.pack("<f", number))
    return struct.unpack("<f", struct.pack("<I", (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000))[0]


class NarrowAdamw(Adamw):
    """Its states are rounded after each step."""

    def __call__(self, weights, gradient):
        # Like the update itself, which reads its new values: the next step begins with rounded ones.
        weights = super().__call__(weights, gradient)
        self.states = [(bf16(m), bf16(v)) for m, v in self.states]
        return weights


def every(kind, **settings):
    return lambda name: kind(**settings)


SGD = "optimizer: {kind: sgd, lr: 0.5}"
ADAMW = "optimizer: {kind: adamw, lr: 1e-2, betas: [0.9, 0.95], eps: 1e-6, weight_decay: 0.1}"
OF_ADAMW = dict(lr=1e-2, betas=(0.9, 0.95), eps=1e-6, weight_decay=0.1)
KEYS = {
    "smoothing": Key(f"loss: {{smoothing: 0.1}}, {SGD}", every(Sgd, lr=0.5), smoothing=0.1),
    "groups": Key(f"loss: cross_entropy, {ADAMW}, groups: {{a: {{betas: [0.8, 0.9], eps: 1e-4}}, b: {{kind: sgd}}, "
                  "w: {kind: momentum, momentum: 0.8, nesterov: true, lr: 0.1}, c: {weight_decay: 0, lr_scale: 0.5}}",
                  lambda name: {"a": Adamw(**{**OF_ADAMW, "betas": (0.8, 0.9), "eps": 1e-4}), "b": Sgd(lr=1e-2),
                                "w": Sgd(lr=0.1, momentum=0.8, nesterov=True),
                                "c": Adamw(**{**OF_ADAMW, "weight_decay": 0.0, "lr": 5e-3})}[name]),
    # f32 may round up where Python's floats round down; the two are a 256th apart.
    "states-bf16": Key(f"loss: cross_entropy, {ADAMW}", every(NarrowAdamw, **OF_ADAMW),
                       extra="precision: {states: bf16}\n",
                       bound=2e-4),
    "clip-value": Key(f"loss: cross_entropy, {SGD}, clip: {{value: 0.02}}", every(Sgd, lr=0.5),
                      clip=lambda gradient: [min(max(g, -0.02), 0.02) for g in gradient]),
}


def products(x, weights, smoothing, labels):
    """The loss and the gradients of one step: a mean over the labels that count, of which every class has the share
    smoothing / CLASSES (torch.nn.functional.cross_entropy)."""
    a, b, w, c = (weights[name] for name in "abwc")
    gradients = {name: [0.0] * len(weights[name]) for name in SHAPES}
    count, total = sum(label != IGNORED for label in labels), 0.0
    for row, label in enumerate(labels):
        if label == IGNORED:
            continue
        inputs = x[row * INPUTS:(row + 1) * INPUTS]
        hidden = [b[j] + sum(inputs[i] * a[i * HIDDEN + j] for i in range(INPUTS)) for j in range(HIDDEN)]
        scores = [c[k] + sum(hidden[j] * w[j * CLASSES + k] for j in range(HIDDEN)) for k in range(CLASSES)]
        lse = math.log(math.fsum(map(math.exp, scores)))
        target = [smoothing / CLASSES + (1 - smoothing) * (k == label) for k in range(CLASSES)]
        total += sum(share * (lse - score) for share, score in zip(target, scores))
        slope = [(math.exp(score - lse) - share) / count for share, score in zip(target, scores)]
        back = [sum(w[j * CLASSES + k] * slope[k] for k in range(CLASSES)) for j in range(HIDDEN)]
        for k in range(CLASSES):
            gradients["c"][k] += slope[k]
            for j in range(HIDDEN):
                gradients["w"][j * CLASSES + k] += hidden[j] * slope[k]
        for j in range(HIDDEN):
            gradients["b"][j] += back[j]
            for i in range(INPUTS):
                gradients["a"][i * HIDDEN + j] += inputs[i] * back[j]
    return total / count, gradients


def train(key, start, x, labels):
    """Losses and weights of the steps, in Python's floats."""
    weights, losses = dict(start), []
    updates = {name: key.update(name) for name in SHAPES}
    for step in range(STEPS):
        rows = slice(step * BATCH * INPUTS, (step + 1) * BATCH * INPUTS)
        loss, gradients = products(x[rows], weights, key.smoothing, labels[step * BATCH:(step + 1) * BATCH])
        losses.append(loss)
        weights = {name: updates[name](weights[name], key.clip(gradients[name])) for name in SHAPES}
    return losses, weights


def rounded(numbers):
    """As f32 has them, so that both begin alike."""
    return list(struct.unpack(f"<{len(numbers)}f", struct.pack(f"<{len(numbers)}f", *numbers)))


def draw(work):
    """The model's file, its first weights, and the data of all steps in a file and as lists."""
    choose = random.Random(7)
    start = {name: rounded([choose.gauss(0, 0.5) for _ in range(math.prod(shape))]) for name, shape in SHAPES.items()}
    inits = "\n".join(f"init {name} f32[{','.join(map(str, SHAPES[name]))}] = {' '.join(map(repr, numbers))}"
                      for name, numbers in start.items())
    (work / "model.txt").write_text(MODEL.format(inits=inits))
    subprocess.run([sys.executable, ENCODE, work / "model.txt", work / "model.onnx"], check=True)
    rows = STEPS * BATCH
    x = rounded([choose.gauss(0, 1) for _ in range(rows * INPUTS)])
    labels = [IGNORED if choose.random() < 0.2 or row in (2, 3) else choose.randrange(CLASSES) for row in range(rows)]
    write_safetensors(work / "data.safetensors", {"x": ([rows, INPUTS], x), "labels": ([rows], labels)})
    return work / "model.onnx", start, work / "data.safetensors", x, labels


def hold(runs, claims, key, title, model, data, plan, losses, weights):
    text = plan + f"train: {{{key.train}}}\n" + key.extra
    with claims.watch(title):
        bundle = runs.compile(model, text)
        runs.run(runs.binaries / "par-verify", bundle)
        lines, exported = runs.train(bundle, data, STEPS)
        found = read_safetensors(exported)
        apart = largest(abs(line["loss"] - loss)
                        for line, loss in zip(lines, losses)) if len(lines) == STEPS else math.nan
        claims.hold(f"{title}: losses", apart, key.bound)
        apart = {name: largest(abs(p - q) for p, q in zip(found[name][1], numbers)) / max(map(abs, numbers))
                 for name, numbers in weights.items()}
        worst = max(apart, key=apart.get)
        claims.hold(f"{title}: weights, worst {worst}", apart[worst], key.bound)


def main():
    parser = plan_parser(__doc__, PLANS)
    parser.add_argument("--key", action="append", choices=sorted(KEYS), help="default: all")
    options = parser.parse_args()
    claims = Claims()
    with tempfile.TemporaryDirectory(prefix="par-keys-") as work:
        runs = Runs(options.bin, work)
        model, start, data, x, labels = draw(pathlib.Path(work))
        for name in options.key or KEYS:
            losses, weights = train(KEYS[name], start, x, labels)
            for plan in options.plan or PLANS:
                hold(runs, claims, KEYS[name], f"{name} {plan}", model, data, PLANS[plan], losses, weights)
    claims.finish()


if __name__ == "__main__":
    main()

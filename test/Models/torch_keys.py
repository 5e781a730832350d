#!/usr/bin/env python3
"""Holds keys of training against PyTorch itself, a line a claim: figure, bound, pass or FAIL.

    torch_keys.py --bin build/bin [--key one-cycle]... [--plan zero1]...

The model of keys.py, scores = (x a + b) w + c, is trained ten steps by PyTorch's own loss, optimizer, schedule and
averages, and by Par under every plan of keys.py; losses, rates and weights are the same. Half of the run is made again
from a save: bit for bit. Labels are few and uneven, and some do not count, all of the second microbatch among them.
Exit status 0: all hold.
"""
import argparse
import json
import pathlib
import shutil
import tempfile
import unittest.mock

import torch
import torch.nn.functional as F

import keys
from keys import BATCH, CLASSES, IGNORED, INPUTS, PLANS, SHAPES
from runs import Claims, Runs, largest, read_safetensors, write_safetensors

STEPS = 10
WEIGHTS = [0.2, 3.0, 1.0, 0.0, 0.5, 1.5, 2.0, 0.25, 1.0, 4.0, 0.7]
SGD = "optimizer: {kind: sgd, lr: 0.5}"


class Lion(torch.optim.Optimizer):
    """Chen et al. 2023, algorithm 2; PyTorch has none."""

    def __init__(self, parameters, lr, betas, weight_decay):
        super().__init__(parameters, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            first, second = group["betas"]
            for p in group["params"]:
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                direction = (first * m + (1 - first) * p.grad).sign()
                p.sub_(group["lr"] * (direction + group["weight_decay"] * p))
                m.mul_(second).add_(p.grad, alpha=1 - second)


class Both:
    """Two optimizers as one. PyTorch's Muon orthogonalizes in bf16, and Par in f32: its code runs in f64 here."""

    def __init__(self, *optimizers):
        self.optimizers = optimizers
        self.param_groups = [group for optimizer in optimizers for group in optimizer.param_groups]

    def step(self):
        with unittest.mock.patch.object(torch, "bfloat16", torch.float64):
            for optimizer in self.optimizers:
                optimizer.step()

    def zero_grad(self):
        for optimizer in self.optimizers:
            optimizer.zero_grad()


def muon(p, **settings):
    return Both(torch.optim.Muon([p["a"], p["w"]], lr=2e-2, **settings),
                torch.optim.AdamW([p["b"], p["c"]], lr=2e-2, weight_decay=0))


def averages(p, warmup):
    model = torch.nn.ParameterDict(p)
    if not warmup:
        return torch.optim.swa_utils.AveragedModel(
            model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.8), use_buffers=False)

    def average(old, new, many):
        decay = torch.minimum(torch.tensor(0.8, dtype=torch.float64), (1 + many) / (10 + many))
        return old + (1 - decay) * (new - old)

    return torch.optim.swa_utils.AveragedModel(model, avg_fn=average)


def sgd(p, **settings):
    return torch.optim.SGD(p.values(), **{"lr": 0.5, **settings})


RATES = torch.optim.lr_scheduler


class Key:
    """A plan's keys below `train`, and what they are in PyTorch."""

    def __init__(self, train, optimizer=sgd, rate=None, soft=False, ema=None, bound=2e-5, **loss):
        self.train, self.optimizer, self.rate, self.soft, self.ema = train, optimizer, rate, soft, ema
        self.bound, self.loss = bound, loss


def with_rate(text, make):
    return Key(f"loss: cross_entropy, optimizer: {{kind: sgd, lr: {{peak: 0.5, {text}}}}}", rate=make)


def cycle(text="", steps=STEPS, **settings):
    return with_rate(f"decay: one_cycle, steps: {steps}{text}", lambda o: RATES.OneCycleLR(
        o, 0.5, total_steps=steps, cycle_momentum=False, **settings))


MUON = "loss: cross_entropy, optimizer: {kind: muon, lr: 2e-2%s}, groups: {\"{b,c}\": {kind: adamw, weight_decay: 0}}"
KEYS = {
    "milestones": with_rate("decay: step, milestones: [2, 5, 5, 8], gamma: 0.3",
                            lambda o: RATES.MultiStepLR(o, [2, 5, 5, 8], gamma=0.3)),
    "step-size": with_rate("decay: step, step_size: 3", lambda o: RATES.StepLR(o, 3)),
    "warm-step": with_rate("decay: step, step_size: 3, warmup: 4, gamma: 0.5", lambda o: RATES.SequentialLR(
        o, [RATES.LambdaLR(o, lambda s: (s + 1) / 4), RATES.StepLR(o, 3, gamma=0.5)], [4])),
    "one-cycle": cycle(),
    "half-cycle": cycle(steps=2 * STEPS),
    "linear-cycle": cycle(", anneal: linear, pct_start: 0.42, div_factor: 10, final_div_factor: 50",
                          anneal_strategy="linear", pct_start=0.42, div_factor=10, final_div_factor=50),
    "three-phases": cycle(", three_phase: true", three_phase=True),
    # A sign may differ where an average is near 0, and then a weight by twice the rate; none is that near here.
    "lion": Key("loss: cross_entropy, optimizer: {kind: lion, lr: 1e-2, betas: [0.8, 0.95], weight_decay: 0.1}",
                optimizer=lambda p: Lion(p.values(), 1e-2, (0.8, 0.95), 0.1)),
    "muon": Key(MUON % "", optimizer=muon),
    "muon-plain": Key(MUON % ", momentum: 0.9, nesterov: false, weight_decay: 0",
                      optimizer=lambda p: muon(p, momentum=0.9, nesterov=False, weight_decay=0)),
    "weights": Key(f"loss: {{class_weights: {WEIGHTS}}}, {SGD}", weight=WEIGHTS),
    "weights-smoothing": Key(f"loss: {{class_weights: {WEIGHTS}, smoothing: 0.2}}, {SGD}", weight=WEIGHTS,
                             label_smoothing=0.2),
    "soft": Key(f"loss: {{soft: true}}, {SGD}", soft=True),
    "soft-weights": Key(f"loss: {{soft: true, smoothing: 0.2, class_weights: {WEIGHTS}}}, {SGD}", soft=True,
                        weight=WEIGHTS, label_smoothing=0.2),
    "ema": Key(f"loss: cross_entropy, {SGD}, ema: 0.8", ema=lambda p: averages(p, False)),
    "ema-adamw": Key("loss: cross_entropy, optimizer: {lr: 1e-2}, ema: {decay: 0.8, eval: true}",
                     optimizer=lambda p: torch.optim.AdamW(p.values(), lr=1e-2), ema=lambda p: averages(p, False)),
    "ema-warmup": Key(f"loss: cross_entropy, {SGD}, ema: {{decay: 0.8, warmup: true}}",
                      ema=lambda p: averages(p, True)),
}


class Reference:
    """The losses, rates and weights of PyTorch, in f64."""

    def __init__(self, key, start, x, labels):
        self.key = key
        p = {name: torch.nn.Parameter(torch.tensor(start[name], dtype=torch.float64).reshape(SHAPES[name]))
             for name in SHAPES}
        self.loss = {"weight": torch.tensor(key.loss["weight"], dtype=torch.float64) if "weight" in key.loss else None,
                     "label_smoothing": key.loss.get("label_smoothing", 0.0)}
        optimizer = key.optimizer(p)
        rate = key.rate(optimizer) if key.rate else None
        average = key.ema(p) if key.ema else None
        self.losses, self.rates = [], []
        for step in range(STEPS):
            rows = slice(step * BATCH, (step + 1) * BATCH)
            loss = self.loss_of(p, x[rows], labels[rows])
            optimizer.zero_grad()
            loss.backward()
            self.losses.append(loss.item())
            self.rates.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            if rate and step + 1 < STEPS:
                rate.step()
            if average:
                average.update_parameters(torch.nn.ParameterDict(p))
        self.weights = p
        self.averages = dict(average.module.items()) if average else None

    def loss_of(self, p, x, labels):
        with torch.set_grad_enabled(torch.is_grad_enabled()):
            return F.cross_entropy((x @ p["a"] + p["b"]) @ p["w"] + p["c"], labels, **self.loss)


def draw(work):
    keys.STEPS = STEPS + 1  # a batch more, to evaluate
    model, start, data, x, labels = keys.draw(work)
    x = torch.tensor(x, dtype=torch.float64).reshape(-1, INPUTS)
    generator = torch.Generator().manual_seed(5)
    soft = torch.rand(len(labels), CLASSES, generator=generator).softmax(1)
    print("seeds 7 and 5")
    # 13 samples to evaluate: a batch and a part of one.
    parts = {"data": slice(0, STEPS * BATCH), "eval": slice(STEPS * BATCH - 5, (STEPS + 1) * BATCH)}
    for name, rows in parts.items():
        many = len(labels[rows])
        inputs = {"x": ([many, INPUTS], x[rows].flatten().tolist())}
        write_safetensors(work / f"{name}-hard.safetensors", {**inputs, "labels": ([many], labels[rows])})
        write_safetensors(work / f"{name}-soft.safetensors",
                          {**inputs, "labels": ([many, CLASSES], soft[rows].flatten().tolist())})
    assert IGNORED in labels[parts["eval"]]
    return model, start, x, torch.tensor(labels), soft.to(torch.float64), parts["eval"]


def apart(found, weights):
    """The parameter that differs most, and by how much of its largest element."""
    each = {name: largest((torch.tensor(found[name][1], dtype=torch.float64) - weights[name].detach().flatten()).abs()
                          .tolist()) / weights[name].abs().max().item() for name in SHAPES}
    return max(each.items(), key=lambda item: item[1])


def evaluate(runs, bundle, data, *flags):
    """The loss of an evaluation, from its metrics."""
    metrics = runs.work / "eval.jsonl"
    metrics.unlink(missing_ok=True)
    runs.run(runs.binaries / "par-run", bundle, "--eval", "--data", data, "--metrics", metrics, *flags)
    return json.loads(metrics.read_text().splitlines()[-1])["eval_loss"]


def hold(runs, claims, key, title, model, reference, plan, evaluation):
    kind = "soft" if key.soft else "hard"
    data = runs.work / f"data-{kind}.safetensors"
    with claims.watch(title):
        bundle = runs.compile(model, plan + f"train: {{{key.train}}}\n")
        runs.run(runs.binaries / "par-verify", bundle)
        save = runs.work / f"{title.replace(' ', '-')}.save"
        lines, exported = runs.train(bundle, data, STEPS, "--save", save, "--save-every", "5", "--keep", "9")
        found = read_safetensors(exported)
        claims.hold(f"{title}: losses",
                    largest(abs(line["loss"] - loss) for line, loss in zip(lines, reference.losses)), key.bound)
        # The same formula in f64, whose factors may be grouped otherwise.
        claims.hold(f"{title}: rates",
                    largest(abs(line["lr"] / lr - 1) for line, lr in zip(lines, reference.rates)), 4e-16 * STEPS)
        worst, figure = apart(found, reference.weights)
        claims.hold(f"{title}: weights, worst {worst}", figure, key.bound)
        again, exported = runs.train(bundle, data, STEPS, "--resume", save / "5")
        claims.equal(f"{title}: resumed", [line["loss"] for line in again] == [line["loss"] for line in lines[5:]] and
                     read_safetensors(exported) == found, True)
        final = save / str(STEPS)
        x, labels = evaluation
        measured = evaluate(runs, bundle, runs.work / f"eval-{kind}.safetensors", "--weights", final)
        with torch.no_grad():
            claims.hold(f"{title}: evaluation", abs(measured - reference.loss_of(reference.weights, x, labels).item()),
                        key.bound)
            if key.ema:
                measured = evaluate(runs, bundle, runs.work / f"eval-{kind}.safetensors", "--weights", final, "--ema")
                expected = reference.loss_of(reference.averages, x, labels).item()
                claims.hold(f"{title}: evaluation of averages", abs(measured - expected), key.bound)
        if key.ema:
            _, exported = runs.train(bundle, data, STEPS, "--resume", save / "5", "--ema")
            worst, figure = apart(read_safetensors(exported), reference.averages)
            claims.hold(f"{title}: averages, worst {worst}", figure, key.bound)
        shutil.rmtree(save)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", help="default: on the PATH",
                        default=pathlib.Path(shutil.which("par-compile") or ".").parent)
    parser.add_argument("--key", action="append", choices=sorted(KEYS), help="default: all")
    parser.add_argument("--plan", action="append", choices=sorted(PLANS), help="default: all")
    options = parser.parse_args()
    claims = Claims()
    with tempfile.TemporaryDirectory(prefix="par-torch-keys-") as work:
        runs = Runs(options.bin, work)
        model, start, x, labels, soft, part = draw(pathlib.Path(work))
        for name in options.key or KEYS:
            own = soft if KEYS[name].soft else labels
            reference = Reference(KEYS[name], start, x, own)
            for plan in options.plan or PLANS:
                hold(runs, claims, KEYS[name], f"{name} {plan}", model, reference, PLANS[plan], (x[part], own[part]))
    claims.finish()


if __name__ == "__main__":
    main()

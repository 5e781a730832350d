#!/usr/bin/env python3
"""Gradients summed in bf16, over microbatches (precision.accumulate) and over ranks (precision.reduce), a line a claim.

    narrow_sums.py --bin build/bin [--part numbers|models|bytes|checks]... [--plan zero2]... [--format reduce]...

numbers  the model of keys.py: weights are those of a step written down here, which rounds where the plan says so.
         Numbers of f32 and Python's may lie on both sides of where rounding parts: such an element is a 256th of a
         gradient apart, all others are equal as f32 has them. So nine weights in ten are held as closely as sums in f32
         are, each to what such gradients can move.
models   GPT-2 on many ranks against one rank, clipped, under zero 1 to 3 and in a pipeline
bytes    sent by a rank and kept as accumulators, by closed form: 2 bytes an element for 4, and nothing else changes
checks   --check-phases: the interpreter agrees in f64, where nothing is rounded, after every phase
Only Python's standard library is used. Exit status 0: all hold.
"""
import argparse
import math
import pathlib
import shutil
import tempfile

import keys
from runs import HERE, Claims, Runs, largest, read_safetensors
from zero import Bundle, spread

STEPS, RATE = 3, 0.5
TRAIN = f"train: {{loss: cross_entropy, optimizer: {{kind: sgd, lr: {RATE}}}}}\n"
FORMATS = {"reduce": ("f32", "bf16"), "accumulate": ("bf16", "f32"), "both": ("bf16", "bf16")}
#         microbatches, ranks that share a batch, whether these meet in each microbatch
SHARES = {"one-m4": (4, 1, False), "dp2": (2, 2, False), "zero1": (2, 2, False), "zero2": (2, 2, True),
          "zero3": (2, 2, True),
          "tp2": (1, 1, False), "pp2": (4, 1, False), "pp2dp2-zero2": (4, 2, True)}
GPT2 = {
    "one": "batch: {microbatches: 1}\n",
    "dp2": "mesh: {dp: 2}\nbatch: {microbatches: 4}\n",
    "zero1": "mesh: {dp: 4}\nbatch: {microbatches: 2}\nzero: 1\n",
    "zero2": "mesh: {dp: 4}\nbatch: {microbatches: 2}\nzero: 2\n",
    "zero3": "mesh: {dp: 2}\nbatch: {microbatches: 2}\nzero: 3\n",
    "pp2dp2": "mesh: {pp: 2, dp: 2}\nbatch: {microbatches: 4}\npipeline: {cuts: {h.*: even}}\n",
    "pp2dp2-zero2": "mesh: {pp: 2, dp: 2}\nbatch: {microbatches: 4}\npipeline: {cuts: {h.*: even}}\nzero: 2\n",
    "dp2tp2": "use: [megatron]\nmesh: {dp: 2, tp: 2}\nbatch: {microbatches: 2}\nzero: 1\n",
}


def precision(formats, compute="f32"):
    return f"precision: {{compute: {compute}, accumulate: {formats[0]}, reduce: {formats[1]}}}\n"


def in_format(name):
    return (lambda numbers: [keys.bf16(n) for n in numbers]) if name == "bf16" else list


def add(one, other):
    return [p + q for p, q in zip(one, other)]


class Summing:
    """The gradients of a step from those of its parts: what each rank makes of each microbatch."""

    def __init__(self, formats, together):
        self.accumulated, self.reduced, self.together = in_format(formats[0]), in_format(formats[1]), together

    def over_ranks(self, parts):
        if len(parts) == 1:
            return parts[0]
        total = [0.0] * len(parts[0])
        for part in parts:
            total = add(total, self.reduced(part))
        return self.reduced(total)

    def over_microbatches(self, parts):
        total = self.accumulated(parts[0])
        for part in parts[1:]:
            total = self.accumulated(add(total, self.accumulated(part)))
        return total

    def __call__(self, parts):
        """parts[microbatch][rank]"""
        if self.together:
            return self.over_microbatches([self.over_ranks(ranks) for ranks in parts])
        return self.accumulated(self.over_ranks([self.over_microbatches(list(each)) for each in zip(*parts)]))


def part_gradients(x, labels, rows, weights):
    """Loss of these rows, as a share of the mean over all labels that count."""
    count = sum(label != keys.IGNORED for label in labels)
    own = labels[rows.start:rows.stop]
    counted = sum(label != keys.IGNORED for label in own)
    if not counted:
        return {name: [0.0] * len(numbers) for name, numbers in weights.items()}
    _, gradients = keys.products(x[rows.start * keys.INPUTS:rows.stop * keys.INPUTS], weights, 0.0, own)
    return {name: [g * counted / count for g in numbers] for name, numbers in gradients.items()}


def train(start, x, labels, plan, formats):
    microbatches, ranks, together = SHARES[plan]
    weights, summing, size = dict(start), Summing(formats, together), keys.BATCH // (microbatches * ranks)
    for step in range(STEPS):
        first = step * keys.BATCH
        batch = x[first * keys.INPUTS:(first + keys.BATCH) * keys.INPUTS]
        marks = labels[first:first + keys.BATCH]
        parts = [[part_gradients(batch, marks, range((m * ranks + r) * size, (m * ranks + r + 1) * size), weights)
                  for r in range(ranks)] for m in range(microbatches)]
        for name in weights:
            gradient = summing([[part[name] for part in row] for row in parts])
            weights[name] = [w - RATE * g for w, g in zip(weights[name], gradient)]
    return weights


def numbers(runs, claims, options):
    model, start, data, x, labels = keys.draw(runs.work)
    for plan in [plan for plan in options.plan or SHARES if plan in SHARES]:
        for name in options.format or FORMATS:
            title = f"{name} {plan}"
            with claims.watch(title):
                bundle = runs.compile(model, keys.PLANS[plan] + TRAIN + precision(FORMATS[name]))
                runs.run(runs.binaries / "par-verify", bundle)
                found = read_safetensors(runs.train(bundle, data, STEPS)[1])
                wanted = train(start, x, labels, plan, FORMATS[name])
                apart = sorted(abs(p - q) for key in wanted for p, q in zip(found[key][1], wanted[key]))
                moved = largest(abs(p - q) for key in wanted for p, q in zip(wanted[key], start[key]))
                claims.hold(f"{title}: nine weights in ten", apart[len(apart) * 9 // 10] / moved, 2e-5,
                            unit="of the largest move")
                claims.hold(f"{title}: all", apart[-1] / moved, 2.0 ** -7, unit="of the largest move")


def models(runs, claims, options):
    """Rounded gradients are a 256th apart at most in each of their sums: losses as of matmuls in bf16
    (precision.py)."""
    data = HERE / "gpt2/data.safetensors"
    text = "train: {optimizer: {kind: adamw, lr: 1e-3}, clip: 0.5}\n"
    wanted = [line["loss"]
              for line in runs.train(runs.compile(HERE / "gpt2/model.onnx", GPT2["one"] + text), data, 10)[0]]
    for plan in options.plan or GPT2:
        for name in (options.format or FORMATS) if plan in GPT2 else ():
            for compute in ("f32", "bf16"):
                title = f"gpt2 {plan} {name} {compute}"
                with claims.watch(title):
                    bundle = runs.compile(HERE / "gpt2/model.onnx",
                                          GPT2[plan] + text + precision(FORMATS[name], compute))
                    got = [line["loss"] for line in runs.train(bundle, data, 10)[0]]
                    worst = largest(abs(p - q) / q for p, q in zip(got, wanted)) if len(got) == 10 else math.nan
                    claims.hold(f"{title}: losses to one rank's in f32", worst, 5e-4, unit="relative")


def sent_bytes(bundle):
    """Bytes of the sums over ranks that a rank sends in a step, and of all else, numbers of one element apart."""
    size = {"f32": 4, "bf16": 2, "i64": 8, "i32": 4}
    sums, others = 0, 0
    for block, _, _ in bundle.program["entries"]["train"]:
        for i in bundle.program["blocks"][block]:
            if i["op"] != "coll" or i["n"] == 1:
                continue
            ranks = bundle.members[i["comm"]]
            sent = {"all_reduce": 2 * (ranks - 1) / ranks, "reduce_scatter": ranks - 1}.get(i["kind"])
            if sent is None:
                others += (ranks - 1) * i["n"] * size[i["type"]]
            else:
                sums += sent * i["n"] * size[i["type"]]
    return sums, others


def bytes_of(runs, claims, options):
    """Psi elements are summed over N ranks: once a step, in each of m microbatches from level 2 on; what is smaller
    than min_size is whole, and all-reduced."""
    model, adamw = HERE / "gpt2/model.onnx", "train: {optimizer: {kind: adamw, lr: 1e-3}}\n"
    for level, ranks, microbatches in ((0, 2, 4), (1, 4, 2), (2, 4, 2), (3, 2, 4)):
        shape = f"mesh: {{dp: {ranks}}}\nbatch: {{microbatches: {microbatches}}}\nzero: {level}\n" + adamw
        plain = Bundle(runs.compile(model, shape))
        for name in options.format or FORMATS:
            accumulated, reduced = (2 if word == "bf16" else 4 for word in FORMATS[name])
            bundle, title = Bundle(runs.compile(model,
                                                shape + precision(
                                                    FORMATS[name]))), f"gpt2 zero {level} dp {ranks} {name}"
            parts, whole = spread(bundle, ranks) if level else ({}, bundle.parameters)
            psi, rest, share = sum(parts.values()), sum(whole.values()), (ranks - 1) / ranks
            each = microbatches if level >= 2 else 1
            sums, others = sent_bytes(bundle)
            claims.hold(f"{title}: sums - {reduced} ({each} {psi} + 2 {rest}) (N-1)/N",
                        abs(sums - reduced * (each * psi + 2 * rest) * share),
                        0.01, unit="B")
            claims.equal(f"{title}: gathers, as without", others, sent_bytes(plain)[1])
            kept = bundle.bytes(lambda b: ".sum." in b["name"] and b["name"].rsplit(".sum.")[1] in bundle.parameters)
            claims.equal(f"{title}: accumulators", kept, accumulated * (psi // (ranks if level >= 2 else 1) + rest))


def checks(runs, claims, options):
    for model, plan in (("mlp", "mesh: {dp: 2}\nbatch: {microbatches: 2}\nzero: {level: 2, min_size: 0}\n"),
                        ("gpt2", GPT2["pp2dp2"])):
        for name in options.format or FORMATS:
            with claims.watch(f"{model} {name}: --check-phases"):
                said = runs.run(runs.binaries / "par-compile", HERE / model / "model.onnx", "--check", "--check-phases",
                                *sum((["--set", line.replace(": ", "=", 1)] for line in plan.splitlines()), []),
                                "--set", "train={optimizer: adamw, clip: 0.5}", "--set",
                                precision(FORMATS[name]).strip().replace(": ", "=", 1))
                claims.equal(f"{model} {name}: phases that were checked", said.count("checked "), 11)


def main():
    parts = {"numbers": numbers, "models": models, "bytes": bytes_of, "checks": checks}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", help="default: on the PATH",
                        default=pathlib.Path(shutil.which("par-compile") or ".").parent)
    parser.add_argument("--part", action="append", choices=parts, help="default: all")
    parser.add_argument("--plan", action="append", choices=sorted(SHARES | GPT2), help="default: all")
    parser.add_argument("--format", action="append", choices=FORMATS, help="default: all")
    options = parser.parse_args()
    claims = Claims()
    with tempfile.TemporaryDirectory(prefix="par-narrow-") as work:
        runs = Runs(options.bin, work)
        for name in options.part or parts:
            parts[name](runs, claims, options)
    claims.finish()


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Trains a small transformer with noise and dropout under several plans: every plan draws the same numbers.

    dropout.py [--bin FOLDER]          holds losses and weights against one rank's; the last line counts claims

What is drawn is a function of seed, node, step and global element (docs/phases/dialect.md), so neither mesh,
microbatches, recomputation nor a checkpoint between two steps changes it.
"""

import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "Models"), str(HERE.parent / "Phases" / "Import" / "Inputs")]
from encode import encode  # noqa: E402
from runs import Claims, Runs, largest, read_safetensors, write_safetensors  # noqa: E402

BATCH, LENGTH, WIDTH, HEADS, VOCABULARY, STEPS = 8, 6, 16, 2, 23, 6
PLANS = {
    "dp2tp2": "mesh: {dp: 2, tp: 2}\nshard:\n  q.weight: {1: tp}\n  up.weight: {1: tp}\n  down.weight: {0: tp}\n",
    "full": "recompute: full\n",
    "m4": "batch: {microbatches: 4}\n",
    "m8 full": "batch: {microbatches: 8}\nrecompute: full\n",
    "dp2 m2": "mesh: {dp: 2}\nbatch: {microbatches: 2}\n",
    "pp2": "mesh: {pp: 2}\nbatch: {microbatches: 4}\npipeline: {cuts: {h.*: even}}\n",
    "pp2 gpipe": "mesh: {pp: 2}\nbatch: {microbatches: 4}\npipeline: {cuts: {h.*: even}, schedule: gpipe}\n",
    "pp2dp2": "mesh: {pp: 2, dp: 2}\nbatch: {microbatches: 4}\npipeline: {cuts: {h.*: even}}\nrecompute: full\n",
    "pp2tp2": "mesh: {pp: 2, tp: 2}\nbatch: {microbatches: 2}\npipeline: {cuts: {h.*: even}}\n"
              "shard:\n  q.weight: {1: tp}\n  up.weight: {1: tp}\n  down.weight: {0: tp}\n",
}


class Model:
    """Lines for encode.py."""

    def __init__(self, ratio, layers=2):
        self.layers = layers
        self.choose, self.count = random.Random(1), 0
        self.lines = ["opset 20", f"input tokens i64[batch,{LENGTH}]",
                      f"output logits f32[batch,{LENGTH},{VOCABULARY}]",
                      f"init ratio f32[] = {ratio}", "init training i1[] = 1"]

    def parameter(self, name, *shape):
        size = 1
        for n in shape:
            size *= n
        numbers = " ".join(f"{self.choose.gauss(0, 0.3):.6f}" for _ in range(size))
        self.lines.append(f"init {name} f32[{','.join(map(str, shape))}] = {numbers}")
        return name

    def shape(self, *dims):
        name = f"shape{len(self.lines)}"
        self.lines.append(f"init {name} i64[{len(dims)}] = {' '.join(map(str, dims))}")
        return name

    def node(self, op, *inputs, attributes=""):
        self.count += 1
        self.lines.append(f"node n{self.count} {op} {','.join(inputs)} -> v{self.count} {attributes}".rstrip())
        return f"v{self.count}"

    def dropout(self, x):
        return self.node("Dropout", x, "ratio", "training")

    def layer(self, x, name):
        self.lines.append(f"module {name}")
        scale, bias = self.parameter(f"{name}.ln.weight", WIDTH), self.parameter(f"{name}.ln.bias", WIDTH)
        h = self.node("LayerNormalization", x, scale, bias, attributes="axis=-1")

        def head(part, order):
            y = self.node("MatMul", h, self.parameter(f"{name}.{part}.weight", WIDTH, WIDTH))
            y = self.node("Reshape", y, self.shape(0, LENGTH, HEADS, WIDTH // HEADS))
            return self.node("Transpose", y, attributes=f"perm={order}")

        q, k, v = head("q", "[0,2,1,3]"), head("k", "[0,2,3,1]"), head("v", "[0,2,1,3]")
        weights = self.dropout(self.node("Softmax", self.node("MatMul", q, k), attributes="axis=-1"))
        y = self.node("Transpose", self.node("MatMul", weights, v), attributes="perm=[0,2,1,3]")
        y = self.node("Reshape", y, self.shape(0, LENGTH, WIDTH))
        x = self.node("Add", x, self.dropout(self.node("MatMul", y, self.parameter(f"{name}.o.weight", WIDTH, WIDTH))))
        y = self.node("Gelu", self.node("MatMul", x, self.parameter(f"{name}.up.weight", WIDTH, 2 * WIDTH)))
        y = self.node("MatMul", y, self.parameter(f"{name}.down.weight", 2 * WIDTH, WIDTH))
        return self.node("Add", x, self.dropout(y))

    def build(self):
        self.lines.append("module embed")
        x = self.node("Gather", self.parameter("embed.weight", VOCABULARY, WIDTH), "tokens")
        x = self.dropout(self.node("Add", x, self.parameter("embed.position", LENGTH, WIDTH)))
        x = self.node("Add", x, self.node("RandomNormalLike", x, attributes="scale=0.05"))
        for k in range(self.layers):
            x = self.layer(x, f"h.{k}")
        self.lines.append("module head")
        self.lines.append(f"node last MatMul {x},{self.parameter('head.weight', WIDTH, VOCABULARY)} -> logits")
        return encode(self.lines)


def write_tokens(path):
    choose = random.Random(2)
    write_safetensors(path,
                      {name: ([4 * BATCH, LENGTH], [choose.randrange(VOCABULARY) for _ in range(4 * BATCH * LENGTH)])
                             for name in ("tokens", "labels")})


class Trial:
    def __init__(self, binaries, work):
        self.work, self.runs, self.claims = work, Runs(binaries, work), Claims()
        self.data = work / "data.safetensors"
        write_tokens(self.data)
        self.model, self.plain = work / "model.onnx", work / "plain.onnx"
        self.model.write_bytes(Model(0.1).build())
        self.plain.write_bytes(Model(0.0).build())

    def plan(self, more=""):
        batch = "" if "batch:" in more else "batch: {microbatches: 1}\n"
        text = more.replace("batch: {", f"batch: {{size: {BATCH}, ") + batch.replace("{", f"{{size: {BATCH}, ")
        return "train: {loss: cross_entropy, optimizer: {kind: adamw, lr: 1e-2}}\n" + text

    def train(self, more="", *flags, model=None, steps=STEPS):
        metrics, weights = self.runs.train(self.runs.compile(model or self.model, self.plan(more)), self.data, steps,
                                           *flags)
        return [line["loss"] for line in metrics], weights.read_bytes(), read_safetensors(weights)

    def evaluate(self, model):
        bundle = self.runs.compile(model, self.plan())
        text = self.runs.run(self.runs.binaries / "par-run", bundle, "--data", self.data, "--eval")
        return text[text.index("loss"):].split()[1]

    def apart(self, one, other):
        return largest(abs(a - b) for a, b in zip(one[0], other[0], strict=True))

    def check_plans(self):
        one = self.train()
        for name, plan in PLANS.items():
            other = self.train(plan)
            self.claims.hold(f"{name}: losses to one rank's", self.apart(one, other), 2e-5)
            weights = largest(abs(a - b) for name, (_, numbers) in one[2].items()
                              for a, b in zip(numbers, other[2][name][1]))
            self.claims.hold(f"{name}: weights to one rank's", weights, 2e-4)

    def check_narrow(self):
        narrow = "precision: bf16\n"
        distance = self.apart(self.train(narrow), self.train(narrow + PLANS["pp2dp2"]))
        self.claims.hold("pp2dp2 in bf16: losses to one rank's in bf16", distance, 1e-3)

    def check_draws(self):
        """The results compared above are not trivially equal."""
        one = self.train()
        self.claims.hold("nothing dropped: losses to one rank's", self.apart(one, self.train(model=self.plain)), 1e-2,
                         least=True)
        self.claims.hold("another seed: losses to one rank's", self.apart(one, self.train("", "--set", "seed=7")),
                         1e-2, least=True)
        self.claims.equal("evaluation drops nothing", self.evaluate(self.model), self.evaluate(self.plain))

    def check_shared(self):
        """Layers that differ only in their random numbers run the same code on a GPU, where kernels compute their keys
        themselves."""
        count = []
        for layers in (4, 6):
            model = self.work / f"layers{layers}.onnx"
            model.write_bytes(Model(0.1, layers).build())
            bundle = self.runs.compile(model, self.plan("target: cuda\n"))
            count.append(len(json.loads((bundle / "role-0.json").read_text())["kernels"]))
        # The norm of the gradient is that of more parameters.
        self.claims.hold("cuda: kernels that two more layers take", count[1] - count[0], 1)

    def check_resumed(self):
        whole = self.train(PLANS["pp2"])
        folder = self.work / "saved"
        first = self.train(PLANS["pp2"], "--save", folder, "--save-every", "2", steps=4)
        moved = self.train("", "--resume", folder)
        second = self.train(PLANS["pp2"], "--resume", folder)
        self.claims.hold("resumed on one rank: losses to pp2's", self.apart((whole[0][4:],), moved), 2e-5)
        self.claims.equal("resumed: losses bit for bit", first[0] + second[0] == whole[0], True)
        self.claims.equal("resumed: weights bit for bit", second[1] == whole[1], True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bin", default="")
    options = parser.parse_args()
    binaries = options.bin or pathlib.Path(subprocess.run(["which", "par-run"], capture_output=True,
                                                          text=True).stdout).parent
    with tempfile.TemporaryDirectory(prefix="par-dropout-") as work:
        trial = Trial(binaries, pathlib.Path(work))
        trial.check_plans()
        trial.check_narrow()
        trial.check_draws()
        trial.check_shared()
        trial.check_resumed()
    print(f"{trial.claims.count} claims, {len(trial.claims.failures)} failed")
    return 1 if trial.claims.failures else 0


if __name__ == "__main__":
    sys.exit(main())

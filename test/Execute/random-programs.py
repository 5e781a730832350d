#!/usr/bin/env python3
"""Random small graphs under random plans, through par-compile and par-run as programs: one rank's result is the oracle.

    random-programs.py [--bin FOLDER] [--count N] [--seed S] [--seconds N] [--keep FOLDER] [--phases] [--carry]

Each case is a model in ONNX (one or several inputs, an encoder and a decoder that reads it, tables of every size, experts,
constants, outputs that are inputs, parameters, constants or numbers), a plan (mesh, shardings, cuts, microbatches, schedule,
recompute, optimizer; or none of training), and data. The bundle of the plan and that of one rank are run: losses and weights,
or what they predict, are the same. With --phases the interpreter holds every phase of the plan against the one before instead
(par-compile --check-phases). With --carry models predict, and hand a state on from call to call, which the plan carries; one rank
gives what it gives where each call's state is taken out and fed to the next. A plan or model that the compiler refuses with a located sentence is counted, not failed;
a crash, a hang, exit 70, a difference and a failure of par-run are. A case that fails is printed with its seed and what was
said, and kept in FOLDER. The last line counts; exit status 1 if one failed. Python's standard library only.
"""
import argparse
import math
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "Models"), str(HERE.parent / "Import" / "Inputs")]
from encode import encode  # noqa: E402
from runs import Failed, Runs, largest, read_safetensors, write_safetensors  # noqa: E402


class Graph:
    """Lines for encode.py, and what a plan can say of them. Every hidden value is f32[batch, length, width]."""

    def __init__(self, choose, carries=False):
        self.choose, self.count, self.carries = choose, 0, carries
        self.lines, self.module = ["opset 20"], ""
        self.parameters, self.modules, self.inputs, self.outputs = [], [], {}, []
        self.batch = choose.choice([4, 4, 8])
        self.symbolic = choose.random() < 0.5
        self.length = choose.choice([1, 3, 4, 6, 6, 34])
        self.heads = choose.choice([1, 2, 2, 3])
        self.width = self.heads * choose.choice([2, 4, 4, 8])
        self.classes = choose.choice([5, 8, 8, 12, 90])

    # -- Pieces.

    def emit(self, op, *inputs, attributes="", outputs=1):
        self.count += 1
        names = [f"v{self.count}" + (f"_{i}" if i else "") for i in range(outputs)]
        self.lines.append(f"node n{self.count} {op} {','.join(inputs)} -> {','.join(names)} {attributes}".rstrip())
        return names[0] if outputs == 1 else names

    def enter(self, name):
        self.module = name
        self.modules.append(name)
        self.lines.append(f"module {name}")

    def parameter(self, name, *shape, spread=0.3, base=0.0):
        name = f"{self.module}.{name}" if self.module else name
        numbers = self.numbers(shape, lambda: base + self.choose.gauss(0, spread))
        self.lines.append(f"init {name} f32[{','.join(map(str, shape))}] = {numbers}")
        self.lines.append(f"signature p_{name.replace('.', '_')} PARAMETER {name}")
        self.parameters.append((name, list(shape)))
        return name

    @staticmethod
    def numbers(shape, draw):
        size = 1
        for n in shape:
            size *= n
        return " ".join(f"{draw():.5g}" for _ in range(size))

    def constant(self, kind, shape, values):
        self.count += 1
        self.lines.append(f"init c{self.count} {kind}[{','.join(map(str, shape))}] = {' '.join(map(str, values))}")
        return f"c{self.count}"

    def ints(self, *values):
        return self.constant("i64", [len(values)], values)

    def input(self, name, kind, *shape, least=0, most=1.0, batched=True):
        lead = [("batch" if self.symbolic else str(self.batch))] if batched else []
        self.lines.append(f"input {name} {kind}[{','.join(lead + list(map(str, shape)))}]")
        self.inputs[name] = (kind, list(shape), least, most, batched)
        return name

    def linear(self, x, name, inside, outside, bias=None):
        y = self.emit("MatMul", x, self.parameter(f"{name}.weight", inside, outside))
        if self.choose.random() < 0.5 if bias is None else bias:
            y = self.emit("Add", y, self.parameter(f"{name}.bias", outside))
        return y

    # -- Layers.

    def norm(self, x):
        return self.emit("LayerNormalization", x, self.parameter("ln.weight", self.width, spread=0.1, base=1.0),
                         self.parameter("ln.bias", self.width), attributes="axis=-1")

    def feed_forward(self, x, *_):
        wide = self.choose.choice([4, 6, 8, 16, 40])
        y = self.emit(self.choose.choice(["Gelu", "Tanh", "Relu", "Sigmoid"]), self.linear(x, "up", self.width, wide))
        return self.emit("Add", x, self.linear(y, "down", wide, self.width))

    def split_heads(self, x, length, order):
        x = self.emit("Reshape", x, self.ints(0, length, self.heads, self.width // self.heads))
        return self.emit("Transpose", x, attributes=f"perm={order}")

    def scores_of(self, q, k, lengths, mask):
        """Queries times keys, with what such models add: a causal mask, a mask that is fed, a table of relative places."""
        scores = self.emit("MatMul", q, k)
        scores = self.emit("Mul", scores, self.constant("f32", [], [(self.width // self.heads) ** -0.5]))
        rows, columns = lengths
        if rows == columns and self.choose.random() < 0.4:  # causal
            seen = self.emit("Trilu", self.constant("f32", [rows, columns], [1] * rows * columns), attributes="upper=0")
            seen = self.emit("Cast", seen, attributes="to=9")
            scores = self.emit("Where", seen, scores, self.constant("f32", [], [-1e9]))
        if rows == columns and self.choose.random() < 0.3:  # buckets of a distance that is no line
            buckets = 5
            places = [min(abs(i - j) * abs(i - j), buckets - 1) for i in range(rows) for j in range(columns)]
            bias = self.emit("Gather", self.parameter(f"relative{self.count}.weight", buckets, self.heads),
                             self.constant("i64", [rows, columns], places))
            scores = self.emit("Add", scores, self.emit("Transpose", bias, attributes="perm=[2,0,1]"))
        if mask:
            hidden = self.emit("Unsqueeze", mask, self.ints(1, 2))
            hidden = self.emit("Mul", self.emit("Sub", self.constant("f32", [], [1.0]), hidden), self.constant("f32", [], [-1e4]))
            scores = self.emit("Add", scores, hidden)
        return self.emit("Softmax", scores, attributes="axis=-1")

    def rotate(self, x, length):
        """Rotary positions from a table that is a constant of the graph, or computed in it."""
        half = self.width // self.heads // 2
        if self.choose.random() < 0.5:
            angles = [round(p / (3.0 ** i), 5) for p in range(length) for i in range(half)]
            angle = self.constant("f32", [length, half], angles)
        else:
            places = self.emit("Range", self.constant("i64", [], [0]), self.constant("i64", [], [length]),
                               self.constant("i64", [], [1]))
            places = self.emit("Unsqueeze", self.emit("Cast", places, attributes="to=1"), self.ints(1))
            angle = self.emit("Mul", places, self.constant("f32", [half], [3.0 ** -i for i in range(half)]))
        cos, sin = self.emit("Cos", angle), self.emit("Sin", angle)
        a, b = self.emit("Split", x, attributes="axis=-1 num_outputs=2", outputs=2)
        left = self.emit("Sub", self.emit("Mul", a, cos), self.emit("Mul", b, sin))
        right = self.emit("Add", self.emit("Mul", b, cos), self.emit("Mul", a, sin))
        return self.emit("Concat", left, right, attributes="axis=-1")

    def attention(self, x, memory=None, mask=None, lengths=None):
        part = "cross_" if memory else ""
        rows, columns = lengths or (self.length, self.length)
        own = memory or x
        q = self.split_heads(self.linear(x, part + "q", self.width, self.width), rows, "[0,2,1,3]")
        k = self.split_heads(self.linear(own, part + "k", self.width, self.width), columns, "[0,2,1,3]")
        v = self.split_heads(self.linear(own, part + "v", self.width, self.width), columns, "[0,2,1,3]")
        if not memory and self.width // self.heads % 2 == 0 and self.choose.random() < 0.3:
            q, k = self.rotate(q, rows), self.rotate(k, columns)
        k = self.emit("Transpose", k, attributes="perm=[0,1,3,2]")
        y = self.emit("MatMul", self.scores_of(q, k, (rows, columns), mask), v)
        y = self.emit("Reshape", self.emit("Transpose", y, attributes="perm=[0,2,1,3]"), self.ints(0, rows, self.width))
        return self.emit("Add", x, self.linear(y, part + "o", self.width, self.width))

    def experts(self, x, *_):
        """A few of several feed-forwards a token, weighted: gates are scattered to where the router's TopK says."""
        count, used, wide = self.choose.choice([(3, 1, 4), (4, 2, 6)])
        gates = self.emit("Softmax", self.linear(x, "router", self.width, count, bias=False), attributes="axis=-1")
        best, which = self.emit("TopK", gates, self.ints(used), attributes="axis=-1", outputs=2)
        zeros = self.emit("Mul", gates, self.constant("f32", [], [0.0]))
        gates = self.emit("ScatterElements", zeros, which, best, attributes="axis=-1")
        lead = self.emit("Unsqueeze", x, self.ints(1))
        y = self.emit("Relu", self.emit("MatMul", lead, self.parameter("experts.up", count, self.width, wide)))
        y = self.emit("MatMul", y, self.parameter("experts.down", count, wide, self.width))
        weight = self.emit("Unsqueeze", self.emit("Transpose", gates, attributes="perm=[0,2,1]"), self.ints(3))
        y = self.emit("ReduceSum", self.emit("Mul", y, weight), self.ints(1), attributes="keepdims=0")
        return self.emit("Add", x, y)

    def table(self, x, length, *_):
        """A buffer of the model's: floats that follow no rule, of any size."""
        values = [round(self.choose.gauss(0, 0.3), 4) for _ in range(length * self.width)]
        return self.emit("Add", x, self.constant("f32", [length, self.width], values))

    def turn(self, x, length, *_):
        """Rows by way of constants: flipped along the length by a gather, halves of the width exchanged."""
        x = self.emit("Gather", x, self.constant("i64", [length], range(length - 1, -1, -1)), attributes="axis=1")
        if self.width % 2 == 0:
            a, b = self.emit("Split", x, attributes="axis=-1 num_outputs=2", outputs=2)
            x = self.emit("Concat", b, a, attributes="axis=-1")
        return x

    # -- Models.

    def embed(self, name, length, number=""):
        self.enter(f"embed{number}")
        if self.choose.random() < 0.25:
            return self.linear(self.input(name, "f32", length, 3), "in", 3, self.width), None
        table = self.parameter("weight", self.classes, self.width)
        x = self.emit("Gather", table, self.input(name, "i64", length, most=self.classes))
        if self.choose.random() < 0.5:
            x = self.emit("Add", x, self.parameter("position", length, self.width))
        return x, table

    def layers(self, x, prefix, count, length, mask=None, memory=None, source=None):
        for i in range(count):
            self.enter(f"{prefix}.{i}")
            if self.choose.random() < 0.5:
                x = self.norm(x)
            kind = self.choose.choice(["feed_forward", "attention", "attention", "experts", "table", "turn"])
            x = self.attention(x, mask=mask, lengths=(length, length)) if kind == "attention" else getattr(self, kind)(x, length)
            if memory and (i == 0 or self.choose.random() < 0.7):
                x = self.attention(x, memory, source[1], (length, source[0]))
        return x

    def build(self):
        """Returns the loss or the logits of the model, and the width of these."""
        mask, memory, source = None, None, None
        if self.choose.random() < 0.4:  # an encoder, of its own inputs
            length = self.choose.choice([2, 3, 5, 33])
            y, _ = self.embed("source", length, ".source")
            if self.choose.random() < 0.6:
                mask = self.input("source_mask", "f32", length, least=1, most=1.0)
            memory = self.layers(y, "encoder", self.choose.randint(0, 2), length, mask)
            source = (length, mask if self.choose.random() < 0.7 else None)
        x, table = self.embed("tokens", self.length)
        mask = self.input("mask", "f32", self.length, least=1, most=1.0) if self.choose.random() < 0.3 else None
        if self.choose.random() < 0.15:
            x = self.emit("Mul", x, self.input("scale", "f32", least=0.5, most=1.0, batched=False))
        if self.choose.random() < 0.15:
            x = self.emit("Add", x, self.input("shared", "f32", self.width, least=-1, most=1.0, batched=False))
        if self.carries:
            x = self.emit("Add", x, self.input("state", "f32", self.length, self.width, least=-1))
            turn = self.emit("Cos", self.input("place", "f32", least=0, batched=False))
            x = self.emit("Mul", x, turn)
        x = self.layers(x, "h", self.choose.randint(1, 3), self.length, mask, memory, source)
        if self.carries:
            # On another stage than before, maybe, where it is computed once more or sent.
            x = self.emit("Mul", x, turn if self.choose.random() < 0.5 else self.emit("Cos", "place"))
        self.hidden, self.memory = x, memory
        self.enter("head")
        if table and self.choose.random() < 0.5:
            return self.emit("MatMul", x, self.emit("Transpose", table, attributes="perm=[1,0]"))
        return self.linear(x, "out", self.width, self.classes)

    def more_outputs(self, logits):
        """Name, type and shape of what a model may give beside its result. Shapes of values with the batch begin with it."""
        batch = "batch" if self.symbolic else str(self.batch)
        first = next(iter(self.inputs))
        kind, shape, _, _, batched = self.inputs[first]
        table, at = self.choose.choice(self.parameters)
        known = self.constant("f32", [2, 3], range(6))
        return [
            (logits, f"f32[{batch},{self.length},{self.classes}]"),
            (self.hidden, f"f32[{batch},{self.length},{self.width}]"),
            (first, f"{kind}[{','.join([batch] * batched + list(map(str, shape)))}]"),
            (table, f"f32[{','.join(map(str, at))}]"),
            (known, "f32[2,3]"),
            (self.emit("Shape", self.hidden), "i64[3]"),
            (self.emit("Size", self.hidden), "i64[]"),
            (self.emit("EyeLike", self.constant("f32", [3, 3], [0] * 9)), "f32[3,3]"),
            (self.emit("ReduceMean", self.hidden, attributes="keepdims=0"), "f32[]"),
            (self.emit("Transpose", self.hidden, attributes="perm=[1,0,2]"), f"f32[{self.length},{batch},{self.width}]"),
            (self.emit("Identity", self.hidden), f"f32[{batch},{self.length},{self.width}]"),
            (self.emit("ArgMax", logits, attributes="axis=-1 keepdims=0"), f"i64[{batch},{self.length}]"),
            (self.emit("ReduceSum", self.parameters[0][0], attributes="keepdims=0"), "f32[]"),
            (self.emit("Exp", table), f"f32[{','.join(map(str, at))}]"),
        ]

    def carried_outputs(self):
        """What a call hands to the next, and as which input of it."""
        one = self.constant("f32", [], [1])
        return {self.emit("Tanh", self.hidden): "state", self.emit("Add", "place", one): "place"}

    def add_outputs(self, wanted):
        for value, text in wanted:
            if value not in self.outputs:
                self.outputs.append(value)
                self.lines.append(f"output {value} {text}")


MESHES = [{}, {"dp": 2}, {"tp": 2}, {"pp": 2}, {"pp": 2}, {"dp": 2, "tp": 2}, {"pp": 2, "dp": 2}, {"pp": 2, "tp": 2}, {"pp": 3},
          {"dp": 4}, {"tp": 3}, {"tp": 2, "pp": 2}]


def flow(mapping):
    return "{" + ", ".join(f"{key}: {value}" for key, value in mapping.items()) + "}"


class Case:
    """A model, its data, a plan and the plan of one rank that computes the same."""

    def __init__(self, seed, chunks=False, carries=False):
        self.seed, self.choose, self.chunks = seed, random.Random(seed), chunks
        choose = self.choose
        self.graph = graph = Graph(choose, carries)
        self.trains = choose.random() < 0.6 and not carries
        logits = graph.build()
        self.carried = graph.carried_outputs() if carries else {}
        extra = graph.more_outputs(logits)
        if carries:  # results of several calls stand one behind the other where the batch is dim 0
            extra = [output for output in extra if f"[{graph.length},{'batch' if graph.symbolic else graph.batch}" not in output[1]]
        train = []
        if not self.trains:
            graph.add_outputs(choose.sample(extra, choose.randint(1, 4)))
            for value, name in self.carried.items():
                batch = [f"{'batch' if graph.symbolic else graph.batch}"] if name == "state" else []
                graph.add_outputs([(value, f"f32[{','.join(batch + list(map(str, graph.inputs[name][1])))}]")])
        elif choose.random() < 0.5:
            graph.add_outputs([extra[0]] + choose.sample(extra[1:], choose.randint(0, 2)) if choose.random() < 0.3 else [extra[0]])
            train.append(f"loss: {{kind: cross_entropy, output: {logits}}}")
            graph.inputs["labels"] = ("i64", [graph.length], 0, graph.classes, True)
            # A scalar float beside the logits would be a loss of the model's own.
            if any(text == "f32[]" for value, text in extra if value in graph.outputs):
                train = [f"loss: {next(value for value, text in extra if value in graph.outputs and text == 'f32[]')}"]
                del graph.inputs["labels"]
        else:
            labels = graph.input("labels", "i64", graph.length, most=graph.classes)
            scores = graph.emit("Transpose", logits, attributes="perm=[0,2,1]")
            loss = graph.emit("SoftmaxCrossEntropyLoss", scores, labels)
            graph.add_outputs([(loss, "f32[]")] + choose.sample(extra, choose.randint(0, 2)))
            train.append(f"loss: {loss}")
        self.model = encode(graph.lines)
        self.mesh = choose.choice(MESHES)
        ways = self.mesh.get("dp", 1)
        self.microbatches = choose.choice([m for m in (1, 1, 2, 4) if graph.batch % (m * ways) == 0] or [1])
        self.optimizer = choose.choice(["sgd", "sgd", "momentum", "adamw"])
        if self.trains:
            train.append(f"optimizer: {{kind: {self.optimizer}, lr: {choose.choice(['1e-2', '1e-3'])}}}")
            if choose.random() < 0.2:
                train.append("clip: 0.5")
            if choose.random() < 0.2:
                train.append("freeze: [" + ", ".join(f'"^{name}"' for name, _ in choose.sample(graph.parameters, 1)) + "]")
        tail = [f"train: {{{', '.join(train)}}}"] if self.trains else []
        # A dim as large as the batch is taken for it unless the plan says otherwise.
        alike = [name for name, (_, shape, _, _, batched) in graph.inputs.items() if not batched and shape[:1] == [graph.batch]]
        if alike:
            tail.append(f"inputs: {{{', '.join(f'{name}: {{batch: none}}' for name in alike)}}}")
        self.fed = f"batch: {{size: {graph.batch}, microbatches: 1}}\n"  # the same without a carried state
        self.fed += "\n".join(tail)
        if carries:
            tail.append(f"carry: {flow(self.carried)}")
        self.one = "\n".join([f"batch: {{size: {graph.batch}, microbatches: 1}}", *tail]) + "\n"
        self.plan = "\n".join(self.lines_of_plan() + tail) + "\n"

    def lines_of_plan(self):
        choose, mesh = self.choose, self.mesh
        lines = [f"mesh: {flow(mesh)}", f"batch: {{size: {self.graph.batch}, microbatches: {self.microbatches}}}",
                 f"recompute: {choose.choice(['none', 'none', 'full'])}"]
        lines.append("collectives: " + choose.choice(["{bucket: 0}", "{overlap: false}", "{}"]))
        if "pp" in mesh:
            cuts = "auto"
            if choose.random() < 0.5:
                starts = sorted(choose.sample(range(1, len(self.graph.modules)), min(mesh["pp"], len(self.graph.modules)) - 1))
                cuts = "[" + ", ".join(f'"^{self.graph.modules[at]}"' for at in starts) + "]"
            schedule = choose.choice([", schedule: 1f1b", ", schedule: gpipe"])
            if self.chunks:
                draws = random.Random(f"{self.seed} chunks")  # known seeds keep their plans
                name, each = draws.choice([("interleaved", 2), ("interleaved", 3), ("zb-h1", 1), ("zb-v", 2), ("auto", 2), ("auto", 1)])
                schedule, cuts = f", schedule: {name}", f"auto, stages: {each * mesh['pp']}"
            lines.append(f"pipeline: {{cuts: {cuts}{schedule if self.trains else ''}}}")
        rules = self.shards()
        return lines + (["shard:", *(f'  "{name}": {flow(rule)}' for name, rule in rules.items())] if rules else [])

    def shards(self):
        rules, axes = {}, [axis for axis in ("tp", "dp") if axis in self.mesh]
        share = self.choose.choice([0.3, 0.6, 0.9])
        for name, shape in self.graph.parameters if axes else []:
            if self.choose.random() < share:
                axis = self.choose.choice(axes[:1] * 4 + axes)
                dims = [dim for dim, size in enumerate(shape) if size >= self.mesh[axis]]
                if dims:
                    rules[f"^{name}"] = {self.choose.choice(dims): axis}
        return rules

    def write_data(self, path):
        choose = random.Random(f"{self.seed} data")
        rows = self.graph.batch * choose.choice([1, 2]) + (0 if self.trains or self.carried else choose.choice([0, 0, 1]))
        arrays = {}
        for name, (kind, shape, least, most, batched) in self.graph.inputs.items():
            if name in self.carried.values():
                continue
            whole, size = ([rows] if batched else []) + shape, 1
            for n in whole:
                size *= n
            draw = (lambda: choose.randrange(least, most)) if kind == "i64" else (
                lambda: 1.0 if least == most else choose.uniform(least, most))
            if name.endswith("mask"):
                draw = lambda: float(choose.random() < 0.8)  # noqa: E731
            arrays[name] = (whole, [draw() for _ in range(size)])
        write_safetensors(path, arrays)
        self.arrays, self.calls = arrays, rows // self.graph.batch


class Difference(Exception):
    """What one rank computes and what the plan's ranks do are not the same."""


def apart(whole, part, bound, what):
    if whole.keys() != part.keys():
        raise Difference(f"{what}: {sorted(whole)} and {sorted(part)}")
    for name, (shape, numbers) in whole.items():
        other_shape, others = part[name]
        if shape != other_shape:
            raise Difference(f"{what} {name}: {shape} and {other_shape}")
        most = largest(abs(a - b) for a, b in zip(numbers, others))
        room = bound * largest(map(abs, numbers)) + 1e-7
        if not most <= room:
            raise Difference(f"{what} {name} differ by {most:.3g}, bound {room:.3g}")


class Play:
    def __init__(self, binaries, work, timeout, phases=False):
        self.runs, self.work, self.phases = Runs(binaries, work, timeout), work, phases
        self.data, self.model = work / "data.safetensors", work / "model.onnx"

    def outcome(self, case, plan):
        bundle = self.runs.compile(self.model, plan)
        if not case.trains:
            out = self.work / "out.safetensors"
            fed = ["--data", self.data] if '"inputs":[]' not in (bundle / "manifest.json").read_text().replace("\n", "") else []
            self.runs.run(self.runs.binaries / "par-run", bundle, *fed, "--output", out)
            return [], read_safetensors(out, ("F32", "I64"))
        lines, weights = self.runs.train(bundle, self.data, 3)
        return [line["loss"] for line in lines], read_safetensors(weights)

    def hold_phases(self, case):
        plan = self.work / "plan.yaml"
        plan.write_text(case.plan)
        self.runs.run(self.runs.binaries / "par-compile", self.model, plan, "--check-phases", "-q")

    def hold_ranks(self, case):
        losses, whole = self.outcome(case, case.one)
        found, part = self.outcome(case, case.plan)
        # adamw makes steps of the learning rate of gradients that are nothing but noise.
        noise = 30 if case.trains and case.optimizer == "adamw" else 1
        if len(losses) != len(found) or not largest(abs(a - b) / max(1, abs(a)) for a, b in zip(losses, found)) <= 2e-5 * noise:
            raise Difference(f"losses {losses} and {found}")
        if noise == 1:
            apart(whole, part, 5e-5, "weights" if case.trains else "output")
        if case.carried:
            self.hold_fed(case, whole)

    def hold_fed(self, case, carried):
        """The model without `carry`, each call given by hand what the one before has handed on: with the batch once a call."""
        bundle, graph, data = self.runs.compile(self.model, case.fed), case.graph, self.work / "call.safetensors"
        state = {name: ([graph.batch] * graph.inputs[name][4] + graph.inputs[name][1]) for name in case.carried.values()}
        state = {name: (shape, [0.0] * math.prod(shape)) for name, shape in state.items()}
        calls = []
        for call in range(case.calls):
            arrays = dict(state)
            for name, (shape, numbers) in case.arrays.items():
                each = len(numbers) // shape[0] * graph.batch if graph.inputs[name][4] else len(numbers)
                begin = call * each if graph.inputs[name][4] else 0
                arrays[name] = ([graph.batch] * graph.inputs[name][4] + graph.inputs[name][1], numbers[begin:begin + each])
            write_safetensors(data, arrays)
            self.runs.run(self.runs.binaries / "par-run", bundle, "--data", data, "--output", self.work / "out.safetensors")
            found = read_safetensors(self.work / "out.safetensors", ("F32", "I64"))
            state = {name: found.pop(value) for value, name in case.carried.items()}
            calls.append(found)
        for name, (_, numbers) in carried.items():
            each = [number for found in calls for number in found[name][1]]
            # What no input reaches is there once.
            whole = each if len(each) == len(numbers) else each[:len(numbers)]
            apart({name: ([], whole)}, {name: ([], numbers)}, 5e-5, "fed by hand,")

    def run(self, case):
        """"" if all is well, or the sentence with which the compiler refuses."""
        self.model.write_bytes(case.model)
        case.write_data(self.data)
        try:
            self.hold_phases(case) if self.phases else self.hold_ranks(case)
        except Failed as failure:
            sentence = refusal(str(failure))
            if not sentence:
                raise
            return sentence
        finally:
            while self.runs.bundles:
                shutil.rmtree(self.runs.bundles.popitem()[1], ignore_errors=True)
        return ""


def refusal(said):
    """The compiler's located sentence about the model or the plan, or nothing."""
    line = re.search(r"^\S+\.(onnx|yaml)(:\d+)*: error: .*$", said, re.M)
    fault = re.search(r"internal error|changed what the program computes|differs by|does not dominate", said)
    first = said.splitlines()[0].split()[0]
    return line[0] if line and not fault and "exit 1\n" in said and first.endswith("par-compile") else ""


def keep(folder, seed, case):
    folder.mkdir(parents=True, exist_ok=True)
    for suffix, content in (("onnx", case.model), ("yaml", case.plan.encode()), ("one.yaml", case.one.encode()),
                            ("txt", "\n".join(case.graph.lines).encode())):
        (folder / f"{seed}.{suffix}").write_bytes(content)
    case.write_data(folder / f"{seed}.safetensors")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", help="default: on the PATH", default=pathlib.Path(shutil.which("par-compile") or ".").parent)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, help="goes on for so long, whatever --count says")
    parser.add_argument("--timeout", type=int, default=120, help="seconds a program may take")
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--phases", action="store_true", help="the interpreter holds every phase against the one before")
    parser.add_argument("--chunks", action="store_true", help="several stages a rank, or backward in two parts")
    parser.add_argument("--carry", action="store_true", help="a state is handed on from call to call")
    parser.add_argument("--verbose", action="store_true", help="prints what was refused")
    options = parser.parse_args()
    print(f"random-programs.py --count {options.count} --seed {options.seed}", flush=True)
    failed = refused = done = 0
    until = time.monotonic() + (options.seconds or 0)
    with tempfile.TemporaryDirectory(prefix="par-programs-") as work:
        play = Play(options.bin, pathlib.Path(work), options.timeout, options.phases)
        while time.monotonic() < until if options.seconds else done < options.count:
            seed = options.seed + done
            done += 1
            case = Case(seed, options.chunks, options.carry)
            try:
                sentence = play.run(case)
                refused += bool(sentence)
                if sentence and options.verbose:
                    print(f"seed {seed} refused: {sentence}", flush=True)
            except (Failed, Difference, subprocess.TimeoutExpired) as failure:
                failed += 1
                print(f"seed {seed} {flow(case.mesh)} m {case.microbatches} {'train' if case.trains else 'predict'}: "
                      f"FAIL {str(failure)[-1500:]}", flush=True)
                if options.keep:
                    keep(options.keep, seed, case)
    print(f"{done} programs, {refused} refused, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Small random models under random plans: every pass must keep a step's results.

    random-plans.py [--count N] [--seed S] [--chunks | --meshes] [--par-opt PATH] [--keep FOLDER]

Each case is a model as IR (embedding, matmuls, norms, attention, gathers, a loss), a plan as passes and their
options (stages, mesh, shardings, microbatches, optimizer, clipping, schedule), and one run of par-opt
--par-check-phases, which interprets the module before and after every pass on all ranks. A case that fails is
printed with its seed and kept in FOLDER. The last line counts cases; the exit status is 1 if one failed.
"""
import argparse
import math
import os
import random
import subprocess
import sys


def tensor(shape, element="f32"):
    return "tensor<" + "".join(f"{n}x" for n in shape) + element + ">"


class Model:
    """IR of @eval, built op by op. Every value has dim 0 for the batch."""

    def __init__(self, choose, batch, axes):
        self.choose = choose
        self.draws = random.Random(str(choose.getstate()[1][4:8]))  # draws nothing: known seeds keep their models
        self.axes = axes
        self.batch = batch
        self.variables, self.lines, self.inputs = [], [], []
        self.count = 0
        self.stage = 0
        self.length = choose.choice([1, 2, 3, 5])
        self.width = choose.choice([2, 4, 6, 6, 9])
        self.classes = choose.choice([3, 5, 8, 10])

    def emit(self, text, staged=True):
        self.count += 1
        name = f"%v{self.count}"
        if staged and " : " in text:
            at = text.index(" : ")
            text = f"{text[:at]} {{stage = {self.stage} : i64}}{text[at:]}"
        self.lines.append(f"  {name} = {text}")
        return name

    def constant(self, value, shape, element="f32"):
        return self.emit(f"par.constant dense<{value}> : {tensor(shape, element)}", staged=False)

    def parameter(self, shape):
        name = f"p{len(self.variables)}"
        self.variables.append((name, shape))
        read = self.emit(f"par.read @{name} : {tensor(shape)}", staged=False)
        return read, shape

    def broadcast(self, value, shape, dims, to):
        inner = ", ".join(map(str, dims))
        return self.emit(f"par.broadcast_in_dim {value} dims [{inner}] : {tensor(shape)} to {tensor(to)}")

    def unary(self, op, value, shape):
        return self.emit(f"par.{op} {value} : {tensor(shape)}")

    def binary(self, op, lhs, rhs, shape):
        return self.emit(f"par.{op} {lhs}, {rhs} : {tensor(shape)}")

    def linear(self, value, shape, width, bias=True):
        """x W (+ b) along the last dim."""
        weight, _ = self.parameter([shape[-1], width])
        to = shape[:-1] + [width]
        value = self.emit(f"par.dot {value}, {weight} contracting [{len(shape) - 1}] x [0] : "
                          f"({tensor(shape)}, {tensor([shape[-1], width])}) -> {tensor(to)}")
        if bias:
            vector, _ = self.parameter([width])
            value = self.binary("add", value, self.broadcast(vector, [width], [len(to) - 1], to), to)
        return value, to

    # -- Layers: value of shape [B, S, W] to the same shape.

    def feed_forward(self, value, shape):
        wide, at = self.linear(value, shape, self.choose.choice([4, 6, 8, 10]), self.choose.random() < 0.7)
        act = self.choose.choice(["tanh", "gelu", "sigmoid", "sin"])
        wide = self.unary(act, wide, at)
        back, _ = self.linear(wide, at, shape[-1], self.choose.random() < 0.5)
        return self.binary("add", value, back, shape)

    def norm(self, value, shape):
        width = [shape[-1]]
        scale, _ = self.parameter(width)
        bias, _ = self.parameter(width)
        name = f"%v{self.count + 1}"
        self.count += 1
        lead = tensor(shape[:-1])
        self.lines.append(f"  {name}:3 = par.layer_norm {value}, {scale}, {bias} epsilon 1.0e-3 {{stage = {self.stage} "
                          f": i64}}"
                          f" : ({tensor(shape)}, {tensor(width)}, {tensor(width)})"
                          f" -> ({tensor(shape)}, {lead}, {lead})")
        return f"{name}#0"

    def attention(self, value, shape):
        batch, length, width = shape
        heads = self.choose.choice([h for h in (1, 2, 3) if width % h == 0])
        split, turned = [batch, length, heads, width // heads], [batch, heads, length, width // heads]
        parts = []
        for _ in range(3):
            part, _ = self.linear(value, shape, width, self.choose.random() < 0.5)
            part = self.emit(f"par.reshape {part} : {tensor(shape)} to {tensor(split)}")
            parts.append(self.emit(f"par.transpose {part} [0, 2, 1, 3] : {tensor(split)} to {tensor(turned)}"))
        square = [batch, heads, length, length]
        score = self.emit(f"par.dot {parts[0]}, {parts[1]} contracting [3] x [3] batching [0, 1] x [0, 1] : "
                          f"({tensor(turned)}, {tensor(turned)}) -> {tensor(square)}")
        if self.choose.random() < 0.5:
            row = self.emit(f"par.iota dim 2 : {tensor(square, 'i64')}", staged=False)
            column = self.emit(f"par.iota dim 3 : {tensor(square, 'i64')}", staged=False)
            seen = self.emit(f"par.compare ge {row}, {column} : {tensor(square, 'i64')}", staged=False)
            low = self.constant("-1.0e9", square)
            score = self.emit(f"par.select {seen}, {score}, {low} : {tensor(square, 'i1')}, {tensor(square)}")
        score = self.emit(f"par.softmax {score} dim 3 : {tensor(square)}")
        mixed = self.emit(f"par.dot {score}, {parts[2]} contracting [3] x [2] batching [0, 1] x [0, 1] : "
                          f"({tensor(square)}, {tensor(turned)}) -> {tensor(turned)}")
        mixed = self.emit(f"par.transpose {mixed} [0, 2, 1, 3] : {tensor(turned)} to {tensor(split)}")
        mixed = self.emit(f"par.reshape {mixed} : {tensor(split)} to {tensor(shape)}")
        back, _ = self.linear(mixed, shape, width, False)
        return self.binary("add", value, back, shape)

    def scale(self, value, shape):
        """Elementwise with a parameter of the width, and a piece of slicing and joining."""
        vector, _ = self.parameter([shape[-1]])
        value = self.binary("multiply", value, self.broadcast(vector, [shape[-1]], [2], shape), shape)
        if shape[-1] % 2 == 0 and self.choose.random() < 0.5:
            half = shape[:-1] + [shape[-1] // 2]
            ends = ", ".join(map(str, shape[:-1]))
            left = self.emit(f"par.slice {value} [0, 0, 0] to [{ends}, {half[-1]}] by [1, 1, 1] : "
                             f"{tensor(shape)} to {tensor(half)}")
            right = self.emit(f"par.slice {value} [0, 0, {half[-1]}] to [{ends}, {shape[-1]}] by [1, 1, 1] : "
                              f"{tensor(shape)} to {tensor(half)}")
            value = self.emit(f"par.concat {right}, {left} dim 2 : ({tensor(half)}, {tensor(half)}) -> {tensor(shape)}")
        return value

    def broadcast_numbers(self, value, dim, shape):
        return self.emit(f"par.broadcast_in_dim {value} dims [{dim}] : {tensor(shape[dim:dim + 1], 'i64')} to "
                         f"{tensor(shape, 'i64')}", staged=False)

    def drop(self, value, shape):
        """Half of the elements become 0, chosen by their global numbers as dropout is, and by a number of their row."""
        whole = shape[1] * shape[2]
        numbers = None
        for dim, stride in enumerate([whole, shape[2], 1]):
            along = self.emit(f"par.iota dim 0 : {tensor(shape[dim:dim + 1], 'i64')}", staged=False)
            apart = self.constant(stride, shape[dim:dim + 1], "i64")
            along = self.emit(f"par.multiply {along}, {apart} : {tensor(shape[dim:dim + 1], 'i64')}", staged=False)
            along = self.broadcast_numbers(along, dim, shape)
            numbers = along if dim == 0 else self.emit(f"par.add {numbers}, {along} : {tensor(shape, 'i64')}",
                                                       staged=False)
        zeros = self.constant(0, shape, "i64")
        rows = f"[{', '.join(str(self.draws.randrange(1000)) for _ in range(shape[0]))}]"
        key = self.broadcast_numbers(self.constant(rows, shape[:1], "i64"), 0, shape)
        bits = self.emit(f"par.random_bits {key}, {numbers} : {tensor(shape, 'i64')}")
        kept = self.emit(f"par.compare ge {bits}, {zeros} : {tensor(shape, 'i64')}")
        nothing = self.constant("0.0", shape)
        return self.emit(f"par.select {kept}, {value}, {nothing} : {tensor(shape, 'i1')}, {tensor(shape)}")

    def constrain(self, value, shape):
        """The plan's word on a value: one dim over an axis, the others as it comes or whole."""
        at = self.choose.randrange(1, len(shape))
        rest = self.choose.choice(["{}", "{?}", "{?}"])
        mine = f'{{"{self.choose.choice(self.axes)}"{self.choose.choice(["", ", ?"])}}}'
        dims = ", ".join(mine if d == at else "{?}" if d == 0 else rest for d in range(len(shape)))
        own = random.Random(f"{self.count} {value} {dims}")  # draws nothing: known seeds keep their plans
        if own.random() < 0.3:  # no place, and perhaps a sum
            dims = ", ".join(["{?}"] * len(shape))
            dims += f'], unreduced={{"{own.choice(self.axes)}"}}'
        else:
            dims += "]"
        late = own.choice(["", "", "", " priority 0", " priority 2", " priority 3"])
        return self.emit(f"par.constrain {value} <[{dims}>{late} : {tensor(shape)}")

    # -- Beginning and end.

    def begin(self):
        """Embedded ids, or a float input brought to the width; returns the table for tying, if there is one."""
        shape = [self.batch, self.length, self.width]
        if self.choose.random() < 0.6:
            self.inputs.append(("ids", shape[:2], "i64"))
            table, size = self.parameter([self.classes, self.width])
            value = self.emit(
                f"par.gather {table}, %ids dim 0 : {tensor(size)}, {tensor(shape[:2], 'i64')} to {tensor(shape)}")
            if self.choose.random() < 0.5:
                place, size = self.parameter([self.length, self.width])
                value = self.binary("add", value, self.broadcast(place, size, [1, 2], shape), shape)
            return value, shape, table
        self.inputs.append(("x", [self.batch, self.length, 4], "f32"))
        value, _ = self.linear("%x", [self.batch, self.length, 4], self.width)
        return value, shape, None

    def end(self, value, shape, table):
        if self.choose.random() < 0.25:  # mean of squares
            square = self.binary("multiply", value, value, shape)
            total = self.emit(f"par.reduce sum {square} dims [0, 1, 2] : {tensor(shape)} to tensor<f32>")
            return self.binary("divide", total, self.constant(float(self.batch), []), [])
        logits = [self.batch, self.length, self.classes]
        if table and self.choose.random() < 0.6:
            value = self.emit(f"par.dot {value}, {table} contracting [2] x [1] : "
                              f"({tensor(shape)}, {tensor([self.classes, self.width])}) -> {tensor(logits)}")
        else:
            value, _ = self.linear(value, shape, self.classes, self.choose.random() < 0.5)
        labels = logits[:2]
        self.inputs.append(("labels", labels, "i64"))
        name = f"%v{self.count + 1}"
        self.count += 1
        self.lines.append(f"  {name}:2 = par.cross_entropy {value}, %labels ignore -100 {{stage = {self.stage} : i64}}"
                          f" : ({tensor(logits)}, {tensor(labels, 'i64')}) -> ({tensor(labels)}, {tensor(labels)})")
        total = self.emit(f"par.reduce sum {name}#0 dims [0, 1] : {tensor(labels)} to tensor<f32>")
        ignored = self.constant(-100, labels, "i64")
        live = self.emit(f"par.compare ne %labels, {ignored} : {tensor(labels, 'i64')}", staged=False)
        live = self.emit(f"par.convert {live} : {tensor(labels, 'i1')} to {tensor(labels)}", staged=False)
        number = self.emit(f"par.reduce sum {live} dims [0, 1] : {tensor(labels)} to tensor<f32>", staged=False)
        return self.binary("divide", total, number, [])

    def build(self, stages):
        layers = self.choose.randint(max(stages - 1, 0), stages + 1)
        value, shape, table = self.begin()
        for layer in range(layers):
            self.stage = layer * stages // max(layers, 1)
            kind = self.choose.choice([self.feed_forward, self.norm, self.attention, self.scale])
            value = kind(value, shape)
            if self.axes and self.choose.random() < 0.3:
                value = self.constrain(value, shape)
            if self.draws.random() < 0.3:
                value = self.drop(value, shape)
        self.stage = stages - 1
        loss = self.end(value, shape, table)
        arguments = ", ".join(f"%{name}: {tensor(shape, element)}" for name, shape, element in self.inputs)
        names = ", ".join(f'"{name}"' for name, _, _ in self.inputs)
        return "\n".join([f"par.step @eval({arguments}) -> tensor<f32>",
                          f'    attributes {{inputs = [{names}], outputs = ["loss"]}} {{', *self.lines,
                          f"  par.return {loss} : tensor<f32>", "}"])


class Case:
    """A model and a plan."""

    def __init__(self, seed, chunks=False, meshes=False):
        choose = random.Random(seed)
        self.stages = devices = choose.choice([1, 1, 2, 2, 3])
        if meshes:
            self.stages = devices = choose.choice([2, 2, 3])
        self.schedule = None
        if chunks:
            draws = random.Random(f"chunks of {seed}")
            devices = draws.choice([1, 2, 2, 3])
            self.schedule = draws.choice(["interleaved", "interleaved", "zb-h1", "zb-v", "auto"])
            self.stages = devices * {"zb-h1": 1, "zb-v": 2}.get(self.schedule, draws.choice([2, 2, 3]))
        axes = choose.choice([[], [("dp", 2)], [("tp", 2)], [("dp", 2), ("tp", 2)], [("tp", 3)], [("dp", 3)],
                              [("tp", 2), ("dp", 2)], [("tp.0", 2), ("tp.1", 2)], [("dp", 2), ("tp", 3)]])
        if meshes:
            axes = choose.choice([[("dp", 2)], [("tp", 2)], [("dp", 2), ("tp", 2)], [("dp.0", 3), ("dp.1", 2)],
                                  [("tp", 3), ("dp", 2)],
                                  [("dp.0", 2), ("dp.1", 2)], [("dp", 3), ("tp", 2)], [("tp.0", 2), ("tp.1", 2)]])
        data = math.prod(size for name, size in axes if name.startswith("dp"))
        microbatches = choose.choice([1, 2, 4])
        tensor_axes = [name for name, _ in axes if not name.startswith("dp")]
        model = Model(choose, microbatches * data * choose.choice([1, 2]), tensor_axes)
        step = model.build(self.stages)
        ranks = math.prod(size for _, size in axes)
        head, first = [], 0
        widths = random.Random(f"meshes of {seed}")
        for stage in range(self.stages):
            device = stage % devices
            if self.schedule == "zb-v" and stage >= devices:
                device = devices - 1 - device
            own, members = axes, range(device * ranks, device * ranks + ranks)
            if meshes:  # of an axis that a stage lacks it has one rank, in any place
                own = widths.sample([(name, widths.choice([1, size])) for name, size in axes], len(axes))
                members = range(first, first + math.prod(size for _, size in own))
                first = members.stop
            mesh = ", ".join(f'"{name}"={size}' for name, size in own)
            head.append(f"par.stage @s{stage} <{mesh}> ranks [{', '.join(map(str, members))}]")
        for name, shape in model.variables:
            head.append(f"par.variable @{name} parameter : {tensor(shape)}{self.sharding(choose, shape, tensor_axes)}")
        self.text = "\n".join(head + [step]) + "\n"
        batch = [name for name, _ in axes if name.startswith("dp")]
        batch = batch if batch and choose.random() < 0.9 else []
        rules = self.rules(random.Random(f"rules of {seed}"), model.variables, axes)
        self.passes = self.plan(choose, microbatches, batch, rules)

    @staticmethod
    def sharding(choose, shape, axes):
        if not axes or choose.random() < 0.4:
            return ""
        axes = axes[: choose.randint(1, len(axes))]
        at = choose.randrange(len(shape))
        inner = ", ".join(f'"{name}"' for name in axes)
        rest = choose.choice(["{}", "{?}"])
        return " sharding <[" + ", ".join(f"{{{inner}}}" if d == at else rest for d in range(len(shape))) + "]>"

    @staticmethod
    def rules(choose, variables, axes):
        """Priorities of parameters, and rules for gradients and states, as options of the pass."""
        said = {"priorities": [], "gradient-rules": [], "state-rules": []}
        for name, shape in variables if axes and choose.random() < 0.5 else []:
            axis, size = choose.choice(axes)
            dims = [dim for dim, length in enumerate(shape) if length >= size]
            if choose.random() < 0.2:
                said["priorities"].append(f"{name}={choose.choice([0, 2, 3])}")
            end = choose.choice(["", ";closed"])
            if dims and choose.random() < 0.3:
                said["gradient-rules"].append(f"{name}={choose.choice(dims)}:{axis}{end}")
            elif choose.random() < 0.2:
                said["gradient-rules"].append(f"{name}=partial:{axis}")
            if dims and choose.random() < 0.3:
                late = choose.choice(["", "", ";priority:0", ";priority:3"])
                said["state-rules"].append(f"{name}={choose.choice(dims)}:{axis}{end}{late}")
        return [f"{option}={','.join(rules)}" for option, rules in said.items() if rules]

    def plan(self, choose, microbatches, batch, rules):
        kind = choose.choice(["sgd", "momentum", "adamw"])
        clip = choose.choice([0, 0, 0.5])
        options = [f"batch-axes={','.join(batch)}"] * bool(batch) + rules
        over = f"{{{' '.join(options)}}}" if options else ""
        propagate, expand = "par-propagate-shardings" + over, "par-expand-composites" + over
        own = random.Random(str(choose.getstate()[1][:4]))  # draws nothing: known seeds keep their plans
        compute, scales = own.choice(["f32", "f32", "bf16", "fp16"]), own.random() < 0.25
        narrow = compute != "f32"
        first = [*[f"par-mix-precision{{compute={compute}}}"] * narrow, "par-differentiate",
                 *["par-widen-sums"] * narrow,
                 f"par-add-optimizer{{kind={kind} decay=0.1}}", *["par-scale-loss{initial=64}"] * scales,
                 f"par-clip-gradients{{clip={clip}}}", *["par-skip-overflow{growth=1}"] * scales, "par-verify-train"]
        self.train = ["builtin.module(" + ",".join(first) + ")"]
        split = f"par-split-collectives{{window={own.choice([1, 1, 2, 3])}}}"
        lift = f"par-lift-invariants{{min-bytes={own.choice([1, 16, 16384])}}}"
        recompute = "{mode=" + choose.choice(["none", "full"]) + "}"
        order, excess = f"schedule={self.schedule or '1f1b'}", own.choice([0, 1, 100, 1000, 1000000])
        return [f"par-slice-microbatches{{microbatches={microbatches}}}", "par-assign-stages", lift,
                "par-form-fragments",
                "canonicalize", "cse", "par-verify-split", propagate, expand, "canonicalize", "par-drop-absent-axes",
                "par-verify-propagate", "par-nest-transfers", "par-partition-fragments", "par-verify-partition",
                "par-recompute-values" + recompute, f"par-recompute-to-fit{{{order} excess=s0={excess}}}",
                f"par-split-backward{{{order}}}",
                "par-verify-recompute",
                "par-flatten-collectives",
                f"par-build-programs{{schedule={self.schedule or choose.choice(['1f1b', 'gpipe'])}}}",
                "par-verify-schedule",
                "par-inline-fragments", "par-accumulate-in-place", "par-promote-to-f32", "par-form-kernels",
                "par-verify-kernels",
                f"par-bucket-collectives{{bytes={choose.choice([0, 64, 1000000])}}}",
                *choose.choice([["par-verify-collectives{overlap=false}"],
                                ["par-overlap-collectives", split, "par-verify-collectives"]]),
                "par-assign-buffers", "par-pack-memory", "par-verify-memory"]

    def run(self, par_opt):
        checked = "--par-check-phases=passes=" + ",".join(self.passes)
        commands = [[par_opt, "-", f"--pass-pipeline={self.train[0]}"],
                    [par_opt, "-", "--mlir-print-op-on-diagnostic=false", checked]]
        text = self.text
        for command in commands:
            done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=120)
            if done.returncode:
                return command, text, done.stderr
            text = done.stdout
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--chunks", action="store_true",
                        help="several stages on the same ranks, or backward in two parts")
    parser.add_argument("--meshes", action="store_true", help="stages of different meshes")
    parser.add_argument("--par-opt", default="par-opt")
    parser.add_argument("--keep", default="")
    options = parser.parse_args()
    print(f"random-plans.py --count {options.count} --seed {options.seed}")
    failed = 0
    for seed in range(options.seed, options.seed + options.count):
        wrong = Case(seed, options.chunks, options.meshes).run(options.par_opt)
        if not wrong:
            continue
        failed += 1
        command, text, errors = wrong
        line = next((l for l in errors.splitlines() if "error:" in l), errors[:200])
        print(f"seed {seed}: {line}")
        if options.keep:
            os.makedirs(options.keep, exist_ok=True)
            with open(os.path.join(options.keep, f"{seed}.mlir"), "w") as file:
                file.write("// " + " ".join(f"'{c}'" for c in command) + "\n" + text)
    print(f"{options.count} cases, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

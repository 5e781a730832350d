#!/usr/bin/env python3
"""Measured cost of each kind of op, forward and gradient, beside the cost model's, at three sizes on one core.

    op_cost.py --bin build/bin [--only Gather] [--sizes 3]

Every case is a small ONNX model of one node: its floats are parameters, its loss the sum of its result times another
parameter, so that every gradient is computed from numbers that are not known before. `par-compile` predicts the time of
each instruction (--emit=trace), `par-run --trace` measures it, and the worst kernel of each case is printed at each
size: the time over the prediction, and how the time grows beside how the prediction grows. A kernel is at fault if it
takes over 10 x its prediction, or grows faster than that from size to size. Needs onnx, numpy and safetensors. Exit
code 1 if there is a fault.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import save_file

from op_cases import CASES

PLAN = "batch: 1\ntrain: {optimizer: {kind: sgd, lr: 0.0}}\n"
STEPS = 5
# Below this a kernel's time is that of starting it, and a measurement of its surroundings.
LEAST_US = 20.0
MOST, GROWTH = 10.0, 2.0


class Model:
    """The node between parameters and a loss."""

    def __init__(self, case, size):
        self.nodes, self.initializers = [], []
        self.random = numpy.random.default_rng(0)
        made = case(size)
        names = {name: self.operand(name, value) for name, value in made.inputs.items()}
        for name, value in made.constants.items():
            # Made by a node: an initializer of floats is a parameter, which scales of a Resize cannot be.
            self.nodes.append(helper.make_node("Constant", [], [name],
                                               value=numpy_helper.from_array(numpy.asarray(value))))
            names[name] = name
        outputs = ["" if shape is None else f"y{i}" for i, shape in enumerate(made.outputs)]
        operands = [names[name] for name in made.order or names]
        self.nodes.append(helper.make_node(made.op, operands, outputs, name="case", domain=made.domain,
                                           **made.attributes))
        terms = [self.term(name, shape, made.integers) for name, shape in zip(outputs, made.outputs) if name]
        self.nodes.append(helper.make_node("ReduceSum", ["data"], ["d"], keepdims=0))
        self.nodes.append(helper.make_node("Sum", [*terms, "d"], ["loss"]))
        graph = helper.make_graph(
            self.nodes, "case", [helper.make_tensor_value_info("data", TensorProto.FLOAT, ["batch", 1])],
            [helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])], self.initializers)
        self.proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", made.opset)], ir_version=10)

    def parameter(self, name, values):
        self.initializers.append(numpy_helper.from_array(numpy.asarray(values, "float32"), name))
        return name

    def operand(self, name, value):
        """Floats are parameters; integers are computed from one, since a table would be folded."""
        if not isinstance(value, numpy.ndarray):
            return self.parameter(name, self.random.uniform(0.1, 0.9, value))
        if value.dtype == numpy.float32:
            return self.parameter(name, value)
        to = TensorProto.BOOL if value.dtype == bool else TensorProto.INT64
        self.nodes.append(helper.make_node("Cast", [self.parameter(name + "_given", value)], [name], to=to))
        return name

    def term(self, name, shape, integers):
        """The sum of a result times a parameter."""
        weight = self.parameter(name + "_weight", self.random.uniform(-1, 1, shape))
        if integers:
            self.nodes.append(helper.make_node("Cast", [name], [name + "_float"], to=TensorProto.FLOAT))
            name += "_float"
        self.nodes.append(helper.make_node("Mul", [name, weight], [name + "_product"]))
        self.nodes.append(helper.make_node("ReduceSum", [name + "_product"], [name + "_sum"], keepdims=0))
        return name + "_sum"


def call(command):
    done = subprocess.run([str(word) for word in command], text=True, capture_output=True)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if "error" in line]
        raise RuntimeError((errors or [f"exit {done.returncode}"])[0][:150])
    return done.stdout


def durations(trace, name_of):
    """Microseconds of every instruction, the quickest run of each."""
    found = {}
    for event in trace["traceEvents"]:
        if event.get("ph") == "X":
            name = name_of(event)
            found[name] = min(event["dur"], found.get(name, event["dur"]))
    return found


def kernel_names(bundle):
    """The kernel or call of each instruction of the program."""
    program = json.loads((bundle / "role-0.json").read_text())
    builtins = {kernel["name"]: kernel.get("builtin") for kernel in program["kernels"]}
    names = {}
    for block, instructions in program["blocks"].items():
        for index, instruction in enumerate(instructions):
            name = instruction.get("lib") or instruction.get("k") or instruction["op"]
            names[f"{block}:{index}"] = builtins.get(name) or name
    return names


class Measured:
    """One case at one size: predicted and measured microseconds, all together and of the worst kernel."""

    def __init__(self, bins, folder, case, size):
        model, plan, bundle, trace = (folder / name for name in ("case.onnx", "case.yaml", "case.par", "trace.json"))
        onnx.save(Model(case, size).proto, model)
        plan.write_text(PLAN)
        predicted = json.loads(call([bins / "par-compile", model, plan, "--emit=trace"]))
        call([bins / "par-compile", model, plan, "-o", bundle])
        call([bins / "par-run", bundle, "--data", folder / "data.safetensors", "--threads", 1, "--steps", STEPS,
              "--trace", trace])
        expected = durations(predicted, lambda event: event["args"]["at"])
        spent = durations(json.loads(trace.read_text()), lambda event: event["name"])
        names = kernel_names(bundle)
        self.predicted, self.spent = sum(expected.values()), sum(spent.values())
        self.worst, self.kernel, self.worst_spent = 0.0, "", 0.0
        for at, time in spent.items():
            if time >= LEAST_US and time / expected[at] > self.worst:
                self.worst, self.worst_spent = time / expected[at], time
                self.kernel = names[at.partition("/")[2]]


def judge(sizes):
    """The faults: too slow at the largest size, or at each size slower relative to the prediction than at the one
    before."""
    faults = []
    if sizes[-1].worst > MOST:
        faults.append(f"{sizes[-1].worst:.0f} x its prediction")
    ratios = [measured.spent / measured.predicted for measured in sizes]
    if len(sizes) > 2 and all(later > GROWTH * earlier for earlier, later in zip(ratios, ratios[1:])):
        faults.append("grows faster than its prediction")
    return ", ".join(faults)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/bin"))
    parser.add_argument("--only", default="", help="cases whose names contain this")
    parser.add_argument("--sizes", type=int, default=3)
    options = parser.parse_args()
    faulty = refused = 0
    print("case, then for each size: us measured, / predicted, worst kernel / its prediction")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        save_file({"data": numpy.ones((4, 1), "float32")}, folder / "data.safetensors")
        for title, case in CASES.items():
            if options.only not in title:
                continue
            try:
                sizes = [Measured(options.bin, folder, case, size) for size in range(options.sizes)]
            except RuntimeError as error:
                refused += 1
                print(f"{title:24} refused: {error}", flush=True)
                continue
            fault = judge(sizes)
            faulty += bool(fault)
            cells = " ".join(f"{m.spent:9.0f} {m.spent / m.predicted:5.1f} {m.worst:6.1f}" for m in sizes)
            print(f"{title:24} {cells}  {fault and sizes[-1].kernel + ': ' + fault}", flush=True)
    print(f"{sum(options.only in title for title in CASES)} cases, {refused} refused, {faulty} faults")
    return 1 if faulty else 0


if __name__ == "__main__":
    sys.exit(main())

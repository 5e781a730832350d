#!/usr/bin/env python3
"""ONNX's own node tests through par-compile and par-run, as programs, as a user runs each operator.

    node_tools.py --bin build/bin [--nodes FOLDER] [--op TYPE] [--match TEXT] [--list] [--table] [-j 2]

FOLDER is onnx/backend/test/data/node of the Python package onnx 1.22.0 (default: $PAR_NODE_TESTS, or that of the
package that is installed). Every case is compiled without a plan, run with --data and --output, and compared with its
expected outputs in type, shape and numbers. If the compiler requires a known input of a node (a shape, axes, pads),
that input is bound to its data by inputs.NAME.value, and the case is run again; dims that the model leaves open are
those of the data. --list prints every case that did not pass, --table a line for every operator. par-node-tests does
the same in-process, by the interpreter.

passed    the outputs are as expected       refused   the compiler's located message names an unsupported feature
wrong     outputs differ, or par-run fails  crashed   a signal, exit 70, or no end within --seconds
Exit status 1 if a case is wrong or crashed. Needs the Python packages onnx and numpy.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

import numpy
import onnx
from onnx import numpy_helper

VERDICTS = ["passed", "refused", "wrong", "crashed"]
RANDOM = {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
FILE_TYPES = {"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "int64": "I64", "int32": "I32",
              "int16": "I16", "int8": "I8", "uint64": "U64", "uint32": "U32", "uint16": "U16", "uint8": "U8",
              "bool": "BOOL"}
WIDTHS = {"F64": "f8", "F32": "f4", "F16": "f2", "BF16": "u2", "I64": "i8", "I32": "i4", "I16": "i2", "I8": "i1",
          "U64": "u8",
          "U32": "u4", "U16": "u2", "U8": "u1", "BOOL": "?"}


def write_arrays(path, arrays):
    header, body = {}, b""
    for name, array in arrays.items():
        data = numpy.ascontiguousarray(array).tobytes()
        header[name] = {"dtype": FILE_TYPES[array.dtype.name], "shape": list(array.shape),
                        "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


def read_arrays(path):
    """name -> (type, array); bf16 as f32."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    arrays = {}
    for name, entry in json.loads(data[8:8 + length]).items():
        begin, end = (8 + length + at for at in entry["data_offsets"])
        array = numpy.frombuffer(data[begin:end], dtype=WIDTHS[entry["dtype"]]).reshape(entry["shape"])
        if entry["dtype"] == "BF16":
            array = (array.astype("u4") << 16).view("f4")
        arrays[name] = (entry["dtype"], array)
    return arrays


def quoted(text):
    return '"' + re.sub(r'([\\"])', r"\\\1", text) + '"'


def difference(found, expected, is_loose):
    """"" if they agree, to ONNX's own bounds (in half precision 4e-3 and 2e-2); see NodeCase.cpp for the floor."""
    kind, array = found
    wanted = FILE_TYPES.get(expected.dtype.name, expected.dtype.name)
    if kind != wanted or array.shape != expected.shape:
        return f"is {kind}{list(array.shape)}, expected {wanted}{list(expected.shape)}"
    if is_loose or not array.size:
        return ""
    if kind[0] not in "FB" or kind == "BOOL":
        differ = numpy.argwhere(array != expected)
        return f"at {differ[0].tolist()} {array[tuple(differ[0])]}, expected {expected[tuple(differ[0])]}" if len(
            differ) else ""
    array, expected = array.astype("f8"), expected.astype("f8")
    finite = numpy.abs(expected[numpy.isfinite(expected)])
    relative = {"F16": 4e-3, "BF16": 2e-2}.get(kind, 1e-3)
    floor = 1e-3 if kind in ("F16", "BF16") else max(1e-7, finite.max(initial=0) * 2.0**-23 if kind == "F32" else 0)
    with numpy.errstate(all="ignore"):
        near = numpy.abs(array - expected) <= floor + relative * numpy.abs(expected)
    same = (array == expected) | (numpy.isnan(array) & numpy.isnan(expected)) | (numpy.isfinite(expected) & near)
    differ = numpy.argwhere(~same)
    return f"at {differ[0].tolist()} {array[tuple(differ[0])]}, expected {expected[tuple(differ[0])]}" if len(
        differ) else ""


class Ended(Exception):
    """A verdict and why."""


class Case:
    def __init__(self, folder, options):
        self.folder, self.options = folder, options
        self.model = onnx.load(folder / "model.onnx", load_external_data=False)
        held = {initializer.name for initializer in self.model.graph.initializer}
        self.inputs = [value for value in self.model.graph.input if value.name not in held]
        self.bound = []

    def read(self, prefix, infos):
        """The tensors of a case's files; of a sequence, one for each of its parts."""
        for i, info in enumerate(infos):
            data = (self.folder / "test_data_set_0" / f"{prefix}_{i}.pb").read_bytes()
            if info.type.HasField("tensor_type"):
                yield info.name, numpy_helper.to_array(onnx.TensorProto.FromString(data))
            elif info.type.HasField("sequence_type"):
                yield from self.parts(info.name, onnx.SequenceProto.FromString(data))
            elif info.type.HasField("optional_type"):
                held = onnx.OptionalProto.FromString(data)
                if held.HasField("tensor_value"):
                    yield info.name, numpy_helper.to_array(held.tensor_value)
                elif held.HasField("sequence_value"):
                    yield from self.parts(info.name, held.sequence_value)

    @staticmethod
    def parts(name, sequence):
        for j, tensor in enumerate(sequence.tensor_values):
            yield f"{name}.{j}", numpy_helper.to_array(tensor)

    def is_loose(self):
        """Whether only type and shape of outputs are compared: random outputs, or those of training (a bundle without
        `train` predicts as after module.eval(), whatever the node's attributes)."""
        def number(name, otherwise):
            value = self.data.get(name)
            return otherwise if value is None or value.size != 1 else float(value.reshape(()))

        for node in self.model.graph.node:
            if node.op_type in RANDOM:
                return True
            if node.op_type == "BatchNormalization" and any(a.name == "training_mode" and a.i for a in node.attribute):
                return True
            if node.op_type == "Dropout":
                names = list(node.input) + ["", "", ""]
                if number(names[2], 0) != 0 and number(names[1], 0.5) != 0:
                    return True
        return False

    def write_model(self, work):
        """The model with the dims that it leaves open as the data have them."""
        open_dims = False
        for info in self.inputs:
            if not info.type.HasField("tensor_type"):
                continue
            shape = info.type.tensor_type.shape
            if not info.type.tensor_type.HasField("shape") or any(not dim.HasField("dim_value") for dim in shape.dim):
                open_dims = True
                del shape.dim[:]
                info.type.tensor_type.shape.CopyFrom(
                    onnx.TensorShapeProto(dim=[onnx.TensorShapeProto.Dimension(dim_value=size)
                                               for size in self.data[info.name].shape]))
        if not open_dims:
            return self.folder / "model.onnx"
        path = work / "model.onnx"
        path.write_bytes(self.model.SerializeToString())
        return path

    def call(self, *command):
        try:
            done = subprocess.run([str(part) for part in command], capture_output=True, text=True, errors="replace",
                                  timeout=self.options.seconds)
        except subprocess.TimeoutExpired:
            raise Ended("crashed", f"{pathlib.Path(command[0]).name} does not end")
        if done.returncode < 0 or done.returncode == 70:
            last = (done.stderr.strip().splitlines() or ["nothing said"])
            raise Ended("crashed", f"exit {done.returncode}: {last[0]}")
        return done

    def compile(self, model, work):
        """Compiles, with what nodes ask for bound to the data."""
        while True:
            plan, command = work / "plan.yaml", [self.options.bin / "par-compile", model, "-o", work / "case.par", "-q"]
            if self.bound:
                write_arrays(work / "values.safetensors", {name: array for name, array in self.data.items()
                                                           if name in self.bound
                                                           or re.sub(r"\.\d+$", "", name) in self.bound})
                plan.write_text("inputs:\n"
                                + "".join(f"  {quoted('^' + name)}: {{value: "
                                          f"{quoted(str(work / 'values.safetensors'))}}}\n"
                                                      for name in self.bound))
                command.insert(2, plan)
            done = self.call(*command)
            if done.returncode == 0:
                return
            asked = [name for name in re.findall(r"say inputs\.\"?(.+?)\"?\.value", done.stderr)
                     if name in [info.name for info in self.inputs]]
            more = [name for name in dict.fromkeys(asked) if name not in self.bound]
            if not more:
                error = next((line for line in done.stderr.splitlines() if ": error: " in line), "")
                if done.returncode != 1 or not error or f"{pathlib.Path(model).name}: error: " not in error:
                    raise Ended("wrong", f"par-compile, exit {done.returncode}: {done.stderr.strip()[:300]}")
                raise Ended("refused", error.split(": error: ", 1)[1])
            self.bound += more

    def run(self, work):
        self.data = dict(self.read("input", self.inputs))
        expected = dict(self.read("output", self.model.graph.output))
        self.compile(self.write_model(work), work)
        fed = {entry["name"] for entry in json.loads((work / "case.par" / "manifest.json").read_text())["inputs"]}
        command = [self.options.bin / "par-run", work / "case.par", "--output", work / "out.safetensors"]
        if fed:
            write_arrays(work / "data.safetensors", {name: array for name, array in self.data.items() if name in fed})
            command += ["--data", work / "data.safetensors"]
        done = self.call(*command)
        if done.returncode:
            raise Ended("wrong", f"par-run, exit {done.returncode}: {done.stderr.strip()[:300]}")
        found, is_loose = read_arrays(work / "out.safetensors"), self.is_loose()
        for name, array in expected.items():
            if name not in found:
                raise Ended("wrong", f"output \"{name}\" is missing")
            if wrong := difference(found[name], array, is_loose):
                raise Ended("wrong", f"output \"{name}\" {wrong}")
        if len(found) != len(expected):
            raise Ended("wrong", f"{len(found)} outputs, expected {len(expected)}")

    def judge(self):
        with tempfile.TemporaryDirectory(prefix="par-node-") as work:
            try:
                self.run(pathlib.Path(work))
            except Ended as ended:
                return ended.args
        return "passed", ", ".join(self.bound)


def operator_of(folder):
    """An expansion of an op into others is a case of that op: test_gelu_default_1_expanded is Gelu's."""
    whole = folder.parent / folder.name.split("_expanded")[0]
    model = onnx.load((whole if whole.is_dir() else folder) / "model.onnx", load_external_data=False)
    return model.graph.node[0].op_type if model.graph.node else ""


def find_nodes(given):
    folder = given or os.environ.get("PAR_NODE_TESTS") or pathlib.Path(onnx.__file__).parent / "backend/test/data/node"
    return pathlib.Path(folder)


def print_row(title, counts):
    print(f"{title:28}" + "".join(f" {counts[verdict]:5} {verdict}" for verdict in VERDICTS))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--nodes")
    parser.add_argument("--op")
    parser.add_argument("--match", default="")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--seconds", type=int, default=60, help="a case's limit for each program")
    parser.add_argument("-j", type=int, default=2, help="cases at once")
    options = parser.parse_args()
    nodes = find_nodes(options.nodes)
    if not nodes.is_dir():
        parser.error(f"no node tests in {nodes}; they are in the wheel of onnx 1.22.0")
    folders = [folder for folder in sorted(nodes.iterdir())
               if (folder / "model.onnx").exists() and options.match in folder.name]
    cases = [(folder, operator) for folder in folders
             if (operator := operator_of(folder)) and options.op in (None, operator)]
    table, total, given = collections.defaultdict(collections.Counter), collections.Counter(), 0
    with concurrent.futures.ThreadPoolExecutor(options.j) as pool:
        for (folder, operator), (verdict, reason) in zip(cases,
                                                         pool.map(lambda case: Case(case[0], options).judge(), cases)):
            table[operator][verdict] += 1
            total[verdict] += 1
            given += verdict == "passed" and bool(reason)
            if verdict != "passed" and (options.list or verdict != "refused"):
                print(f"{verdict} {operator} {folder.name}: {reason}", flush=True)
    if options.table:
        for operator in sorted(table):
            print_row(operator, table[operator])
    print_row("total", total)
    print(f"{given} of those that passed with inputs bound when compiling")
    sys.exit(1 if total["wrong"] or total["crashed"] else 0)


if __name__ == "__main__":
    main()

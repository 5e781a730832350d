#!/usr/bin/env python3
"""Random ways from ids that are fed to rows that they look up: Par's rows are those that the ops say, NaN where an
index is in no table, or par-run refuses the sample, and then one of its ids or of its indices is outside.

    random-indices.py [--bin FOLDER] [--count 50] [--seed 1]
"""
import argparse
import json
import math
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE.parent / "Models"), str(HERE.parent / "Phases" / "Import" / "Inputs")]
from encode import encode  # noqa: E402
from runs import read_safetensors  # noqa: E402

BATCH = 2
CODES = {"i8": 3, "u8": 2, "i16": 5, "i32": 6, "i64": 7}  # of ONNX
WIDTHS = {"i8": (8, True), "u8": (8, False), "i16": (16, True), "i32": (32, True), "i64": (64, True)}


class Graph:
    """Lines of encode.py beside what they compute: rows of integers."""

    def __init__(self, seed):
        self.draw = random.Random(seed)
        self.lines, self.count = [], 0
        self.indices = []  # (size of the table, rows of indices)

    def name(self):
        self.count += 1
        return f"v{self.count}"

    def constant(self, kind, shape, values):
        name = self.name()
        self.lines.append(f"init {name} {kind}[{','.join(map(str, shape))}] = {' '.join(map(str, values))}")
        return name

    def emit(self, op, *inputs, attributes=""):
        name = self.name()
        self.lines.append(f"node n{name} {op} {','.join(inputs)} -> {name} {attributes}")
        return name

    def one(self, kind, value):
        return self.constant(kind, [1], [value])

    def step(self, x, rows, kind, size):
        """One op after x: its name, its rows, and their source; x if the drawn op does not fit."""
        draw = self.draw
        step = draw.choice([self.cut, self.reverse, self.join, self.lead, self.replace, self.calculate, self.calculate,
                            self.cast,
                            self.turn, self.fold, self.pad, self.put])
        return step(x, rows, kind, size) or (x, rows, kind)

    def cut(self, x, rows, kind, size):
        n = len(rows[0])
        if n > 1:
            first = self.draw.randrange(n - 1)
            last, by = self.draw.randint(first + 1, n), self.draw.choice([1, 1, 2])
            return self.slice(x, first, last, by), [row[first:last:by] for row in rows], kind

    def reverse(self, x, rows, kind, size):
        return self.slice(x, -1, -len(rows[0]) - 1, -1), [row[::-1] for row in rows], kind

    def slice(self, x, first, last, by):
        return self.emit("Slice", x, self.one("i64", first), self.one("i64", last), self.one("i64", 1),
                         self.one("i64", by))

    def join(self, x, rows, kind, size):
        other, theirs, its = self.step(x, rows, kind, size)
        if its == kind:
            return self.emit("Concat", x, other, attributes="axis=1"), [a + b for a, b in zip(rows, theirs)], kind

    def number(self, kind, size):
        number = self.draw.randint(-2, size + 1)
        return max(number, 0) if kind == "u8" else number

    def lead(self, x, rows, kind, size):
        values = [self.number(kind, size) for _ in range(BATCH * 2)]
        return (self.emit("Concat", self.constant(kind, [BATCH, 2], values), x, attributes="axis=1"),
                [values[2 * i:2 * i + 2] + row for i, row in enumerate(rows)], kind)

    def replace(self, x, rows, kind, size):
        old, new = self.draw.choice([self.number(kind, size), rows[0][0]]), self.number(kind, size)
        same = self.emit("Equal", x, self.one(kind, old))
        if self.draw.random() < 0.3:
            placed = self.emit("Where", self.emit("Not", same), x, self.one(kind, new))
        else:
            placed = self.emit("Where", same, self.one(kind, new), x)
        return placed, [[new if v == old else v for v in row] for row in rows], kind

    def calculate(self, x, rows, kind, size):
        """An op that leaves some numbers in a table and takes others out."""
        if kind == "u8":
            return None
        number, by = self.number(kind, size), self.draw.randint(1, size + 2)
        op, operand, of = self.draw.choice([
            ("Add", number, lambda v: wrap(v + number, kind)), ("Mod", by, lambda v: v % by),
            ("Max", number, lambda v: max(v, number)),
            ("Min", number, lambda v: min(v, number)), ("Neg", None, lambda v: wrap(-v, kind))])
        x = self.emit(op, x) if operand is None else self.emit(op, x, self.one(kind, operand))
        return x, [[of(v) for v in row] for row in rows], kind

    def cast(self, x, rows, kind, size):
        to = self.draw.choice(list(WIDTHS))
        return self.emit("Cast", x, attributes=f"to={CODES[to]}"), [[wrap(v, to) for v in row] for row in rows], to

    def turn(self, x, rows, kind, size):
        turned = self.emit("Transpose", x, attributes="perm=[1,0]")
        if self.draw.random() < 0.5:
            turned = self.emit("Cast", turned, attributes=f"to={CODES[kind]}")
        return self.emit("Transpose", turned, attributes="perm=[1,0]"), rows, kind

    def fold(self, x, rows, kind, size):
        folded = self.emit("Reshape", x, self.constant("i64", [3], [BATCH, 1, len(rows[0])]))
        return self.emit("Reshape", folded, self.constant("i64", [2], [BATCH, len(rows[0])])), rows, kind

    def pad(self, x, rows, kind, size):
        if kind in ("i32", "i64"):
            before, behind, value = self.draw.randrange(2), self.draw.randrange(2), self.number(kind, size)
            return (self.emit("Pad", x, self.constant("i64", [4], [0, before, 0, behind]),
                              self.constant(kind, [], [value])),
                    [[value] * before + row + [value] * behind for row in rows], kind)

    def put(self, x, rows, kind, size):
        at, value = self.draw.randrange(len(rows[0])), self.number(kind, size)
        put = self.emit("ScatterElements", x, self.constant("i64", [BATCH, 1], [at] * BATCH),
                        self.constant(kind, [BATCH, 1], [value] * BATCH), attributes="axis=1")
        return put, [row[:at] + [value] + row[at + 1:] for row in rows], kind

    def look_up(self, x, rows, kind, size):
        if kind not in ("i32", "i64"):
            x = self.emit("Cast", x, attributes="to=7")
        table = self.constant("f32", [size, 2], [f"{10 * i + j}" for i in range(size) for j in range(2)])
        if self.draw.random() < 0.4:  # not a table of parameters
            table = self.emit("Abs", table)
        self.indices.append((size, rows))
        return self.emit("Gather", table, x, attributes="axis=0")


def wrap(value, kind):
    bits, signed = WIDTHS[kind]
    value &= (1 << bits) - 1
    return value - (1 << bits) if signed and value >> (bits - 1) else value


def make(seed):
    graph = Graph(seed)
    draw = graph.draw
    size, n, kind = draw.randint(2, 6), draw.randint(2, 5), draw.choice(["i64", "i64", "i32"])
    far = [2**31 - 1, -2**31, 2**40 + 1, -2**63, 2**63 - 1][:5 if kind == "i64" else 2]
    odd = draw.choice([[*range(-2, size + 2)], [*range(-2, size + 2)], far])
    ids = [[draw.choice(odd) if draw.random() < 0.3 else draw.randrange(size) for _ in range(n)] for _ in range(BATCH)]
    graph.lines.append(f"input ids {kind}[{BATCH},{n}]")
    outputs = []
    for number in range(draw.choice([1, 1, 2])):
        x, rows, now = "ids", ids, kind
        for _ in range(draw.randrange(5)):
            x, rows, now = graph.step(x, rows, now, size)
        rows_of = size if number == 0 else draw.randint(2, 6)
        outputs.append((graph.look_up(x, rows, now, rows_of), rows, rows_of))
    for name, rows, _ in outputs:
        graph.lines.append(f"output {name} f32[{BATCH},{len(rows[0])},2]")
    return graph, ids, kind, n, outputs


def run(command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr


def check(seed, binaries, work):
    """ "": holds; "refused": by the compiler or by par-run, rightly; else what is wrong."""
    graph, ids, kind, n, outputs = make(seed)
    (work / "m.txt").write_text("\n".join(graph.lines) + "\n")
    (work / "m.onnx").write_bytes(encode(graph.lines))
    code, said = run([binaries / "par-compile", work / "m.onnx", "-o", work / "m.par", "-q"])
    if code == 1 and re.search(r"index -?\d+ of|not supported yet", said):
        return "refused"
    if code:
        return f"par-compile exits {code}: {said}"
    numbers = [v for row in ids for v in row]
    body = struct.pack(f"<{len(numbers)}{'q' if kind == 'i64' else 'i'}", *numbers)
    header = json.dumps({"ids": {"dtype": kind.upper(), "shape": [BATCH, n], "data_offsets": [0, len(body)]}}).encode()
    (work / "d.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + body)
    code, said = run([binaries / "par-run", work / "m.par", "--data", work / "d.safetensors", "--output",
                      work / "y.safetensors"])
    # A cast may bring a fed number that is far outside back.
    outside = any(not 0 <= index < size for size, rows in graph.indices for row in [*rows, *ids] for index in row)
    if code == 1 and "takes" in said:
        return "refused" if outside else f"refused, but no index is outside: {said}"
    if code:
        return f"par-run exits {code}: {said}"
    found = read_safetensors(work / "y.safetensors")
    for name, rows, size in outputs:
        expected = [value for row in rows for index in row
                    for value in ([10 * (index % size), 10 * (index % size) + 1] if -size <= index < size
                                  else [math.nan] * 2)]
        got = list(found[name][1])
        if len(got) != len(expected) or any(a != b and not (math.isnan(a) and math.isnan(b))
                                            for a, b in zip(got, expected)):
            return f"{name} is {got}, expected {expected}"
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", help="default: on the PATH", type=pathlib.Path,
                        default=pathlib.Path(shutil.which("par-compile") or ".").parent)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    refused, failed = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(options.seed, options.seed + options.count):
            wrong = check(seed, options.bin.resolve(), pathlib.Path(folder))
            refused += wrong == "refused"
            if wrong not in ("", "refused"):
                failed += 1
                print(f"seed {seed}: {wrong}\n{(pathlib.Path(folder) / 'm.txt').read_text()}")
    print(f"{options.count} graphs from seed {options.seed}: {refused} refused, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

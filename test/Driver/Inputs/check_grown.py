"""Checks the results of growth.test's models: the positive part of v0, copies of the rows of x, multiples of v0."""
import json
import struct
import sys


def rows(file):
    data = open(file, "rb").read()
    (size,) = struct.unpack("<Q", data[:8])
    header = {name: entry for name, entry in json.loads(data[8:8 + size]).items() if name != "__metadata__"}
    arrays = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        values = struct.unpack(f"<{(end - begin) // 4}f", data[8 + size + begin:8 + size + end])
        width = entry["shape"][1]
        arrays[name] = [values[i:i + width] for i in range(0, len(values), width)]
    return arrays


given = rows(sys.argv[1])
relus, concat, doubles, sums = (next(iter(rows(file).values())) for file in sys.argv[2:])
assert relus == [tuple(max(v, 0.0) for v in row) for row in given["v0"]]
assert concat == [row * 3000 for row in given["x"]], [len(row) for row in concat]
assert sums == [tuple(k * v for k in range(2, 402) for v in row) for row in given["v0"]]
assert doubles == [row * 4096 for row in given["v0"]], [len(row) for row in doubles]

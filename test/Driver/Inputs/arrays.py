"""Prints the arrays of a safetensors file by name, or writes some: arrays.py FILE [NAME=ROWSxCOLUMNS[:TYPE] ...].

Types are f32 (the default, quarters from 0), u8 (40s, modulo 256), and wider integers, i64 i32 u16 u32 u64: 100s, the
unsigned ones counted down from the largest. `x=:i64` is a number.
"""
import json
import math
import struct
import sys

CODES = {"F32": "f", "F64": "d", "I64": "q", "I32": "i", "I16": "h", "I8": "b", "U64": "Q", "U32": "I", "U16": "H",
         "U8": "B",
         "BOOL": "?"}


def values(dtype, count):
    if dtype == "F32":
        return [i / 4 for i in range(count)]
    if dtype == "U8":
        return [40 * i % 256 for i in range(count)]
    if dtype[0] == "U":
        return [2 ** int(dtype[1:]) - 1 - 100 * i for i in range(count)]
    return [100 * i for i in range(count)]


path = sys.argv[1]
if len(sys.argv) > 2:
    header, body = {}, b""
    for spec in sys.argv[2:]:
        name, shape = spec.split("=")
        shape, _, dtype = shape.partition(":")
        shape, dtype = [int(dim) for dim in shape.split("x") if dim], dtype.upper() or "F32"
        count = math.prod(shape)
        data = struct.pack(f"<{count}{CODES[dtype]}", *values(dtype, count))
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    open(path, "wb").write(len(text).to_bytes(8, "little") + text + body)
    sys.exit()
data = open(path, "rb").read()
begin = 8 + int.from_bytes(data[:8], "little")
header = json.loads(data[8:begin])
header.pop("__metadata__", None)
for name in sorted(header):
    first, last = header[name]["data_offsets"]
    numbers = data[begin + first:begin + last]
    code = CODES[header[name]["dtype"]]
    numbers = struct.unpack(f"<{len(numbers) // struct.calcsize(code)}{code}", numbers)
    print(name, header[name]["shape"], *(f"{value:g}" if code in "fd" else int(value) for value in numbers))

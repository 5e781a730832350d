"""Prints the f32 arrays of a safetensors file by name, or writes one: arrays.py FILE [NAME=ROWSxCOLUMNS]."""
import json
import struct
import sys

path = sys.argv[1]
if len(sys.argv) > 2:
    name, shape = sys.argv[2].split("=")
    shape = [int(dim) for dim in shape.split("x")]
    count = shape[0] * shape[1]
    header = json.dumps({name: {"dtype": "F32", "shape": shape, "data_offsets": [0, 4 * count]}}).encode()
    values = struct.pack(f"<{count}f", *(i / 4 for i in range(count)))
    open(path, "wb").write(len(header).to_bytes(8, "little") + header + values)
    sys.exit()
data = open(path, "rb").read()
begin = 8 + int.from_bytes(data[:8], "little")
header = json.loads(data[8:begin])
header.pop("__metadata__", None)
for name in sorted(header):
    first, last = header[name]["data_offsets"]
    values = struct.unpack(f"<{(last - first) // 4}f", data[begin + first:begin + last])
    print(name, header[name]["shape"], *(f"{value:g}" for value in values))

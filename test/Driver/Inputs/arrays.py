"""Prints the arrays, f32 or u8, of a safetensors file by name, or writes one, of f32 or u8: arrays.py FILE [NAME=ROWSxCOLUMNS [u8]]."""
import json
import struct
import sys

path = sys.argv[1]
if len(sys.argv) > 2:
    name, shape = sys.argv[2].split("=")
    shape = [int(dim) for dim in shape.split("x")]
    count = shape[0] * shape[1]
    values = struct.pack(f"<{count}f", *(i / 4 for i in range(count)))
    dtype = "F32"
    if sys.argv[3:] == ["u8"]:
        values, dtype = bytes(40 * i % 256 for i in range(count)), "U8"
    header = json.dumps({name: {"dtype": dtype, "shape": shape, "data_offsets": [0, len(values)]}}).encode()
    open(path, "wb").write(len(header).to_bytes(8, "little") + header + values)
    sys.exit()
data = open(path, "rb").read()
begin = 8 + int.from_bytes(data[:8], "little")
header = json.loads(data[8:begin])
header.pop("__metadata__", None)
for name in sorted(header):
    first, last = header[name]["data_offsets"]
    values = data[begin + first:begin + last]
    if header[name]["dtype"] == "F32":
        values = struct.unpack(f"<{len(values) // 4}f", values)
    print(name, header[name]["shape"], *(f"{value:g}" for value in values))

"""write-values.py FILE {"name": [DTYPE, SHAPE, FORMAT, NUMBERS]...}: a safetensors file."""
import json
import struct
import sys

header, body = {}, b""
for name, (dtype, shape, code, numbers) in json.loads(sys.argv[2]).items():
    data = struct.pack("<" + code * len(numbers), *numbers)
    header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
    body += data
text = json.dumps(header).encode()
open(sys.argv[1], "wb").write(struct.pack("<Q", len(text)) + text + body)

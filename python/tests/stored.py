"""Files of arrays, read without a package."""
import json
import struct


def read_arrays(path):
    """The arrays of a .safetensors file, as buffers of numbers."""
    data = path.read_bytes()
    start = 8 + struct.unpack("<Q", data[:8])[0]
    kinds = {"F32": "f", "I64": "q"}
    return {name: memoryview(data[start:][slice(*entry["data_offsets"])]).cast(kinds[entry["dtype"]], entry["shape"])
            for name, entry in json.loads(data[8:start]).items()}

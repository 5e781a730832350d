"""Prints a number of a save: counter.py SAVE NAME"""
import json
import pathlib
import struct
import sys

save, name = pathlib.Path(sys.argv[1]), sys.argv[2]
for file in sorted(save.glob("*.safetensors")):
    data = file.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    for key, entry in header.items():
        if key.split("@")[0] == name:
            begin, end = entry["data_offsets"]
            print(struct.unpack("<f", data[8 + length + begin:8 + length + end])[0])
            sys.exit()
sys.exit(f"no {name} in {save}: {sorted(header)}")

#!/usr/bin/env python3
"""alike.py ONE OTHER: exit status 0 if two files of weights hold the same arrays, each number within 2e-5 of its
array's largest."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "Models"))
from runs import largest, read_safetensors  # noqa: E402

one, other = map(read_safetensors, sys.argv[1:])
if one.keys() != other.keys():
    sys.exit(f"other arrays: {sorted(one.keys() ^ other.keys())[:3]}")
worst = max((largest(abs(a - b)
                     for a, b in zip(whole, other[name][1])) / (2e-5 * max(map(abs, whole), default=0) + 1e-9), name)
            for name, (_, whole) in one.items())
if not worst[0] <= 1:
    sys.exit(f"{worst[1]} differs by {worst[0]:.3g} of its bound")

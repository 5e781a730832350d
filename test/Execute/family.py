"""Runs members of a family and compares losses, norms and weights bit for bit.

family.py BUNDLE RANKS... -- FLAGS of par-run; exits with 1 if anything differs.
"""

import array
import json
import subprocess
import sys



def load(path):
    """Arrays of f32 by name."""
    data = open(path, "rb").read()
    begin = 8 + int.from_bytes(data[:8], "little")
    tensors = {name: value for name, value in json.loads(data[8:begin]).items() if name != "__metadata__"}
    return {name: array.array("f", data[begin + value["data_offsets"][0] : begin + value["data_offsets"][1]])
            for name, value in tensors.items()}


bundle, *ranks = sys.argv[1 : sys.argv.index("--")]
flags = sys.argv[sys.argv.index("--") + 1 :]
metrics, weights = [], []
for count in ranks:
    name = f"{bundle}.{count}"
    subprocess.run(["par-run", bundle, "-n", count, *flags, "-q", "--metrics", f"{name}.jsonl",
                    "--export", f"{name}.safetensors"], check=True)
    metrics.append([json.loads(line) for line in open(f"{name}.jsonl")])
    weights.append(load(f"{name}.safetensors"))

differs = False
for key in ("loss", "grad_norm"):
    if key not in metrics[0][0]:
        continue
    series = [[step[key] for step in run] for run in metrics]
    apart = max(abs(a - b) for run in series for a, b in zip(run, series[0]))
    equal = all(run == series[0] for run in series)
    differs |= not equal
    print(f"{key}: {len(series)} runs, " + ("equal bit for bit" if equal else f"up to {apart:.3g} apart"))
apart, equal = 0.0, True
for run in weights:
    for name, first in weights[0].items():
        equal &= run[name].tobytes() == first.tobytes()
        apart = max([apart] + [abs(a - b) for a, b in zip(run[name], first)])
differs |= not equal
print(f"weights: {len(weights)} runs, " + ("equal bit for bit" if equal else f"up to {apart:.3g} apart"))
sys.exit(differs)

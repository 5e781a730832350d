"""train.py BUNDLE: trains it on data that another such network made; the loss falls to less than a third."""
import array
import json
import pathlib
import random
import re
import subprocess
import sys

bundle = pathlib.Path(sys.argv[1])
data = bundle.with_suffix(".safetensors")
numbers = random.Random(1)
ROWS, INPUTS, HIDDEN, OUTPUTS = 64, 8, 16, 4
inner = [[numbers.uniform(-0.5, 0.5) for _ in range(INPUTS)] for _ in range(HIDDEN)]
outer = [[numbers.uniform(-0.5, 0.5) for _ in range(HIDDEN)] for _ in range(OUTPUTS)]
x = [[numbers.uniform(-1, 1) for _ in range(INPUTS)] for _ in range(ROWS)]


def apply(matrix, row):
    return [sum(a * b for a, b in zip(weights, row)) for weights in matrix]


labels = [apply(outer, [0.5 * h ** 3 for h in apply(inner, row)]) for row in x]
header, body = {}, b""
for name, rows in (("x", x), ("labels", labels)):
    stored = array.array("f", [value for row in rows for value in row]).tobytes()
    header[name] = {"dtype": "F32", "shape": [ROWS, len(rows[0])], "data_offsets": [len(body), len(body) + len(stored)]}
    body += stored
text = json.dumps(header).encode()
data.write_bytes(len(text).to_bytes(8, "little") + text + body)

done = subprocess.run(["par-run", str(bundle), "--init", "--data", str(data), "--steps", "100"],
                      capture_output=True, text=True, check=True)
losses = [float(loss) for loss in re.findall(r"loss (\S+)", done.stdout)]
print(losses)
assert losses[-1] < losses[0] / 3, done.stdout

"""Evaluates bundles of metrics.test with par-run, on rows that do not divide, beside sums over single rows."""
import array
import json
import math
import pathlib
import random
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "python"))
from par.arrays import as_file  # noqa: E402

WEIGHTS = ((1, -2, 0.5), (0.25, 1.5, -1))
ROWS = 43

draw = random.Random(0)
points = array.array("f", [draw.gauss(0, 1) for _ in range(2 * ROWS)])
# Two in five labels do not count; of rows 8 to 15, a batch, none does; nor does the last one, which fills a batch up.
labels = array.array("q", [-100 if draw.random() < 0.4 or 8 <= row < 16 or row == ROWS - 1 else draw.randrange(3)
                           for row in range(ROWS)])


def write(rows, path):
    return as_file({"x": memoryview(points[:2 * rows]).cast("B").cast("f", [rows, 2]),
                    "labels": memoryview(labels[:rows])}, pathlib.Path(path), "data")


def expected(rows):
    losses, hits = [], 0
    for row in range(rows):
        scores = [points[2 * row] * WEIGHTS[0][k] + points[2 * row + 1] * WEIGHTS[1][k] for k in range(3)]
        hits += scores.index(max(scores)) == labels[row]
        if labels[row] >= 0:
            losses.append(math.log(sum(map(math.exp, scores))) - scores[labels[row]])
    return sum(losses) / len(losses), hits / rows


write(ROWS, "data.safetensors")
for bundle in sys.argv[1:]:
    for rows in (ROWS, 40, 17, 5):
        write(rows, "some.safetensors")
        subprocess.run(["par-run", bundle, "--data", "some.safetensors", "--eval", "--metrics", "eval.jsonl"],
                       check=True, stdout=subprocess.DEVNULL)
        line = json.loads(pathlib.Path("eval.jsonl").read_text())
        loss, accuracy = expected(rows)
        assert line["samples"] == rows and line["left_out"] == 0, (bundle, line)
        assert abs(line["eval_loss"] - loss) < 3e-6 and abs(line["eval_accuracy"] - accuracy) < 1e-6, \
            (bundle, rows, line, loss, accuracy)

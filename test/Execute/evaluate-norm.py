"""Trains batch norms under several plans and evaluates: as PyTorch does after module.eval(), by the moving statistics.

    evaluate-norm.py FOLDER       with the tools on the PATH; writes the model, its plans and its data there, and
                                  compares the losses
"""
import json
import math
import pathlib
import random
import shutil
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE.parent / "Phases/Import/Inputs"), str(HERE.parent / "Models")]
from encode import encode
from runs import Claims, Runs, read_safetensors, write_safetensors

MODEL = """
input x f32[batch,2,3]
init first.weight f32[2] = 1 2
init first.bias f32[2] = 0 1
init first.mean f32[2] = 0.5 -1
init first.variance f32[2] = 2 3
init last.weight f32[2] = 1 -1
init last.bias f32[2] = 0.5 0
init last.mean f32[2] = 0 0
init last.variance f32[2] = 1 1
module first
node n BatchNormalization x,first.weight,first.bias,first.mean,first.variance -> a training_mode=1 momentum=0.5
node r Relu a -> b
module last
node m BatchNormalization b,last.weight,last.bias,last.mean,last.variance -> y training_mode=1 momentum=0.5
output y f32[batch,2,3]
"""
BATCH, STEPS, ROWS, EPSILON = 8, 4, 32, 1e-5
TRAIN = "train: {loss: mse, optimizer: {kind: sgd, lr: 0.01}}\n"
PLANS = {
    "one rank": f"batch: {BATCH}\n",
    "dp2": f"batch: {BATCH}\nmesh: {{dp: 2}}\n",
    "pp2 with groups": f"batch: {{size: {BATCH}, microbatches: 2}}\nmesh: {{pp: 2}}\npipeline: {{cuts: "
                       f"[last]}}\nbatch_norm: 4\n",
    "bf16": f"batch: {BATCH}\nprecision: bf16\n",
}


def normed(rows, weights, name):
    """Samples of two channels of three numbers each, by the statistics that `weights` holds."""
    scale, bias, mean, variance = (weights[f"{name}.{part}"][1] for part in ("weight", "bias", "mean", "variance"))
    return [[(x - mean[i // 3]) / math.sqrt(variance[i // 3] + EPSILON) * scale[i // 3] + bias[i // 3]
             for i, x in enumerate(row)] for row in rows]


def loss_of(rows, labels):
    return sum((x - y) ** 2 for row, wanted in zip(rows, labels) for x, y in zip(row, wanted)) / (len(rows) * 6)


def by_formulas(weights, rows, labels):
    hidden = [[max(x, 0.0) for x in row] for row in normed(rows, weights, "first")]
    return loss_of(normed(hidden, weights, "last"), labels)


def by_predicting(runs, model, weights, data, labels):
    bundle, found = runs.compile(model, f"batch: {BATCH}\n"), runs.work / "found.safetensors"
    runs.run(runs.binaries / "par-run", bundle, "--weights", weights, "--data", data, "--output", found)
    ((_, numbers),) = read_safetensors(found).values()
    return loss_of([numbers[i:i + 6] for i in range(0, len(numbers), 6)], labels)


def evaluate(runs, bundle, data, *flags):
    metrics = runs.work / "evaluated.jsonl"
    metrics.unlink(missing_ok=True)
    runs.run(runs.binaries / "par-run", bundle, "--data", data, "--metrics", metrics, *flags)
    return [json.loads(line)["eval_loss"] for line in metrics.read_text().splitlines() if "eval_loss" in line]


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    model, data = folder / "norm.onnx", folder / "x.safetensors"
    model.write_bytes(encode(MODEL.strip().splitlines()))
    numbers = random.Random(7)
    rows, labels = ([[numbers.gauss(mean, 2) for _ in range(6)] for _ in range(ROWS)] for mean in (1, 0))
    flat = {"x": rows, "labels": labels}
    write_safetensors(data, {name: ([ROWS, 2, 3], [x for row in table for x in row]) for name, table in flat.items()})
    runs, claims = Runs(pathlib.Path(shutil.which("par-run")).parent, folder), Claims()
    for name, plan in PLANS.items():
        bundle = runs.compile(model, plan + TRAIN, "--check-phases")
        losses, weights = runs.train(bundle, data, STEPS)
        wanted = by_formulas(read_safetensors(weights), rows, labels)
        (found,) = evaluate(runs, bundle, data, "--eval", "--weights", weights)
        bound = 0.02 if name == "bf16" else 1e-5
        claims.hold(f"{name}: --eval to the formulas", abs(found - wanted), bound)
        claims.hold(f"{name}: an inference bundle to the formulas",
                    abs(by_predicting(runs, model, weights, data, labels) - wanted), 1e-5)
        claims.hold(f"{name}: training to the formulas", abs(losses[-1]["loss"] - wanted), 0.05, least=True)
        while_training = evaluate(runs, bundle, data, "--steps", STEPS, "--order", "sequential", "--eval-every", STEPS,
                                  "--eval-data", data)
        claims.hold(f"{name}: --eval-every to the formulas", abs(while_training[-1] - wanted), bound)
    print(f"{claims.count} claims, {len(claims.failures)} failed")


main()

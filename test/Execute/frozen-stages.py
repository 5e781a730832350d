"""Trains a model whose layers are frozen in front, in the middle or at the end under every schedule, each phase held
against Import's step and the run against one rank.

    frozen-stages.py FOLDER       writes the model, its data and its plans there
"""
import pathlib
import random
import shutil
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE.parent / "Phases/Import/Inputs"), str(HERE.parent / "Models")]
from encode import encode
from runs import Claims, Runs, largest, read_safetensors, write_safetensors

LAYERS, WIDTH, SAMPLES, STEPS = 4, 6, 8, 2
SCHEDULES = {"1f1b": ["layer.2"], "gpipe": ["layer.2"], "zb-h1": ["layer.2"],
             "interleaved": ["layer.1", "layer.2", "layer.3"], "zb-v": ["layer.1", "layer.2", "layer.3"]}
FROZEN = {"front": ("layer.0, layer.1", SCHEDULES), "middle": ("layer.1, layer.2", SCHEDULES),
          "end": ("layer.2, layer.3", ["1f1b", "zb-v"]), "all but one": ("layer.0, layer.1, layer.3", ["interleaved"])}
# Counters that a stage without trained layers advances, too: each with others of the step, or by itself.
COUNTED = {"averages": ", ema: {{decay: 0.8, warmup: true}}", "skips": ", on_nan: skip, ema: 0.8",
           "scale": "}}\nprecision: {{compute: f32, loss_scale: dynamic",
           "two optimizers": ", groups: {{layer.0: {{kind: sgd}}, layer.1: {{kind: sgd}}}}, on_nan: skip, ema: 0.8"}
TRAIN = "train: {{optimizer: {{kind: adamw, lr: 0.01}}, clip: 1.0, freeze: [{}]{}}}\n"


def model(source):
    lines = [f"input x f32[{SAMPLES},{WIDTH}]"]
    for layer in range(LAYERS):
        numbers = " ".join(f"{source.uniform(-0.6, 0.6):.4f}" for _ in range(WIDTH * WIDTH))
        lines += [f"init layer.{layer}.weight f32[{WIDTH},{WIDTH}] = {numbers}",
                  f"init layer.{layer}.bias f32[{WIDTH}] = " + "0.1 " * WIDTH]
    before = "x"
    for layer in range(LAYERS):
        lines += [f"module layer.{layer}", f"node m{layer} MatMul {before},layer.{layer}.weight -> m{layer}",
                  f"node a{layer} Add m{layer},layer.{layer}.bias -> a{layer}",
                  f"node t{layer} Tanh a{layer} -> t{layer}"]
        before = f"t{layer}"
    lines += ["module head", f"node q Mul {before},{before} -> q", "node r ReduceMean q -> loss keepdims=0",
              "output loss f32[]"]
    return encode(lines)


def main():
    work, claims, source = pathlib.Path(sys.argv[1]), Claims(), random.Random(5)
    work.mkdir(parents=True, exist_ok=True)
    (work / "model.onnx").write_bytes(model(source))
    rows = SAMPLES * STEPS
    write_safetensors(work / "x.safetensors", {"x": ([rows, WIDTH], [source.gauss(0, 1) for _ in range(rows * WIDTH)])})
    runs = Runs(pathlib.Path(shutil.which("par-compile")).parent, work)

    def train(plan, *flags):
        metrics, weights = runs.train(runs.compile(work / "model.onnx", plan, *flags), work / "x.safetensors", STEPS)
        return [line["loss"] for line in metrics], read_safetensors(weights)

    def hold(title, schedule, train_keys):
        losses, weights = train(train_keys)
        cuts = SCHEDULES[schedule]
        plan = (f"mesh: {{pp: 2}}\nbatch: {{microbatches: 4}}\npipeline: {{schedule: {schedule}, stages: "
                f"{len(cuts) + 1}, cuts: [{', '.join(cuts)}]}}\n{train_keys}")
        with claims.watch(title):
            found, trained = train(plan, "--check-phases")
            claims.hold(f"{title}: losses off by", largest(abs(a - b) for a, b in zip(found, losses)), 1e-6)
            off = largest(abs(a - b) for name in weights for a, b in zip(trained[name][1], weights[name][1]))
            claims.hold(f"{title}: weights off by", off, 1e-5)

    for place, (frozen, schedules) in FROZEN.items():
        for schedule in schedules:
            hold(f"{place} {schedule}", schedule, TRAIN.format(frozen, ""))
    for name, keys in COUNTED.items():
        for place in ("front", "end") if name != "two optimizers" else ("none",):
            frozen = FROZEN[place][0] if place in FROZEN else ""
            hold(f"{place} {name}", "1f1b", TRAIN.format(frozen, keys.format()))
    claims.finish()


main()

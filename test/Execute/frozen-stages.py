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
TRAIN = "train: {{optimizer: {{kind: adamw, lr: 0.01}}, clip: 1.0, freeze: [{}]}}\n"


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

    for place, (frozen, schedules) in FROZEN.items():
        losses, weights = train(TRAIN.format(frozen))
        for schedule in schedules:
            cuts = SCHEDULES[schedule]
            plan = (f"mesh: {{pp: 2}}\nbatch: {{microbatches: 4}}\npipeline: {{schedule: {schedule}, stages: "
                    f"{len(cuts) + 1}, "
                    f"cuts: [{', '.join(cuts)}]}}\n{TRAIN.format(frozen)}")
            with claims.watch(f"{place} {schedule}"):
                found, trained = train(plan, "--check-phases")
                claims.hold(f"{place} {schedule}: losses off by", largest(abs(a - b) for a, b in zip(found, losses)),
                            1e-6)
                off = largest(abs(a - b) for name in weights for a, b in zip(trained[name][1], weights[name][1]))
                claims.hold(f"{place} {schedule}: weights off by", off, 1e-5)
    claims.finish()


main()

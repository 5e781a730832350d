"""A save made while a layer was frozen, resumed with all trained: that layer's momentum begins at zero, the others'
goes on.

    thawed.py FOLDER       writes the model, its data and its saves there
"""
import pathlib
import random
import shutil
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE.parent / "Phases/Import/Inputs"), str(HERE.parent / "Models")]
from encode import encode
from runs import Claims, Runs, largest, read_safetensors, write_safetensors

MODEL = """input x f32[4,3]
init a.weight f32[3,3] = {}
init b.weight f32[3,3] = {}
module a
node m MatMul x,a.weight -> h
node t Tanh h -> g
module b
node n MatMul g,b.weight -> z
node q Mul z,z -> s
node r ReduceMean s -> loss keepdims=0
output loss f32[]"""
MOMENTUM = 0.9
PLAN = "{}train: {{optimizer: {{kind: momentum, lr: 0.1, momentum: 0.9}}{}}}\n"


def main():
    work, claims, source = pathlib.Path(sys.argv[1]), Claims(), random.Random(1)
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    draw = lambda count: [source.uniform(-1, 1) for _ in range(count)]
    (work / "model.onnx").write_bytes(encode(MODEL.format(*(" ".join(map(str, draw(9))) for _ in "ab")).splitlines()))
    write_safetensors(work / "x.safetensors", {"x": ([4, 3], draw(12))})  # one batch: every step has the same
    runs = Runs(pathlib.Path(shutil.which("par-compile")).parent, work)

    def save(name, plan, steps, *more):
        bundle = runs.compile(work / "model.onnx", plan)
        said = runs.run(*runs.command(bundle, work / "x.safetensors", steps, "--save", work / name, *more))
        found = {}
        for part in sorted((work / name / str(steps)).glob("rank*.safetensors")):
            for key, (_, numbers) in read_safetensors(part).items():
                found.setdefault(key, []).extend(numbers)
        return found, said

    frozen, _ = save("frozen", PLAN.format("", ", freeze: [b]"), 2)
    state = next(key.removeprefix("a.weight") for key in frozen if key.startswith("a.weight."))
    gradient, _ = save("gradient", PLAN.format("", ""), 1, "--weights", work / "frozen/2")
    for name, mesh in {"one": "", "zero": "mesh: {dp: 2}\nzero: {level: 1, min_size: 1}\n"}.items():
        thawed, said = save(name, PLAN.format(mesh, ""), 3, "--resume", work / "frozen/2")
        print("\n".join(line for line in said.splitlines() if "note" in line))
        begun = largest(abs(a - b) for a, b in zip(thawed["b.weight" + state], gradient["b.weight" + state]))
        claims.hold(f"{name}: momentum of the thawed layer is off by", begun, 1e-6)
        kept = [MOMENTUM * v + g for v, g in zip(frozen["a.weight" + state], gradient["a.weight" + state])]
        claims.hold(f"{name}: the other's by", largest(abs(a - b) for a, b in zip(thawed["a.weight" + state], kept)),
                    1e-6)
    claims.finish()


main()

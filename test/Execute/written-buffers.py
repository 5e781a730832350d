"""Trains a model whose forward writes buffers, on several plans, against Python's own arithmetic: a moving mean that
both stages read, a count, and a vector that depends only on a weight and is unused.

    written-buffers.py FOLDER       writes the model, its data and its plans there
"""
import pathlib
import random
import shutil
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE.parent / "Phases/Import/Inputs"), str(HERE.parent / "Models")]
from encode import encode
from runs import Claims, Runs, largest, read_safetensors, write_safetensors

SAMPLES, STEPS, WIDTH, LR = 8, 4, 3, 0.1
MODEL = """signature p_w PARAMETER first.w
signature p_v PARAMETER second.v
signature b_m BUFFER first.mean
signature b_n BUFFER first.steps
signature b_u BUFFER second.sums
input x f32[8,3]
init first.w f32[3,3] = {w}
init second.v f32[3,3] = {v}
init first.mean f32[3] = 0.5 1 -0.5
init first.steps i64[] = 0
init second.sums f32[3] = 9 9 9
init rows i64[1] = 0
init one i64[] = 1
init keep f32[] = 0.75
init take f32[] = 0.25
module first
node a MatMul x,first.w -> h
node b Sub h,first.mean -> c
node d ReduceMean h,rows -> m keepdims=0
node e Mul first.mean,keep -> f
node g Mul m,take -> i
node j Add f,i -> mean2
node k Add first.steps,one -> steps2
module second
node l MatMul c,second.v -> z
node n Mul z,first.mean -> o
node p Cast steps2 -> q to=1
node r Div o,q -> s
node t Mul s,s -> u
node y ReduceMean u -> loss keepdims=0
node aa ReduceSum second.v,rows -> sums2 keepdims=0
output loss f32[]
updates mean2 f32[3] first.mean
updates steps2 i64[] first.steps
updates sums2 f32[3] second.sums"""
ROWS = """input x f32[4,2]
init w f32[2] = 1 2
init last f32[4,2] = 0 0 0 0 0 0 0 0
node a Mul x,w -> h
node b Sub h,last -> c
node d Mul c,c -> e
node f ReduceMean e -> loss keepdims=0
output loss f32[]
updates h f32[4,2] last"""
PLANS = {
    "one": "", "dp2": "mesh: {dp: 2}\n", "m2": "batch: {microbatches: 2}\n",
    "dp2-m2": "mesh: {dp: 2}\nbatch: {microbatches: 2}\n",
    "pp2-m2": "mesh: {pp: 2}\nbatch: {microbatches: 2}\npipeline: {cuts: [second]}\n",
    "tp3": "mesh: {tp: 3}\nshard: {first.w: {1: tp}}\n",
    "zero3": "mesh: {dp: 2}\nzero: {level: 3, min_size: 1}\n",
    "recompute": "batch: {microbatches: 2}\nrecompute: full\n",
}
# Names of plans that compute in 16 bits, and the maximum error of their numbers; under the second one the first step's
# gradients overflow, which PyTorch sees when forward has written its buffers.
NARROW = {
    "bf16-dp2-m2": ("precision: bf16\nmesh: {dp: 2}\nbatch: {microbatches: 2}\n", 1e-3, ()),
    "fp16-overflow": ("precision: {compute: fp16, loss_scale: {initial: 1048576}}\n", 1e-3, (1,)),
    "fp16-overflow-pp2-m2": (
        "precision: {compute: fp16, loss_scale: {initial: 1048576}}\nmesh: {pp: 2}\nbatch: {microbatches: 2}\n"
        "pipeline: {cuts: [second]}\n",
        1e-3,
        (1,),
    ),
}
TRAIN = f"train: {{optimizer: {{kind: sgd, lr: {LR}}}}}\n"


def times(a, b):
    return [[sum(x * y for x, y in zip(row, column)) for column in zip(*b)] for row in a]


def turned(a):
    return [list(row) for row in zip(*a)]


def expected(x, w, v, skipped=()):
    """Losses, parameters and buffers after the last step; steps that are skipped update no parameter."""
    mean, losses, sums = [0.5, 1.0, -0.5], [], []
    for step in range(1, STEPS + 1):
        rows = x[(step - 1) * SAMPLES:step * SAMPLES]
        h = times(rows, w)
        c = [[a - b for a, b in zip(row, mean)] for row in h]
        s = [[a * b / step for a, b in zip(row, mean)] for row in times(c, v)]
        losses.append(sum(a * a for row in s for a in row) / (SAMPLES * WIDTH))
        dz = [[2 * a * b / (step * SAMPLES * WIDTH) for a, b in zip(row, mean)] for row in s]
        dv, dw = times(turned(c), dz), times(turned(rows), times(dz, turned(v)))
        mean = [0.75 * a + 0.25 * sum(column) / SAMPLES for a, column in zip(mean, zip(*h))]
        sums = [sum(column) for column in zip(*v)]
        if step in skipped:
            continue
        v, w = ([[a - LR * b for a, b in zip(*rows)] for rows in zip(*pair)] for pair in ((v, dv), (w, dw)))
    return losses, {"first.mean": mean, "second.sums": sums, "first.w": sum(w, []), "second.v": sum(v, [])}


def main():
    work, claims, source = pathlib.Path(sys.argv[1]), Claims(), random.Random(3)
    work.mkdir(parents=True, exist_ok=True)
    draw = lambda rows: [[source.uniform(-1, 1) for _ in range(WIDTH)] for _ in range(rows)]
    x, w, v = draw(SAMPLES * STEPS), draw(WIDTH), draw(WIDTH)
    text = MODEL.format(w=" ".join(map(str, sum(w, []))), v=" ".join(map(str, sum(v, []))))
    (work / "model.onnx").write_bytes(encode(text.splitlines()))
    (work / "rows.txt").write_text(ROWS)
    write_safetensors(work / "x.safetensors", {"x": ([len(x), WIDTH], sum(x, []))})
    runs = Runs(pathlib.Path(shutil.which("par-compile")).parent, work)

    def hold(name, metrics, weights, bound=1e-5, skipped=()):
        losses, wanted = expected(x, w, v, skipped)
        claims.hold(f"{name}: losses off by",
                    largest(abs(line["loss"] - losses[line["step"] - 1]) for line in metrics), bound)
        found = read_safetensors(weights)
        claims.hold(f"{name}: buffers off by",
                    largest(abs(a - b) for key in wanted for a, b in zip(found[key][1], wanted[key])), bound)
        claims.equal(f"{name}: steps", read_safetensors(weights, ("I64",))["first.steps"][1], (STEPS,))

    for name, plan in PLANS.items():
        with claims.watch(name):
            bundle = runs.compile(work / "model.onnx", TRAIN + plan)
            runs.run(runs.binaries / "par-verify", bundle)
            hold(name, *runs.train(bundle, work / "x.safetensors", STEPS))
    for name, (plan, bound, skipped) in NARROW.items():
        with claims.watch(name):
            bundle = runs.compile(work / "model.onnx", TRAIN + plan, "--check-phases")
            runs.run(runs.binaries / "par-verify", bundle)
            hold(name, *runs.train(bundle, work / "x.safetensors", STEPS), bound, skipped)
    with claims.watch("resumed"):
        shutil.rmtree(work / "saves", ignore_errors=True)
        runs.train(runs.compile(work / "model.onnx", TRAIN), work / "x.safetensors", 2, "--save", work / "saves",
                   "--save-every", "2")
        bundle = runs.compile(work / "model.onnx", TRAIN + PLANS["pp2-m2"])
        hold("resumed", *runs.train(bundle, work / "x.safetensors", STEPS, "--resume", work / "saves"))
    claims.finish()


main()

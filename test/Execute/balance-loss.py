"""A router's balance loss, the product of two means over all tokens of the batch, trained in microbatches as in one.

    balance-loss.py FOLDER       writes the model, its data and its plans there
"""
import pathlib
import random
import shutil
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE.parent / "Phases/Import/Inputs"), str(HERE.parent / "Models")]
from encode import encode
from runs import Claims, Runs, largest, read_safetensors, write_safetensors

SAMPLES, STEPS, WIDTH, EXPERTS = 8, 3, 4, 3
MODEL = """input x f32[8,4]
init in.weight f32[4,4] = {}
init router.weight f32[4,3] = {}
init out.weight f32[4,4] = {}
init rows i64[1] = 0
init ratio f32[] = 0.25
init yes i1[] = 1
init last i64[1] = 1
module in
node a MatMul x,in.weight -> a
node b Tanh a -> kept
node d Dropout kept,ratio,yes -> h
module router
node c MatMul h,router.weight -> scores
node p Softmax scores -> p axis=1
node m ReduceMax p,last -> top keepdims=1
node g GreaterOrEqual p,top -> chosen
node f Cast chosen -> picked to=1
node i ReduceMean picked,rows -> share keepdims=0
node j ReduceMean p,rows -> mean keepdims=0
node k Mul share,mean -> product
node l ReduceSum product -> balance keepdims=0
node n Mul p,picked -> q
node o ReduceSum q,last -> gate keepdims=1
module out
node r Mul h,gate -> s
node t MatMul s,out.weight -> u
node v Mul u,u -> w
node y ReduceMean w -> main keepdims=0
node z Add main,balance -> loss
output loss f32[]"""
TRAIN = "train: {optimizer: {kind: adamw, lr: 0.05}, clip: 0.1}\n"
PLANS = {
    "m4": "batch: {microbatches: 4}\n", "dp2-m2": "mesh: {dp: 2}\nbatch: {microbatches: 2}\n",
    "zero3-m2": "mesh: {dp: 2}\nzero: {level: 3, min_size: 1}\nbatch: {microbatches: 2}\n",
    "recompute-m2": "batch: {microbatches: 2}\nrecompute: full\n",
    "pp2-m4": "mesh: {pp: 2}\nbatch: {microbatches: 4}\npipeline: {cuts: [out]}\n",
    "pp2-router-m4": "mesh: {pp: 2}\nbatch: {microbatches: 4}\npipeline: {cuts: [router], schedule: zb-h1}\n",
}


def main():
    work, claims, source = pathlib.Path(sys.argv[1]), Claims(), random.Random(3)
    work.mkdir(parents=True, exist_ok=True)
    draw = lambda count: [source.uniform(-1, 1) for _ in range(count)]
    numbers = (" ".join(map(str, draw(count))) for count in (WIDTH * WIDTH, WIDTH * EXPERTS, WIDTH * WIDTH))
    (work / "model.onnx").write_bytes(encode(MODEL.format(*numbers).splitlines()))
    write_safetensors(work / "x.safetensors", {"x": ([SAMPLES * STEPS, WIDTH], draw(SAMPLES * STEPS * WIDTH))})
    runs = Runs(pathlib.Path(shutil.which("par-compile")).parent, work)

    def train(plan, *flags):
        bundle = runs.compile(work / "model.onnx", TRAIN + plan, *flags)
        runs.run(runs.binaries / "par-verify", bundle)
        metrics, weights = runs.train(bundle, work / "x.safetensors", STEPS)
        return [line["loss"] for line in metrics], read_safetensors(weights)

    losses, weights = train("")
    for name, plan in PLANS.items():
        with claims.watch(name):
            found, trained = train(plan, "--check-phases")
            claims.hold(f"{name}: losses off by", largest(abs(a - b) for a, b in zip(found, losses)), 1e-6)
            off = largest(abs(a - b) for key in weights for a, b in zip(trained[key][1], weights[key][1]))
            claims.hold(f"{name}: weights off by", off, 1e-4)
    claims.finish()


main()

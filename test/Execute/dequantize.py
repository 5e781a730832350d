#!/usr/bin/env python3
"""Holds DequantizeLinear against PyTorch, a line a claim: figure, bound, pass or FAIL.

    dequantize.py --bin build/bin [--plan tp2]...

A model of two layers whose weights are integers of 8 bits: those of the first have a scale and a zero point for each
row, those of the second for each block of two columns, the last block being one column. Scales are floats of the file,
so they are trained: five steps by PyTorch in f64, and by Par under every plan, give the same losses and scales. Exit
status 0: all hold.
"""
import pathlib
import random
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "Models"))

import torch

from runs import HERE, Claims, Runs, largest, plan_parser, read_safetensors, write_safetensors

STEPS, BATCH, INPUTS, HIDDEN, OUTPUTS, BLOCK = 5, 8, 6, 5, 4, 2
BLOCKS = -(-HIDDEN // BLOCK)
LR = 2e-6
SHAPES = {"s1": (HIDDEN,), "s2": (OUTPUTS, BLOCKS)}
INTEGERS = {"q1": ("u8", (HIDDEN, INPUTS), 0, 255), "z1": ("u8", (HIDDEN,), 100, 160),
            "q2": ("i8", (OUTPUTS, HIDDEN), -128, 127), "z2": ("i8", (OUTPUTS, BLOCKS), -20, 20)}
MODEL = f"""opset 21
input x f32[{BATCH},{INPUTS}]
{{inits}}
module first
node w1 DequantizeLinear q1,s1,z1 -> w1 axis=0
node t1 Transpose w1 -> t1 perm=[1,0]
node m1 MatMul x,t1 -> h1
node a1 Tanh h1 -> h
module second
node w2 DequantizeLinear q2,s2,z2 -> w2 axis=1 block_size={BLOCK}
node t2 Transpose w2 -> t2 perm=[1,0]
node m2 MatMul h,t2 -> y
output y f32[{BATCH},{OUTPUTS}]
"""
PLANS = {
    "one": "",
    "one-m4": "batch: {microbatches: 4}\n",
    "dp2": "mesh: {dp: 2}\nbatch: {microbatches: 2}\n",
    "zero3": "mesh: {dp: 2}\nzero: {level: 3, min_size: 0}\n",
    "tp2": "mesh: {tp: 2}\nshard: {s1: {0: tp}, s2: {0: tp}}\n",  # 5 rows over 2 ranks: the last one is padding
    "tp2-blocks": "mesh: {tp: 2}\nshard: {s2: {1: tp}}\n",  # the blocks of a row on two ranks
    "pp2": "mesh: {pp: 2}\nbatch: {microbatches: 4}\npipeline: {cuts: [second]}\n",
}


def draw(work):
    numbers = random.Random(3)
    print("seed 3")
    values = {name: [numbers.uniform(0.002, 0.01) for _ in range(torch.Size(shape).numel())]
              for name, shape in SHAPES.items()}
    values |= {name: [numbers.randint(low, high) for _ in range(torch.Size(shape).numel())]
               for name, (_, shape, low, high) in INTEGERS.items()}
    kinds = {name: ("f32", shape) for name, shape in SHAPES.items()}
    kinds |= {name: (kind, shape) for name, (kind, shape, _, _) in INTEGERS.items()}
    inits = "\n".join(f"init {name} {kind}[{','.join(map(str, shape))}] = {' '.join(map(str, values[name]))}"
                      for name, (kind, shape) in kinds.items())
    (work / "model.txt").write_text(MODEL.format(inits=inits))
    data = {"x": ([STEPS * BATCH, INPUTS], [numbers.gauss(0, 1) for _ in range(STEPS * BATCH * INPUTS)]),
            "labels": ([STEPS * BATCH, OUTPUTS], [numbers.gauss(0, 1) for _ in range(STEPS * BATCH * OUTPUTS)])}
    write_safetensors(work / "data.safetensors", data)
    return {name: torch.tensor(values[name], dtype=torch.float64).reshape(shape)
            for name, (_, shape) in kinds.items()}, {
                name: torch.tensor(elements, dtype=torch.float64).reshape(shape)
                for name, (shape, elements) in data.items()}


def reference(start, data):
    """The losses and scales of PyTorch."""
    scales = {name: torch.nn.Parameter(start[name].clone()) for name in SHAPES}
    optimizer = torch.optim.SGD(scales.values(), lr=LR)
    losses = []
    for step in range(STEPS):
        rows = slice(step * BATCH, (step + 1) * BATCH)
        w1 = (start["q1"] - start["z1"][:, None]) * scales["s1"][:, None]
        spread = [t.repeat_interleave(BLOCK, 1)[:, :HIDDEN] for t in (start["z2"], scales["s2"])]
        y = torch.tanh(data["x"][rows] @ w1.T) @ ((start["q2"] - spread[0]) * spread[1]).T
        loss = torch.nn.functional.mse_loss(y, data["labels"][rows])
        optimizer.zero_grad()
        loss.backward()
        losses.append(loss.item())
        optimizer.step()
    return losses, {name: scale.detach() for name, scale in scales.items()}


def main():
    options = plan_parser(__doc__, PLANS).parse_args()
    claims = Claims()
    with tempfile.TemporaryDirectory(prefix="par-dequantize-") as work:
        runs = Runs(options.bin, work)
        start, data = draw(runs.work)
        model = runs.work / "model.onnx"
        runs.run(sys.executable, HERE.parent / "Phases/Import/Inputs/encode.py", runs.work / "model.txt", model)
        losses, scales = reference(start, data)
        for plan in options.plan or PLANS:
            with claims.watch(plan):
                train = f"train: {{loss: mse, optimizer: {{kind: sgd, lr: {LR}}}}}\n"
                bundle = runs.compile(model, PLANS[plan] + train, "--check-phases")
                lines, exported = runs.train(bundle, runs.work / "data.safetensors", STEPS)
                # f32 beside f64: sums of at most 48 numbers, five steps of them.
                claims.hold(f"{plan}: losses", largest(abs(line["loss"] - loss) for line, loss in zip(lines, losses)),
                            1e-5)
                found = read_safetensors(exported)
                for name, scale in scales.items():
                    apart = (torch.tensor(found[name][1], dtype=torch.float64) - scale.flatten()).abs().max().item()
                    claims.hold(f"{plan}: {name}", apart / scale.abs().max().item(), 1e-5)
                    moved = (scale - start[name]).abs().max().item() / scale.abs().max().item()
                    claims.hold(f"{plan}: {name} has moved", moved, 1e-2, least=True)
    claims.finish()


if __name__ == "__main__":
    main()

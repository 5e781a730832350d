"""Runs a recurrent model whose state the plan carries from call to call, on several plans, against Python's own
arithmetic.

    carry.py FOLDER       writes the model, its plans and its data there
"""
import math
import pathlib
import random
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE.parent / "Phases/Import/Inputs"), str(HERE.parent / "Models")]
from encode import encode
from runs import Claims, largest, read_safetensors, write_safetensors

SAMPLES, CALLS, WIDTH, STATE = 4, 5, 6, 8
# `u` is carried and used by no returned value; `n` is the same for all samples; `s` is computed before the second
# module, which reads its old value.
MODEL = """
input x f32[4,6]
input s f32[4,8]
input n i64[1]
input u f32[4,3]
init w f32[6,8] = {w}
init r f32[8,8] = {r}
init one i64[1] = 1
module first
node a MatMul x,w -> a
node b MatMul s,r -> b
node c Add a,b -> c
node d Tanh c -> s2
module second
node e Add n,one -> n2
node f Cast n2 -> nf to=1
node g Mul s2,nf -> s3
node i Add s3,s -> y
node h Neg u -> u2
output y f32[4,8]
output s2 f32[4,8]
output n2 i64[1]
output u2 f32[4,3]
"""
CARRY = 'carry: {s2: s, "{n}2": "{n}", u2: u}\n'
PLANS = {
    "one": "", "dp2": "mesh: {dp: 2}\n", "dp4": "mesh: {dp: 4}\n", "zero3": "mesh: {dp: 2}\nzero: 3\n",
    "pp2": "mesh: {pp: 2}\npipeline: {cuts: [second]}\n", "tp2": "mesh: {tp: 2}\nshard: {w: {1: tp}, r: {1: tp}}\n",
    "dp2tp2": "mesh: {dp: 2, tp: 2}\nshard: {w: {1: tp}, s: {1: tp}}\n",
    "one-m2": "batch: {microbatches: 2}\n",
    "pp2-m4": "mesh: {pp: 2}\nbatch: {microbatches: 4}\npipeline: {cuts: [second]}\n",
    "pp2dp2-m2": "mesh: {pp: 2, dp: 2}\nbatch: {microbatches: 2}\npipeline: {cuts: [second]}\n",
    "tp2-m2": "mesh: {tp: 2}\nbatch: {microbatches: 2}\nshard: {w: {1: tp}, r: {1: tp}, s: {1: tp}}\n",
}


def draw(source, count):
    return [source.uniform(-0.7, 0.7) for _ in range(count)]


def expected(x, w, r):
    """y of every call, concatenated."""
    state, found = [[0.0] * STATE for _ in range(SAMPLES)], []
    for call in range(CALLS):
        rows = [x[(call * SAMPLES + b) * WIDTH:][:WIDTH] for b in range(SAMPLES)]
        before, state = state, [[math.tanh(sum(row[k] * w[k * STATE + j] for k in range(WIDTH))
                                           + sum(old[k] * r[k * STATE + j] for k in range(STATE)))
                          for j in range(STATE)] for row, old in zip(rows, state)]
        found += [value * (call + 1) + old for row, last in zip(state, before) for value, old in zip(row, last)]
    return found


def run(*command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def main():
    work, claims, source = pathlib.Path(sys.argv[1]), Claims(), random.Random(7)
    work.mkdir(parents=True, exist_ok=True)
    x, w, r = draw(source, SAMPLES * CALLS * WIDTH), draw(source, WIDTH * STATE), draw(source, STATE * STATE)
    text = MODEL.format(w=" ".join(map(str, w)), r=" ".join(map(str, r)))
    (work / "model.onnx").write_bytes(encode(text.splitlines()))
    write_safetensors(work / "x.safetensors", {"x": ([SAMPLES * CALLS, WIDTH], x)})
    wanted = expected(x, w, r)
    for name, plan in PLANS.items():
        (work / f"{name}.yaml").write_text(CARRY + plan)
        run("par-compile", work / "model.onnx", work / f"{name}.yaml", "-o", work / f"{name}.par", "-q")
        run("par-verify", work / f"{name}.par")
        for call in (1, 2):  # a run begins from zeros, whatever the one before has left
            run("par-run", work / f"{name}.par", "--data", work / "x.safetensors", "--output", work / "y.safetensors")
            outputs = read_safetensors(work / "y.safetensors")
            claims.equal(f"{name}: outputs", sorted(outputs), ["y"])
            # A few dozen roundings of values below 5.
            claims.hold(f"{name}: run {call} differs from the reference by",
                        largest(abs(a - b) for a, b in zip(outputs["y"][1], wanted)), 1e-5)
    print(f"{claims.count} claims, {len(claims.failures)} failed")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Parameters that a plan ties train as those of a model that was exported tied: the same bits, on every plan.

    tie.py --bin build/bin [--plan pp2dp2tp2]... [--only trains|older]

GPT-2's head and embedding are one initializer in its file. Here they are taken apart, into two of the same numbers, and
`train.tie` puts them together again: losses, weights and saves are those of the file as it was exported. The second
model is one that the older exporter wrote, whose head is a transposed copy. Only Python's standard library is used.
Exit status 0: all hold.
"""
import pathlib
import random
import subprocess
import sys
import tempfile

from rename_model import (GRAPH_INITIALIZER, GRAPH_NODE, MODEL_GRAPH, NODE_INPUT, NODE_OP, TENSOR_NAME, field_of,
                          map_fields,
                          read_message, write_message)
from runs import HERE, Claims, Runs, plan_parser, read_safetensors, write_safetensors
from train_reference import CASES

ENCODE = HERE.parent / "Phases/Import/Inputs/encode.py"
HEAD, TABLE = "model.lm_head.weight", "model.transformer.wte.weight"
STEPS = 4
PLANS = {name: CASES[name] for name in ("one", "one-m8", "dp2", "tp2", "pp2", "pp2dp2tp2", "dp2tp3-vocab")}
PLANS["zero3"] = "mesh: {dp: 2}\nbatch: {microbatches: 2}\nzero: 3\n"
PLANS["pp2dp2-zero2"] = "mesh: {pp: 2, dp: 2}\nbatch: {microbatches: 4}\npipeline: {cuts: {h.*: even}}\nzero: 2\n"
TRAIN = "train: {{optimizer: {{kind: adamw, lr: 1e-2}}, clip: 1.0{}}}\n"
TIE = ", tie: {wte.weight: lm_head.weight}"
OLDER = """input x i64[8,4]
init emb.weight f32[11,6] = {table}
init onnx::MatMul_9 f32[6,11] = {head}
module emb
node look Gather emb.weight,x -> h
module head
node p MatMul h,onnx::MatMul_9 -> y
output y f32[8,4,11]
"""


def untie(source, to):
    """Writes the model with a second initializer for what Gather reads of the head."""
    model = read_message(pathlib.Path(source).read_bytes())
    graph = read_message(field_of(model, MODEL_GRAPH))
    out = []
    for field, kind, value in graph:
        if field == GRAPH_NODE and field_of(read_message(value), NODE_OP) == b"Gather":
            value = map_fields(value, {NODE_INPUT: lambda name: TABLE.encode() if name == HEAD.encode() else name})
        out.append([field, kind, value])
        if field == GRAPH_INITIALIZER and field_of(read_message(value), TENSOR_NAME) == HEAD.encode():
            out.append([field, kind, map_fields(value, {TENSOR_NAME: lambda _: TABLE.encode()})])
    pathlib.Path(to).write_bytes(map_fields(write_message(model), {MODEL_GRAPH: lambda _: write_message(out)}))


def losses(metrics):
    return [(line["loss"], line["grad_norm"]) for line in metrics]


def check_trains(runs, claims, plans):
    """The same losses, weights and saves as the model that is tied in its file."""
    tied, apart, data = HERE / "gpt2" / "model.onnx", runs.work / "apart.onnx", HERE / "gpt2" / "data.safetensors"
    untie(tied, apart)
    for name in plans:
        title = f"gpt2 {name}"
        with claims.watch(title):
            one = runs.compile(tied, PLANS[name] + TRAIN.format(""))
            metrics, weights = runs.train(one, data, STEPS, "--save", runs.work / f"{name}.tied", "--save-every", "2")
            wanted, arrays = losses(metrics), read_safetensors(weights)
            both = runs.compile(apart, PLANS[name] + TRAIN.format(TIE))
            runs.run(runs.binaries / "par-verify", both)
            metrics, weights = runs.train(both, data, STEPS)
            claims.equal(f"{title}: losses and norms have the tied file's bits", losses(metrics) == wanted, True)
            claims.equal(f"{title}: weights have, under all names", read_safetensors(weights) == arrays, True)
            metrics, _ = runs.train(both, data, STEPS, "--resume", runs.work / f"{name}.tied" / "2")
            claims.equal(f"{title}: it goes on from a save of the tied file", losses(metrics) == wanted[2:], True)
    with claims.watch("gpt2 untied"):
        metrics, weights = runs.train(runs.compile(apart, PLANS["one"] + TRAIN.format("")), data, STEPS)
        claims.equal("gpt2 not tied: losses are others", losses(metrics) == wanted, False)
        check_files(runs, claims, apart, data, read_safetensors(weights))


def check_files(runs, claims, apart, data, arrays):
    """Files that hold other numbers under the two names are refused, and what trained serves the file as it was
    exported."""
    both, file = runs.compile(apart, PLANS["dp2"] + TRAIN.format(TIE)), runs.work / "other.safetensors"
    write_safetensors(file, arrays)
    done = subprocess.run([str(part) for part in runs.command(both, data, 1, "--weights", file)], capture_output=True,
                          text=True,
                          timeout=60)
    claims.equal("gpt2 dp2: a file with other numbers under both names", done.stderr.strip().split("error: ")[-1],
                 f"holds other numbers for \"{HEAD}\" than for \"{TABLE}\", which are one tensor of the bundle; leave "
                 f"one of both out")
    write_safetensors(file, {name: array for name, array in arrays.items() if not name.endswith("wte.weight")})
    runs.run(*runs.command(both, data, 2, "--weights", file, "--save", runs.work / "served", "--save-every", "2",
                           "--export",
                           runs.work / "m.onnx"))
    evaluate = ("--eval", "--data", data, "--order", "sequential")
    asked = [runs.run(runs.binaries / "par-run", both, *evaluate, "--weights", runs.work / "served")]
    for name, model, weights in (("save", apart, ("--weights", runs.work / "served")),
                                 ("model", runs.work / "m.onnx", ())):
        asked.append(runs.run(runs.binaries / "par-run", runs.compile(model, PLANS["dp2"] + TRAIN.format("")),
                              *evaluate, *weights))
    said = [line.split("loss")[1].split()[0] for text in asked for line in text.splitlines() if "loss" in line]
    claims.equal("gpt2 dp2: the file as it was exported evaluates the save, and the exported model",
                 len(said) == 3 and len(set(said)) == 1,
                 True)


def check_older(runs, claims):
    """A transposed copy of an exporter that computes: its matmul reads the table transposed."""
    choose = random.Random(5)
    table = [[choose.gauss(0, 1) for _ in range(6)] for _ in range(11)]
    texts = {"table": " ".join(repr(x) for row in table for x in row),
             "head": " ".join(repr(table[i][j]) for j in range(6) for i in range(11))}
    models = {"older": OLDER, "tied": OLDER.replace("init onnx::MatMul_9 f32[6,11] = {head}\n", "").replace(
        "module head\n", "module head\nnode t Transpose emb.weight -> onnx::MatMul_9 perm=[1,0]\n")}
    for name, text in models.items():
        (runs.work / f"{name}.txt").write_text(text.format(**texts))
        subprocess.run([sys.executable, ENCODE, runs.work / f"{name}.txt", runs.work / f"{name}.onnx"], check=True)
    data = runs.work / "tokens.safetensors"
    write_safetensors(data, {"x": ([32, 4], [choose.randrange(11) for _ in range(128)]),
                             "labels": ([32, 4], [choose.randrange(11) for _ in range(128)])})
    for name, plan in (("one", ""), ("dp2", "mesh: {dp: 2}\n"),
                       ("zero3", "mesh: {dp: 2}\nzero: {level: 3, min_size: 0}\n"),
                       ("tp2", "mesh: {tp: 2}\nshard: {head.weight: {0: tp}}\n"),
                       ("pp2", "mesh: {pp: 2}\nbatch: {microbatches: 4}\npipeline: {cuts: [head]}\n")):
        with claims.watch(f"older {name}"):
            train = "train: {{loss: cross_entropy, optimizer: sgd{}}}\n"
            wanted = runs.train(runs.compile(runs.work / "tied.onnx",
                                             plan.replace("head", "emb", 1 if "tp" in name else 0) + train.format("")),
                                data, STEPS)[0]
            both = runs.compile(runs.work / "older.onnx", plan + train.format(", tie: {head.weight: emb.weight}"))
            metrics, weights = runs.train(both, data, STEPS)
            claims.equal(f"older {name}: losses have the bits of one table", losses(metrics) == losses(wanted), True)
            arrays = read_safetensors(weights)
            claims.equal(f"older {name}: exported under both names", sorted(arrays), ["emb.weight", "head.weight"])
            claims.equal(f"older {name}: with the same numbers", arrays["emb.weight"] == arrays["head.weight"], True)


def main():
    parser = plan_parser(__doc__, PLANS)
    parser.add_argument("--only", choices=("trains", "older"), help="default: both")
    options = parser.parse_args()
    claims = Claims()
    with tempfile.TemporaryDirectory(prefix="par-tie-") as work:
        runs = Runs(options.bin, work)
        if options.only != "older":
            check_trains(runs, claims, options.plan or PLANS)
        if options.only != "trains":
            check_older(runs, claims)
    claims.finish()


if __name__ == "__main__":
    main()

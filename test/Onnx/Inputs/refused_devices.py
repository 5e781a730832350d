"""Annotations that keep ONNX's rules and that no plan says: what --onnx-sharding answers, a line each."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "Phases", "Import", "Inputs"))
from encode import encode

LINES = ["ir 11", "input x f32[n,4]", "input z f32[n,4]", "init w1 f32[4,8] = " + "1 " * 32,
         "init w2 f32[8,4] = " + "1 " * 32, "init w(3) f32[4] = 1 1 1 1",
         "value h f32[n,8]", "value i f32[n,4]", "value j f32[n,4]", "value k f32[n,4]",
         "value l f32[n,2]", "value m f32[n,2]", "init v f32[2] = 1 1"]
NODES = ["fc1 MatMul x,w1 -> h", "relu Relu h -> r", "fc2 MatMul r,w2 -> i", "add Add i,w(3) -> j",
         "side Neg z -> e", "also Add j,e -> k",
         "halves Split k -> l,m axis=1 num_outputs=2", "sum Add l,m -> s", "turn Neg v -> u", "last Add s,u -> y"]


def whole(tensor, *devices):
    if len(devices) == 1:
        return {"tensor": tensor, "devices": list(devices)}
    return {"tensor": tensor, "devices": [-1], "groups": [[-1, list(devices)]]}


def shards(tensor, axis, *holders, parts=None):
    """One group of devices a shard."""
    groups = [[-1 - i, held] for i, held in enumerate(holders) if len(held) > 1]
    return {"tensor": tensor, "devices": [held[0] if len(held) == 1 else -1 - i for i, held in enumerate(holders)],
            "groups": groups, "axes": [{"axis": axis, "parts": parts or [{"shards": len(holders)}]}]}


def said(node, *shardings, **more):
    """A line of an annotated node."""
    return f"node {node} || {json.dumps([{'configuration': 'c', 'shardings': shardings, **more}])}"


HALF, QUARTERS = ([0], [1]), ([0], [1], [2], [3])
W1 = {"fc1": [shards("w1", 1, *HALF)]}
# name: (devices, names of devices, {node: shardings}, {node: stage}, further arguments, further lines of the file)
CASES = {
    "both-parts": (4, [], {"fc1": [shards("w1", 1, *QUARTERS, parts=[{"size": 2, "shards": 2},
                                                                    {"size": 4, "shards": 2}])]}),
    "part-without-size": (2, [], {"fc1": [shards("w1", 1, *HALF, parts=[{"shards": 1}, {"shards": 2}])]}),
    "other-devices": (4, [], {"fc1": [shards("w1", 1, *HALF), whole("x", 2, 3)]}),
    "stage-without-devices": (4, [], {"fc1": [whole("w1", 0, 1)]}, {"fc1": 0, "add": 1}),
    "sizes": (3, [], {"fc1": [whole("w1", 0, 1)], "fc2": [whole("w2", 2)]}, {"fc1": 0, "fc2": 1}),
    "shared": (3, [], {"fc1": [whole("w1", 0, 1)], "fc2": [whole("w2", 1, 2)]}, {"fc1": 0, "fc2": 1}),
    "some-devices": (3, [], W1),
    "order": (2, [], {"fc1": [whole("w1", 0)], "fc2": [whole("w2", 1)], "add": [whole("w(3)", 1)]},
              {"fc1": 0, "fc2": 1, "add": 2}),
    "no-stage": (2, [], {"fc1": [whole("w1", 0)], "relu": [whole("r", 0, 1)], "fc2": [whole("w2", 1)]},
                 {"fc1": 0, "fc2": 1}),
    "no-mesh": (3, [], {"fc1": [shards("w1", 1, [0, 1], [2])]}),
    "steps": (6, [], {"fc1": [shards("w1", 1, [0, 1, 2], [3, 4, 5]), shards("x", 1, [0, 1], [2, 3], [4, 5])]}),
    "no-stride": (4, [], {"fc1": [whole("w1", 0, 3)], "fc2": [whole("w2", 1, 2)]}, {"fc1": 0, "fc2": 1}),
    "part-of-axis": (4, [f"tp={i}" for i in range(4)], {"fc1": [shards("w1", 1, [0, 1], [2, 3])]}),
    "twice": (2, [], {"fc1": [shards("w1", 1, *HALF), shards("h", 1, *HALF)], "relu": [whole("h", 0, 1)]}),
    "input-twice": (2, [], {"fc1": [shards("x", 1, *HALF)], "side": [shards("z", 0, *HALF)]}),
    "input-blocks": (2, [], {"fc1": [shards("x", 1, *HALF, parts=[{"size": 2, "shards": 1},
                                                                {"size": 2, "shards": 2}])]}),
    "value-blocks": (2, [], {"fc1": [shards("h", 1, *HALF, parts=[{"size": 4, "shards": 1},
                                                                {"size": 2, "shards": 2}])]}),
    "two-blocks": (4, [], {"fc1": [{"tensor": "w1", "devices": [0, 1, 2, 3], "axes": [
        {"axis": 0, "parts": [{"size": 2, "shards": 1}, {"size": 2, "shards": 2}]},
        {"axis": 1, "parts": [{"size": 2, "shards": 1}, {"size": 4, "shards": 2}]}]}]}),
    "shapeless": (2, [], {"relu": [shards("r", 1, *HALF)]}),
    "repeats": (4, [], {"fc1": [shards("w1", 1, [0, 1], [2, 3])]}),
    "name": (2, [], {"add": [shards("w(3)", 0, *HALF)]}),
    "outputs": (2, [], {"halves": [shards("l", 1, *HALF)]}),
    "set": (2, [], W1, {}, ["--set", "shard.\"^w1\"={0: tp, 1: none}"]),
    "body": (2, [], W1, {}, [], ["input c i1[]", "body then",
                                 said("inside Neg x -> t", whole("x", 0, 1)),
                                 "output t f32[n,4]", "end",
                                 "node choose If c -> o then_branch=&then else_branch=&then"]),
    "function": (2, [], W1, {}, [], ["function local::f a -> b", said("inside Neg a -> b", whole("a", 0, 1)), "end"]),
    "parameters-only": (2, [], {"fc1": [whole("w1", 0)], "turn": [whole("v", 1)]}, {"fc1": 0, "turn": 1}),
    "cut": (2, [], {"fc1": [whole("w1", 0)]}, {"fc1": 0}, [],
            ['module a"], b', said("odd Add i,v -> q", whole("v", 1), stage=1)]),
    "coordinates": (2, [f"tp={i}" for i in (2 ** 63 - 1, 0)], W1),  # of no mesh: the lists say it
    "stage": (2, [], {"fc1": [whole("w1", 0)], "fc2": [whole("w2", 1)]}, {"fc1": 0, "fc2": 1, "turn": 1, "side": 1}),
    "reshaped": (2, [], W1, {}, [], [
        "init rows i64[2] = -1 4", "init v4 f32[4,6] = " + "1 " * 24, "input q f32[n,3,4]", "value p f32[m,6]",
        "node flat Reshape q,rows -> o", said("wide Gemm o,v4 -> p", shards("p", 1, *HALF)),
        "init back i64[3] = -1 3 6", "node deep Reshape p,back -> d", "output d f32[n,3,6]"]),
}


def write(case, file):
    devices, names, placed, *more = case
    stages = more[0] if more else {}
    lines = list(LINES) + [f"devices c {devices} " + " ".join(names)]
    for node in NODES:
        name = node.split()[0]
        stage = {"stage": stages[name]} if name in stages else {}
        placed_here = name in placed or name in stages
        lines.append(said(node, *placed.get(name, []), **stage) if placed_here else f"node {node}")
    open(file, "wb").write(encode(lines + ["output y f32[n,2]", *(more[2] if len(more) > 2 else [])]))


for name, case in CASES.items():
    write(case, "case.onnx")
    rules = subprocess.run(["par-compile", "case.onnx", "--check-onnx-devices"], capture_output=True, text=True)
    run = subprocess.run(["par-compile", "case.onnx", "--onnx-sharding", "--set", "batch.size=12", "--check", "-q",
                          *(case[4] if len(case) > 4 else [])], capture_output=True, text=True)
    print(f"{name} [{rules.returncode}, {run.returncode}]", *run.stderr.splitlines(), sep="\n  ")

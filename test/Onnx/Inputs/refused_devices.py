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
         "value l f32[n,2]", "value m f32[n,2]"]
NODES = ["fc1 MatMul x,w1 -> h", "relu Relu h -> r", "fc2 MatMul r,w2 -> i", "add Add i,w(3) -> j", "also Add j,z -> k",
         "halves Split k -> l,m axis=1 num_outputs=2", "sum Add l,m -> y"]


def whole(tensor, *devices):
    if len(devices) == 1:
        return {"tensor": tensor, "devices": list(devices)}
    return {"tensor": tensor, "devices": [-1], "groups": [[-1, list(devices)]]}


def shards(tensor, axis, *holders, parts=None):
    """One group of devices a shard."""
    groups = [[-1 - i, held] for i, held in enumerate(holders) if len(held) > 1]
    return {"tensor": tensor, "devices": [held[0] if len(held) == 1 else -1 - i for i, held in enumerate(holders)],
            "groups": groups, "axes": [{"axis": axis, "parts": parts or [{"shards": len(holders)}]}]}


HALF, QUARTERS = ([0], [1]), ([0], [1], [2], [3])
W1 = {"fc1": [shards("w1", 1, *HALF)]}
# name: (devices, names of devices, {node: shardings}, {node: stage}, further arguments)
CASES = {
    "both-parts": (4, [], {"fc1": [shards("w1", 1, *QUARTERS, parts=[{"size": 2, "shards": 2}, {"size": 4, "shards": 2}])]}),
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
    "input-twice": (2, [], {"fc1": [shards("x", 1, *HALF)], "also": [shards("z", 0, *HALF)]}),
    "input-blocks": (2, [], {"fc1": [shards("x", 1, *HALF, parts=[{"size": 2, "shards": 1}, {"size": 2, "shards": 2}])]}),
    "value-blocks": (2, [], {"fc1": [shards("h", 1, *HALF, parts=[{"size": 4, "shards": 1}, {"size": 2, "shards": 2}])]}),
    "two-blocks": (4, [], {"fc1": [{"tensor": "w1", "devices": [0, 1, 2, 3], "axes": [
        {"axis": 0, "parts": [{"size": 2, "shards": 1}, {"size": 2, "shards": 2}]},
        {"axis": 1, "parts": [{"size": 2, "shards": 1}, {"size": 4, "shards": 2}]}]}]}),
    "shapeless": (2, [], {"relu": [shards("r", 1, *HALF)]}),
    "repeats": (4, [], {"fc1": [shards("w1", 1, [0, 1], [2, 3])]}),
    "name": (2, [], {"add": [shards("w(3)", 0, *HALF)]}),
    "outputs": (2, [], {"halves": [shards("l", 1, *HALF)]}),
    "set": (2, [], W1, {}, ["--set", "shard.\"^w1\"={0: tp, 1: none}"]),
}


def write(case, file):
    devices, names, placed, *more = case
    stages = more[0] if more else {}
    lines = list(LINES) + [f"devices c {devices} " + " ".join(names)]
    for node in NODES:
        name = node.split()[0]
        said = {"configuration": "c", "shardings": placed.get(name, [])}
        said.update({"stage": stages[name]} if name in stages else {})
        lines.append(f"node {node}" + (f" || {json.dumps([said])}" if name in placed or name in stages else ""))
    open(file, "wb").write(encode(lines + ["output y f32[n,2]"]))


for name, case in CASES.items():
    write(case, "case.onnx")
    rules = subprocess.run(["par-compile", "case.onnx", "--check-onnx-devices"], capture_output=True, text=True)
    run = subprocess.run(["par-compile", "case.onnx", "--onnx-sharding", "--set", "batch.size=12", "--check", "-q",
                          *(case[4] if len(case) > 4 else [])], capture_output=True, text=True)
    print(f"{name} [{rules.returncode}, {run.returncode}]", *run.stderr.splitlines(), sep="\n  ")

#!/usr/bin/env python3
"""Holds what gpt2 sends under the plans of train_reference.py against closed forms, and what 1f1b keeps in flight.

    communication.py --bin build/bin [--case NAME]...

For every rank the bytes that its program sends in one step (a ring's, 2(n-1)/n N for an all_reduce of N bytes) equal
the formula of Closed below, and their sum over ranks equals sent_bytes of a step that ran. Under tp no buffer has the
whole vocabulary dim. Under pp4 1f1b with 8 microbatches the stages keep 4, 3, 2, 1 microbatches. Exit status 0: all
hold.
"""
import argparse
import json
import pathlib
import re
import shutil
import sys
import tempfile

from runs import HERE, Claims, Runs
from train_reference import CASES

VOCABULARY, SEQUENCE, WIDTH, BATCH, F32 = 512, 32, 64, 8, 4


def ring(members, size):
    return 2 * (members - 1) * size / members


class Closed:
    """Elements that a stage of `layers` layers sends in a step, computed only from the plan.

    A: bytes of one microbatch's activations on a rank. Megatron sums A over tp twice a layer in forward and twice in
    backward, once for the embedding and once for the gradient of the head's input; cross-entropy sums two scalars a row
    (maximum, sum of exponentials; the label's logit stays a part of the loss, which is summed over tp too, once a
    step); the norm sums one scalar for every sharded tensor that the stage owns. Data parallelism sums the gradients of
    local parameters, one for each stage that uses the tied weight, and on the last stage loss and count. A cut costs A
    a microbatch each way; the tied embedding costs its gradient from the last stage and its new value back; each later
    stage sends its part of the norm.
    Recomputation repeats the sums whose results the backward part reads: `full` all but the stage's last (its output),
    and nothing on the last stage, where backward follows at once; `each` all but a layer's last, which on the last
    stage is read.
    """

    def __init__(self, case, sizes, stage, layers):
        self.case, self.stage, self.layers = case, stage, layers
        self.dp, self.tp, self.stages = (sizes.get(axis, 1) for axis in ("dp", "tp", "pp"))
        self.first, self.last = stage == 0, stage == self.stages - 1
        found = re.search(r"microbatches: (\d+)", CASES[case])
        self.microbatches = int(found[1]) if found else 1
        self.rows = BATCH // self.dp // self.microbatches * SEQUENCE
        self.megatron = "megatron" in CASES[case]

    def tensor(self):
        if self.tp == 1:
            return 0
        layers = self.layers if self.megatron else 0
        wide = 4 * layers + self.first + self.last
        if "recompute: full" in CASES[self.case] and not self.last:
            wide += 2 * layers + self.first - 1
        if "recompute: {each" in CASES[self.case]:
            wide += layers + self.last
        narrow = 2 if self.last else 0
        microbatch = ring(self.tp, (wide * WIDTH + narrow) * self.rows * F32)
        return self.microbatches * microbatch + ring(self.tp, (6 * layers + self.first) * F32)

    def embedding(self):
        return -(-VOCABULARY // self.tp) * WIDTH

    def data(self):
        split = self.tp if self.megatron else 1
        layer = (12 * WIDTH * WIDTH + 7 * WIDTH) // split + 6 * WIDTH
        elements = self.layers * layer + self.last * 2 * WIDTH
        if self.first:
            elements += SEQUENCE * WIDTH
        # A stage adds its gradients of the tied weight, the embedding's and the head's, before it sums over replicas.
        elements += (self.first or self.last) * self.embedding()
        return ring(self.dp, elements * F32) + self.last * (ring(self.dp, F32) + ring(self.dp * self.tp, F32))

    def pipeline(self):
        if self.stages == 1:
            return 0
        cut = self.rows * WIDTH * F32 * self.microbatches
        # Cuts by cost may lie inside a layer, where several values of A bytes cross.
        widths = {"pp4-auto": [1, 2, 4]}.get(self.case, [1] * (self.stages - 1))
        forward = 0 if self.last else widths[self.stage] * cut
        backward = 0 if self.first else widths[self.stage - 1] * cut + F32
        return forward + backward + (self.first or self.last) * self.embedding() * F32

    def total(self):
        return self.tensor() + self.data() + self.pipeline()


def sent(program, manifest, rank):
    """Bytes that one train entry sends, by kind of communicator."""
    members = {c["name"]: len(next((g for g in c["groups"] if rank in g), [rank])) for c in manifest["communicators"]}
    total = 0
    for block, _, _ in program["entries"]["train"]:
        for i in program["blocks"][block]:
            if i["op"] == "send":
                total += i["n"] * F32
            elif i["op"] == "coll":
                if i["kind"] != "all_reduce":
                    sys.exit(f"{block}: {i['kind']} is in no closed form")
                total += ring(members[i["comm"]], i["n"] * F32)
    return total


def in_flight(program):
    """The most microbatches whose forward run is before, and whose backward run after, some run."""
    most, alive = 0, set()
    for block, microbatch, _ in program["entries"]["train"]:
        if block == "train.forward" or block.startswith("train.forward."):
            alive.add(microbatch)
            most = max(most, len(alive))
        elif block.startswith("train.backward"):
            alive.discard(microbatch)
    return most


def layers_of(program):
    names = (re.search(r"\bh\.(\d+)\.", b.get("tensor", "")) for b in program["buffers"] if b["kind"] == "state")
    return len({found[1] for found in names if found})


def slots(program):
    """The most microbatches that a buffer of the forward part has room for."""
    return max((len(b["at"]) for b in program["buffers"]
                if b["index"] == "mb" and b["name"].startswith("train.forward.") and "at" in b), default=1)


def check(runs, claims, case):
    bundle = runs.compile(HERE / "gpt2/model.onnx", CASES[case] + "train: {optimizer: {kind: sgd, lr: 0.1}}\n")
    metrics, _ = runs.train(bundle, HERE / "gpt2/data.safetensors", 2)
    manifest = json.loads((bundle / "manifest.json").read_text())
    programs = [json.loads((bundle / f"role-{k}.json").read_text()) for k in range(manifest["roles"])]
    sizes = {axis: int(size) for axis, size in re.findall(r"\b(pp|dp|tp): (\d+)", CASES[case])}
    axes = [axis for axis, _ in manifest["mesh"]]
    stages, whole, worst, wide = {}, 0, 0, []
    for rank, entry in enumerate(manifest["ranks"]):
        program, at = programs[entry["role"]], dict(zip(axes, entry["at"]))
        stage = at.get("pp", 0)
        closed = Closed(case, sizes, stage, layers_of(program))
        stages[stage] = got = sent(program, manifest, rank)
        whole += got
        worst = max(worst, abs(got - closed.total()))
        if abs(got - closed.total()) > 0.01:
            print(f"{case}: rank {rank} sends {got:.0f} B, closed form {closed.total():.0f} B "
                  f"(tp {closed.tensor():.0f}, dp {closed.data():.0f}, pp {closed.pipeline():.0f})")
        if closed.tp > 1:
            wide += [f"{b['name']} {b['shape']}" for b in program["buffers"] if VOCABULARY in b["shape"]]
    ran, depth, kept = metrics[-1]["sent_bytes"], [in_flight(p) for p in programs], [slots(p) for p in programs]
    print(f"{case:16} bytes per rank by stage {[round(x) for _, x in sorted(stages.items())]}, step {ran}; in flight "
          f"{depth}, "
          f"slots {kept}, pools {[p['arena']['pool'] // 1024 for p in programs]} KiB", flush=True)
    claims.hold(f"gpt2 {case}: sent bytes minus closed form, a rank", worst, 0.01, unit="bytes")
    # Running totals are rounded down once for every communicator of a rank, so a step is off by less than a byte each.
    claims.hold(f"gpt2 {case}: sent in a step minus the programs' bytes", abs(ran - whole), 4 * len(manifest["ranks"]),
                unit="bytes")
    if sizes.get("tp", 1) > 1:
        claims.equal(f"gpt2 {case}: buffers with the whole vocabulary dim", wide, [])
    if case in ("pp4-auto", "pp4-1f1b"):
        claims.equal(f"gpt2 {case}: microbatches in flight", depth, [4, 3, 2, 1])
        claims.equal(f"gpt2 {case}: slots of the arenas", kept, [4, 3, 2, 1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", help="default: on the PATH",
                        default=pathlib.Path(shutil.which("par-compile") or ".").parent)
    parser.add_argument("--case", action="append", choices=sorted(CASES))
    # No closed form for -seq, whose tensors move between dims, and none yet for several stages a rank.
    options = parser.parse_args()
    claims = Claims()
    with tempfile.TemporaryDirectory(prefix="par-communication-") as work:
        for case in options.case or [case for case in sorted(CASES)
                                     if not case.endswith("-seq") and "stages:" not in CASES[case]]:
            check(Runs(options.bin, work), claims, case)
    print("\n".join(claims.failures) or "all equal their closed forms")
    sys.exit(1 if claims.failures else 0)


if __name__ == "__main__":
    main()

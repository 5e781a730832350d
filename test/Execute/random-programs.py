#!/usr/bin/env python3
"""Random small graphs under random plans, through par-compile and par-run as programs: one rank's result is the oracle.

    random-programs.py [--bin FOLDER] [--count N] [--seed S] [--seconds N] [--keep FOLDER] [--phases] [--KIND | --mixed]

Each case is a model in ONNX (one or several inputs, an encoder and a decoder that reads it, tables of every size,
experts, constants, outputs that are inputs, parameters, constants or numbers), a plan (mesh, shardings, cuts,
microbatches, schedule, recompute, optimizer; or none of training), and data. The bundle of the plan and that of one
rank are run: losses and weights, or predictions, are the same. With --phases the interpreter compares every phase of
the plan with the one before instead (par-compile --check-phases). With --carry models predict, and a plan carries a
state from call to call; on one rank each call's state is an output that is fed to the next call. With --behind
schedules are asynchronous, and one rank takes each gradient at weights of the schedule's staleness. With --meshes
stages have meshes of their own, or replicas that take microbatches in turn. With --mixed each seed is of one of these
kinds, and plans shard parameters (zero) and decompose collectives into chunks, too. A plan or model that the compiler
refuses with a located message is counted, not failed; a crash, a hang, exit 70, a difference and a failure of par-run
are failures. A case that fails is printed with its seed and the output, and kept in FOLDER. The last line counts; exit
status 1 if one failed. Python's standard library only.
"""
import argparse
import math
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "Models"), str(HERE.parent / "Phases" / "Import" / "Inputs")]
from asynchronous import stages_of  # noqa: E402
from encode import encode  # noqa: E402
from random_graphs import Graph  # noqa: E402
from runs import Failed, Runs, largest, nudged, read_safetensors, write_safetensors  # noqa: E402


MESHES = [{}, {"dp": 2}, {"tp": 2}, {"pp": 2}, {"pp": 2}, {"dp": 2, "tp": 2}, {"pp": 2, "dp": 2}, {"pp": 2, "tp": 2},
          {"pp": 3},
          {"dp": 4}, {"tp": 3}, {"tp": 2, "pp": 2}]
STAGES = [{}, {"dp": 2}, {"dp": 2}, {"tp": 2}, {"dp": 2, "tp": 2}, {"tp": 2, "dp": 2}, {"dp": 4}, {"tp": 3}]
KINDS = {"chunks": "several stages a rank, or backward in two parts", "carry": "a state is handed on from call to call",
         "behind": "schedules that update between batches", "meshes": "stages with meshes of their own"}
# At 0.05 delay made one model in some thousands grow until its loss was no number.
BEHIND_RATE, FLUSH = 0.02, 4


def flow(mapping):
    return "{" + ", ".join(f"{key}: {value}" for key, value in mapping.items()) + "}"


class Case:
    """A model, its data, a plan and the plan of one rank that computes the same."""

    def __init__(self, seed, kind="", mixed=False):
        self.draws = random.Random(f"{seed} {kind or 'mixed'}")  # of what is newer: known seeds keep their plans
        if mixed:
            kind = self.draws.choice(["", *KINDS])
        self.seed, self.choose, self.kind, self.mixed = seed, random.Random(seed), kind, mixed
        choose, carries = self.choose, kind == "carry"
        self.graph = graph = Graph(choose, carries)
        self.trains = choose.random() < 0.6 and not carries or kind == "behind"
        logits = graph.build()
        self.carried = graph.carried_outputs() if carries else {}
        extra = graph.more_outputs(logits)
        if carries:  # results of several calls stand one behind the other where the batch is dim 0
            extra = [output for output in extra
                     if f"[{graph.length},{'batch' if graph.symbolic else graph.batch}" not in output[1]]
        train = []
        if not self.trains:
            graph.add_outputs(choose.sample(extra, choose.randint(1, 4)))
            for value, name in self.carried.items():
                batch = [f"{'batch' if graph.symbolic else graph.batch}"] if name == "state" else []
                graph.add_outputs([(value, f"f32[{','.join(batch + list(map(str, graph.inputs[name][1])))}]")])
        elif choose.random() < 0.5:
            graph.add_outputs([extra[0]] + choose.sample(extra[1:], choose.randint(0, 2)) if choose.random() < 0.3
                              else [extra[0]])
            train.append(f"loss: {{kind: cross_entropy, output: {logits}}}")
            graph.inputs["labels"] = ("i64", [graph.length], 0, graph.classes, True)
            # A scalar float beside the logits would be a loss of the model's own.
            if any(text == "f32[]" for value, text in extra if value in graph.outputs):
                train = [f"loss: {next(value for value, text in extra if value in graph.outputs and text == 'f32[]')}"]
                del graph.inputs["labels"]
        else:
            labels = graph.input("labels", "i64", graph.length, most=graph.classes)
            scores = graph.emit("Transpose", logits, attributes="perm=[0,2,1]")
            loss = graph.emit("SoftmaxCrossEntropyLoss", scores, labels)
            graph.add_outputs([(loss, "f32[]")] + choose.sample(extra, choose.randint(0, 2)))
            train.append(f"loss: {loss}")
        self.model = encode(graph.lines)
        self.mesh = choose.choice(MESHES)
        self.draw_ranks()
        ways = self.mesh.get("dp", 1)
        self.microbatches = choose.choice([m for m in (1, 1, 2, 4) if graph.batch % (m * ways) == 0] or [1])
        self.optimizer = choose.choice(["sgd", "sgd", "momentum", "adamw"])
        if kind == "behind":
            self.optimizer = "sgd"
            self.schedule = self.draws.choice(["pipedream", "pipedream, vertical_sync: true", "pipedream-2bw"])
            self.microbatches = 1 if self.schedule != "pipedream-2bw" else 4 if self.mesh["pp"] == 3 else 2
        if self.trains:
            rate = choose.choice(["1e-2", "1e-3"])
            train.append(f"optimizer: {{kind: {self.optimizer}, lr: {BEHIND_RATE if kind == 'behind' else rate}}}")
            if choose.random() < 0.2 and kind != "behind":
                train.append("clip: 0.5")
            if choose.random() < 0.2:
                train.append("freeze: [" + ", ".join(f'"^{name}"' for name, _ in choose.sample(graph.parameters, 1))
                             + "]")
        tail = [f"train: {{{', '.join(train)}}}"] if self.trains else []
        # A dim as large as the batch is taken for it unless the plan says otherwise.
        alike = [name for name, (_, shape, _, _, batched) in graph.inputs.items()
                 if not batched and shape[:1] == [graph.batch]]
        if alike:
            tail.append(f"inputs: {{{', '.join(f'{name}: {{batch: none}}' for name in alike)}}}")
        self.fed = f"batch: {{size: {graph.batch}, microbatches: 1}}\n"  # the same without a carried state
        self.fed += "\n".join(tail)
        if carries:
            tail.append(f"carry: {flow(self.carried)}")
        self.one = "\n".join([f"batch: {{size: {graph.batch}, microbatches: 1}}", *tail]) + "\n"
        if kind == "behind":  # a step takes the gradient away
            self.one = self.one.replace(f"lr: {BEHIND_RATE}", "lr: 1.0")
        self.plan = "\n".join(self.lines_of_plan() + tail) + "\n"

    def draw_ranks(self):
        """Meshes of the newer kinds."""
        self.stages = []
        if self.kind == "behind":
            self.mesh = self.draws.choice([mesh for mesh in MESHES if "pp" in mesh])
        if self.kind == "meshes":
            while not any(self.stages) or sum(math.prod(mesh.values()) for mesh in self.stages) > 8:
                self.stages = [self.draws.choice(STAGES) for _ in range(self.draws.choice([2, 2, 3]))]
            axes = dict.fromkeys(axis for stage in self.stages for axis in stage)
            self.mesh = {axis: math.lcm(*(stage.get(axis, 1) for stage in self.stages)) for axis in axes}

    def spread_and_chunks(self, collectives):
        """Zero and chunks of collectives; and over which of the two a stage's replicas take microbatches."""
        words = [word for word in [collectives[1:-1]] if word]
        chunks = self.draws.choice(["", "decompose: auto", "decompose: 2", "decompose: 4"])
        lines = [f"collectives: {{{', '.join(words + [chunks] * bool(chunks))}}}"]
        if self.trains and "dp" in self.mesh and self.draws.random() < 0.6:
            lines.append(f"zero: {{level: {self.draws.choice([1, 2, 3, 3])}, min_size: 0}}")
        return lines

    def behind(self, stages):
        """Staleness of each of so many stages, in updates."""
        if self.schedule == "pipedream-2bw":
            return [1] * stages
        return [stages - 1 - (stage if self.schedule == "pipedream" else 0) for stage in range(stages)]

    def lines_of_plan(self):
        choose, mesh = self.choose, self.mesh
        lines = [*([] if self.stages else [f"mesh: {flow(mesh)}"]),
                 f"batch: {{size: {self.graph.batch}, microbatches: {self.microbatches}}}",
                 f"recompute: {choose.choice(['none', 'none', 'full'])}"]
        collectives = choose.choice(["{bucket: 0}", "{overlap: false}", "{}"])
        lines += self.spread_and_chunks(collectives) if self.mixed else [f"collectives: {collectives}"]
        if self.stages:
            turns = ", replicas: round_robin" if self.trains and self.draws.random() < 0.3 else ""
            schedule = f", schedule: {self.draws.choice(['1f1b', 'gpipe', 'zb-h1'])}" if self.trains else ""
            lines.append(f"pipeline: {{meshes: [{', '.join(map(flow, self.stages))}], cuts: auto{schedule}{turns}}}")
        if "pp" in mesh:
            cuts = "auto"
            if choose.random() < 0.5:
                starts = sorted(choose.sample(range(1, len(self.graph.modules)),
                                              min(mesh["pp"], len(self.graph.modules)) - 1))
                cuts = "[" + ", ".join(f'"^{self.graph.modules[at]}"' for at in starts) + "]"
            schedule = choose.choice([", schedule: 1f1b", ", schedule: gpipe"])
            if self.kind == "behind":
                schedule = f", flush_every: {FLUSH}, schedule: {self.schedule}"
            if self.kind == "chunks":
                draws = random.Random(f"{self.seed} chunks")
                name, each = draws.choice([("interleaved", 2), ("interleaved", 3), ("zb-h1", 1), ("zb-v", 2),
                                           ("auto", 2), ("auto", 1)])
                schedule, cuts = f", schedule: {name}", f"auto, stages: {each * mesh['pp']}"
            lines.append(f"pipeline: {{cuts: {cuts}{schedule if self.trains else ''}}}")
        rules = self.shards()
        return lines + (["shard:", *(f'  "{name}": {flow(rule)}' for name, rule in rules.items())] if rules else [])

    def shards(self):
        rules, axes = {}, [axis for axis in ("tp", "dp") if axis in self.mesh]
        share = self.choose.choice([0.3, 0.6, 0.9])
        for name, shape in self.graph.parameters if axes else []:
            if self.choose.random() < share:
                axis = self.choose.choice(axes[:1] * 4 + axes)
                dims = [dim for dim, size in enumerate(shape) if size >= self.mesh[axis]]
                if dims:
                    rules[f"^{name}"] = {self.choose.choice(dims): axis}
        return rules

    def write_data(self, path):
        choose = random.Random(f"{self.seed} data")
        rows = self.graph.batch * choose.choice([1, 2]) + (0 if self.trains or self.carried
                                                           else choose.choice([0, 0, 1]))
        arrays = {}
        for name, (kind, shape, least, most, batched) in self.graph.inputs.items():
            if name in self.carried.values():
                continue
            whole, size = ([rows] if batched else []) + shape, 1
            for n in whole:
                size *= n
            draw = (lambda: choose.randrange(least, most)) if kind == "i64" else (
                lambda: 1.0 if least == most else choose.uniform(least, most))
            if name.endswith("mask"):
                draw = lambda: float(choose.random() < 0.8)  # noqa: E731
            arrays[name] = (whole, [draw() for _ in range(size)])
        write_safetensors(path, arrays)
        self.arrays, self.calls = arrays, rows // self.graph.batch

    def arrays_of(self, call):
        """The data of one call."""
        arrays, graph = {}, self.graph
        for name, (shape, numbers) in self.arrays.items():
            each = len(numbers) // shape[0] * graph.batch if graph.inputs[name][4] else len(numbers)
            begin = call * each if graph.inputs[name][4] else 0
            arrays[name] = ([graph.batch] * graph.inputs[name][4] + graph.inputs[name][1], numbers[begin:begin + each])
        return arrays


class Difference(Exception):
    """Results of one rank and of the plan's ranks differ."""


def farthest(losses, others):
    """The largest distance, relative above 1; NaN stays."""
    return largest(abs(a - b) / max(1, abs(a)) for a, b in zip(losses, others))


def near(losses, found, bound):
    if len(losses) != len(found) or not farthest(losses, found) <= bound:
        raise Difference(f"losses {losses} and {found}, bound {bound:.3g}")


def apart(whole, part, bound, what, moved=()):
    """Arrays differ by less than the bound, relative to the largest number, or ten times the most that they were moved
    by."""
    if whole.keys() != part.keys():
        raise Difference(f"{what}: {sorted(whole)} and {sorted(part)}")
    for name, (shape, numbers) in whole.items():
        other_shape, others = part[name]
        if shape != other_shape:
            raise Difference(f"{what} {name}: {shape} and {other_shape}")
        most = largest(abs(a - b) for a, b in zip(numbers, others))
        room = bound * largest(map(abs, numbers)) + 1e-7
        room = max([room, *(10 * largest(abs(a - b) for a, b in zip(numbers, other[name][1])) for other in moved)])
        if not most <= room:
            raise Difference(f"{what} {name} differ by {most:.3g}, bound {room:.3g}")


class Play:
    def __init__(self, binaries, work, timeout, phases=False):
        self.runs, self.work, self.phases = Runs(binaries, work, timeout), work, phases
        self.data, self.model = work / "data.safetensors", work / "model.onnx"

    def outcome(self, case, plan):
        bundle = self.runs.compile(self.model, plan)
        if not case.trains:
            out = self.work / "out.safetensors"
            fed = ["--data",
                   self.data] if '"inputs":[]' not in (bundle / "manifest.json").read_text().replace("\n", "") else []
            self.runs.run(self.runs.binaries / "par-run", bundle, *fed, "--output", out)
            return [], read_safetensors(out, ("F32", "I64"))
        lines, weights = self.runs.train(bundle, self.data, 3)
        return [line["loss"] for line in lines], read_safetensors(weights)

    def hold_phases(self, case):
        plan = self.work / "plan.yaml"
        plan.write_text(case.plan)
        self.runs.run(self.runs.binaries / "par-compile", self.model, plan, "--check-phases", "-q")

    def hold_ranks(self, case):
        losses, whole = self.outcome(case, case.one)
        found, part = self.outcome(case, case.plan)
        # adamw makes steps of the learning rate of gradients that are nothing but noise.
        noise = 30 if case.trains and case.optimizer == "adamw" else 1
        near(losses, found, 2e-5 * noise)
        if noise == 1:
            apart(whole, part, 5e-5, "weights" if case.trains else "output")
        if case.carried:
            self.hold_fed(case, whole)

    def hold_behind(self, case):
        """One rank, which takes the gradient of each batch at the weights of its stages' numbers of updates ago, but
        not before the last flush, and changes the newest ones by it."""
        bundle, one = self.runs.compile(self.model, case.plan), self.runs.compile(self.model, case.one)
        lines, weights = self.runs.train(bundle, self.data, 2 * FLUSH)
        found, part = [line["loss"] for line in lines], read_safetensors(weights)
        _, initial = self.runs.train(one, self.data, 1, "--set", "lr=0.0")
        first, stages = read_safetensors(initial), stages_of(bundle)
        losses, last = self.delayed(case, one, stages, first)
        try:
            near(losses, found, 2e-5)
            apart(last, part, 5e-5, "weights")
        except Difference:
            # Staleness lets some models grow or oscillate, and roundings with them: ten times the effect of the last
            # bits of the weights, by the largest of three draws (of one model, whose loss grew from 6 to 3,200, eight
            # draws lay 20 times apart).
            draws = [self.delayed(case, one, stages, nudged(first, seed)) for seed in range(3)]
            near(losses, found, max(2e-5, *(10 * farthest(losses, others) for others, _ in draws)))
            apart(last, part, 5e-5, "weights", [moved for _, moved in draws])

    def delayed(self, case, one, stages, first):
        """Losses and last weights of one rank, from some weights on."""
        versions, losses, data = [first], [], self.work / "call.safetensors"
        behind = case.behind(case.mesh["pp"])
        for step in range(2 * FLUSH):
            versions = versions[-1:] if step % FLUSH == 0 else versions
            newest = len(versions) - 1
            mixed = {name: versions[max(0, newest - behind[stages.get(name, 0)])][name] for name in versions[-1]}
            write_safetensors(self.work / "mixed.safetensors", mixed)
            write_safetensors(data, case.arrays_of(step % case.calls))
            lines, after = self.runs.train(one, data, 1, "--weights", self.work / "mixed.safetensors")
            losses.append(lines[0]["loss"])
            after = read_safetensors(after)
            versions.append({name: (shape,
                                    tuple(w - BEHIND_RATE * (x - y)
                                          for w, x, y in zip(numbers, mixed[name][1], after[name][1])))
                             for name, (shape, numbers) in versions[-1].items()})
        return losses, versions[-1]

    def hold_fed(self, case, carried):
        """The model without `carry`, each call given by hand what the one before has handed on: with the batch once a
        call."""
        bundle, graph, data = self.runs.compile(self.model, case.fed), case.graph, self.work / "call.safetensors"
        state = {name: ([graph.batch] * graph.inputs[name][4] + graph.inputs[name][1])
                 for name in case.carried.values()}
        state = {name: (shape, [0.0] * math.prod(shape)) for name, shape in state.items()}
        calls = []
        for call in range(case.calls):
            write_safetensors(data, {**state, **case.arrays_of(call)})
            self.runs.run(self.runs.binaries / "par-run", bundle, "--data", data, "--output",
                          self.work / "out.safetensors")
            found = read_safetensors(self.work / "out.safetensors", ("F32", "I64"))
            state = {name: found.pop(value) for value, name in case.carried.items()}
            calls.append(found)
        for name, (_, numbers) in carried.items():
            each = [number for found in calls for number in found[name][1]]
            # A value that depends on no input exists once.
            whole = each if len(each) == len(numbers) else each[:len(numbers)]
            apart({name: ([], whole)}, {name: ([], numbers)}, 5e-5, "fed by hand,")

    def run(self, case):
        """"" if all is well, or the sentence with which the compiler refuses."""
        self.model.write_bytes(case.model)
        case.write_data(self.data)
        try:
            hold = self.hold_phases if self.phases else self.hold_behind if case.kind == "behind" else self.hold_ranks
            hold(case)
        except Failed as failure:
            sentence = refusal(str(failure))
            if not sentence:
                raise
            return sentence
        finally:
            while self.runs.bundles:
                shutil.rmtree(self.runs.bundles.popitem()[1], ignore_errors=True)
        return ""


def refusal(said):
    """The compiler's located sentence about the model or the plan, or nothing."""
    line = re.search(r"^\S+\.(onnx|yaml)(:\d+)*: error: .*$", said, re.M)
    fault = re.search(r"internal error|changed what the program computes|differs by|does not dominate", said)
    first = said.splitlines()[0].split()[0]
    return line[0] if line and not fault and "exit 1\n" in said and first.endswith("par-compile") else ""


def keep(folder, seed, case):
    folder.mkdir(parents=True, exist_ok=True)
    for suffix, content in (("onnx", case.model), ("yaml", case.plan.encode()), ("one.yaml", case.one.encode()),
                            ("txt", "\n".join(case.graph.lines).encode())):
        (folder / f"{seed}.{suffix}").write_bytes(content)
    case.write_data(folder / f"{seed}.safetensors")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", help="default: on the PATH",
                        default=pathlib.Path(shutil.which("par-compile") or ".").parent)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, help="goes on for so long, whatever --count says")
    parser.add_argument("--timeout", type=int, default=120, help="seconds a program may take")
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--phases", action="store_true",
                        help="the interpreter holds every phase against the one before")
    kinds = parser.add_mutually_exclusive_group()
    for kind, words in KINDS.items():
        kinds.add_argument(f"--{kind}", dest="kind", action="store_const", const=kind, default="", help=words)
    kinds.add_argument("--mixed", action="store_true", help="any of these, zero and chunks of collectives too")
    parser.add_argument("--verbose", action="store_true", help="prints what was refused")
    options = parser.parse_args()
    print(f"random-programs.py --count {options.count} --seed {options.seed}", flush=True)
    failed = refused = done = 0
    until = time.monotonic() + (options.seconds or 0)
    with tempfile.TemporaryDirectory(prefix="par-programs-") as work:
        play = Play(options.bin, pathlib.Path(work), options.timeout, options.phases)
        while time.monotonic() < until if options.seconds else done < options.count:
            seed = options.seed + done
            done += 1
            case = Case(seed, options.kind, options.mixed)
            try:
                sentence = play.run(case)
                refused += bool(sentence)
                if sentence and options.verbose:
                    print(f"seed {seed} refused: {sentence}", flush=True)
            except (Failed, Difference, subprocess.TimeoutExpired) as failure:
                failed += 1
                print(f"seed {seed} {case.kind} {flow(case.mesh)} m {case.microbatches} "
                      f"{'train' if case.trains else 'predict'}: "
                      f"FAIL {str(failure)[-1500:]}", flush=True)
                if options.keep:
                    keep(options.keep, seed, case)
    print(f"{done} programs, {refused} refused, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

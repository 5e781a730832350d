#!/usr/bin/env python3
"""A module whose weights are bf16 or f16 in the file: masters and states are f32 under every plan, exports have the
file's type, and files of either type are loaded.

    narrow-weights.py --bin build/bin

Only Python's standard library is used. Exit status 0 when everything holds.
"""
import argparse
import pathlib
import random
import shutil
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE.parent / "Phases/Import/Inputs"), str(HERE.parent / "Models")]
from encode import encode  # noqa: E402
from runs import Claims, Runs, largest, read_safetensors, types_of, write_safetensors  # noqa: E402

BATCH, STEPS = 8, 6
SHAPES = {"table.weight": (12, 4), "up.weight": (6, 4), "up.bias": (6,), "down.weight": (4, 6), "norm.weight": (4,)}
GRAPH = """
input ids i64[batch]
input y f32[batch,4]
node g Gather table.weight,ids -> g
node h Gemm g,up.weight,up.bias -> h transB=1
node t Tanh h -> t
node d Gemm t,down.weight -> d transB=1
node s Mul d,norm.weight -> s
node w Cast s -> w to=1
node e Sub w,y -> e
node q Mul e,e -> q
node r ReduceMean q -> loss keepdims=0
output loss f32[]
"""
SERVES = GRAPH.split("node e ")[0].replace("input y f32[batch,4]\n", "") + "output w f32[batch,4]\n"
ADAM = "train: {optimizer: {kind: adamw, lr: 1e-5, weight_decay: 0}}\n"
SPARSE = ADAM.replace("optimizer", "groups: {table.weight: {sparse: true}}, optimizer")
PLANS = {"dp2": "mesh: {dp: 2}\n", "mb2": "batch: {size: 8, microbatches: 2}\n",
         "tp2": "mesh: {tp: 2}\nshard: {up.weight: {0: tp}, "
         "up.bias: {0: tp}, down.weight: {1: tp}, table.weight: {0: tp}}\n",
         "pp2": "mesh: {pp: 2}\npipeline: {schedule: gpipe}\n",
         "zero3": "mesh: {dp: 2}\nzero: {level: 3, min_size: 1}\n", "offload": "offload: [params, states]\n",
         "bf16": "precision: bf16\n", "master": "precision: {compute: bf16, master: f32}\n"}


def model(kind, graph=GRAPH):
    numbers = random.Random(3)
    lines = [f"init {name} {kind}[{','.join(map(str, shape))}] = " +
             " ".join(str(numbers.randrange(-32, 33) / 32) for _ in range(numbers_in(shape)))
             for name, shape in SHAPES.items()]
    return encode(lines + graph.strip().splitlines())


def numbers_in(shape):
    count = 1
    for dim in shape:
        count *= dim
    return count


def write_inputs(work):
    for kind in ("f32", "bf16", "f16"):
        (work / f"{kind}.onnx").write_bytes(model(kind))
        (work / f"{kind}-serves.onnx").write_bytes(model(kind, SERVES))
    numbers, rows = random.Random(5), BATCH * STEPS
    ids = ([rows], [numbers.randrange(12) for _ in range(rows)])
    write_safetensors(work / "data.safetensors",
                      {"ids": ids, "y": ([rows, 4], [numbers.gauss(0, 1) for _ in range(rows * 4)])})
    write_safetensors(work / "ids.safetensors", {"ids": ids})


class Trial:
    def __init__(self, runs, claims):
        self.runs, self.claims, self.work = runs, claims, runs.work
        self.data = runs.work / "data.safetensors"

    def train(self, kind, plan, *more):
        """Losses, and the file of the save after the last step."""
        plan = plan if "batch" in plan else plan + f"batch: {BATCH}\n"
        plan = plan if "train" in plan else plan + ADAM
        bundle, folder = self.runs.compile(self.work / f"{kind}.onnx", plan), self.work / "saves"
        shutil.rmtree(folder, ignore_errors=True)
        metrics, self.weights = self.runs.train(bundle, self.data, STEPS, "--save", folder, "--save-every", "3", *more)
        self.bundle = bundle
        return [line["loss"] for line in metrics], folder / str(STEPS)

    def masters(self, save):
        """name -> numbers of a save of one rank."""
        return {name: values for name, (_, values) in read_safetensors(save / "rank0.safetensors").items()
                if name in SHAPES}

    def check_types(self, kind, save):
        kinds = types_of(save / "rank0.safetensors")
        self.claims.equal(f"{kind}: masters and states are saved as f32", set(kinds.values()), {"F32"})
        self.claims.equal(f"{kind}: states stand beside each",
                          {f"{name}.{state}" for name in SHAPES for state in "mv"} <= set(kinds), True)
        self.claims.equal(f"{kind}: exports have the file's type", set(types_of(self.weights).values()), {kind.upper()})

    def check_resume(self, kind, losses, save):
        whole = (save / "rank0.safetensors").read_bytes()
        metrics, _ = self.runs.train(self.bundle, self.data, STEPS, "--resume", save.parent / "3", "--save",
                                     self.work / f"again-{kind}")
        self.claims.equal(f"{kind}: resumed losses are the same", [line["loss"] for line in metrics], losses[3:])
        again = self.work / f"again-{kind}" / str(STEPS) / "rank0.safetensors"
        self.claims.equal(f"{kind}: resumed masters are the same", self.masters(again.parent) == self.masters(save),
                          True)
        self.claims.equal(f"{kind}: of as many bytes", len(again.read_bytes()), len(whole))

    def predicted(self, model, *more):
        bundle = self.runs.compile(model, f"batch: {BATCH}\n")
        out = self.work / "out.safetensors"
        self.runs.run(self.runs.binaries / "par-run", bundle, "--data", self.work / "ids.safetensors", "--output", out,
                      *more)
        return read_safetensors(out)["w"][1]

    def check_files(self, kind, save):
        """A bundle that predicts has weights of the file's type: masters are rounded to it, and an export holds what
        they are then."""
        serves = self.work / f"{kind}-serves.onnx"
        weights = shutil.copy(self.weights, self.work / f"{kind}-weights.safetensors")  # each training writes its own
        masters = self.predicted(serves, "--weights", save)
        self.claims.equal(f"{kind}: a save's masters predict what the export does",
                          masters == self.predicted(serves, "--weights", weights), True)
        metrics, _ = self.runs.train(self.bundle, self.data, 1, "--weights", weights)
        self.claims.equal(f"{kind}: an export begins a training", len(metrics), 1)
        exported = self.work / f"{kind}-exported.onnx"
        self.runs.run(*self.runs.command(self.bundle, self.data, 1, "--weights", save, "--set", "lr=0", "--export",
                                         exported))
        again = self.runs.compile(exported, f"batch: {BATCH}\n" + ADAM)
        metrics, _ = self.runs.train(again, self.data, 1)
        wanted, _ = self.runs.train(self.bundle, self.data, 1, "--weights", weights)
        self.claims.equal(f"{kind}: so does the model that is exported", metrics[0]["loss"], wanted[0]["loss"])

    def check(self, kind, wide, plans):
        """`wide`: the masters of the same module in f32."""
        losses, save = self.train(kind, "")
        masters = self.masters(save)
        self.check_types(kind, save)
        self.check_resume(kind, losses, save)
        _, save = self.train(kind, "")
        self.check_files(kind, save)
        # Six steps of 1e-5 are less than half a unit of bf16's last place: in bf16 nothing would move.
        off = largest(abs(a - b) for name in SHAPES for a, b in zip(masters[name], wide[name]))
        self.claims.hold(f"{kind}: masters are those of the module in f32", off, 2e-5)
        for name, plan in plans.items():
            found, _ = self.train(kind, plan)
            worst = largest(abs(a - b) / abs(b) for a, b in zip(found, losses))
            self.claims.hold(f"{kind} {name}: losses to one rank's", worst, 2e-3, unit="relative")
        one, _ = self.train(kind, SPARSE)
        found, _ = self.train(kind, SPARSE + "mesh: {dp: 2}\n")
        worst = largest(abs(a - b) / abs(b) for a, b in zip(found, one))
        self.claims.hold(f"{kind}: losses of looked-up rows alone to one rank's", worst, 2e-3, unit="relative")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", help="default: on the PATH",
                        default=pathlib.Path(shutil.which("par-compile") or ".").parent)
    options = parser.parse_args()
    claims = Claims()
    with tempfile.TemporaryDirectory(prefix="par-narrow-") as work:
        write_inputs(pathlib.Path(work))
        trial = Trial(Runs(options.bin, work), claims)
        _, save = trial.train("f32", "")
        wide = trial.masters(save)
        trial.check("bf16", wide, PLANS)
        trial.check("f16", wide, {"tp2": PLANS["tp2"]})
    claims.finish()


if __name__ == "__main__":
    main()

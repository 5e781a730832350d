#!/usr/bin/env python3
"""Trains a model of this folder under a plan and holds it against PyTorch's numbers (reference.json).

    train_reference.py --bin build/bin --model gpt2 --case pp2dp2tp2 [--optimizer sgd] [--work DIR] [--comm shm]

Compares ten losses with the float64 reference (2e-5, PyTorch's float32 run itself is that far off), norms of all
parameters (1e-5 relative, 1e-3 under adamw for biases whose gradient is zero in exact arithmetic in part), and with
--gradients one sgd step at lr 1: start minus exported weights against grads.safetensors.
Only Python's standard library is used. Exit status 0 when everything holds.
"""
import argparse
import json
import math
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent

MEGATRON = "use: [megatron]\n"
# Plans by name: the mesh and what follows from it; the batch is the model's own.
CASES = {
    "one": "batch: {microbatches: 1}\n",
    "one-m8": "batch: {microbatches: 8}\n",
    "dp2": "mesh: {dp: 2}\n",
    "dp8": "mesh: {dp: 8}\n",
    "tp2": MEGATRON + "mesh: {tp: 2}\n",
    "tp4": MEGATRON + "mesh: {tp: 4}\n",
    "pp2": "mesh: {pp: 2}\nbatch: {microbatches: 4}\npipeline: {cuts: {h.*: even}}\n",
    "pp4-gpipe": "mesh: {pp: 4}\nbatch: {microbatches: 8}\npipeline: {schedule: gpipe, cuts: {h.*: even}}\n",
    "pp4-1f1b": "mesh: {pp: 4}\nbatch: {microbatches: 8}\npipeline: {schedule: 1f1b, cuts: {h.*: even}}\n",
    "pp4-auto": "mesh: {pp: 4}\nbatch: {microbatches: 8}\npipeline: {schedule: 1f1b, cuts: auto}\n",
    "pp2dp2tp2": MEGATRON + "mesh: {pp: 2, dp: 2, tp: 2}\nbatch: {microbatches: 4}\n"
                 "pipeline: {schedule: 1f1b, cuts: {h.*: even}}\nrecompute: none\n",
    "pp2dp2tp2-full": MEGATRON + "mesh: {pp: 2, dp: 2, tp: 2}\nbatch: {microbatches: 4}\n"
                      "pipeline: {schedule: 1f1b, cuts: {h.*: even}}\nrecompute: full\n",
    "pp2dp2tp2-each": MEGATRON + "mesh: {pp: 2, dp: 2, tp: 2}\nbatch: {microbatches: 4}\n"
                      "pipeline: {schedule: 1f1b, cuts: {h.*: even}}\nrecompute: {each: h.*}\n",
    "tp2pp2dp2": MEGATRON + "mesh: {tp: 2, pp: 2, dp: 2}\nbatch: {microbatches: 4}\n"
                 "pipeline: {schedule: 1f1b, cuts: {h.*: even}}\nrecompute: none\n",
    "dp2tp2-seq": MEGATRON + "mesh: {dp: 2, tp: 2}\nbatch: {microbatches: 2}\nshard:\n  out(ln_1): {1: tp}\n",
    "dp2tp3-vocab": "mesh: {dp: 2, tp: 3}\nshard:\n  wte.weight: {0: tp}\n",
}


def read_safetensors(path):
    """name -> (dtype, shape, list of floats)"""
    data = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    body = data[8 + length:]
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__" or entry["dtype"] != "F32":
            continue
        begin, end = entry["data_offsets"]
        tensors[name] = (entry["shape"], struct.unpack(f"<{(end - begin) // 4}f", body[begin:end]))
    return tensors


class Trial:
    def __init__(self, options):
        self.options = options
        self.folder = HERE / options.model
        self.work = pathlib.Path(options.work or tempfile.mkdtemp(prefix="par-reference-"))
        self.work.mkdir(parents=True, exist_ok=True)
        self.reference = json.loads((self.folder / "reference.json").read_text())
        self.failures = []

    def run(self, *command):
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=self.options.timeout)
        if done.returncode:
            sys.exit(f"{' '.join(map(str, command))}\nexit {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
        return done.stdout

    def compile(self, optimizer):
        bundle = self.work / f"{self.options.case}-{optimizer['kind']}.par"
        plan = self.work / "plan.yaml"
        plan.write_text(CASES[self.options.case] + self.options.more.replace("\\n", "\n"))
        flags = [f"--set=train.optimizer={json.dumps(optimizer)}"]
        self.run(f"{self.options.bin}/par-compile", self.folder / self.options.file, plan, *flags, "-o", bundle, "-q")
        return bundle

    def train(self, bundle, steps, *more):
        command = [f"{self.options.bin}/par-run", bundle, "--data", self.folder / "data.safetensors", "--order", "sequential",
                   "--steps", steps, *more]
        if self.options.comm:
            command += ["--comm", self.options.comm]
        return self.run(*command)

    def expect(self, what, got, wanted, bound):
        if not abs(got - wanted) <= bound:
            self.failures.append(f"{what}: {got!r}, expected {wanted!r} within {bound:g}")

    def check_losses(self, name):
        run = self.reference["runs"][name]
        options = dict(run["options"])
        optimizer = {"kind": name, "lr": options["lr"]}
        if name == "momentum":
            optimizer["momentum"] = options.get("momentum", 0.9)
        if name == "adamw":
            optimizer["weight_decay"] = options.get("weight_decay", 0.01)
            optimizer["betas"] = options.get("betas", [0.9, 0.999])
            optimizer["eps"] = options.get("eps", 1e-8)
        bundle = self.compile(optimizer)
        metrics, weights = self.work / "metrics.jsonl", self.work / "weights.safetensors"
        metrics.unlink(missing_ok=True)
        self.train(bundle, 10, "--metrics", metrics, "--export", weights)
        lines = [json.loads(line) for line in metrics.read_text().splitlines()]
        losses = [line["loss"] for line in lines if "loss" in line]
        if len(losses) != 10:
            self.failures.append(f"{len(losses)} losses, expected 10")
        for step, (got, wanted) in enumerate(zip(losses, run["losses_f64"])):
            self.expect(f"{name} loss of step {step}", got, wanted, 2e-5)
        self.check_norms(name, run, read_safetensors(weights))
        worst = max(abs(got - wanted) for got, wanted in zip(losses, run["losses_f64"]))
        print(f"{self.options.case:16} {name:9} losses within {worst:.1e}", flush=True)

    def check_norms(self, name, run, weights):
        for parameter, wanted in run["param_norms_f32"].items():
            if parameter in run["unstable_norms"]:
                continue
            if parameter not in weights:
                self.failures.append(f"{parameter} is not in the export")
                continue
            norm = math.sqrt(math.fsum(x * x for x in weights[parameter][1]))
            # The key part of a fused query-key-value bias has no gradient in exact arithmetic: adamw amplifies noise.
            loose = name == "adamw" and parameter.endswith("c_attn.bias")
            self.expect(f"{name} norm of {parameter}", norm, wanted, (1e-3 if loose else 1e-5) * wanted + 1e-12)

    def check_gradients(self):
        bundle = self.compile({"kind": "sgd", "lr": 1.0})
        before, after = self.work / "before.safetensors", self.work / "after.safetensors"
        self.train(bundle, 1, "--set", "lr=0", "--export", before)
        self.train(bundle, 1, "--export", after)
        start, end = read_safetensors(before), read_safetensors(after)
        worst = 0
        for name, (_, gradient) in read_safetensors(self.folder / "grads.safetensors").items():
            largest = max(map(abs, gradient), default=0)
            weight = max(map(abs, start[name][1]), default=0)
            # The second part is the rounding of the difference of two float32 weights.
            bound = 1e-4 * largest + 1.2e-7 * weight
            difference = max((abs((a - b) - g) for a, b, g in zip(start[name][1], end[name][1], gradient)), default=0)
            worst = max(worst, difference / bound if bound else 0)
            self.expect(f"gradient of {name}", difference, 0, bound)
        print(f"{self.options.case:16} gradients within {worst:.2f} of the bound", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", required=True)
    parser.add_argument("--model", default="gpt2")
    parser.add_argument("--file", default="model.onnx")
    parser.add_argument("--case", default="one", choices=sorted(CASES))
    parser.add_argument("--optimizer", action="append", choices=["sgd", "momentum", "adamw"])
    parser.add_argument("--gradients", action="store_true")
    parser.add_argument("--comm")
    parser.add_argument("--more", default="", help="further plan text")
    parser.add_argument("--work")
    parser.add_argument("--timeout", type=int, default=300)
    options = parser.parse_args()
    trial = Trial(options)
    for optimizer in options.optimizer or []:
        trial.check_losses(optimizer)
    if options.gradients:
        trial.check_gradients()
    if not options.work:
        shutil.rmtree(trial.work)
    for failure in trial.failures[:20]:
        print(f"{options.case}: {failure}")
    sys.exit(1 if trial.failures else 0)


if __name__ == "__main__":
    main()

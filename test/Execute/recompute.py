#!/usr/bin/env python3
"""Trains a small transformer under every mode of `recompute`: losses and weights are those of `none`, bit for bit, and
the peak is below it where the mode says so.

    recompute.py [--bin FOLDER] [--model NAME=model.onnx,data.safetensors,LAYERS]...

LAYERS is a pattern of the model's repeated modules. The last line counts claims.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "Models"), str(HERE)]
from dropout import BATCH, Model, write_tokens  # noqa: E402
from runs import Claims, Runs, largest  # noqa: E402

STEPS = 3
SHARDS = "shard:\n  q.weight: {1: tp}\n  up.weight: {1: tp}\n  down.weight: {0: tp}\n"
MESHES = {
    "one": "batch: {size: %d, microbatches: 1}\n",
    "dp2": "mesh: {dp: 2}\nbatch: {size: %d, microbatches: 2}\n",
    "zero3": "mesh: {dp: 2}\nbatch: {size: %d, microbatches: 2}\nzero: {level: 3, min_size: 0}\n",
    "tp2": "mesh: {tp: 2}\nbatch: {size: %d, microbatches: 1}\n" + SHARDS,
    "bf16": "batch: {size: %d, microbatches: 2}\nprecision: bf16\n",
    "pp2": "mesh: {pp: 2}\nbatch: {size: %d, microbatches: 4}\npipeline: {cuts: {LAYERS: even}}\n",
    "interleaved": "mesh: {pp: 2}\nbatch: {size: %d, microbatches: 4}\n"
                   "pipeline: {stages: 4, schedule: interleaved, cuts: {LAYERS: even}}\n",
    "zb-h1": "mesh: {pp: 2}\nbatch: {size: %d, microbatches: 4}\npipeline: {schedule: zb-h1, cuts: {LAYERS: even}}\n",
}
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
ROW = re.compile(r"^  stages? \S+ \(.*?((?: +[\d.]+ (?:B|KiB|MiB|GiB)){6})", re.MULTILINE)


def peaks(said):
    """The peak of each role, as the summary prints it."""
    found = []
    for row in ROW.findall(said):
        number, unit = re.findall(r"([\d.]+) (B|KiB|MiB|GiB)", row)[-1]
        found.append(float(number) * UNITS[unit])
    return found


class Trial:
    def __init__(self, runs, claims, name, model, data, layers, batch):
        self.runs, self.claims, self.name, self.model, self.data = runs, claims, name, model, data
        self.layers, self.batch, self.trained = layers, batch, {}

    def plan(self, mesh, recompute):
        text = (MESHES[mesh] % self.batch).replace("LAYERS", self.layers)
        return ("train: {loss: cross_entropy, optimizer: {kind: adamw, lr: 1e-2}}\n" + text +
                f"recompute: {recompute}\n")

    def train(self, mesh, recompute):
        """Text of the summary, losses, the bytes of the weights."""
        if (mesh, recompute) not in self.trained:
            file, bundle = self.runs.work / "plan.yaml", self.runs.work / "bundle.par"
            file.write_text(self.plan(mesh, recompute))
            said = self.runs.run(self.runs.binaries / "par-compile", self.model, file, "-o", bundle)
            metrics, weights = self.runs.train(bundle, self.data, STEPS)
            self.trained[mesh, recompute] = said, [line["loss"] for line in metrics], weights.read_bytes()
        return self.trained[mesh, recompute]

    def modes(self, mesh, limit):
        """Mode -> whether it lowers the peak."""
        modes = {"full": True, f"{{each: [{self.layers}]}}": True, f"{{memory: {limit >> 10}KiB}}": True}
        if mesh in ("one", "pp2"):
            modes |= {"selective": False, f"{{each: {self.layers}}}": True, "{values: op(Gelu)}": False,
                      "{keep: [op(Add)]}": False, "{keep: op(MatMul)}": False}
        return modes

    def check(self, mesh):
        none = self.train(mesh, "none")
        peak, least = max(peaks(none[0])), max(peaks(self.train(mesh, "full")[0]))
        limit = int((peak + least) / 2)
        self.claims.hold(f"{self.name} {mesh}: bytes of full to none's", least, peak * 0.98)
        for mode, isLess in self.modes(mesh, limit).items():
            said, losses, weights = self.train(mesh, mode)
            title = f"{self.name} {mesh} {mode}"
            self.claims.equal(f"{title}: losses bit for bit", losses == none[1], True)
            self.claims.equal(f"{title}: weights bit for bit", weights == none[2], True)
            if isLess:
                self.claims.hold(f"{title}: peak to none's", max(peaks(said)), peak - 1)
            if "memory" in mode:
                self.claims.hold(f"{title}: peak to the limit", max(peaks(said)), limit)
                self.claims.equal(f"{title}: is explained", "recompute memory: stage" in said, True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bin", default="")
    parser.add_argument("--model", action="append", default=[])
    parser.add_argument("--mesh", action="append", choices=MESHES)
    options = parser.parse_args()
    binaries = options.bin or pathlib.Path(subprocess.run(["which", "par-run"], capture_output=True,
                                                          text=True).stdout).parent
    claims = Claims()
    with tempfile.TemporaryDirectory(prefix="par-recompute-") as work:
        runs, work = Runs(binaries, work), pathlib.Path(work)
        trials = []
        for text in options.model:
            name, files = text.split("=")
            model, data, layers = files.split(",")
            trials.append(Trial(runs, claims, name, pathlib.Path(model), pathlib.Path(data), layers, BATCH))
        if not trials:
            write_tokens(work / "data.safetensors")
            for name, ratio in (("plain", 0.0), ("dropout", 0.1)):
                (work / f"{name}.onnx").write_bytes(Model(ratio, layers=4).build())
                trials.append(Trial(runs, claims, name, work / f"{name}.onnx", work / "data.safetensors", "h.*", BATCH))
        for trial in trials:
            for mesh in options.mesh or MESHES:
                trial.check(mesh)
    claims.finish()


if __name__ == "__main__":
    main()

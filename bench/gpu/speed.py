"""Models at the size that people train: a step of Par beside one of PyTorch, and beside what Par predicted."""
import array
import gzip
import json
import os
import pathlib
import random
import re
import statistics
import struct
import subprocess
import sys

from benchmark import Memory
from report import Broken, NotPossible

STEPS, WARM_UP = 16, 6
PLAN = ("batch: {microbatches: 1}\nprecision: bf16\n"
        "train: {optimizer: {kind: adamw, lr: 1e-4, betas: [0.9, 0.95], weight_decay: 0.1}}\n")


def collect(folder, build, models):
    """Bundles of the models that torch_models.py exported, and what their inputs are."""
    compiler = build / "bin" / "par-compile"
    for packed in sorted(models.glob("*.onnx.gz")):
        name = packed.name.removesuffix(".onnx.gz")
        to = folder.path / "speed" / name
        to.mkdir(parents=True)
        model = to / "model.onnx"
        model.write_bytes(gzip.decompress(packed.read_bytes()))
        said = subprocess.run([compiler, model, "--list=inputs"], capture_output=True, text=True, check=True).stdout
        listed = re.findall(r"^  (\S+)  (\w+)\[([\d, ]+)\]", said.split("\noutputs")[0], re.M)
        (to / "inputs.json").write_text(json.dumps([[name, kind, list(map(int, shape.split(",")))]
                                                    for name, kind, shape in listed]) + "\n")
        entry = {"model": name, "case": "speed", "optimizer": "adamw", "precision": "bf16", "ranks": 1}
        folder.compile(compiler, model, PLAN, entry)
        model.unlink()


def write_data(path, inputs):
    """Two batches. Labels are tokens below 30,000, or classes below 1,000 where samples are images; numbers repeat
    after a million: it is time that is asked for."""
    draw, header, parts, end = random.Random(0), {}, [], 0
    images = any(kind != "i64" for _, kind, _ in inputs)
    for name, kind, (batch, *shape) in inputs:
        count = 2 * batch
        for size in shape:
            count *= size
        some = min(count, 1 << 20)
        block = array.array("q",
                            (draw.randrange(1000 if images else 30000) for _ in range(some))) if kind == "i64" else \
            array.array("f", (draw.gauss(0, 1) for _ in range(some)))
        body = (block * (count // some + 1))[:count].tobytes()
        header[name] = {"dtype": "I64" if kind == "i64" else "F32", "shape": [2 * batch, *shape],
                        "data_offsets": [end, end + len(body)]}
        parts.append(body)
        end += len(body)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(parts))


def run_par(machine, step, bundle):
    path, metrics = machine.folder / bundle["path"], machine.work / "metrics.jsonl"
    data = machine.work / "speed.safetensors"
    write_data(data, json.loads(path.with_name("inputs.json").read_text()))
    metrics.unlink(missing_ok=True)
    trace = os.environ.get("PAR_GPU_TRACES")
    traced = ["--trace", f"{trace}/{bundle['model']}.json:{STEPS}-{STEPS}"] if trace else []
    with Memory(machine) as memory:
        said = machine.run(step, "par-run", path, "--init", "--data", data, "--steps", STEPS, "--metrics", metrics,
                           *traced)
    lines = [line for line in map(json.loads, metrics.read_text().splitlines()) if "loss" in line]
    if len(lines) != STEPS:
        raise Broken(f"{len(lines)} steps were made of {STEPS}")
    predicted = re.search(r"predicted ([\d.,]+)", said)
    ms = statistics.median(line["ms"] for line in lines[WARM_UP:-1])
    return {"ms": ms, "first": lines[0]["loss"], "mib": memory.used, "own_mib": lines[-1].get("peak_bytes", 0) / 2**20,
            "predicted_ms": float(predicted[1].replace(",", "")) if predicted else None}


def run_torch(machine, step, name):
    script = pathlib.Path(__file__).with_name("torch_models.py")
    with Memory(machine) as memory:
        text = machine.execute(step, [sys.executable, str(script), "train", name, str(STEPS), str(WARM_UP)], own=False)
    found = json.loads(text.splitlines()[-1])
    return {**found, "ms": statistics.median(found["ms"]), "mib": memory.used}


def speed(machine, step):
    """Larger models than the benchmark's: a step's time and memory beside torch.compile's, and the step that was
    predicted."""
    bundles = [bundle for bundle in machine.manifest["bundles"] if bundle["case"] == "speed"]
    if not bundles:
        raise NotPossible("this folder was prepared without them (--speed)")
    for bundle in bundles:
        name = bundle["model"]
        if machine.dry or not machine.cuda:
            said = step.attempt(name, machine.run, step, "par-verify", machine.folder / bundle["path"])
            if said is not None:
                step.note(f"{name}: par-verify proves the bundle", "pass", said.splitlines()[-1].strip() if said
                          else "")
            continue
        machine.need_gpu()
        par = step.attempt(f"{name}: Par", run_par, machine, step, bundle)
        torch = step.attempt(f"{name}: torch.compile", run_torch, machine, step, name)
        step.figures.setdefault("speed", {})[name] = {"par": par, "torch_compile": torch}
        if not par or not torch:
            continue
        step.figures.setdefault("table", []).append(
            f"{name:12} Par {par['ms']:8.2f} ms (predicted {par['predicted_ms'] or 0:.0f}), {par['mib']:6.0f} MiB   "
            f"torch.compile "
            f"{torch['ms']:8.2f} ms, {torch['mib']:6.0f} MiB")
        step.hold(f"{name}: first losses, Par to torch, relative", abs(par["first"] - torch["first"]) / torch["first"],
                  0.1)
        step.hold(f"{name}: steps a second, Par / torch.compile", torch["ms"] / par["ms"], 1, least=True)

"""Models at their real widths of tables and masks, without weights: what a GPU trains, against what the CPU trains."""
import gzip
import json
import pathlib
import subprocess
import sys

from report import NotPossible
from training import STRUCTURE_STEPS, far, find, title, train

TESTS = pathlib.Path(__file__).resolve().parent.parent.parent / "test" / "Models"
PLAN = ("batch: {microbatches: 1}\n"
        "train: {optimizer: {kind: sgd, lr: 0.1}, clip: 1.0e9}\n")  # a clip that never clips: it writes the norm
# Relative bounds of losses and of norms of gradients, by precision. f32 differs in the order of additions; bf16 has
# 2^-9 at each rounding, and norms of one of 13 models are sums that cancel.
BOUNDS = {"f32": (1e-4, 1e-3), "bf16": (2e-2, 1e-1)}


def collect(folder, build, only):
    """Each model of test/Models/zoo-structure: random samples, the CPU's losses and norms, bundles in f32 and bf16."""
    sys.path.append(str(TESTS))
    import structures  # of the tests, which are not carried

    for packed in sorted((TESTS / "zoo-structure").glob("*.onnx.gz")):
        name = packed.name.removesuffix(".onnx.gz")
        if only and name not in only:
            continue
        to = folder.path / "structures" / name
        to.mkdir(parents=True)
        model = to / "model.onnx"
        model.write_bytes(gzip.decompress(packed.read_bytes()))
        structures.write_data(build / "bin", model, to / "data.safetensors")
        (to / "reference.json").write_text(json.dumps(train_on_cpu(build, to)) + "\n")
        for precision in ("f32", "bf16"):
            entry = {"model": name, "case": "structure", "optimizer": "sgd", "precision": precision, "ranks": 1}
            folder.compile(build / "bin" / "par-compile", model, PLAN + f"precision: {precision}\n", entry)
        model.unlink()


def train_on_cpu(build, to):
    plan, bundle, metrics = to / "cpu.yaml", to / "cpu.par", to / "cpu.jsonl"
    plan.write_text(PLAN + "target: cpu\n")
    run = [build / "bin" / "par-run", bundle, "--init", "--data", to / "data.safetensors", "--order", "sequential",
           "--steps",
           STRUCTURE_STEPS, "--metrics", metrics, "-q"]
    subprocess.run([build / "bin" / "par-compile", "-q", to / "model.onnx", plan, "-o", bundle], check=True)
    subprocess.run(list(map(str, run)), check=True)
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    subprocess.run(["rm", "-r", bundle, plan, metrics], check=True)
    return [(line["loss"], line["grad_norm"]) for line in lines if "loss" in line]


def structures(machine, step):
    """Models at real sizes of tables and masks, in f32 and bf16, against the CPU's f32."""
    if not machine.cuda:
        raise NotPossible("these bundles are for cpu, as what they are compared with")
    for bundle in find(machine, case="structure"):
        what = f"{title(bundle)}: to the CPU's, relative,"
        done = step.attempt(what, train, machine, step, bundle, "--init", steps=STRUCTURE_STEPS)
        if not done:
            continue
        if machine.dry:
            step.note(what, "not shown", "came to its end on the stubs, which run no GPU code")
            continue
        wanted = json.loads((machine.folder / bundle["path"]).with_name("reference.json").read_text())
        found = [(line["loss"], line["grad_norm"]) for line in done[0]]
        for part, bound, i in zip(("losses", "norms"), BOUNDS[bundle["precision"]], (0, 1)):
            step.hold(f"{what} {part}", far([each[i] for each in found], [each[i] for each in wanted]), bound)

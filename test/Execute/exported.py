"""Trains what python/tests/write_references.py exported, and holds the losses against PyTorch's in float64.

    exported.py FOLDER WORK PLAN NAME...      PLAN: one (one rank), or four (two stages, two replicas, two microbatches)
"""
import gzip
import json
import pathlib
import subprocess
import sys

PLANS = {"one": {}, "four": {"mesh": {"pp": 2, "dp": 2}, "batch": {"microbatches": 2}}}
BOUND = 1e-5


def losses(model, plan, data, work):
    file, metrics = work / "plan.yaml", work / "metrics.jsonl"
    file.write_text(json.dumps(plan))
    metrics.unlink(missing_ok=True)
    for command in (["par-compile", model, file, "-o", work / "bundle.par", "-q"],
                    ["par-run", work / "bundle.par", "--data", data, "--order", "sequential", "--steps", "10",
                     "--metrics", metrics]):
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stdout + done.stderr)
    return [line["loss"] for line in map(json.loads, metrics.read_text().splitlines()) if "loss" in line]


def main():
    folder, work = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    work.mkdir(parents=True, exist_ok=True)
    references = json.loads((folder / "references.json").read_text())
    for name in sys.argv[4:]:
        wanted, model = references[name], work / f"{name}.onnx"  # a file whose weights can be mapped
        model.write_bytes(gzip.decompress((folder / f"{name}.onnx.gz").read_bytes()))
        plan = {**PLANS[sys.argv[3]], "train": {"optimizer": wanted["optimizer"]}}
        got = losses(model, plan, folder / f"{name}.safetensors", work)
        apart = max(abs(a - b) / max(1, abs(b)) for a, b in zip(got, wanted["losses"], strict=True))
        print(f"{name}, {sys.argv[3]}: {'equal' if apart <= BOUND else f'{apart:.1e} apart, bound {BOUND:.0e}'}",
              flush=True)


main()

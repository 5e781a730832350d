"""found_plans.py [--ranks 4] [--steps 5] [--bin BIN] MODEL-FOLDER...: the plan that `--auto` finds for a machine of
h100-sxm is proved, and trains on this host's ranks as one rank does: each loss differs by 2e-5 of it at most, which is
the order of additions in f32. A folder has model.onnx and data.safetensors. Prints a line a model, and
`all N models: ...`."""
import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

WITHIN = 2e-5  # as of test/Models/distributed.py
TRAIN = "train={optimizer: {kind: sgd, lr: 0.05}}"
# The balance loss of its experts is a product of means over the whole batch, which microbatches do not know.
WHOLE_BATCH = {"moe"}


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\nexit {done.returncode}\n{done.stderr}")
    return done.stdout


def losses_of(options, bundle, folder, metrics):
    run(options.bin / "par-run", bundle, "--data", folder / "data.safetensors", "--order", "sequential", "--steps",
        options.steps, "--metrics", metrics, "-q")
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    return [line["loss"] for line in lines if "loss" in line]


def compare(options, folder, work):
    """The plan, its proof, and the largest difference of a loss, of that of one rank."""
    model, found = folder / "model.onnx", work / f"{folder.name}.yaml"
    compile = [options.bin / "par-compile", model]
    one = ["--set=batch.microbatches=1"] if folder.name in WHOLE_BATCH else []
    said = run(*compile, *one, "--set", TRAIN, "--set=target=h100-sxm", "--auto", "-n", options.ranks, "--check",
               f"--write-plan={found}")
    bundles = {"found": [found, "--set=target=null"], "one": [*one, "--set", TRAIN]}
    for name, flags in bundles.items():
        run(*compile, *flags, "-q", "-o", work / f"{folder.name}-{name}.par")
    losses = [losses_of(options, work / f"{folder.name}-{name}.par", folder, work / f"{folder.name}-{name}.jsonl")
              for name in bundles]
    assert len(losses[0]) == len(losses[1]) == options.steps, f"{folder.name}: {losses}"
    plan = re.search(r"^best +(.*): step", said, re.M).group(1)
    proof = re.search(r"^proved +.*", said, re.M)
    # A NaN is no difference to max.
    differences = [abs(a - b) / abs(b) for a, b in zip(*losses)]
    worst = max(differences) if all(number == number for number in differences) else float("inf")
    return plan, proof, worst


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--bin", type=pathlib.Path, help="default: on the PATH",
                        default=pathlib.Path(shutil.which("par-compile") or ".").parent)
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    faults = []
    with tempfile.TemporaryDirectory() as work:
        for folder in options.folders:
            plan, proof, worst = compare(options, folder, pathlib.Path(work))
            print(f"{folder.name}: {plan}: {'proved' if proof else 'NOT PROVED'}, losses differ by {worst:.1e}",
                  flush=True)
            if not proof or not worst <= WITHIN:
                faults.append(folder.name)
    print(f"all {len(options.folders)} models: " + (f"other than one rank: {', '.join(faults)}" if faults else
                                                    "proved, and as one rank"))
    return bool(faults)


sys.exit(main())

"""Plans as annotations and back: the plan of an annotated model gives the same annotations, byte for byte.

    round_trip_devices.py MODEL.onnx STEP.yaml [KEY=VALUE ...]  (NAME: KEY=VALUE ... --next NAME: ...)

STEP.yaml is of the step: data, training, sizes. KEY=VALUE are what distributes it, which the second compilation takes
from the model only. Prints a line a distribution: annotations, and the files' comparisons.
"""
import subprocess
import sys

from mutate_devices import Model


def run(*command):
    done = subprocess.run(["par-compile", *command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def plain(file):
    """A model without its annotations."""
    model = Model(open(file, "rb").read())
    model.configurations, model.ir = [], 0
    for node in model.nodes:
        node.placed = []
    return model.data()


def accepts(file):
    """Whether onnx's own checker takes the file; "-" where there is no onnx."""
    try:
        import onnx
    except ImportError:
        return "-"
    onnx.checker.check_model(file)
    return "takes it"


def main():
    original, step, *rest = sys.argv[1:]
    for line in " ".join(rest).split(" --next "):
        name, _, settings = line.partition(": ")
        sets = [part for setting in settings.split("; ") for part in ("--set", setting)]
        run(original, step, *sets, "--emit=onnx", "-o", "first.onnx", "-q")
        said = run("first.onnx", "--check-onnx-devices").strip()
        run("first.onnx", step, "--onnx-sharding", "--write-plan=first.yaml", "--emit=onnx", "-o", "second.onnx", "-q")
        first, second = open("first.onnx", "rb").read(), open("second.onnx", "rb").read()
        same = "the same" if first == second else "OTHERS"
        rest_same = "the same" if plain("first.onnx") == plain(original) else "ANOTHER"
        print(f"{name}: {said}; read again {same}; the rest of the file {rest_same}; onnx {accepts('first.onnx')}")


if __name__ == "__main__":
    main()

"""shardings.py [--ranks N] [--within PERCENT] [--rename OLD=NEW,...] PAR-COMPILE MODEL... -- FLAGS...: the rules that
`--auto` finds for a tensor axis of N ranks are predicted to take no longer than `use: [megatron]`, and `megatron-sp`
where the search takes the sequence too. --rename writes the model with other names, as long as the old ones, which
no recipe knows: the step stays that of the model itself. Prints a line a model and `all N models: ...`."""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile


def step_of(command):
    """ns, or the refusal."""
    run = subprocess.run([*command, "--check", "--json"], capture_output=True, text=True)
    if run.returncode not in (0, 1):
        raise SystemExit(f"{command}: exit {run.returncode}\n{run.stderr}")
    return json.loads(run.stdout)["prediction"]["step_ns"] if run.returncode == 0 else run.stderr.split("\n")[0]


def rename(model, names, folder):
    data = pathlib.Path(model).read_bytes()
    for pair in names.split(","):
        old, new = pair.encode().split(b"=")
        assert len(old) == len(new) and old in data, f"{pair}: not of one length, or not in {model}"
        data = data.replace(old, new)
    path = pathlib.Path(folder) / "renamed.onnx"
    path.write_bytes(data)
    return str(path)


def compare(compile, model, flags, options, folder):
    """A line, and by how many percent the found rules are slower."""
    command = [compile, model, *flags, "--set", f"mesh={{tp: {options.ranks}}}"]
    searched = [compile, rename(model, options.rename, folder), *command[2:]] if options.rename else command
    found = step_of([*searched, "--auto", "-n", str(options.ranks)])
    known = {recipe: step_of([*command, "--set", f"use=[{recipe}]"]) for recipe in ("megatron", "megatron-sp")}
    steps = [step for step in known.values() if isinstance(step, int)]
    name = pathlib.Path(model).parent.name
    if not isinstance(found, int):
        return f"{name}: nothing found: {found}", 100
    if not steps:
        return f"{name}: found {found} ns, no recipe knows it", 0
    return (f"{name}: found {found} ns, " + ", ".join(f"{recipe} {step} ns" for recipe, step in known.items()
                                                      if isinstance(step, int)),
            100 * (found - min(steps)) / min(steps))


def main():
    sys.argv, flags = sys.argv[:sys.argv.index("--")], sys.argv[sys.argv.index("--") + 1:]
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--within", type=float, default=0)
    parser.add_argument("--rename")
    parser.add_argument("compile")
    parser.add_argument("models", nargs="+")
    options = parser.parse_args()
    slower = []
    with tempfile.TemporaryDirectory() as folder:
        for model in options.models:
            line, percent = compare(options.compile, model, flags, options, folder)
            print(line, f"({percent:+.1f} %)")
            if percent > options.within:
                slower.append(model)
    print(f"all {len(options.models)} models: " + (f"slower {', '.join(slower)}" if slower else "none is slower"))
    return bool(slower)


sys.exit(main())

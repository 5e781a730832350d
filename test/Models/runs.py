"""Compiles models of this folder and runs their bundles, for the scripts beside it. Python's standard library only."""
import argparse
import contextlib
import hashlib
import json
import math
import os
import pathlib
import random
import shutil
import struct
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


def plan_parser(doc, plans):
    """A parser of the flags of scripts that go through plans: where the tools are, and which plans."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", help="default: on the PATH",
                        default=pathlib.Path(shutil.which("par-compile") or ".").parent)
    parser.add_argument("--plan", action="append", choices=sorted(plans), help="default: all")
    return parser


CODES = {"F32": "f", "F64": "d", "I64": "q"}
FLOATS = ("F32", "F64")


def split_safetensors(path):
    """name -> an array's entry in the header, and its bytes"""
    data = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    return header, data[8 + length:]


def read_safetensors(path, dtypes=("F32",)):
    """name -> (shape, numbers) of the arrays of these types"""
    header, body = split_safetensors(path)
    tensors = {}
    for name, entry in header.items():
        if entry["dtype"] not in dtypes:
            continue
        begin, end = entry["data_offsets"]
        code = CODES[entry["dtype"]]
        tensors[name] = (entry["shape"],
                         struct.unpack(f"<{(end - begin) // struct.calcsize(code)}{code}", body[begin:end]))
    return tensors


def nudged(arrays, seed):
    """The last bit of f32 of every number another, or not."""
    choose = random.Random(seed)
    return {name: (shape, tuple(x * (1 + choose.choice((-1, 0, 1)) * 2**-24) for x in numbers))
            for name, (shape, numbers) in arrays.items()}


def types_of(path):
    """name -> type of a safetensors file's arrays"""
    return {name: entry["dtype"] for name, entry in split_safetensors(path)[0].items()}


def write_safetensors(path, arrays, floats="F32"):
    """name -> (shape, numbers): integers as int64, others as float32 or as `floats` says, for all or by name"""
    header, body = {}, b""
    for name, (shape, numbers) in arrays.items():
        dtype = "I64" if numbers and isinstance(numbers[0],
                                                int) else floats[name] if isinstance(floats, dict) else floats
        data = struct.pack(f"<{len(numbers)}{CODES[dtype]}", *numbers)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + body)


def largest(numbers):
    """Their maximum, 0 of none; a NaN among them is not lost, as it is to max."""
    numbers = list(numbers)
    return math.nan if any(map(math.isnan, numbers)) else max(numbers, default=0.0)


class Failed(SystemExit):
    """A tool's exit status was not 0; unless it is caught, the script ends with what the tool said."""


class Claims:
    """Figures held against their bounds, a line each. A claim names what was run: "gpt2 dp8 sgd losses"."""

    def __init__(self):
        self.failures, self.count = [], 0

    def hold(self, claim, figure, bound=0.0, least=False, unit=""):
        """`figure` is at most `bound`, or at least with `least`; a NaN fails."""
        held = figure >= bound if least else figure <= bound
        self.count += 1
        relation = ">=" if least else "<="
        line = f"{claim:62} {figure:>9.4g} {relation} {f'{bound:.4g} {unit}':20}"
        if not held:
            self.failures.append(line)
        print(f"{line} {'pass' if held else 'FAIL'}", flush=True)
        return held

    @contextlib.contextmanager
    def watch(self, claim):
        """A tool that fails inside is a failed claim, with the tool's output."""
        try:
            yield
        except (Failed, subprocess.TimeoutExpired) as failure:
            self.count += 1
            self.failures.append(f"{claim}: {failure}")
            print(f"{claim}: {failure}   FAIL", flush=True)

    def equal(self, claim, got, wanted):
        """Both are short enough to print."""
        self.count += 1
        line = f"{claim:62} {got} == {wanted}"
        if got != wanted:
            self.failures.append(line)
        print(f"{line}   {'pass' if got == wanted else 'FAIL'}", flush=True)
        return got == wanted

    def finish(self):
        """Says again what failed, and how many claims there were; ends the script, with status 1 if any failed."""
        print("\n".join(f"FAIL {line}" for line in self.failures))
        print(f"{self.count} claims, {len(self.failures)} failed")
        sys.exit(1 if self.failures else 0)


class Runs:
    """The tools of a build, and what they have made in `work`: one bundle a plan, however often it is asked for."""

    def __init__(self, binaries, work, timeout=300):
        if os.environ.get("PAR_DEVICE", "").startswith("sim"):
            timeout *= 12  # a simulation plays each step many times; lit ends what takes an hour
        self.binaries, self.work, self.timeout = pathlib.Path(binaries).resolve(), pathlib.Path(work), timeout
        self.bundles = {}

    def run(self, *command, cwd=None):
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=self.timeout,
                              cwd=cwd)
        if done.returncode:
            said = f"{done.stdout[-2000:]}{done.stderr[-4000:]}"
            raise Failed(f"{' '.join(map(str, command))}\nexit {done.returncode}\n{said}")
        return done.stdout

    def compile(self, model, plan, *flags):
        key = hashlib.sha256(repr((str(model), plan, flags)).encode()).hexdigest()[:16]
        if key not in self.bundles:
            bundle, file = self.work / f"{key}.par", self.work / f"{key}.yaml"
            file.write_text(plan)
            self.run(self.binaries / "par-compile", model, file, "-o", bundle, "-q", *flags)
            self.bundles[key] = bundle
        return self.bundles[key]

    def command(self, bundle, data, steps, *more):
        return [self.binaries / "par-run", bundle, "--data", data, "--order", "sequential", "--steps", str(steps),
                *more]

    def train(self, bundle, data, steps, *more):
        """Metrics, one a step, and the exported weights' path."""
        metrics, weights = self.work / "metrics.jsonl", self.work / "weights.safetensors"
        metrics.unlink(missing_ok=True)
        self.run(*self.command(bundle, data, steps, "--metrics", metrics, "--export", weights, *more))
        lines = [json.loads(line) for line in metrics.read_text().splitlines()]
        return [line for line in lines if "loss" in line], weights

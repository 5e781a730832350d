"""Par's part of the zoo: compiles an exported model, runs it, and measures the run. Python's standard library only."""
import json
import pathlib
import re
import struct
import subprocess
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[3] / "bench"))
from processes import cpu_seconds, tree  # noqa: E402

TIMEOUT = 900


class Stopped(Exception):
    """A tool ended with another status than 0; `sentence` is the located one of a compiler that refuses, else empty."""

    def __init__(self, status, said, compiler=False):
        self.status, self.sentence = status, refusal(status, said) if compiler else ""
        super().__init__(self.sentence or said.strip()[-400:] or f"exit {status}")


def refusal(status, said):
    """The sentence about the model by which the compiler refuses it; a crash or a fault of its own is none."""
    line = re.search(r"^\S+: error: .*$", said, re.M)
    fault = re.search(r"does not dominate|'par\.\w+' op|operand #|result #|before and after|internal error", said)
    return line[0] if line and not fault and status == 1 else ""


def call(*command):
    try:
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        raise Stopped(124, f"no end after {TIMEOUT} s: {' '.join(map(str, command))}") from None
    if done.returncode:
        said = done.stdout[-2000:] + done.stderr[-4000:]
        raise Stopped(done.returncode, said, pathlib.Path(command[0]).name == "par-compile")
    return done.stdout + done.stderr


def compile_model(binaries, folder, name, plan, *flags):
    """The bundle, and how long it took."""
    bundle, file = folder / f"{name}.par", folder / f"{name}.yaml"
    file.write_text(plan)
    begin = time.monotonic()
    call(binaries / "par-compile", folder / "model.onnx", file, "-o", bundle, "-q", *flags)
    return bundle, time.monotonic() - begin


def run_steps(binaries, folder, bundle, steps, *flags, data="data.safetensors"):
    """Metrics of each step, from the model's own weights unless `flags` say others."""
    metrics = bundle.with_suffix(".jsonl")
    metrics.unlink(missing_ok=True)
    call(*run_command(binaries, folder, bundle, steps, metrics, data), *flags)
    return read_metrics(metrics)


def run_command(binaries, folder, bundle, steps, metrics, data="data.safetensors"):
    return [binaries / "par-run", bundle, "--data", folder / data, "--order", "sequential", "--steps", steps,
            "--metrics", metrics]


def arrays_of(data):
    """Each array of a .safetensors file's bytes: its name and entry, and the begin and end of its bytes."""
    (length,) = struct.unpack("<Q", data[:8])
    for name, entry in json.loads(data[8:8 + length]).items():
        if name != "__metadata__":
            yield name, entry, *(8 + length + offset for offset in entry["data_offsets"])


def write_nudged(folder, name, of="data.safetensors", every=1):
    """A copy of `of` in which the last bit of every float, or of every second and so on, is another."""
    data = bytearray((folder / of).read_bytes())
    flip = bytes(byte ^ 1 for byte in range(256))
    for _, entry, begin, end in arrays_of(data):
        if entry["dtype"] == "F32":
            data[begin:end:4 * every] = data[begin:end:4 * every].translate(flip)
    (folder / name).write_bytes(data)


def write_samples(folder, name, step, steps, of="data.safetensors"):
    """The samples of one step of `of`, which holds those of `steps`."""
    data, header, body = (folder / of).read_bytes(), {}, b""
    for key, entry, begin, end in arrays_of(data):
        each = (end - begin) // steps
        header[key] = {"dtype": entry["dtype"], "shape": [entry["shape"][0] // steps, *entry["shape"][1:]],
                       "data_offsets": [len(body), len(body) + each]}
        body += data[begin + step * each:begin + (step + 1) * each]
    text = json.dumps(header).encode()
    (folder / name).write_bytes(struct.pack("<Q", len(text)) + text + body)


def read_metrics(path):
    return [line for line in map(json.loads, path.read_text().splitlines()) if "loss" in line]


def high_water(pids):
    """MiB that the largest of the processes held at its peak."""
    lines = (re.search(r"VmHWM:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text()) for pid in pids)
    return max((int(line[1]) for line in lines if line), default=0) / 1024


def measure(binaries, folder, bundle, steps):
    """Minimum wall and CPU time of a step after the first, and peak memory, of one rank on one thread."""
    metrics = bundle.with_suffix(".jsonl")
    metrics.unlink(missing_ok=True)
    command = [*run_command(binaries, folder, bundle, steps, metrics), "--threads", 1]
    job = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    marks, peak = [], 0.0
    while job.poll() is None:
        try:
            pids = tree(job.pid)
            if metrics.exists() and metrics.read_text().count("\n") > len(marks):
                marks.append(cpu_seconds(pids))
            peak = max(peak, high_water(pids))
        except OSError:
            pass  # a process ended between listing and reading
        time.sleep(0.01)
    if job.returncode:
        raise Stopped(job.returncode, job.stdout.read())
    lines = read_metrics(metrics)
    return {"wall_s": min(line["ms"] for line in lines[1:]) / 1e3, "peak_mib": peak,
            "cpu_s": min((after - before for before, after in zip(marks, marks[1:])), default=float("nan"))}

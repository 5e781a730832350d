"""par.run and par.predict: start the ranks of a bundle on this machine, as par-run does."""
from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from typing import Any, Dict, List, Optional

from . import logs
from .arrays import as_file
from .errors import Error
from .libraries import find
from .verify import from_text


@dataclasses.dataclass(frozen=True)
class Run:
    """Result of a run.

    metrics: one dict a step (step, loss, lr, grad_norm, ms, tokens, ...) and one an evaluation (step, eval_loss,
    samples, left_out), in their order. text: the lines that par-run printed.
    """
    metrics: List[Dict[str, Any]]
    text: str

    @property
    def losses(self) -> List[float]:
        """The loss of every step, in order."""
        return [line["loss"] for line in self.metrics if "loss" in line]


def run(bundle: Any, *, data: Any = None, normalize: Any = None, text: Any = None, tokens: Any = None,
        stride: Optional[int] = None, synthetic: bool = False, steps: Optional[int] = None,
        epochs: Optional[int] = None, evaluate: bool = False, weights: Any = None, init: bool = False,
        resume: Any = None, save: Any = None, save_every: Optional[int] = None, keep: Optional[int] = None,
        export: Any = None, max_shard: Any = None, eval_data: Any = None, eval_every: Optional[int] = None,
        order: Optional[str] = None, labels: Optional[str] = None, comm: Optional[str] = None,
        threads: Optional[int] = None, timeout: Optional[float] = None, trace: Any = None, metrics: Any = None,
        log: Optional[str] = None, set: Any = None, log_every: Optional[int] = None, dry_run: bool = False,
        quiet: bool = False, ema: bool = False, on_nan: Optional[str] = None) -> Run:
    """Trains a bundle, or evaluates it, with all its ranks on this machine; returns when they have ended.

    bundle: a Bundle or a folder. Runs the program par-run, whose flags these are (docs/plan.md 3.2,
    docs/formats.md): data: arrays named as the inputs that have the samples first, as a dict of numpy arrays or
    torch tensors (which a temporary file hands over), as a .safetensors, .npz, .npy or .pt file, as a Dataset of
    Hugging Face `datasets`, its folder or .arrow file (by pyarrow), or a list of these, in sequence; normalize:
    {"x": (means, spreads)}, of inputs whose data are pixels of u8; text: a file whose bytes are tokens; tokens: one
    of integers, "F.bin:u16" or "F.npy"; stride: tokens between the begins of two windows; synthetic: made-up data.
    steps or epochs: how long; evaluate: loss only, nothing is trained. weights: a dict of arrays, a .safetensors,
    .npz or .pt file, an index, a folder of these, a checkpoint, or a list; the default is the model that was
    compiled; init: fresh weights by train.init and the seed; resume: a checkpoint, or "auto": the newest of `save`.
    save, save_every, keep: folder of checkpoints, steps between two, how many stay. export: a .safetensors or .onnx
    file for the whole weights at the end, or a folder of files of at most max_shard ("5GB") each. eval_data,
    eval_every: evaluate on that file every so many steps. order: "shuffled" or "sequential"; labels: "next" or
    "same" (of text); comm: "auto", "inproc", "shm", "tcp", "mpi" or "nccl"; threads of a rank; timeout: seconds
    without a heartbeat; trace: a Perfetto file; metrics: a file that keeps the lines of Run.metrics, after its own
    ones if the run resumes; log: "csv:FILE", the same as a table, or "tensorboard:FOLDER", event files, written
    while it runs (pip install "par[tensorboard]"); set: {"lr": 1e-4}, also clip and seed. dry_run: load, verify,
    connect, end. log_every: steps between two lines of progress; quiet: print none. ema: export the averages of
    train.ema, or evaluate those of a checkpoint; on_nan: "stop", "skip" or "skip:N" of a bundle with train.on_nan:
    skip.

    Raises par.Error: code 1 wrong data or weights, 2 options that contradict each other, 4 a rank died, 5 the loss is
    not finite. After Ctrl-C the ranks end their step, save where `save` says so, and KeyboardInterrupt goes on.
    """
    with _scratch() as folder:
        files = {"--eval-data": as_file(eval_data, folder / "eval_data.safetensors", "eval_data")}
        flags = _flags({"--text": text, "--tokens": tokens, "--stride": stride, "--max-shard": max_shard,
                        "--steps": steps, "--epochs": epochs, "--resume": resume, "--save": save,
                        "--save-every": save_every, "--keep": keep, "--export": export, "--eval-every": eval_every,
                        "--order": order, "--labels": labels, "--comm": comm, "--threads": threads,
                        "--timeout": timeout, "--trace": trace, "--log-every": log_every, "--on-nan": on_nan, **files},
                       _inputs(data, weights, folder), {"--eval": evaluate, "--init": init, "--dry-run": dry_run,
                                                        "--synthetic": synthetic, "--ema": ema})
        flags += [f"--normalize={_pixels(name, numbers)}" for name, numbers in (normalize or {}).items()]
        flags += [f"--set={key}={value}" for key, value in (set or {}).items()]
        kind, place = logs.split(log) if log else ("", "")
        flags += [f"--log=csv:{place}"] if kind == "csv" else []
        metrics = pathlib.Path(metrics or folder / "metrics.jsonl")
        board = logs.Follower(metrics, logs.TensorBoard(place)) if kind == "tensorboard" else contextlib.nullcontext()
        before = metrics.read_text() if metrics.is_file() else ""
        with board:
            said = _start(bundle, flags if dry_run else flags + [f"--metrics={metrics}"], quiet)
        lines = metrics.read_text().removeprefix(before).splitlines() if metrics.is_file() else []
    return Run([json.loads(line) for line in lines], said)


def predict(bundle: Any, *, data: Any = None, text: Any = None, output: Any = None, weights: Any = None,
            init: bool = False, comm: Optional[str] = None, threads: Optional[int] = None,
            timeout: Optional[float] = None, quiet: bool = True, ema: bool = False) -> str:
    """Predictions for `data` of a bundle that was compiled without `train`; returns the path of `output`.

    output: a .safetensors file to write: an array for each output of the model, rows in the order of the samples. The
    other arguments are those of par.run; ema: with the averages of a checkpoint. Raises par.Error.
    """
    if output is None:
        raise Error('predict writes a file: output="scores.safetensors"', code=2)
    with _scratch() as folder:
        flags = _flags({"--text": text, "--output": output, "--comm": comm, "--threads": threads, "--timeout": timeout},
                       _inputs(data, weights, folder), {"--init": init, "--ema": ema})
        try:
            _start(bundle, flags, quiet)
        except Error as error:
            if 'no entry "predict"' not in error.message:
                raise
            raise Error(error.message, code=error.code, file=error.file, notes=[
                'this bundle trains; of the same model par.compile(model, plan, set={"train": None}, out="serve.par") '
                'predicts, '
                'with weights="ckpt/100" or what run(export=...) wrote']) from None
    return os.fspath(output)


def _pixels(name, numbers):
    """"x=0.5,0.5/0.25,0.25" of {"x": ((0.5, 0.5), (0.25, 0.25))}; one number is that of all channels."""
    def listed(values):
        return ",".join(repr(float(value)) for value in (values if hasattr(values, "__len__") else [values]))
    mean, spread = numbers
    return f"{name}={listed(mean)}/{listed(spread)}"


@contextlib.contextmanager
def _scratch():
    """A folder for the time of a run."""
    with tempfile.TemporaryDirectory(prefix="par-run-") as folder:
        yield pathlib.Path(folder)


def _inputs(data, weights, folder):
    return {"--data": as_file(data, folder / "data.safetensors", "data"),
            "--weights": as_file(weights, folder / "weights.safetensors", "weights")}


def _flags(values, lists, marks):
    flags = [f"{flag}={value}" for flag, value in values.items() if value is not None]
    for flag, value in lists.items():
        many = value if isinstance(value, (list, tuple)) else [] if value is None else [value]
        flags += [f"{flag}={os.fspath(one)}" for one in many]
    return flags + [flag for flag, wanted in marks.items() if wanted]


def _start(bundle, flags, quiet):
    """Runs par-run to its end, printing its lines as they come; returns them. Its errors are raised."""
    command = [str(find("bin/par-run")), os.fspath(bundle), *flags]
    lines = []
    plain = {name: value for name, value in os.environ.items() if name != "PAR_COLOR"}  # errors are read below
    with tempfile.TemporaryFile("w+") as errors:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=plain) as process:
            try:
                for line in process.stdout:
                    lines.append(line)
                    if not quiet:
                        print(line, end="", flush=True)
            except KeyboardInterrupt:  # the terminal has told the ranks too: they end their step and save
                process.wait()
                raise
            code = process.wait()
        errors.seek(0)
        said = errors.read()
    if code:
        raise from_text(said, code) if said.strip() else Error(f"par-run ended with code {code}", code=code)
    if said.strip() and not quiet:
        print(said, end="", file=sys.stderr)  # warnings
    return "".join(lines)

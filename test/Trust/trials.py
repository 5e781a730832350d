"""Shared parts of the trials of this folder: running a tool under a time limit, judging its end, counting, the loop."""
import argparse
import collections
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import tempfile

LIMIT = 10  # seconds within which everything ends
IDLE = 0.1  # processor seconds: a process that takes less in LIMIT seconds waits for something
FAULTS = ["crashes", "hangs", "wrong", "unnamed"]


def processor_seconds(session):
    """Processor time of the processes of a session, and of their children that have ended."""
    ticks = 0
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session:
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


class Outcome:
    """How a command ended: its exit status (None: not within the limit) and its output. On a machine that is busy with
    others the limit is one of its own processor time, as long as it computes."""

    def __init__(self, command, folder, limit=LIMIT, after=None, before=None):
        environment = {key: value for key, value in os.environ.items()
                       if key not in ("RANK", "WORLD_SIZE", "PAR_DEVICE")}
        process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT,
                                   env=environment, start_new_session=True, preexec_fn=before)
        if after:
            after(process)
        before = 0.0
        while True:
            try:
                output, _ = process.communicate(timeout=limit)
                self.status = process.returncode
                break
            except subprocess.TimeoutExpired:
                used = processor_seconds(process.pid)
            if used >= limit or used < before + IDLE:
                os.killpg(process.pid, signal.SIGKILL)
                output, _ = process.communicate()
                self.status = None
                break
            before = used  # it computes, on a machine that is busy with others
        self.text = output.decode(errors="surrogateescape")

    def crashed(self):
        """Whether it or a rank of it was ended by a signal, or it reports a fault of its own."""
        ended = self.status is not None and (self.status < 0 or self.status in (134, 135, 136, 139))
        said = any(word in self.text
                   for word in ("internal error", "by signal", "terminate called", "Assertion", "Sanitizer"))
        return ended or said


class Counts:
    """Trials and faults of one kind; each fault is printed with how to repeat it. `notes` are other counts
    to print."""

    def __init__(self, kind, arguments):
        self.kind, self.seed, self.folder = kind, arguments.seed, arguments.bin
        self.each = " --each" if getattr(arguments, "each", False) else ""
        self.trials, self.faults = 0, dict.fromkeys(FAULTS, 0)
        self.notes = collections.Counter()
        print(f"{kind}: seed {self.seed}", flush=True)

    def fault(self, which, number, title, detail):
        self.faults[which] += 1
        title, detail = (text.encode(errors="backslashreplace").decode() for text in (title, detail))
        lines = "\n".join("    " + line for line in detail.strip().splitlines()[-6:])
        print(f"  {which}: trial {number}: {title}\n{lines}\n    repeat: {self.kind}.py --count 1 --first {number} "
              f"--seed {self.seed} --bin {self.folder} --keep{self.each}", flush=True)

    def end(self):
        """The line that trust.py reads, and the exit status."""
        if self.notes:
            print("  " + ", ".join(f"{count} {note}" for note, count in sorted(self.notes.items())))
        print(json.dumps({"kind": self.kind, "trials": self.trials, **self.faults}))
        return 1 if any(self.faults.values()) else 0


class Folder:
    """A folder of the trials' own, gone with them unless it is kept."""

    def __init__(self, kind, keep):
        self.path, self.keep = pathlib.Path(tempfile.mkdtemp(prefix=f"par-{kind}-")), keep

    def __enter__(self):
        return self.path

    def __exit__(self, *_):
        if self.keep:
            print(f"kept {self.path}", file=sys.stderr)
        else:
            shutil.rmtree(self.path, ignore_errors=True)


def flags(parser, count):
    """The flags that every kind of trials has."""
    parser.add_argument("--count", type=int, default=count)
    parser.add_argument("--seed", type=int, default=1)
    found = shutil.which("par-run")
    parser.add_argument("--bin", required=not found, default=found and str(pathlib.Path(found).parent),
                        metavar="FOLDER",
                        help="where par-compile, par-run and par-verify are; default: those of the PATH")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="number of the first trial, to repeat one")
    parser.add_argument("--keep", action="store_true", help="leave the folder of the trials")
    return parser


def main(kind, count, description, begin, kinds=0):
    """The program of one kind: `begin(folder, arguments, counts)` prepares its folder and returns the function that
    runs the trial of a number. `kinds`: how many trials `--each` puts before the others; 0 if the program has
    no such flag. Returns the exit status."""
    parser = flags(argparse.ArgumentParser(description=description), count)
    if kinds:
        parser.add_argument("--each", action="store_true",
                            help=f"the first {kinds} trials are one of each sort, as short as it can be")
    arguments = parser.parse_args()
    counts = Counts(kind, arguments)
    with Folder(kind, arguments.keep) as folder:
        trial = begin(folder, arguments, counts)
        for number in range(arguments.first, arguments.first + arguments.count):
            trial(number)
            counts.trials += 1
        return counts.end()


def write_arrays(path, arrays):
    """A safetensors file; arrays: name -> (dtype, shape, bytes)."""
    header, body = {}, b""
    for name, (dtype, shape, data) in arrays.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + body)


def read_arrays(path):
    """name -> bytes of a safetensors file; None if it is none."""
    try:
        data = pathlib.Path(path).read_bytes()
        begin = 8 + int.from_bytes(data[:8], "little")
        header = json.loads(data[8:begin])
    except (OSError, ValueError):
        return None
    header.pop("__metadata__", None)
    return {name: data[begin + entry["data_offsets"][0]:begin + entry["data_offsets"][1]]
            for name, entry in header.items()}

#!/usr/bin/env python3
"""Puts something else in the place of a file that a user names and Par opens, and checks how Par reacts.

    files.py --bin build/bin [--count N] [--seed S] [--first N] [--keep]

Places: models, their data beside them (of initializers, constants and branches), plans, hardware, values of inputs, the
files of a bundle, samples, texts, weights, indexes of weights, saves, files of tuning. In their place: pipes, devices,
sockets, folders, nothing, a link to them, a part of the file, other bytes, a file that shrinks while it is read. Each
trial ends within 10 s, without a signal. It fails with the name of the changed file, or gives the result of the
unchanged file. A file that shrinks while it is read gives the result of its state before or after, and nothing between.
(A flipped bit of a weight or sample is another weight or sample: only the format of these is judged. Saves have trials
of their own.)
"""
import json
import os
import pathlib
import random
import shutil
import socket
import struct
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "Phases" / "Import" / "Inputs"))
import encode
import trials

# x @ w (a weight of the file's data), plus a constant and a branch's weight from data beside the model.
MODEL = """
input x f32[4,8]
output y f32[4,8]
absent w f32[8,8] w.bin
init yes i1[] = 1
init v f32[8,8] = {inside}
node c Constant  -> k value=f32[8,8]@k.bin
body then
absent u f32[8,8] u.bin
output z f32[4,8]
node m3 MatMul b,u -> z
end
body else
output z f32[4,8]
node m4 Identity b -> z
end
node m1 MatMul x,w -> a0
node m0 MatMul a0,v -> a1
init q i64[137,8] = {squares}
node q0 Cast q -> qf to=1
node q1 Transpose qf -> qt perm=[1,0]
node m5 MatMul a1,qt -> a2
node m6 MatMul a2,qf -> a
node m2 MatMul a,k -> b
node i If yes -> y then_branch=&then else_branch=&else
"""
# Training on text: a table of 256 rows of 8, and as many classes.
TEXT = """
input t i64[4,16]
output y f32[4,16,256]
init e f32[256,8] = {table}
init h f32[8,256] = {table}
node g Gather e,t -> a
node m MatMul a,h -> y
"""


def floats(choose, count):
    return struct.pack(f"<{count}f", *(choose.uniform(-1, 1) for _ in range(count)))


def words(choose, count):
    return " ".join(f"{choose.uniform(-1, 1):.4f}" for _ in range(count))


def prepare(folder, tools):
    """The files of all trials; a trial changes only a copy of them."""
    choose = random.Random(1)
    squares = " ".join(str(i * i % 1009) for i in range(137 * 8))
    (folder / "model.onnx").write_bytes(encode.encode(MODEL.format(inside=words(choose, 64),
                                                                   squares=squares).splitlines()[1:]))
    table = words(choose, 2048)
    (folder / "text.onnx").write_bytes(encode.encode(TEXT.format(table=table).splitlines()[1:]))
    for name in "w.bin", "k.bin", "u.bin":
        (folder / name).write_bytes(floats(choose, 64))
    (folder / "plan.yaml").write_text("{seed: 3}\n")
    (folder / "train.yaml").write_text("train: {loss: cross_entropy, optimizer: {kind: sgd, lr: 0.1}}\n")
    (folder / "hardware.yaml").write_text(HARDWARE)
    (folder / "data.txt").write_bytes(bytes(choose.randrange(97, 123) for _ in range(4096)))
    trials.write_arrays(folder / "x.safetensors", {"x": ("F32", [8, 8], floats(choose, 64))})
    trials.write_arrays(folder / "value.safetensors", {"x": ("F32", [4, 8], floats(choose, 32))})
    weights = {name: ("F32", [8, 8], floats(choose, 64)) for name in ("w", "v")}
    trials.write_arrays(folder / "all.safetensors", weights)
    for name in weights:
        trials.write_arrays(folder / f"part-{name}.safetensors", {name: weights[name]})
    index = {"metadata": {}, "weight_map": {name: f"part-{name}.safetensors" for name in weights}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    for command in ([tools / "par-compile", "model.onnx", "-o", "m.par", "-q"],
                    [tools / "par-compile", "text.onnx", "train.yaml", "-o", "t.par", "-q"],
                    [tools / "par-run", "t.par", "--init", "--text", "data.txt", "--steps", "2", "--save", "saves",
                     "-q"]):
        outcome = trials.Outcome([str(word) for word in command], folder, limit=120)
        if outcome.status != 0:
            sys.exit(f"files: {' '.join(map(str, command))} failed:\n{outcome.text}")


HARDWARE = """name: toy
peak: {f32: 100000, f64: 50000}
memory: 10000
link: 10000
latency: 1000
launch: 1000
"""

COMPILE = ["par-compile", "model.onnx", "-o", "new.par", "-q"]
MADE = "new.par/manifest.json"  # with the hashes of all files compiled from the model
PREDICT = ["par-run", "m.par", "--data", "x.safetensors", "--output", "y.safetensors"]
TRAIN = ["par-run", "t.par", "--init", "--text", "data.txt", "--steps", "3", "--export", "y.safetensors", "-q"]


class Place:
    """A file, the command that opens it, and the text `named` that an error must contain (default: the file's name)."""

    def __init__(self, file, command, named=None, result="", opaque=False, optional=False):
        self.file, self.command, self.named = file, command, named or pathlib.Path(file).name
        self.result = result      # the command's output, compared with its output without the change
        self.opaque = opaque      # other bytes of it are other values, not errors
        self.optional = optional  # the command does without it


PLACES = [
    Place("model.onnx", COMPILE, result=MADE, opaque=True),
    Place("w.bin", COMPILE, opaque=True, optional=True),
    Place("k.bin", COMPILE, result=MADE, opaque=True),
    Place("u.bin", COMPILE, result=MADE, opaque=True),
    Place("plan.yaml", COMPILE[:2] + ["plan.yaml"] + COMPILE[2:], opaque=True),
    Place("hardware.yaml", COMPILE + ["--set", "target.hardware=hardware.yaml"], opaque=True),
    Place("value.safetensors", COMPILE + ["--set", "inputs.x.value=value.safetensors"], opaque=True),
    Place("m.par/manifest.json", ["par-verify", "m.par"], opaque=True),
    Place("m.par/role-0.json", ["par-verify", "m.par"]),
    Place("m.par/manifest.json", PREDICT, result="y.safetensors", opaque=True),
    Place("m.par/role-0.json", PREDICT, result="y.safetensors"),
    Place("m.par/plan.yaml", PREDICT, result="y.safetensors"),
    Place("m.par/provenance.json", PREDICT, result="y.safetensors"),
    Place("m.par/constants.bin", PREDICT, result="y.safetensors"),
    Place("t.par/kernels-x86.so", TRAIN, result="y.safetensors"),
    Place("model.onnx", PREDICT, result="y.safetensors", opaque=False),
    Place("w.bin", PREDICT, result="y.safetensors", opaque=False),
    Place("x.safetensors", PREDICT, result="y.safetensors", opaque=True),
    Place("m.par.tuning.json", PREDICT, result="y.safetensors", optional=True, opaque=True),
    Place("data.txt", TRAIN, result="y.safetensors", opaque=True),
    Place("all.safetensors", PREDICT + ["--weights", "all.safetensors"], result="y.safetensors", opaque=True),
    Place("part-w.safetensors", PREDICT + ["--weights", "model.safetensors.index.json"], result="y.safetensors",
          opaque=True),
    Place("model.safetensors.index.json", PREDICT + ["--weights", "model.safetensors.index.json"],
          result="y.safetensors",
          opaque=True),
    Place("saves/2/index.json",
          ["par-run", "t.par", "--resume", "saves/2", "--text", "data.txt", "--steps", "3", "--export",
                                 "y.safetensors", "-q"], named="saves/2", result="y.safetensors", opaque=True),
    Place("saves/2/rank0.safetensors", ["par-run", "t.par", "--resume", "saves/2", "--text", "data.txt", "--steps", "3",
                                        "--export", "y.safetensors", "-q"], named="saves/2", result="y.safetensors",
          opaque=True),
]


def remove(path):
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif path.exists() or path.is_symlink():
        path.unlink()


# Each change takes the file's path and a random generator. After a change of FOREIGN the path is no file any more.
def pipe(path, choose):
    remove(path)
    os.mkfifo(path)


def device(path, choose):
    remove(path)
    path.symlink_to(choose.choice(["/dev/zero", "/dev/null", "/dev/full", "/dev/tty"]))


def unix_socket(path, choose):
    remove(path)
    here = os.getcwd()
    os.chdir(path.parent)  # the name of a socket is short
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path.name)
    listener.close()
    os.chdir(here)


def folder(path, choose):
    remove(path)
    path.mkdir()


def absent(path, choose):
    remove(path)


def linked_pipe(path, choose):
    remove(path)
    os.mkfifo(path.parent / "a-pipe")
    path.symlink_to("a-pipe")


def circle(path, choose):
    remove(path)
    path.symlink_to(path.name)


def truncated(path, choose):
    os.truncate(path, choose.randrange(path.stat().st_size or 1))


def empty(path, choose):
    os.truncate(path, 0)


def longer(path, choose):
    with open(path, "ab") as file:
        file.write(bytes(choose.randrange(256) for _ in range(choose.randrange(1, 100))))


def flipped(path, choose):
    data = bytearray(path.read_bytes())
    for _ in range(choose.randrange(1, 9)):
        if data:
            data[choose.randrange(len(data))] ^= 1 << choose.randrange(8)
    path.write_bytes(data)


def moved(path, choose):
    """Moves the file and leaves a link in its place: nothing is lost."""
    target = path.parent / ("real-" + path.name)
    path.rename(target)
    path.symlink_to(target.name)


FOREIGN = [pipe, device, unix_socket, folder, absent, linked_pipe, circle]
BYTES = [truncated, empty, longer, flipped]
LOSSLESS = [moved]


def shrink_while_read(path, choose):
    """Returns the action of a trial while the tool runs: it truncates the file at some moment."""
    def cut(process):
        time.sleep(choose.choice([0, 0.001, 0.003, 0.01, 0.03]))
        try:
            os.truncate(path, choose.randrange(path.stat().st_size or 1))
        except OSError:
            pass
    return cut


class Trials:
    """Makes the trials and keeps the results of unchanged files."""

    def __init__(self, work, arguments, counts):
        self.tools, self.base = pathlib.Path(arguments.bin).resolve(), work / "base"
        self.counts, self.keep, self.clean = counts, arguments.keep, {}
        self.base.mkdir()
        prepare(self.base, self.tools)

    def command(self, place):
        return [str(self.tools / place.command[0]), *place.command[1:]]

    def copy(self, number):
        to = self.base.parent / f"{self.base.name}-{number}"
        shutil.rmtree(to, ignore_errors=True)
        shutil.copytree(self.base, to, symlinks=True)
        return to

    def result(self, place, here):
        return (here / place.result).read_bytes() if place.result and (here / place.result).exists() else None

    def expected(self, place):
        """The command's output without a change."""
        key = tuple(place.command)
        if place.result and key not in self.clean:
            here = self.copy("clean")
            outcome = trials.Outcome(self.command(place), here)
            self.clean[key] = self.result(place, here)
            if outcome.status != 0 or self.clean[key] is None:
                sys.exit(f"files: {' '.join(place.command)} fails by itself:\n{outcome.text}")
            shutil.rmtree(here)
        return self.clean.get(key) if place.result else None

    def run(self, number):
        choose = random.Random(self.counts.seed * 1000003 + number)
        place = PLACES[number % len(PLACES)]
        change = choose.choice(FOREIGN * 2 + BYTES * 2 + LOSSLESS + [None])
        expected, here = self.expected(place), self.copy(number)
        path, after = here / place.file, None
        if change is None:
            after = shrink_while_read(path, choose)
        elif path.exists() or change in (pipe, device, unix_socket, folder, linked_pipe, circle):
            change(path, choose)
        title = f"{change.__name__ if change else 'shrinking'} {place.file}: {' '.join(place.command)}"
        outcome = trials.Outcome(self.command(place), here, after=after)
        self.judge(number, title, place, change, outcome, expected, here)
        if not self.keep:
            shutil.rmtree(here, ignore_errors=True)

    def between(self, place, got, here):
        """Whether a result that differs from that of the original file differs from that of the shrunk file, too."""
        remove(here / place.result)
        return trials.Outcome(self.command(place), here).status != 0 or got != self.result(place, here)

    def judge(self, number, title, place, change, outcome, expected, here):
        fault = lambda which: self.counts.fault(which, number, title, outcome.text or "(it says nothing)")
        if outcome.status is None:
            return fault("hangs")
        if outcome.crashed():
            return fault("crashes")
        if outcome.status == 0:
            got = self.result(place, here)
            foreign = change in FOREIGN and not place.optional
            changed = got != expected and not (place.opaque and change not in LOSSLESS + FOREIGN)
            if change is None:
                changed = got != expected and self.between(place, got, here)
            if foreign or changed:
                fault("wrong")
        elif change in LOSSLESS:
            fault("wrong")
        elif place.named not in outcome.text or "rror" not in outcome.text:
            fault("unnamed")


if __name__ == "__main__":
    sys.exit(trials.main("files", 500, __doc__.splitlines()[0], lambda *setting: Trials(*setting).run))

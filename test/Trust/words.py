#!/usr/bin/env python3
"""Puts words that harm a terminal or fill a disk where Par quotes them: the trials `words` of trust.py.

    words.py --bin build/bin [--count N] [--seed S] [--first N] [--keep]

Names of folders, files, tensors, arrays, keys, flags and values hold control characters, colons, quotes, bytes that are
no UTF-8, or a hundred thousand letters; bundles and safetensors hold zeros after their text. par-run and par-verify end
within 10 s, without a signal. They print at most 20 kB, and no control character but the end of a line. An error names
its cause, and a name that is merely odd works.
"""
import json
import os
import pathlib
import random
import re
import shutil
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import trials

MODEL = pathlib.Path(__file__).resolve().parent.parent / "Models/mlp"
MOST = 20_000
PIECES = ["\x1b[2J", "\x1b]0;x\x07", "\r", "\n", "\b" * 3, "\x7f", "\x9b2J", "\u202e", ":", "::", "=", "a=b,c", '"',
          "'", " ", ": ", "é",
          "{}", "%s%n", ".safetensors:x=y", "../", "-", "\udcff\udcfe"]
CONTROL = re.compile(rb"[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]")


def word(choose, most):
    """An odd text, at times a long one; no zero and no slash where it is to be a name."""
    if choose.random() < 0.2:
        return choose.choice(["n", "é", "\x1b[2J", "a.b"]) * (most // 4)
    text = "".join(choose.choice(PIECES + ["a", "b"]) for _ in range(choose.randrange(1, 6)))
    return text[:most]


def header(arrays, tail=b""):
    text = json.dumps(arrays, ensure_ascii=False).encode(errors="surrogateescape") + tail
    return struct.pack("<Q", len(text)) + text


class Trials:
    def __init__(self, base, arguments, counts):
        self.tools, self.base, self.keep, self.counts = pathlib.Path(
            arguments.bin).resolve(), base, arguments.keep, counts
        command = [str(self.tools / "par-compile"), str(MODEL / "model.onnx"), "--set", "train={}", "-o", "b.par", "-q"]
        outcome = trials.Outcome(command, base, limit=120)
        if outcome.status != 0:
            sys.exit(f"words: {' '.join(command)} failed:\n{outcome.text}")
        self.kinds = [self.folder, self.data_name, self.array, self.flag, self.value, self.manifest, self.tail,
                      self.renaming]

    def run_flags(self, *flags):
        return [str(self.tools / "par-run"), "b.par", "--init", "--steps", "1", *flags]

    # Each gives the command, and whether it must do well (True), must not (False), or may (None).
    def folder(self, here, choose):
        """A bundle, data and results in a folder of an odd name."""
        name = word(choose, 60).replace("/", "_")
        odd = here / ("d" + name)
        odd.mkdir()
        shutil.move(here / "b.par", odd / "b.par")
        shutil.copy(MODEL / "data.safetensors", odd / "d.safetensors")
        at = lambda file: os.path.join("d" + name, file)
        return [str(self.tools / "par-run"), at("b.par"), "--init", "--steps", "1", "--data", at("d.safetensors"),
                "--export",
                at("w.safetensors"), "--save", at("ckpt"), "--metrics", at("m.jsonl")], True

    def data_name(self, here, choose):
        return self.run_flags("--data", word(choose, 100_000).replace("\0", "")), False

    def array(self, here, choose):
        """Arrays of odd names, of data and of weights."""
        arrays = {word(choose, 100_000): {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]}
                  for _ in range(choose.choice([1, 5, 3000]))}
        (here / "odd.safetensors").write_bytes(header(arrays))
        flag = choose.choice(["--data", "--weights"])
        return self.run_flags(flag, "odd.safetensors",
                              *(["--data", str(MODEL / "data.safetensors")] if flag == "--weights" else [])), False

    def flag(self, here, choose):
        return [str(self.tools / choose.choice(["par-run", "par-verify"])), "b.par",
                "--" + word(choose, 100_000)], False

    def value(self, here, choose):
        flag = choose.choice(["--steps", "--set", "--order", "--device", "--comm", "--trace", "--on-nan", "--labels",
                              "--resume", "--weights"])
        return self.run_flags(flag, word(choose, 100_000), "--data", "none.safetensors"), False

    def manifest(self, here, choose):
        """An odd word somewhere in the manifest, whose hashes are not mended: most manifests are refused by their
        form."""
        path = here / "b.par/manifest.json"
        text = path.read_text()
        names = sorted(set(re.findall(r'"([A-Za-z_][A-Za-z0-9_.]{2,})"', text)))
        path.write_text(text.replace(f'"{choose.choice(names)}"', json.dumps(word(choose, 1_000_000)), 1),
                        errors="surrogateescape")
        return [str(self.tools / "par-verify"), "b.par"], None

    def tail(self, here, choose):
        """Zeros after the text of JSON."""
        zeros = b"\0" * choose.randrange(1, 9) + choose.choice([b"", b"{}", b" "])
        if choose.random() < 0.5:
            with open(here / "b.par/manifest.json", "ab") as file:
                file.write(zeros)
            return [str(self.tools / "par-verify"), "b.par"], False
        data = (MODEL / "data.safetensors").read_bytes()
        end = 8 + int.from_bytes(data[:8], "little")
        (here / "z.safetensors").write_bytes(struct.pack("<Q", end - 8 + len(zeros)) + data[8:end] + zeros + data[end:])
        return self.run_flags("--data", "z.safetensors"), False

    def renaming(self, here, choose):
        """Data by their renamed arrays, from a file whose name has colons."""
        name = "d" + word(choose, 60).replace("/", "_").replace(".safetensors", "") + ".safetensors"
        data = (MODEL / "data.safetensors").read_bytes()
        end = 8 + int.from_bytes(data[:8], "little")
        arrays = json.loads(data[8:end])
        odd = {key if key == "__metadata__" else f"r:{key}": value for key, value in arrays.items()}
        (here / name).write_bytes(header(odd) + data[end:])
        pairs = ",".join(f"{key}=r:{key}" for key in arrays if key != "__metadata__")
        return self.run_flags("--data", f"{name}:{pairs}"), True

    def run(self, number):
        choose = random.Random(self.counts.seed * 1000003 + number)
        here = self.base / f"trial-{number}"
        here.mkdir()
        shutil.copytree(self.base / "b.par", here / "b.par")
        kind = self.kinds[number % len(self.kinds)]
        command, good = kind(here, choose)
        outcome = trials.Outcome([part.encode(errors="surrogateescape") for part in command], here)
        fault = lambda which, what: self.counts.fault(which, number, f"{kind.__name__}: {what}: {command!r:.300}",
                                                      outcome.text[:2000])
        said = outcome.text.encode(errors="surrogateescape")
        if outcome.status is None:
            fault("hangs", "no end")
        elif outcome.crashed():
            fault("crashes", f"exit {outcome.status}")
        elif CONTROL.search(said) or len(said) > MOST:
            fault("wrong", f"it prints {len(said)} bytes, or control characters")
        elif good is not None and good != (outcome.status == 0):
            fault("wrong", f"exit {outcome.status}")
        elif outcome.status != 0 and "error: " not in outcome.text:
            fault("unnamed", f"exit {outcome.status}")
        if not self.keep:
            shutil.rmtree(here, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(trials.main("words", 200, __doc__.splitlines()[0], lambda *setting: Trials(*setting).run))

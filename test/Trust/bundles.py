#!/usr/bin/env python3
"""Changes the content of a bundle and mends its hashes, as an attacker would, and checks how Par reacts.

    bundles.py --bin build/bin [--count N] [--seed S] [--first N] [--keep]

One place of manifest.json, of a program or of the provenance gets another value, is dropped, repeated or swapped with
another place, or the kernels are damaged; sizes and SHA-256 are made right again. par-verify and par-run each end
within 10 s, without a signal, and refuse the bundle with a sentence or run it. A bundle that both accept gives the
losses and the weights of the unchanged bundle, bit for bit.

Exceptions are places that only the author can judge, where other numbers are correct results: MEANING lists them. Never
changed are the symbols of generated kernels and the numbers that they are called with (a bundle's machine code is
trusted: docs/bundle.md).
"""
import copy
import hashlib
import json
import pathlib
import random
import re
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "Phases" / "Import" / "Inputs"))
import encode
import trials

MODEL = """
input t i64[8,16]
output y f32[8,16,256]
init e f32[256,8] = {table}
init fc1.weight f32[8,16] = {square}
init fc2.weight f32[16,8] = {square}
init h f32[8,256] = {table}
module fc1
node g Gather e,t -> a
node m1 MatMul a,fc1.weight -> b
node r1 Relu b -> c
module fc2
node m2 MatMul c,fc2.weight -> d
node m3 MatMul d,h -> y
"""
TRAIN = "train: {loss: cross_entropy, optimizer: {kind: adamw, lr: 0.01}, clip: 1.0}\n"
PLANS = {
    "one": TRAIN,
    "two": TRAIN + "mesh: {dp: 2}\nbatch: {microbatches: 2}\n",
    "four": TRAIN
    + "mesh: {pp: 2, tp: 2}\nbatch: {microbatches: 2}\nshard: {fc1.weight: {1: tp}, fc2.weight: {0: tp}}\n"
                    "pipeline: {schedule: 1f1b, cuts: [fc2]}\n",
}

# The author's choices: initial values and their names, rates, seeds, the inputs and the operation of an instruction,
# and the places of ranks. Another choice is another program, and no file can tell which one was meant.
MEANING = [re.compile(text) for text in (
    r"manifest\.json/(hypers|lr|seed|text|needs|device|mesh|ranks|communicators)",
    r"manifest\.json/tensors/\d+/(name|kind|of|init|source|value|aliases|transposed|stored|layout)",
    r"manifest\.json/layouts/\d+/parts",
    r"manifest\.json/(tensors|inputs|outputs|layouts)(/\d+)?$",
    r"manifest\.json/(inputs|outputs)/\d+/(name|layout|ignored|batch_dim|metric|ranks)",
    r"role-\d+\.json/(kernels|calls|blocks|entries|comms)",
    r"role-\d+\.json/buffers/\d+/(tensor|kind|type|shape|of|offset)",
    r"role-\d+\.json/buffers(/\d+)?$",
)]


def prepare(folder, tools):
    choose = random.Random(1)
    words = lambda count: " ".join(f"{choose.uniform(-1, 1):.4f}" for _ in range(count))
    model = MODEL.format(table=words(2048), square=words(128))
    (folder / "model.onnx").write_bytes(encode.encode(model.splitlines()[1:]))
    (folder / "data.txt").write_bytes(bytes(choose.randrange(97, 123) for _ in range(1000)))
    for name, plan in PLANS.items():
        (folder / f"{name}.yaml").write_text(plan)
        command = [str(tools / "par-compile"), "model.onnx", f"{name}.yaml", "-o", f"{name}.par", "-q"]
        outcome = trials.Outcome(command, folder, limit=120)
        if outcome.status != 0:
            sys.exit(f"bundles: {' '.join(command)} failed:\n{outcome.text}")


def places(value, path=()):
    """Every path into a document."""
    yield path
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        yield from places(member, path + (key,))


def at(document, path):
    for key in path:
        document = document[key]
    return document


ODD = [-1, 0, 1, 2, 3, 7, 64, 255, 4096, 2**31 - 1, 2**31, 2**32, 2**47, 2**62, 2**63 - 1, 2**63, 2**64, -2**63, 0.5,
       1e300, "",
       "x", "a b", "a\nb", "a\0b", "../x", "/etc/passwd", "\x1b[2J", "nan", "inf", "n" * 300, "é", None, True, False,
       [], {}, [0],
       [[0, 0]], [-1], {"name": "x"}, "r x", "@", "f32", "i64", "cuda", "state", "w w", "rw w@mb+1"]


def changed(value, choose):
    """Another value in the place of this one."""
    if isinstance(value, bool) or value is None or choose.random() < 0.35:
        return choose.choice(ODD)
    if isinstance(value, int):
        return choose.choice([value + 1, value - 1, value * 2, value // 2, -value, value + 64, value - 64, value + 256])
    if isinstance(value, float):
        return choose.choice([value * 2, -value, 0])
    if isinstance(value, str):
        cut = choose.randrange(len(value) + 1)
        return choose.choice([value[:cut], value + "x", value[:cut] + choose.choice("\n\0@ \"\\9") + value[cut:],
                              value.upper()])
    value = copy.deepcopy(value)
    if isinstance(value, list) and value:
        first, second = choose.randrange(len(value)), choose.randrange(len(value))
        kind = choose.randrange(4)
        if kind == 0:
            del value[first]
        elif kind == 1:
            value.insert(second, copy.deepcopy(value[first]))
        elif kind == 2:
            value[first], value[second] = value[second], value[first]
        else:
            value.clear()
    elif isinstance(value, dict) and value:
        key = choose.choice(sorted(value))
        kind = choose.randrange(3)
        taken = value.pop(key)
        if kind == 1:
            value[key + "x"] = taken
        elif kind == 2:
            value[key], value["more"] = taken, 1
    return value


KERNELS = "kernels-x86.so"


class Bundle:
    """The documents of a bundle, written with hashes that are right."""

    def __init__(self, path):
        self.path = path
        self.documents = {file.name: json.loads(file.read_text()) for file in sorted(path.glob("*.json"))
                          if file.name == "manifest.json" or file.name == "provenance.json"
                          or file.name.startswith("role-")}

    def write(self):
        for name, document in self.documents.items():
            if name != "manifest.json":
                (self.path / name).write_text(json.dumps(document))
        manifest = self.documents["manifest.json"]
        files = manifest.get("files") if isinstance(manifest, dict) else None
        for file in files if isinstance(files, list) else []:
            name = file.get("name") if isinstance(file, dict) else None
            if isinstance(name, str) and (name in self.documents or name == KERNELS):
                data = (self.path / name).read_bytes()
                file.update(size=len(data), sha256=hashlib.sha256(data).hexdigest())
        try:
            lines = "".join(f"{file['name']} {file['size']} {file['sha256']}\n" for file in files)
            manifest["bundle"] = hashlib.sha256(lines.encode()).hexdigest()
        except (TypeError, KeyError, AttributeError, UnicodeEncodeError):
            pass  # the change is in the list of files itself
        (self.path / "manifest.json").write_text(json.dumps(manifest))

    def trusted(self, name, path):
        """Whether the machine code of a kernel depends on this place."""
        if not name.startswith("role-"):
            return False
        document = self.documents[name]
        kernels = {kernel["name"]: kernel for kernel in document["kernels"]}
        if len(path) >= 2 and path[0] == "kernels":
            return "symbol" in document["kernels"][path[1]]
        if len(path) >= 3 and path[0] == "blocks":
            instruction = document["blocks"][path[1]][path[2]]
            return instruction.get("op") == "kernel" and "symbol" in kernels.get(instruction.get("k"), {}) and \
                (len(path) == 3 or path[3] in ("imm", "k"))
        return path[:1] == ("kernels",) or len(path) < 2 and path[:1] in ((), ("blocks",))

    def break_kernels(self, choose):
        """Replaces the kernels by other bytes, or renames one: the bundle cannot run, and must not be proved."""
        path = self.path / KERNELS
        data = path.read_bytes()
        kind = choose.choice(["garbage", "shorter", "foreign", "symbol"])
        if kind == "symbol":
            roles = [document for name, document in self.documents.items() if name.startswith("role-")]
            choose.choice([kernel for role in roles for kernel in role["kernels"]
                           if "symbol" in kernel])["symbol"] += "x"
        else:
            path.write_bytes({"garbage": choose.randbytes(4000), "shorter": data[:choose.randrange(len(data))],
                              "foreign": pathlib.Path(sys.executable).resolve().read_bytes()[:1 << 20]}[kind])
        return f"{KERNELS}/{kind}"

    def change(self, choose):
        """Changes one place; returns it as "FILE/key/0/key"."""
        name = choose.choice(["manifest.json"] * 5 + [name for name in sorted(self.documents)
                                                      if name != "manifest.json"] * 2)
        paths = [path for path in places(self.documents[name]) if path and not self.trusted(name, path)]
        # Small tables are changed as often as large ones.
        top = choose.choice(sorted({path[0] for path in paths}, key=str))
        path = choose.choice([path for path in paths if path[0] == top])
        holder = at(self.documents[name], path[:-1])
        if choose.random() < 0.1:
            del holder[path[-1]]
        else:
            holder[path[-1]] = changed(holder[path[-1]], choose)
        return "/".join([name, *map(str, path)])


class Trials:
    """Makes the trials and keeps the results of unchanged bundles."""

    def __init__(self, base, arguments, counts):
        self.tools, self.base, self.keep = pathlib.Path(arguments.bin).resolve(), base, arguments.keep
        self.counts, self.expected = counts, {}
        prepare(base, self.tools)

    def run_bundle(self, bundle, here):
        """The outcome of training, and its losses and weights if it succeeded."""
        command = [str(self.tools / "par-run"), str(bundle), "--init", "--text", str(self.base / "data.txt"),
                   "--steps", "2",
                   "--export", str(here / "w.safetensors")]
        outcome = self.tool(command, here)
        losses = re.findall(r"^step .*?(loss \S+).*?(\|g\| \S+)", outcome.text, re.MULTILINE)
        return outcome, (losses, trials.read_arrays(here / "w.safetensors")) if outcome.status == 0 else None

    def tool(self, command, here):
        outcome = trials.Outcome(command, here)
        return outcome if outcome.status is not None else trials.Outcome(command, here)  # a busy machine is no hang

    def unchanged(self, name):
        if name not in self.expected:
            here = self.base / f"of-{name}"
            here.mkdir()
            outcome, numbers = self.run_bundle(self.base / f"{name}.par", here)
            if not numbers or not numbers[0]:
                sys.exit(f"bundles: {name}.par does not run by itself:\n{outcome.text}")
            self.expected[name] = numbers
        return self.expected[name]

    def run(self, number):
        choose = random.Random(self.counts.seed * 1000003 + number)
        name = choose.choice(sorted(PLANS))
        expected = self.unchanged(name)
        here = self.base / f"trial-{number}"
        here.mkdir()
        shutil.copytree(self.base / f"{name}.par", here / "b.par")
        bundle = Bundle(here / "b.par")
        breaks = choose.random() < 0.1
        place = bundle.break_kernels(choose) if breaks else bundle.change(choose)
        bundle.write()
        verified = self.tool([str(self.tools / "par-verify"), "b.par"], here)
        outcome, numbers = self.run_bundle("b.par", here)
        self.judge(number, f"{name}.par, {place}", verified, outcome)
        self.counts.notes["proved"] += verified.status == 0
        self.counts.notes["ran"] += outcome.status == 0
        free = any(meaning.match(place) for meaning in MEANING)
        if verified.status == 0 and outcome.status == 0 and not free and numbers != expected:
            self.counts.fault("wrong", number, f"{name}.par, {place}: proved, and other numbers", outcome.text)
        if breaks and verified.status == 0:
            self.counts.fault("wrong", number, f"{name}.par, {place}: proved", verified.text)
        if verified.status != 0 and outcome.status == 0:
            self.counts.fault("wrong", number, f"{name}.par, {place}: refused by par-verify alone", verified.text)
        if not self.keep:
            shutil.rmtree(here, ignore_errors=True)

    def judge(self, number, title, *outcomes):
        for outcome in outcomes:
            if outcome.status is None:
                self.counts.fault("hangs", number, title, outcome.text)
            elif outcome.crashed():
                self.counts.fault("crashes", number, title, outcome.text)
            elif outcome.status != 0 and ("error: " not in outcome.text
                                          or not re.search(r"b\.par|data\.txt", outcome.text)):
                self.counts.fault("unnamed", number, title, outcome.text or "(it says nothing)")


if __name__ == "__main__":
    sys.exit(trials.main("bundles", 1000, __doc__.splitlines()[0], lambda *setting: Trials(*setting).run))

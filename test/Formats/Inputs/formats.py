"""Reads and writes each format of docs/formats.md with par-run, and compares losses and arrays; in the folder with
images.par, predict.par and words.par.

    formats.py docs/formats.md
"""
import json
import pathlib
import re
import subprocess
import sys

import numpy
import torch
from safetensors.numpy import load_file, save_file

CASES = {}


def row(name):
    """The function tries this row of the page; it returns whether that holds."""
    def keep(function):
        CASES[name] = function
        return function
    return keep


def par_run(*flags):
    done = subprocess.run(["par-run", *map(str, flags)], capture_output=True, text=True)
    assert done.returncode == 0, f"{flags}: {done.stderr}"
    return done.stdout + done.stderr


def losses(bundle, *flags):
    """Losses of four steps in order, and the lines that were said."""
    metrics = pathlib.Path("metrics.jsonl")
    metrics.unlink(missing_ok=True)
    said = par_run(bundle, "--order", "sequential", "--steps", 4, "--metrics", metrics, *flags)
    return [json.loads(line)["loss"] for line in metrics.read_text().splitlines()], said


draw = numpy.random.default_rng(7)
X = draw.standard_normal((16, 3, 2, 2)).astype("f4")
LABELS = draw.integers(0, 4, 16)
PIXELS = draw.integers(0, 256, (16, 3, 2, 2)).astype("u1")
TOKENS = draw.integers(0, 300, 200)
save_file({"x": X, "labels": LABELS}, "d.safetensors")
REFERENCE, _ = losses("images.par", "--data", "d.safetensors")


def refusal(*flags):
    """Exit code and words of a par-run that is refused."""
    done = subprocess.run(["par-run", *map(str, flags)], capture_output=True, text=True)
    return done.returncode, done.stderr


@row("safetensors")
def safetensors():
    save_file({"x": X[:8], "labels": LABELS[:8]}, "a.safetensors")
    save_file({"images": X[8:], "labels": LABELS[8:], "names": LABELS}, "b.safetensors")
    found, said = losses("images.par", "--data", "a.safetensors", "--data", "b.safetensors:x=images")
    return found == REFERENCE and said.count('arrays that no input takes: names') == 1


@row("npz")
def npz():
    numpy.savez("d.npz", x=X, labels=LABELS)
    numpy.savez_compressed("packed.npz", x=X, labels=LABELS)
    return all(losses("images.par", "--data", file)[0] == REFERENCE for file in ("d.npz", "packed.npz"))


@row("npy")
def npy():
    numpy.save("x.npy", X)
    numpy.save("l.npy", LABELS)
    one, _ = losses("images.par", "--input", "x=x.npy", "--input", "labels=l.npy")
    both, _ = losses("images.par", "--data", "x.npy", "--input", "labels=d.safetensors:labels")
    _, several = refusal("images.par", "--input", "x=d.safetensors")
    numpy.save("few.npy", LABELS[:9])
    _, uneven = refusal("images.par", "--input", "x=x.npy", "--input", "labels=few.npy")
    return (one == both == REFERENCE and '; say which one feeds "x": d.safetensors:ARRAY' in several
            and 'feeds 9 rows to input "labels" and 16 to "x"' in uneven)


@row("pt")
def pt():
    torch.save({"x": torch.tensor(X), "labels": torch.tensor(LABELS)}, "d.pt")
    turned = torch.tensor(numpy.ascontiguousarray(X.transpose(1, 0, 2, 3))).transpose(0, 1)
    torch.save({"x": turned, "labels": torch.tensor(LABELS), "note": "of a loader"}, "turned.pth")
    return losses("images.par", "--data", "d.pt")[0] == losses("images.par", "--data", "turned.pth")[0] == REFERENCE


@row("f64")
def f64():
    numpy.savez("f64.npz", x=X.astype("f8"), labels=LABELS)
    found, said = losses("images.par", "--data", "f64.npz")
    numpy.savez("far.npz", x=X.astype("f8") * 1e300, labels=LABELS)
    far = subprocess.run(["par-run", "images.par", "--data", "far.npz", "--order", "sequential"], capture_output=True,
                         text=True)
    return (found == REFERENCE and far.returncode == 1 and 'array "x" holds ' in far.stderr
            and said.count('--data is rounded: "x" is f64 there and f32 in the bundle') == 1)


@row("bool")
def truths():
    save_file({"x": (X > 0).astype("f4"), "labels": LABELS}, "ones.safetensors")
    numpy.savez("bool.npz", x=X > 0, labels=LABELS)
    return losses("images.par", "--data", "bool.npz")[0] == losses("images.par", "--data", "ones.safetensors")[0]


@row("integers")
def integers():
    numpy.savez("u1.npz", x=X, labels=LABELS.astype("u1"))
    numpy.savez("u8.npz", x=X, labels=LABELS.astype("u8"))
    same = [losses("images.par", "--data", f)[0] == REFERENCE for f in ("u1.npz", "u8.npz")]
    wide = LABELS.astype("u8")
    wide[5] = 2**63 + 1
    numpy.savez("wide.npz", x=X, labels=wide)
    refused = subprocess.run(["par-run", "images.par", "--data", "wide.npz", "--order", "sequential"],
                             capture_output=True, text=True)
    return all(same) and 'array "labels" holds 9223372036854775809 in row 5' in refused.stderr


@row("u8 images")
def images():
    mean, spread = numpy.array([0.5, 0.25, 0.125], "f4"), numpy.array([0.25, 0.5, 0.75], "f4")
    floats = (PIXELS.astype("f4") / numpy.float32(255) - mean[:, None, None]) / spread[:, None, None]
    save_file({"x": floats, "labels": LABELS}, "floats.safetensors")
    numpy.savez("pixels.npz", x=PIXELS, labels=LABELS)
    unsaid = subprocess.run(["par-run", "images.par", "--data", "pixels.npz"], capture_output=True, text=True)
    found, _ = losses("images.par", "--data", "pixels.npz", "--normalize", "x=0.5,0.25,0.125/0.25,0.5,0.75")
    two = " 2 numbers are one for each of its channels, dim 1, or one for all"
    if two not in refusal("images.par", "--data", "pixels.npz", "--normalize", "x=0.5,0.25/0.25,0.5")[1]:
        return False
    return (found == losses("images.par", "--data", "floats.safetensors")[0] and unsaid.returncode == 1
            and "pixels of u8 become floats by --normalize x=MEAN/SPREAD" in unsaid.stderr)


def windows(tokens, apart):
    """A file of the windows of words.par."""
    begins = range(0, len(tokens) - 4, apart)
    save_file({"ids": numpy.stack([tokens[i:i + 4] for i in begins]),
               "labels": numpy.stack([tokens[i + 1:i + 5] for i in begins])}, "windows.safetensors")
    return losses("words.par", "--data", "windows.safetensors")[0]


@row("text")
def text():
    (TOKENS % 256).astype("u1").tofile("text")
    return losses("words.par", "--text", "text")[0] == windows(TOKENS % 256, 4)


@row("tokens")
def tokens():
    same = []
    for kind in ("u16", "u32", "i32", "i64"):
        TOKENS.astype({"u": "u", "i": "i"}[kind[0]] + str(int(kind[1:]) // 8)).tofile("t.bin")
        same.append(losses("words.par", "--tokens", f"t.bin:{kind}")[0] == windows(TOKENS, 4))
    code, untyped = refusal("words.par", "--tokens", "t.bin")
    pathlib.Path("odd.bin").write_bytes(bytes(401))
    _, odd = refusal("words.par", "--tokens", "odd.bin:u16")
    return (all(same) and code == 2 and "says nothing of its integers; --tokens t.bin:u16 does" in untyped
            and "401 bytes are no whole number of tokens of u16" in odd)


@row("tokens npy")
def tokens_npy():
    numpy.save("t.npy", TOKENS)
    numpy.save("wide.npy", X)
    if "; --tokens takes integers of one dim" not in refusal("words.par", "--tokens", "wide.npy")[1]:
        return False
    code, other = refusal("words.par", "--tokens", "t.npy:u16")
    same, _ = losses("words.par", "--tokens", "t.npy:" + TOKENS.dtype.name)
    if code != 2 or "--tokens takes t.npy, which says itself that it holds" not in other:
        return False
    if "--tokens takes a .npy file or one of integers only" not in refusal("words.par", "--tokens", "d.npz:u16")[1]:
        return False
    return losses("words.par", "--tokens", "t.npy")[0] == same == windows(TOKENS, 4)


@row("overlapping windows")
def stride():
    TOKENS.astype("u2").tofile("t.bin")
    found, said = losses("words.par", "--tokens", "t.bin:u16", "--stride", 3)
    return found == windows(TOKENS, 3) and "200 tokens, 66 windows of 4, 3 apart" in said


@row("made-up")
def synthetic():
    found, said = losses("images.par", "--synthetic")
    return len(found) == 4 and found[3] < found[0] and "made up: 4 rows" in said


SCORES = {"w": draw.standard_normal((12, 4)).astype("f4"), "b": draw.standard_normal(4).astype("f4")}


def scores(*flags):
    par_run("predict.par", "--data", "d.safetensors", "--output", "scores.safetensors", *flags)
    return load_file("scores.safetensors")["y"]


def reads(path):
    """Whether these weights predict what they must."""
    expected = X.reshape(16, 12) @ SCORES["w"] + SCORES["b"]
    return bool(numpy.abs(scores("--weights", path) - expected).max() < 1e-5)


@row("safetensors weights")
def weights():
    save_file(SCORES, "w.safetensors")
    return reads("w.safetensors")


@row("sharded safetensors")
def sharded():
    pathlib.Path("hub").mkdir()
    for name, array in SCORES.items():
        save_file({name: array}, f"hub/{name}.safetensors")
    index = {"weight_map": {name: f"{name}.safetensors" for name in SCORES}}
    pathlib.Path("hub/model.safetensors.index.json").write_text(json.dumps(index))
    return reads("hub") and reads("hub/model.safetensors.index.json")


@row("npz weights")
def npz_weights():
    numpy.savez("w.npz", **SCORES)
    return reads("w.npz")


@row("pt weights")
def pt_weights():
    module = {name: torch.nn.Parameter(torch.tensor(array)) for name, array in SCORES.items()}
    torch.save(module, "w.pt")
    torch.save(torch.nn.ParameterDict(module).state_dict(), "dict.pth")
    return reads("w.pt") and reads("dict.pth")


@row("pytorch_model.bin")
def pytorch_model():
    pathlib.Path("old").mkdir()
    torch.save({name: torch.tensor(array) for name, array in SCORES.items()}, "old/pytorch_model.bin")
    torch.save({"args": slice(1)}, "old/training_args.bin")
    return reads("old")


@row("save")
def save():
    par_run("images.par", "--data", "d.safetensors", "--steps", 4, "--save", "ckpt", "--export", "end.safetensors")
    expected = X.reshape(16, 12) @ load_file("end.safetensors")["w"] + load_file("end.safetensors")["b"]
    return bool(numpy.abs(scores("--weights", "ckpt") - expected).max() < 1e-5)


@row("model")
def model():
    return scores().shape == (16, 4)


def same_arrays(a, b):
    return a.keys() == b.keys() and all((a[name] == b[name]).all() for name in a)


@row("export safetensors")
def export():
    par_run("images.par", "--from", "ckpt/4", "--into", "into.safetensors")
    return same_arrays(load_file("into.safetensors"), load_file("end.safetensors"))


@row("export folder")
def export_folder():
    par_run("images.par", "--from", "ckpt", "--into", "one/")
    par_run("images.par", "--from", "ckpt", "--into", "many/", "--max-shard", 100)
    index = json.loads(pathlib.Path("many/model.safetensors.index.json").read_text())
    names = sorted(path.name for path in pathlib.Path("many").iterdir())
    found = {name: load_file(f"many/{file}")[name] for name, file in index["weight_map"].items()}
    stale = subprocess.run(["par-run", "images.par", "--from", "ckpt", "--into", "many"], capture_output=True,
                           text=True)
    return (names == ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
                      "model.safetensors.index.json"]
            and index["metadata"]["total_size"] == (48 + 4) * 4 and same_arrays(found, load_file("end.safetensors"))
            and same_arrays(load_file("one/model.safetensors"), found) and stale.returncode == 1
            and ", which would be loaded in place of what is written beside it; remove it" in stale.stderr)


@row("export onnx")
def export_onnx():
    par_run("images.par", "--from", "ckpt", "--into", "trained.onnx")
    subprocess.run(["par-compile", "trained.onnx", "-o", "trained.par", "-q"], check=True)
    par_run("trained.par", "--data", "d.safetensors", "--output", "trained.safetensors")
    return bool((load_file("trained.safetensors")["y"] == scores("--weights", "ckpt")).all())


@row("output")
def output():
    return sorted(load_file("scores.safetensors")) == ["y"]


def main():
    page = pathlib.Path(sys.argv[1]).read_text()
    rows = [name for name in re.findall(r"^\| ([^|]+?) \|", page, re.M) if name not in ("format", "---")]
    print("rows of docs/formats.md without a test:", [name for name in rows if name not in CASES] or "none")
    failed = len(set(rows) ^ set(CASES))
    for name, holds in CASES.items():
        good = holds()
        failed += not good
        print(f"{name:24}{'pass' if good else 'FAIL'}")
    print(f"{len(CASES)} formats, {failed} failed")


if __name__ == "__main__":
    main()

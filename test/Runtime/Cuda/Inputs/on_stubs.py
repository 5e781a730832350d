"""Trains a language model as a bundle for a GPU on stub libraries and as one for the CPU, and tells how far the losses
are apart and which epilogues the products of the former had: on_stubs.py MODEL FOLDER PRECISION..."""
import collections
import json
import os
import pathlib
import subprocess
import sys

STEPS = 4
MODEL, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
LIBRARIES = pathlib.Path(os.environ["PAR_HOME"]) / "lib"
STUBS = {"PAR_CUDA_LIBRARY": "libcuda-stub.so", "PAR_CUBLASLT_LIBRARY": "libcublaslt-stub.so",
         "PAR_CUDNN_LIBRARY": "libcudnn-stub.so"}


def compile_bundle(name, precision, *flags, length=32):
    bundle = FOLDER / f"{name}.par"
    subprocess.run(["par-compile", MODEL, "--set", "train={loss: cross_entropy}", "--set",
                    f"dims={{batch: 2, seq: {length}}}",
                    "--set", f"precision={precision}", *flags, "-q", "-o", bundle], check=True,
                   env={**os.environ, "PAR_PTXAS": ""})
    return bundle


def losses(bundle, environment, *flags):
    metrics = FOLDER / "metrics.jsonl"
    subprocess.run(["par-run", bundle, "--init", "--text", FOLDER / "text", "--order", "sequential", "--steps",
                    str(STEPS),
                    "--metrics", metrics, "-q", *flags], check=True, env={**os.environ, **environment})
    return [json.loads(line)["loss"] for line in metrics.read_text().splitlines()]


def epilogues(bundle):
    """By word: calls of a step, among the instructions of the program."""
    program = json.loads((bundle / "role-0.json").read_text())
    word = {call["name"]: call.get("epilogue", "none") for call in program["calls"]}
    return collections.Counter(word[instruction["lib"]] for block in program["blocks"].values() for instruction in block
                               if instruction["op"] == "call")


def prepare():
    """A text to train on, and as much of the builtins as the stub looks at."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "text").write_text("".join(chr(97 + i * i % 23) for i in range(2000)))
    (FOLDER / "image").write_bytes(b"\x50\xed\x55\xba")


def losses_on_stub(precision, *flags, length=32):
    """Results of a bundle for cuda, named so, and the library calls in the order in which they were made."""
    cuda = compile_bundle("cuda", precision, "--target", "cuda", *flags, length=length)
    twin = compile_bundle("twin", precision, "--target", "cuda", "--host-code", *flags, length=length)
    log = FOLDER / "calls.jsonl"
    log.unlink(missing_ok=True)
    environment = {name: str(LIBRARIES / file) for name, file in STUBS.items()}
    environment.update(PAR_CUDA_BUILTINS=str(FOLDER / "image"), PAR_STUB_BUNDLE=str(twin), PAR_STUB_LOG=str(log),
                       PAR_CUDA_GRAPHS="0")
    found = losses(cuda, environment, "--no-tuning", "--comm", "inproc")
    return found, [json.loads(line) for line in log.read_text().splitlines()]


def main():
    prepare()
    for precision in sys.argv[3:]:
        wanted = losses(compile_bundle("cpu", precision), {})
        found, calls = losses_on_stub(precision)
        far = max(abs(a - b) / abs(a) for a, b in zip(wanted, found, strict=True))
        called = collections.Counter(call["arguments"].split()[6] for call in calls if call["call"] == "cublasLtMatmul")
        words = epilogues(FOLDER / "cuda.par")
        print(f"{precision}: losses within {'1e-5' if far < 1e-5 else '1e-2' if far < 1e-2 else far}; in the program",
              " ".join(f"{word} {words[word]}" for word in sorted(words)), "; on the stub",
              " ".join(f"{code} {called[code] // STEPS}" for code in sorted(called, key=int)))


if __name__ == "__main__":
    main()

"""Trains a net of convolutions as a bundle for a GPU on stub libraries and as one for the CPU, and tells how far the
losses are apart and in which forms the convolutions ran: narrow_convolutions.py MODEL FOLDER PRECISION..."""
import collections
import json
import os
import pathlib
import subprocess
import sys

STEPS = 8
MODEL, FOLDER = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
LIBRARIES = pathlib.Path(os.environ["PAR_HOME"]) / "lib"
STUBS = {"PAR_CUDA_LIBRARY": "libcuda-stub.so", "PAR_CUBLASLT_LIBRARY": "libcublaslt-stub.so",
         "PAR_CUDNN_LIBRARY": "libcudnn-stub.so"}
# Both round the same values to the type, except weight gradients, which the GPU's library rounds too, and sums are in
# other orders: a few times the rounding of the type.
BOUNDS = {"f32": 1e-5, "bf16": 2 ** -8, "fp16": 2 ** -11}
# A fixed scale: weight gradients in f16 overflow at smaller ones than in f32, so that other steps would be left out.
PLANS = {"f32": "f32", "bf16": "bf16", "fp16": "{compute: fp16, loss_scale: 128}"}


def compile_bundle(name, precision, *flags):
    bundle = FOLDER / f"{name}.par"
    subprocess.run(["par-compile", MODEL, "--set", "batch={microbatches: 2}", "--set", f"precision={PLANS[precision]}",
                    "--set", "train={optimizer: {kind: adamw, lr: 0.01}}", *flags, "-q", "-o", bundle], check=True,
                   env={**os.environ, "PAR_PTXAS": ""})
    return bundle


def losses(bundle, environment, *flags):
    metrics = FOLDER / "metrics.jsonl"
    metrics.unlink(missing_ok=True)
    subprocess.run(["par-run", bundle, "--data", MODEL.parent / "data.safetensors", "--order", "sequential", "--steps",
                    str(STEPS), "--metrics", metrics, "-q", *flags], check=True, env={**os.environ, **environment})
    return [line["loss"] for line in map(json.loads, metrics.read_text().splitlines()) if "loss" in line]


def forms(bundle):
    """Kernels of the program by builtin, those of convolutions."""
    program = json.loads((bundle / "role-0.json").read_text())
    return collections.Counter(kernel["builtin"] for kernel in program["kernels"]
                               if kernel.get("builtin", "").startswith("convolution"))


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "image").write_bytes(b"\x50\xed\x55\xba")  # as much of the builtins as the stub looks at
    for precision in sys.argv[3:]:
        cpu = compile_bundle("cpu", precision)
        cuda = compile_bundle("cuda", precision, "--target", "cuda")
        twin = compile_bundle("twin", precision, "--target", "cuda", "--host-code")
        environment = {name: str(LIBRARIES / file) for name, file in STUBS.items()}
        environment.update(PAR_CUDA_BUILTINS=str(FOLDER / "image"), PAR_STUB_BUNDLE=str(twin))
        wanted, found = losses(cpu, {}), losses(cuda, environment, "--no-tuning")
        far = max(abs(a - b) / abs(a) for a, b in zip(wanted, found, strict=True))
        near = "near" if far < BOUNDS[precision] else f"apart by {far:.2g}"
        learnt = "less" if wanted[-1] < wanted[0] else "no less"
        print(f"{precision}: losses {near}, the last {learnt} than the first;",
              ", ".join(f"{count} {name}" for name, count in sorted(forms(cuda).items())), "; for the CPU",
              ", ".join(f"{count} {name}" for name, count in sorted(forms(cpu).items())))


main()

"""Trains a small language model with an odd number of classes on stub libraries, and prints the distance of its losses
from the CPU's, which does not pad rows, and its matmuls: odd_rows_on_stubs.py MODEL FOLDER CASE... A CASE is
PRECISION:PLAN:TOKENS:WIDTH; the plan (a file), the tokens of a sample and the width may be left out. MODEL is written.
"""
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "Phases" / "Import" / "Inputs"))
import on_stubs  # noqa: E402
from encode import encode  # noqa: E402

CLASSES, WIDTH, LENGTH = 259, 16, 32


def model(width):
    """An embedding whose rows are the classes' weights too, one layer, and a bias of each class."""
    choose = random.Random(1)

    def parameter(name, *shape):
        size = 1
        for n in shape:
            size *= n
        numbers = " ".join(f"{choose.gauss(0, 0.3):.6f}" for _ in range(size))
        return f"init {name} f32[{','.join(map(str, shape))}] = {numbers}"

    return encode(["opset 20", "input tokens i64[batch,seq]", f"output logits f32[batch,seq,{CLASSES}]",
                   parameter("embed.weight", CLASSES, width), parameter("up.weight", width, 2 * width),
                   parameter("down.weight", 2 * width, width), parameter("head.bias", CLASSES),
                   "node embed Gather embed.weight,tokens -> x", "node up MatMul x,up.weight -> u",
                   "node act Relu u -> a",
                   "node down MatMul a,down.weight -> d", "node sum Add x,d -> h",
                   "node turn Transpose embed.weight -> t perm=[1,0]", "node head MatMul h,t -> z",
                   "node last Add z,head.bias -> logits"])


def shapes(calls):
    """Matmuls with classes as a dim, as rows x columns x terms, each once."""
    found = {" x ".join(call["arguments"].split()[:3]): None for call in calls if call["call"] == "cublasLtMatmul"}
    return [shape for shape in found if any(CLASSES // 2 <= int(n) < 2 * CLASSES - 6 for n in shape.split(" x "))]


def main():
    on_stubs.prepare()
    for case in sys.argv[3:]:
        precision, plan, length, width = (case.split(":") + [""] * 3)[:4]
        length = int(length or LENGTH)
        pathlib.Path(on_stubs.MODEL).write_bytes(model(int(width or WIDTH)))
        flags = [plan] if plan else []
        wanted = on_stubs.losses(on_stubs.compile_bundle("cpu", precision, *flags, length=length), {})
        found, calls = on_stubs.losses_on_stub(precision, *flags, length=length)
        far = max(abs(a - b) / abs(a) for a, b in zip(wanted, found, strict=True))
        # Terms of 264 are added up in another order than of 259: where it matters to bf16, a loss moves by 2e-6.
        bounds = [bound for bound in ("1e-6", "1e-5") if far < float(bound)]
        near = "the same" if far == 0 else f"within {bounds[0]}" if bounds else f"{wanted}, not {found}"
        print(f"{precision}: losses {near} ; products", ", ".join(shapes(calls)))


main()

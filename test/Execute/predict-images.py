"""Predicts with a small net of images, whose convolutions keep channels last, and holds it against plain sums.

    predict-images.py FOLDER      with the tools on the PATH

The net has a convolution with bounds, one of a channel a group, a max pool, a residual and a mean over images. The
sums are of Python's floats (float64); results lie within 1e-5 of the largest, 40 times the rounding of f32.
"""
import itertools
import pathlib
import random
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE.parent / "Phases/Import/Inputs"), str(HERE.parent / "Models")]
from encode import encode
from runs import read_safetensors, write_safetensors

ROWS, CHANNELS, SIDE = 5, 8, 6


def numbers(shape, seed):
    source, count = random.Random(seed), 1
    for size in shape:
        count *= size
    return [source.uniform(-1, 1) for _ in range(count)]


WEIGHTS = {"first.weight": (CHANNELS, 3, 3, 3), "first.bias": (CHANNELS,), "deep.weight": (CHANNELS, 1, 3, 3),
           "deep.bias": (CHANNELS,), "last.weight": (CHANNELS, CHANNELS, 1, 1), "last.bias": (CHANNELS,)}
VALUES = {name: numbers(shape, name) for name, shape in WEIGHTS.items()}
MODEL = "input x f32[batch,3,6,6]\n" + "".join(
    f"init {name} f32[{','.join(map(str, shape))}] = {' '.join(f'{v:.6f}' for v in VALUES[name])}\n"
    for name, shape in WEIGHTS.items()) + """init low f32[] = 0
init high f32[] = 0.5
init dims i64[2] = 2 3
node a Conv x,first.weight,first.bias -> a pads=[1,1,1,1]
node b Clip a,low,high -> b
node c Conv b,deep.weight,deep.bias -> c pads=[1,1,1,1] group=8
node d Relu c -> d
node e Conv d,last.weight,last.bias -> e
node f Add e,b -> f
node g Relu f -> g
node h MaxPool g -> h kernel_shape=[2,2] strides=[2,2]
node i ReduceMean h,dims -> y keepdims=0
output y f32[batch,8]
"""


def convolve(image, name, window, pad, groups=1):
    """image[channel][row][column]"""
    outputs, each = WEIGHTS[name + ".weight"][:2]
    weight, bias = VALUES[name + ".weight"], VALUES[name + ".bias"]

    def at(o, y, x):
        total = bias[o]
        for c, i, j in itertools.product(range(each), range(window), range(window)):
            row, column = y + i - pad, x + j - pad
            if 0 <= row < SIDE and 0 <= column < SIDE:
                source = c + o // (outputs // groups) * each
                total += weight[((o * each + c) * window + i) * window + j] * image[source][row][column]
        return total

    return [[[at(o, y, x) for x in range(SIDE)] for y in range(SIDE)] for o in range(outputs)]


def each(function, *images):
    return [[[function(*values) for values in zip(*rows)] for rows in zip(*planes)] for planes in zip(*images)]


def expected(image):
    bounded = each(lambda v: min(max(v, 0), 0.5), convolve(image, "first", 3, 1))
    deep = each(lambda v: max(v, 0), convolve(bounded, "deep", 3, 1, groups=CHANNELS))
    summed = each(lambda v, w: max(v + w, 0), convolve(deep, "last", 1, 0), bounded)
    pooled = [[max(plane[y][x], plane[y][x + 1], plane[y + 1][x], plane[y + 1][x + 1])
               for y in range(0, SIDE, 2) for x in range(0, SIDE, 2)] for plane in summed]
    return [sum(values) / len(values) for values in pooled]


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    model, bundle, data, out = (folder / name for name in ("net.onnx", "net.par", "x.safetensors", "y.safetensors"))
    model.write_bytes(encode(MODEL.splitlines()))
    x = numbers((ROWS, 3, SIDE, SIDE), "x")
    write_safetensors(data, {"x": ([ROWS, 3, SIDE, SIDE], x)})
    run = lambda *command: subprocess.run(list(map(str, command)), check=True)
    run("par-compile", model, "--set", "batch=2", "--check-phases", "--check-kernels", "-q", "-o", bundle)
    run("par-run", bundle, "--data", data, "--output", out, "-q")
    found = read_safetensors(out)["y"][1]
    plane = SIDE * SIDE
    wanted = []
    for row in range(ROWS):
        flat = x[row * 3 * plane:(row + 1) * 3 * plane]
        wanted += expected([[flat[c * plane + y * SIDE:c * plane + (y + 1) * SIDE] for y in range(SIDE)]
                            for c in range(3)])
    apart = max(abs(a - b) for a, b in zip(found, wanted, strict=True)) / max(map(abs, wanted))
    print(f"{ROWS} images, {apart:.0e} apart: {'pass' if apart < 1e-5 else 'fail'}")


if __name__ == "__main__":
    main()

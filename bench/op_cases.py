"""The nodes that op_cost.py measures: each at size 0, 1 and 2, of which one has four times the elements of the one
before."""

import dataclasses

import numpy


@dataclasses.dataclass
class Case:
    op: str
    inputs: dict  # name: shape of floats in (0.1, 0.9), array of floats or of integers (computed in the graph)
    outputs: list  # shapes; None where the output is left out
    attributes: dict = dataclasses.field(default_factory=dict)
    # inputs that the node wants to know: in order after `inputs`
    constants: dict = dataclasses.field(default_factory=dict)
    order: list = None  # names of the inputs as the node has them
    domain: str = ""
    opset: int = 23
    integers: bool = False  # the result is no float


CASES = {}
ROWS = 16
random = numpy.random.default_rng(1)


def along(size):
    """Elements along the dim that grows."""
    return 512 << 2 * size


def side(size):
    return 32 << size


def indices(limit, shape):
    return random.integers(0, limit, shape)


def permutations(limit, count):
    return random.permutation(limit)[:count]


def case(name):
    def add(make):
        CASES[name] = make
        return make

    return add


def elementwise(op, inputs=1, **options):
    def make(size):
        shape = (ROWS, along(size))
        shift = options.get("shift", 0.0)
        operands = {f"x{i}": random.uniform(0.1, 0.9, shape).astype("float32") + numpy.float32(shift)
                    for i in range(inputs)}
        return Case(op, operands, [shape], options.get("attributes", {}), integers=options.get("integers", False))

    CASES[op] = make


for op in ("Abs Acos Asin Atan Ceil Cos Cosh Elu Erf Exp Floor Gelu HardSigmoid HardSwish LeakyRelu Log Mish Neg "
           "Reciprocal Relu "
           "Round Selu Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Tan Tanh Identity Celu ThresholdedRelu "
           "Asinh Atanh").split():
    elementwise(op)
elementwise("Acosh", shift=1.0)
for op in "Add Sub Mul Div Pow Max Min Mean Sum".split():
    elementwise(op, 2)
for op in "Less Equal GreaterOrEqual".split():
    elementwise(op, 2, integers=True)


def reduction(op, dim):
    def make(size):
        shape = (ROWS, along(size)) if dim == 1 else (along(size), ROWS)
        return Case(op, {"x": shape}, [(ROWS,)], {"keepdims": 0}, {"axes": numpy.array([dim])})

    CASES[f"{op} dim {dim}"] = make


for op in ("ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceLogSumExp "
           "ReduceSumSquare").split():
    reduction(op, 1)
reduction("ReduceSum", 0)
reduction("ReduceMax", 0)


def whole(op, shape_of, outputs=None, name=None, **options):
    """One operand; the result has its shape, or the one given."""

    def make(size):
        shape = shape_of(size)
        results = outputs(size) if outputs else [shape]
        return Case(op, {"x": shape}, results, options.get("attributes", {}), options.get("constants", {}),
                    opset=options.get("opset", 23), integers=options.get("integers", False))

    CASES[name or op] = make


def matrix(size):
    return (ROWS, along(size))


def turned(size):
    return (along(size), ROWS)


def image(size):
    return (1, 8, side(size), side(size))


for op in "Softmax LogSoftmax Hardmax".split():
    whole(op, matrix, attributes={"axis": 1})
whole("Softmax", turned, name="Softmax dim 0", attributes={"axis": 0})
for reverse in (0, 1):
    whole("CumSum", matrix, name=f"CumSum{' reverse' if reverse else ''}", attributes={"reverse": reverse},
          constants={"axis": numpy.array(1)})
whole("CumSum", turned, name="CumSum dim 0", constants={"axis": numpy.array(0)})
whole("ArgMax", matrix, lambda size: [(ROWS,)], attributes={"axis": 1, "keepdims": 0}, integers=True)
whole("Transpose", matrix, lambda size: [turned(size)])
whole("Transpose", image, lambda size: [(1, side(size), side(size), 8)], name="Transpose 4",
      attributes={"perm": [0, 2, 3, 1]})
whole("Reshape", matrix, lambda size: [(ROWS * along(size),)], constants={"shape": numpy.array([-1])})
whole("Trilu", lambda size: (4 * side(size), 4 * side(size)))
whole("DepthToSpace", image, lambda size: [(1, 2, 2 * side(size), 2 * side(size))], attributes={"blocksize": 2})
whole("SpaceToDepth", image, lambda size: [(1, 32, side(size) // 2, side(size) // 2)], attributes={"blocksize": 2})
whole("MaxPool", image, lambda size: [(1, 8, side(size) - 2, side(size) - 2)], attributes={"kernel_shape": [3, 3]})
whole("AveragePool", image, lambda size: [(1, 8, side(size) - 2, side(size) - 2)], attributes={"kernel_shape": [3, 3]})
whole("LpPool", image, lambda size: [(1, 8, side(size) // 2, side(size) // 2)],
      attributes={"kernel_shape": [2, 2], "strides": [2, 2]})
whole("GlobalAveragePool", image, lambda size: [(1, 8, 1, 1)])
whole("GlobalMaxPool", image, lambda size: [(1, 8, 1, 1)])
whole("LRN", image, attributes={"size": 5})
whole("LpNormalization", matrix, attributes={"axis": 1, "p": 2})
whole("MeanVarianceNormalization", image)
whole("Shrink", matrix, attributes={"lambd": 0.5})
whole("Flatten", image, lambda size: [(1, 8 * side(size) ** 2)])
whole("Clip", matrix, constants={"low": numpy.float32(0.3), "high": numpy.float32(0.7)})
whole("Expand", lambda size: (1, along(size)), lambda size: [matrix(size)], constants={"shape": numpy.array([ROWS, 1])})
whole("Tile", lambda size: (ROWS, along(size) // 4), lambda size: [matrix(size)],
      constants={"repeats": numpy.array([1, 4])})
whole("Slice", matrix, lambda size: [(ROWS, along(size) // 2)],
      constants={"starts": numpy.array([0]), "ends": numpy.array([2 ** 30]), "axes": numpy.array([1]),
                 "steps": numpy.array([2])})
for mode in ("constant", "reflect", "edge", "wrap"):
    whole("Pad", image, lambda size: [(1, 8, side(size) + 4, side(size) + 4)], name=f"Pad {mode}",
          attributes={"mode": mode},
          constants={"pads": numpy.array([0, 0, 2, 2, 0, 0, 2, 2])})
for mode in ("nearest", "linear", "cubic"):
    whole("Resize", image, lambda size: [(1, 8, 2 * side(size), 2 * side(size))], name=f"Resize {mode}",
          attributes={"mode": mode},
          constants={"roi": numpy.array([], "float32"), "scales": numpy.array([1, 1, 2, 2], "float32")})
whole("Resize", image, lambda size: [(1, 8, side(size) // 2, side(size) // 2)], name="Resize linear down",
      attributes={"mode": "linear"},
      constants={"roi": numpy.array([], "float32"), "scales": numpy.array([1, 1, 0.5, 0.5], "float32")})


@case("Split")
def split(size):
    return Case("Split", {"x": matrix(size)}, [(ROWS, along(size) // 2)] * 2, {"axis": 1, "num_outputs": 2})


@case("Concat")
def concat(size):
    return Case("Concat", {"x": matrix(size), "y": matrix(size)}, [(ROWS, 2 * along(size))], {"axis": 1})


@case("Where")
def where(size):
    return Case("Where", {"c": indices(2, matrix(size)).astype(bool), "x": matrix(size), "y": matrix(size)},
                [matrix(size)])


@case("TopK")
def top_k(size):
    return Case("TopK", {"x": (along(size), 32)}, [(along(size), 4), None], {}, {"k": numpy.array([4])})


@case("Gather dim 0")
def gather(size):
    n = along(size)
    return Case("Gather", {"x": (n, ROWS), "i": indices(n, (n,))}, [(n, ROWS)])


@case("Gather dim 1")
def gather_last(size):
    n = along(size)
    return Case("Gather", {"x": (ROWS, n), "i": indices(n, (n,))}, [(ROWS, n)], {"axis": 1})


@case("Gather dim 1 of 3")
def gather_middle(size):
    n = along(size)
    return Case("Gather", {"x": (4, n, 8), "i": indices(n, (n,))}, [(4, n, 8)], {"axis": 1})


@case("GatherElements dim 1")
def gather_elements(size):
    n = along(size)
    return Case("GatherElements", {"x": (ROWS, n), "i": indices(n, (ROWS, n // 2))}, [(ROWS, n // 2)], {"axis": 1})


@case("GatherElements dim 0")
def gather_elements_first(size):
    n = along(size)
    return Case("GatherElements", {"x": (n, ROWS), "i": indices(n, (n // 2, ROWS))}, [(n // 2, ROWS)], {"axis": 0})


@case("GatherND")
def gather_nd(size):
    n = along(size)
    return Case("GatherND", {"x": (ROWS, n), "i": numpy.stack([indices(ROWS, n), indices(n, n)], 1)}, [(n,)])


for how in ("none", "add", "mul", "max"):

    @case(f"ScatterElements {how}")
    def scatter_elements(size, how=how):
        n = along(size)
        where = numpy.stack([permutations(n, n // 2) for _ in range(ROWS)])
        return Case("ScatterElements", {"x": (ROWS, n), "i": where, "u": (ROWS, n // 2)}, [(ROWS, n)],
                    {"axis": 1, "reduction": how})

    @case(f"ScatterND {how}")
    def scatter_nd(size, how=how):
        n = along(size)
        return Case("ScatterND", {"x": (n, ROWS), "i": permutations(n, n // 2)[:, None], "u": (n // 2, ROWS)},
                    [(n, ROWS)],
                    {"reduction": how})


@case("OneHot")
def one_hot(size):
    n = along(size)
    return Case("OneHot", {"i": indices(n, (ROWS,)), "v": (2,)}, [(ROWS, n)], {}, {"depth": numpy.array(n)},
                ["i", "depth", "v"])


@case("ReverseSequence")
def reverse_sequence(size):
    n = along(size)
    return Case("ReverseSequence", {"x": (n, ROWS), "i": indices(n, (ROWS,)) + 1}, [(n, ROWS)])


@case("GridSample")
def grid_sample(size):
    s = side(size)
    return Case("GridSample", {"x": image(size), "g": (1, s, s, 2)}, [image(size)])


@case("LayerNormalization")
def layer_norm(size):
    n = along(size)
    return Case("LayerNormalization", {"x": (ROWS, n), "g": (n,), "b": (n,)}, [(ROWS, n)])


@case("RMSNormalization")
def rms_norm(size):
    n = along(size)
    return Case("RMSNormalization", {"x": (ROWS, n), "g": (n,)}, [(ROWS, n)])


@case("InstanceNormalization")
def instance_norm(size):
    return Case("InstanceNormalization", {"x": image(size), "g": (8,), "b": (8,)}, [image(size)])


@case("GroupNormalization")
def group_norm(size):
    return Case("GroupNormalization", {"x": image(size), "g": (8,), "b": (8,)}, [image(size)], {"num_groups": 2})


@case("PRelu")
def prelu(size):
    return Case("PRelu", {"x": matrix(size), "s": (along(size),)}, [matrix(size)])


@case("MatMul")
def matmul(size):
    n = 2 * side(size)
    return Case("MatMul", {"x": (n, n), "y": (n, n)}, [(n, n)])


@case("Gemm")
def gemm(size):
    n = 2 * side(size)
    return Case("Gemm", {"x": (n, n), "y": (n, n), "b": (n,)}, [(n, n)], {"transB": 1})


@case("Einsum")
def einsum(size):
    n = side(size)
    return Case("Einsum", {"x": (4, n, 64), "y": (4, n, 64)}, [(4, n, n)], {"equation": "bik,bjk->bij"})


def convolution(name, channels, filters, out=None, op="Conv", **attributes):
    def make(size):
        s = side(size)
        result = out(s) if out else s
        return Case(op, {"x": (1, channels, s, s), "w": filters}, [(1, 8, result, result)], attributes)

    CASES[name] = make


convolution("Conv 3x3", 8, (8, 8, 3, 3), pads=[1, 1, 1, 1])
convolution("Conv depthwise", 8, (8, 1, 3, 3), pads=[1, 1, 1, 1], group=8)
convolution("Conv strided", 8, (8, 8, 3, 3), lambda s: s // 2, pads=[1, 1, 1, 1], strides=[2, 2])
convolution("Conv dilated", 8, (8, 8, 3, 3), pads=[2, 2, 2, 2], dilations=[2, 2])
convolution("ConvTranspose", 8, (8, 8, 2, 2), lambda s: 2 * s, "ConvTranspose", strides=[2, 2])


@case("Conv 1d")
def conv_1d(size):
    n = along(size)
    return Case("Conv", {"x": (1, 8, n), "w": (8, 8, 5)}, [(1, 8, n)], {"pads": [2, 2]})


@case("Attention")
def attention(size):
    n = 2 * side(size)
    shape = (1, 2, n, 32)
    return Case("Attention", {"q": shape, "k": shape, "v": shape}, [shape])


@case("SoftmaxCrossEntropyLoss")
def cross_entropy(size):
    n = along(size)
    return Case("SoftmaxCrossEntropyLoss", {"x": (ROWS, n), "l": indices(n, (ROWS,))}, [()])


for op, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):

    @case(op)
    def recurrent(size, op=op, gates=gates):
        steps, width = 4 << size, 64
        return Case(op, {"x": (steps, ROWS, width), "w": (1, gates * width, width), "r": (1, gates * width, width)},
                    [(steps, 1, ROWS, width)], {"hidden_size": width})

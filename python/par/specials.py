"""Special functions by polynomials, for which neither ONNX nor the exporter has an operator.

Their gradients are those of the polynomials.
"""

import math

# B(2k) / (2k (2k - 1)), k = 1 to 7, of Stirling's series (Abramowitz and Stegun, 6.1.41).
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
SHIFT = 4

# M. J. Wichura, Algorithm AS 241: The percentage points of the normal distribution (1988), PPND16, for
# |p - 1/2| <= 0.425, and by the root of -log(min(p, 1 - p)) up to 5, and beyond.
MIDDLE = (
    (
        2.5090809287301226727e3,
        3.3430575583588128105e4,
        6.7265770927008700853e4,
        4.5921953931549871457e4,
        1.3731693765509461125e4,
        1.9715909503065514427e3,
        1.3314166789178437745e2,
        3.3871328727963666080e0,
    ),
    (
        5.2264952788528545610e3,
        2.8729085735721942674e4,
        3.9307895800092710610e4,
        2.1213794301586595867e4,
        5.3941960214247511077e3,
        6.8718700749205790830e2,
        4.2313330701600911252e1,
        1.0,
    ),
)
OUTER = (
    (
        7.74545014278341407640e-4,
        2.27238449892691845833e-2,
        2.41780725177450611770e-1,
        1.27045825245236838258e0,
        3.64784832476320460504e0,
        5.76949722146069140550e0,
        4.63033784615654529590e0,
        1.42343711074968357734e0,
    ),
    (
        1.05075007164441684324e-9,
        5.47593808499534494600e-4,
        1.51986665636164571966e-2,
        1.48103976427480074590e-1,
        6.89767334985100004550e-1,
        1.67638483018380384940e0,
        2.05319162663775882187e0,
        1.0,
    ),
)
FAR = (
    (
        2.01033439929228813265e-7,
        2.71155556874348757815e-5,
        1.24266094738807843860e-3,
        2.65321895265761230930e-2,
        2.96560571828504891230e-1,
        1.78482653991729133580e0,
        5.46378491116411436990e0,
        6.65790464350110377720e0,
    ),
    (
        2.04426310338993978564e-15,
        1.42151175831644588870e-7,
        1.84631831751005468180e-5,
        7.86869131145613259100e-4,
        1.48753612908506148525e-2,
        1.36929880922735805310e-1,
        5.99832206555887937690e-1,
        1.0,
    ),
)


def like(op, value, tensor):
    """The number in the tensor's type, to all digits of a double."""
    import onnx_ir

    return op.CastLike(op.Constant(value=onnx_ir.tensor(float(value), dtype=onnx_ir.DataType.DOUBLE)), tensor)


def lgamma(self):
    """log |gamma(x)| by Stirling's series at x + SHIFT less the logarithm of the product of x, x + 1, ...,
    and below 1/2 by log(pi / |sin(pi x)|) - lgamma(1 - x)."""
    from onnxscript import opset20 as op

    half, one, zero, pi = (like(op, value, self) for value in (0.5, 1, 0, math.pi))
    low = op.Less(self, half)
    x = op.Where(low, op.Sub(one, self), self)
    y = op.Add(x, like(op, SHIFT, self))
    # Above it the multiplication would overflow, and the series needs no shift.
    large = op.Greater(x, like(op, 100, self))
    y = op.Where(large, x, y)
    series = op.Add(
        op.Sub(op.Mul(op.Sub(y, half), op.Log(y)), y), like(op, 0.5 * math.log(2 * math.pi), self)
    )
    near = op.Where(large, one, x)
    product = near
    for step in range(1, SHIFT):
        product = op.Mul(product, op.Add(near, like(op, step, self)))
    inverse = op.Reciprocal(y)
    square = op.Mul(inverse, inverse)
    series = op.Add(series, op.Mul(inverse, _horner(op, square, STIRLING[::-1])))
    above = op.Sub(series, op.Where(large, zero, op.Log(product)))
    # The distance to the nearest whole number has the same sine but for its sign.
    off = op.Where(low, op.Sub(self, op.Round(self)), half)
    reflected = op.Sub(op.Log(op.Div(pi, op.Abs(op.Sin(op.Mul(off, pi))))), above)
    return op.Where(low, reflected, above)


def digamma(self):
    """The gradient of lgamma's formula; below 1/2 digamma(1 - x) - pi / tan(pi x)."""
    from onnxscript import opset20 as op

    half, one, pi = (like(op, value, self) for value in (0.5, 1, math.pi))
    low = op.Less(self, half)
    x = op.Where(low, op.Sub(one, self), self)
    y = op.Add(x, like(op, SHIFT, self))
    inverse = op.Reciprocal(y)
    square = op.Mul(inverse, inverse)
    terms = [-(2 * place + 1) * term for place, term in enumerate(STIRLING)]
    above = op.Sub(op.Log(y), op.Mul(half, inverse))
    above = op.Add(above, op.Mul(square, _horner(op, square, terms[::-1])))
    for step in range(SHIFT):
        above = op.Sub(above, op.Reciprocal(op.Add(x, like(op, step, self))))
    turned = op.Mul(op.Where(low, op.Sub(self, op.Round(self)), half), pi)
    return op.Where(low, op.Sub(above, op.Div(pi, op.Tan(turned))), above)


def erfinv(self):
    """The normal distribution's quantile of (x + 1) / 2, over the root of 2; at 1 and -1 infinite, beyond
    NaN."""
    from onnxscript import opset20 as op

    one, half = like(op, 1, self), like(op, 0.5, self)
    size = op.Abs(self)
    middle = op.LessOrEqual(size, like(op, 0.85, self))
    inner = op.Where(middle, self, like(op, 0, self))
    offset = op.Mul(inner, half)
    near = op.Mul(offset, _ratio(op, op.Sub(like(op, 0.180625, self), op.Mul(offset, offset)), MIDDLE))
    ends = op.Equal(size, one)
    tail = op.Where(op.Or(middle, ends), half, op.Mul(op.Sub(one, size), half))
    root = op.Sqrt(op.Neg(op.Log(tail)))
    far = op.Greater(root, like(op, 5, self))
    out = _ratio(op, op.Sub(op.Where(far, like(op, 5, self), root), like(op, 1.6, self)), OUTER)
    beyond = _ratio(op, op.Sub(op.Where(far, root, like(op, 5, self)), like(op, 5, self)), FAR)
    outer = op.Mul(op.Sign(self), op.Where(far, beyond, out))
    found = op.Mul(op.Where(middle, near, outer), like(op, math.sqrt(0.5), self))
    ends_at = op.Where(op.Less(self, like(op, 0, self)), like(op, -math.inf, self), like(op, math.inf, self))
    return op.Where(ends, ends_at, found)


def _ratio(op, x, polynomials):
    above, below = (_horner(op, x, each) for each in polynomials)
    return op.Div(above, below)


def _horner(op, x, factors):
    """The polynomial of these factors, of the highest power first."""
    value = like(op, factors[0], x)
    for factor in factors[1:]:
        value = op.Add(op.Mul(value, x), like(op, factor, x))
    return value

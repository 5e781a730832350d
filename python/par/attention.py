"""Attention: in the forms that the exporter knows, and as PyTorch computes it."""
import contextlib
import math

from .exporter import BOOL, INT32, like, theirs


@contextlib.contextmanager
def exportable(torch):
    """Within, attention takes the forms that the exporter knows. torch.nn.Transformer compares its masks with a causal
    one to choose a faster kernel, which no export can decide: masks are applied as they are given. Queries of three
    dims have one head. Queries of more than four dims (windowed attention) are reshaped to four: the first dims become
    the batch."""
    functional, transformer = torch.nn.functional, torch.nn.modules.transformer
    attention, detect = functional.scaled_dot_product_attention, transformer._detect_is_causal_mask

    def of_four_dims(query, key, value, attn_mask=None, *more, **named):
        if query.ndim == 3 and key.ndim == 3:
            heads = (each.unsqueeze(1) for each in (query, key, value))
            mask = attn_mask if attn_mask is None or attn_mask.ndim < 3 else attn_mask.unsqueeze(1)
            return attention(*heads, mask, *more, **named).squeeze(1)
        if query.ndim <= 4:
            return attention(query, key, value, attn_mask, *more, **named)
        first = query.shape[:-3]
        if attn_mask is not None and attn_mask.ndim > 3:
            attn_mask = attn_mask.expand(*first, *attn_mask.shape[-3:]).flatten(0, -4)
        flat = (each.expand(*first, *each.shape[-3:]).flatten(0, -4) for each in (query, key, value))
        result = attention(*flat, attn_mask, *more, **named)
        return result.reshape(*first, *result.shape[1:])

    functional.scaled_dot_product_attention = of_four_dims
    transformer._detect_is_causal_mask = lambda mask, is_causal=None, size=None: bool(is_causal)
    try:
        yield
    finally:
        functional.scaled_dot_product_attention, transformer._detect_is_causal_mask = attention, detect


def translated(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    """Corrects the exporter in two points. It applies no dropout, whatever dropout_p says. A query without any visible
    key (padding on the left of a causal model, a sentence of padding only) gets the mean of all values from a boolean
    mask, and NaN from a mask of -inf; PyTorch gives 0."""
    from onnxscript import opset20 as op

    masks = attn_mask is not None and attn_mask.dtype == BOOL
    if dropout_p or not (attn_mask is None or masks):
        if is_causal:
            attn_mask = _is_past(op, query, key)
        return _attention(op, query, key, value, attn_mask, dropout_p, scale, is_causal or masks)
    result = theirs("aten_scaled_dot_product_attention")(query, key, value, attn_mask, dropout_p, is_causal,
                                                         scale=scale,
                                                          enable_gqa=enable_gqa)
    if not masks:
        return result
    sees = op.Cast(op.ReduceMax(op.Cast(attn_mask, to=INT32), op.Constant(value_ints=[-1]), keepdims=1), to=BOOL)
    return op.Where(sees, result, like(op, 0, result))


def _attention(op, query, key, value, mask, dropout, scale, masks):
    """PyTorch's formula, the root of the factor on either side of the first matmul. masks: of booleans."""
    heads, groups, width = query.shape[1], key.shape[1], query.shape[-1]
    if heads != groups:
        key, value = (_repeat(op, each, heads, heads // groups, each.shape[-1]) for each in (key, value))
    factor = like(op, math.sqrt(width ** -0.5 if scale is None else scale), query)
    scores = op.MatMul(op.Mul(query, factor), op.Mul(op.Transpose(key, perm=[0, 1, 3, 2]), factor))
    zero = like(op, 0, query)
    if mask is not None:
        scores = op.Add(scores, op.Where(mask, zero, like(op, -math.inf, query)) if masks else mask)
    weights = safe_softmax(scores, -1)
    if dropout:
        weights, _ = op.Dropout(weights, dropout, True)
    return op.MatMul(weights, value)


def safe_softmax(self, dim, dtype=None):
    """A row of which all is -inf is 0, and so is its gradient; in the exporter's form that is NaN."""
    from onnxscript import opset20 as op

    shares = op.Softmax(self if dtype is None else op.Cast(self, to=dtype), axis=dim)
    return op.Where(op.IsNaN(shares), like(op, 0, shares), shares)


def _is_past(op, query, key):
    """Which keys a query of a causal model may look at."""
    queries, keys = (op.Squeeze(op.Shape(each, start=-2, end=-1)) for each in (query, key))
    first, one = op.Constant(value_int=0), op.Constant(value_int=1)
    return op.LessOrEqual(op.Unsqueeze(op.Range(first, keys, one), op.Constant(value_ints=[0])),
                          op.Unsqueeze(op.Range(first, queries, one), op.Constant(value_ints=[1])))


def _repeat(op, side, heads, times, width):
    """Keys or values, each group's for its heads."""
    side = op.Expand(op.Unsqueeze(side, op.Constant(value_ints=[2])), op.Constant(value_ints=[1, 1, times, 1, 1]))
    return op.Reshape(side, op.Constant(value_ints=[0, heads, -1, width]))

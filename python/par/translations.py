"""ONNX for operators of PyTorch that torch.onnx.export translates wrongly, or not at all."""
from . import attention, bends, checks, draws, images, selections, specials, stable
from .exporter import like


def table(torch):
    """The exporter's custom_translation_table."""
    aten = torch.ops.aten
    return {aten._native_batch_norm_legit_functional.default: batch_norm,
            aten.cross_entropy_loss.default: cross_entropy,
            aten.scaled_dot_product_attention.default: attention.translated,
            aten._safe_softmax.default: attention.safe_softmax,
            aten.avg_pool2d.default: images.average_pool(2),
            aten.avg_pool3d.default: images.average_pool(3),
            aten.upsample_bilinear2d.vec: images.resize("aten_upsample_bilinear2d_vec"),
            aten.upsample_bicubic2d.vec: images.resize("aten_upsample_bicubic2d_vec"),
            aten.upsample_trilinear3d.vec: images.resize("aten_upsample_trilinear3d_vec"),
            aten.pad.default: images.pad,
            aten.log_sigmoid.default: stable.log_sigmoid,
            aten.binary_cross_entropy_with_logits.default: stable.bce_with_logits,
            aten.binary_cross_entropy.default: stable.bce,
            aten.logaddexp.default: stable.logaddexp,
            aten.logaddexp2.default: stable.logaddexp2,
            aten.logcumsumexp.default: stable.logcumsumexp,
            aten.std.correction: stable.std,
            aten.linalg_vector_norm.default: stable.vector_norm,
            aten.atan2.default: stable.atan2,
            aten.angle.default: stable.angle,
            aten.sinc.default: stable.sinc,
            aten.hardtanh.default: bends.hardtanh,
            aten.relu6.default: bends.relu6,
            aten.max.dim: bends.extreme("ArgMax", "aten_max_dim"),
            aten.min.dim: bends.extreme("ArgMin", "aten_min_dim"),
            aten.scatter_reduce.two: stable.scatter_reduce,
            aten.masked_scatter.default: selections.masked_scatter,
            aten._is_all_true.default: checks.is_all_true,
            aten._is_any_true.default: checks.is_any_true,
            aten.lgamma.default: specials.lgamma,
            aten.digamma.default: specials.digamma,
            aten.erfinv.default: specials.erfinv,
            aten.uniform.default: draws.uniform,
            aten.randperm.default: draws.randperm,
            aten.grid_sampler.default: images.grid_sample,
            aten.grid_sampler_2d.default: images.grid_sample}


def batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps):
    """Training batch norm, for which the exporter has no translation.

    ONNX's momentum is the share of the old statistics, PyTorch's that of the new ones, and a weight and a bias are its
    inputs also where the module has none.
    """
    from onnxscript import opset20 as op

    channels = op.Shape(running_mean)
    weight = op.Expand(like(op, 1, input), channels) if weight is None else weight
    bias = op.Expand(like(op, 0, input), channels) if bias is None else bias
    out, mean, variance = op.BatchNormalization(input, weight, bias, running_mean, running_var, epsilon=eps,
                                                momentum=1.0 - momentum, training_mode=1)
    return out, mean, variance, mean, variance


def cross_entropy(input, target, weight=None, reduction=1, ignore_index=-100, label_smoothing=0.0):
    """Cross entropy whose targets are smoothed or probabilities; the exporter drops label_smoothing without a word.

    Smoothed targets are (1 - s) target + s / classes, which weights of classes multiply; the mean is over the weights
    of the labels that are not ignored, with probabilities over the samples (torch.nn.CrossEntropyLoss).
    """
    from onnxscript import opset20 as op

    rank, probabilities = len(input.shape), target.dtype.is_floating_point()
    if not probabilities and label_smoothing == 0:
        loss, _ = op.SoftmaxCrossEntropyLoss(input, target, weight, reduction=stable.REDUCTIONS[reduction],
                                             ignore_index=ignore_index)
        return loss
    dim = min(rank - 1, 1)
    classes = input.shape[dim]
    scores = op.LogSoftmax(input, axis=dim)
    if weight is not None:
        along = [1] * rank
        along[dim] = -1
        scores = op.Mul(scores, op.Reshape(weight, op.Constant(value_ints=along)))
    one = like(op, 1, input)
    if probabilities:
        smooth = op.Add(op.Mul(target, like(op, 1 - label_smoothing, input)),
                        like(op, label_smoothing / classes, input))
        losses = op.Neg(op.ReduceSum(op.Mul(scores, smooth), op.Constant(value_ints=[dim]), keepdims=0))
        return _reduce(op, losses, op.ReduceSum(op.Expand(one, op.Shape(losses)), keepdims=0), reduction)
    counts = op.Not(op.Equal(target, op.Constant(value_int=ignore_index)))
    label = op.Where(counts, target, op.Constant(value_int=0))
    zero = like(op, 0, input)
    # The loss of the label itself says of the labels that they are classes; indices may count from the end, as -1 for
    # the last.
    first = op.Constant(value_ints=[0])
    rows, labels = (input, target) if rank > 1 else (op.Unsqueeze(input, first), op.Unsqueeze(target, first))
    own, _ = op.SoftmaxCrossEntropyLoss(rows, labels, weight, reduction="none", ignore_index=ignore_index)
    own = own if rank > 1 else op.Squeeze(own, first)
    evenly = op.ReduceSum(scores, op.Constant(value_ints=[dim]), keepdims=0)
    mixed = op.Add(op.Mul(own, like(op, 1 - label_smoothing, input)),
                   op.Mul(evenly, like(op, -label_smoothing / classes, input)))
    shares = one if weight is None else op.Gather(weight, label, axis=0)
    return _reduce(op, op.Where(counts, mixed, zero), op.ReduceSum(op.Where(counts, shares, zero), keepdims=0),
                   reduction)


def _reduce(op, losses, total, reduction):
    """None, the sum over `total`, or the sum."""
    if stable.REDUCTIONS[reduction] == "none":
        return losses
    summed = op.ReduceSum(losses, keepdims=0)
    return summed if stable.REDUCTIONS[reduction] == "sum" else op.Div(summed, total)

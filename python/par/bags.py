"""torch.nn.functional.embedding_bag as the exporter can write it: bags of one size are a lookup and a reduction."""
import contextlib


@contextlib.contextmanager
def exportable(torch):
    """Within, bags that are the rows of a matrix of indices are looked up as by an embedding and reduced. The
    exporter's own form knows sizes of bags only as data: with padding_idx it is a loop over bags with branches."""
    functional = torch.nn.functional
    original = functional.embedding_bag

    def bags(input, weight, offsets=None, max_norm=None, norm_type=2, scale_grad_by_freq=False, mode="mean",
             sparse=False,
             per_sample_weights=None, include_last_offset=False, padding_idx=None):
        if input.ndim != 2 or max_norm is not None or scale_grad_by_freq:
            return original(input, weight, offsets, max_norm, norm_type, scale_grad_by_freq, mode, sparse,
                            per_sample_weights,
                            include_last_offset, padding_idx)
        return _reduced(torch, functional.embedding(input, weight), _counted(input, weight, padding_idx),
                        per_sample_weights, mode)

    functional.embedding_bag = bags
    try:
        yield
    finally:
        functional.embedding_bag = original


def _counted(input, weight, padding_idx):
    """Which indices are not padding; None if all are counted."""
    return None if padding_idx is None else input != padding_idx % weight.shape[0]


def _reduced(torch, rows, counted, weights, mode):
    """The rows [bags, size, width] of each bag as one. A bag with only padding is zeros."""
    if weights is not None:
        rows = rows * weights.unsqueeze(-1)
    if counted is None:
        return rows.max(1).values if mode == "max" else getattr(rows, mode)(1)
    counted = counted.unsqueeze(-1)
    if mode == "max":
        largest = rows.masked_fill(~counted, float("-inf")).max(1).values
        return largest.masked_fill(~counted.any(1), 0)
    total = rows.masked_fill(~counted, 0).sum(1)
    return total if mode == "sum" else total / counted.sum(1).clamp(min=1).to(rows.dtype)

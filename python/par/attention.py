"""Attention in the forms that the exporter knows."""
import contextlib


@contextlib.contextmanager
def exportable(torch):
    """Within, attention takes the forms that the exporter knows. torch.nn.Transformer compares its masks with a causal one to
    choose a faster kernel, which no export can decide: masks are applied as they are given. Queries of more than four dims
    (windows of Twins) are those of four whose batch is the product of the first ones."""
    functional, transformer = torch.nn.functional, torch.nn.modules.transformer
    attention, detect = functional.scaled_dot_product_attention, transformer._detect_is_causal_mask

    def of_four_dims(query, key, value, attn_mask=None, *more, **named):
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

"""A model with a static cache beside the same model without one: what it must not take from the cache's size."""
import contextlib

from .errors import Error

PROMPT, CALLS = 11, ((5, 6), (3, 6))  # tokens of two samples in two calls


@contextlib.contextmanager
def evaluating(model, whole=False):
    """Within it all parts of the model are in evaluation mode, and the model itself in mode `whole`."""
    modes = [(part, part.training) for part in model.modules()]
    model.eval()
    model.training = whole
    try:
        yield
    finally:
        for part, mode in modes:
            part.training = mode


@contextlib.contextmanager
def tables(torch, model, position, tokens, slots):
    """Within it, attention that reads who sees whom from a table of all positions (GPT-Neo), and takes the number of
    keys for the position of the last query, reads the rows of the queries."""
    query = position[:, :, None] + torch.arange(tokens)[None, :, None]
    slot = torch.arange(slots)[None, None, :]
    held = [(part._buffers, part._buffers["bias"], part) for part in model.modules()
            if _is_table(torch, part._buffers.get("bias"))]
    try:
        for buffers, table, part in held:
            del buffers["bias"]
            part.bias = _Rows(((slot <= query) & (slot > query - _window_of(part, table)))[:, None])
        yield
    finally:
        for buffers, table, part in held:
            vars(part).pop("bias", None)
            buffers["bias"] = table


class _Rows:
    """Stands for a table, whatever part of it is asked for."""

    def __init__(self, rows):
        self.rows = rows

    def __getitem__(self, _):
        return self.rows


def _is_table(torch, value):
    return isinstance(value, torch.Tensor) and value.dtype == torch.bool and value.ndim == 4 and \
        value.shape[2] == value.shape[3]


def _window_of(part, table):
    """How many positions a query sees, its own among them."""
    config = getattr(part, "config", None)
    local = getattr(part, "attention_type", None) == "local"
    return config.window_size if local else table.shape[3]


def check(torch, model, past):
    """Raises par.Error where logits from calls with a cache are others than those of the whole prompt at once. model:
    whose forward takes and gives the cache; past: zeros of it. Weights of 16 bit, whose sums differ anyway, and those
    on the meta device are not looked at."""
    kind = type(model).__mro__[1]  # the model's own; here it is a class that decodes
    if any(one.is_meta or (one.is_floating_point() and one.element_size() < 4) for one in model.parameters()):
        return
    vocabulary = model.get_input_embeddings().weight.shape[0]
    ids = (torch.arange(2 * PROMPT).reshape(2, PROMPT) * 7 + 3) % vocabulary
    with evaluating(model), torch.no_grad():
        whole = kind.forward(model, input_ids=ids, use_cache=False, return_dict=True).logits
        for wanted, got in _calls(torch, model, ids, past, whole):
            off, most = float((wanted - got).abs().max()), float(wanted.abs().max())
            if not off <= 1e-3 * max(most, 1e-3):  # sums in another order are some 1e-6 off
                raise Error(f"{kind.__name__} gives other logits with a static cache than without one: they differ by "
                            f"{off:.3g}, the largest is {most:.3g}", code=2,
                            notes=["par.export writes this model without a cache: each call then takes all tokens"])


def _calls(torch, model, ids, past, whole):
    """(logits without, logits with the cache) after each call; sequences have different lengths, and padding
    after them."""
    position = torch.zeros(2, 1, dtype=torch.int64)
    for call in range(2):
        count = torch.tensor([[counts[call]] for counts in CALLS])
        places = (position + torch.arange(int(count.max()) + 1)[None, :]).clamp(max=PROMPT - 1)
        logits, *past = model(input_ids=ids.gather(1, places), position=position, count=count, past=past)
        position = position + count
        for sample in range(2):
            yield whole[sample, int(position[sample]) - 1].float(), logits[sample]

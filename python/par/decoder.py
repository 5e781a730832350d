"""par.export_decoder: a decoder of transformers with a static cache, for prompts and for single tokens.

The cache holds a slot for each position of a sequence. A call takes `input_ids` (samples x tokens), the `position` of
the first of them in each sequence, and the `count` of those that are no padding. It writes keys and values into the
slots position, position + 1, ..., and returns the logits after the last counted token. A query sees the slots up to its
own; what padding wrote beyond them is overwritten before it is seen. Sequences of one batch thus need not have the same
length, and nothing in the cache is cleared between two prompts.
"""
from __future__ import annotations

import contextlib
import inspect
import sys
import os
from typing import Any, Optional, Union

from .cached import check, evaluating, tables
from .errors import Error
from .export import export

PLAN = {"carry": {"present.*": "past.*"}}
REFUSED = ("create_chunked_causal_mask", "create_recurrent_attention_mask")
EXAMPLE = (2, 3)  # samples and tokens


def export_decoder(model: Any, path: Union[str, os.PathLike[str]], *, cache: Optional[int] = None,
                   **options: Any) -> str:
    """Writes `model`, a causal language model of transformers, to the ONNX file `path` as it decodes.

    The file has the inputs input_ids [batch, seq], position [batch, 1] and count [batch, 1], and past.0, past.1, ...,
    the keys and values of each layer; its outputs are logits [batch, vocabulary], of each sequence's last counted
    token, and present.0, .... A plan says `carry: {present.*: past.*}` (par.decoder.PLAN), so that they stay on the
    devices, and `dims: {seq: 1}`; `prefill: {seq: 32}` adds an entry that takes 32 tokens of each prompt a
    call.

    model: any model whose attention keeps keys and values in a Cache of transformers (Llama, Qwen, Mistral, Gemma, Phi,
    GPT-2, Mixtral, ...), also one on the meta device with weights=False. Windows and logit softcaps are those of its
    configuration.
    cache: slots of each sequence, prompt and new tokens together; None leaves it open, as `dims: {cache: N}`.
    options: opset and weights of par.export.

    Returns the path. Raises par.Error where a layer keeps another state than keys and values (Mamba, linear attention),
    where attention is by chunks, where the model's logits differ with the cache, and as par.export does. Needs torch,
    onnx, onnxscript and transformers.
    """
    import torch

    _check(torch, model, cache)
    slots = cache or 8  # an example of an open size
    past = _past(torch, model, slots)
    samples, tokens = EXAMPLE
    inputs = {"input_ids": torch.zeros(samples, tokens, dtype=torch.int64),
              "position": torch.zeros(samples, 1, dtype=torch.int64),
              "count": torch.full((samples, 1), tokens), "past": past}
    dynamic = {"input_ids": ["batch", "seq"], "position": ["batch"], "count": ["batch"]}
    for i in range(len(past)):
        dynamic[f"past.{i}"] = ["batch", None, None if cache else "cache", None]
    outputs = ["logits", *(f"present.{i}" for i in range(len(past)))]
    small = _past(torch, model, 16)
    with _decoding(torch, model) as refused:
        try:
            check(torch, model, small)
            return export(model, inputs, path, dynamic=dynamic, outputs=outputs, **options)
        except (Error, NotImplementedError):
            if refused:
                raise _unsupported(model, f"calls {refused[0]} of transformers", refused[0]) from None
            raise


def _check(torch, model, cache):
    if not hasattr(model, "generate") or not hasattr(model, "config"):
        raise Error(f"export_decoder takes a model of transformers that generates, found {type(model).__name__}",
                    code=2, notes=["of another module, par.export writes what its forward computes"])
    if getattr(model.config, "is_encoder_decoder", False):
        raise Error(f"{type(model).__name__} has an encoder, and export_decoder takes decoders without one", code=2,
                    notes=["of its parts, par.export writes what their forward computes"])
    for name, part in model.named_modules():
        if isinstance(part, torch.nn.Embedding) and part is not model.get_input_embeddings() and cache and \
                part.num_embeddings < cache:
            raise Error(f'cache is {cache}, and "{name}" has {part.num_embeddings} positions', code=2,
                        notes=[f"cache={part.num_embeddings} is the longest sequence of this model"])


def _unsupported(model, reason, what):
    return Error(f"{type(model).__name__} {reason}, and a static cache holds keys and values of past tokens only",
                 code=2,
                 notes=[f"par.export writes this model without a cache: each call then takes all tokens ({what})"])


def _past(torch, model, slots):
    """Zeros for the keys and values of each layer, shaped as the model itself keeps them."""
    samples, tokens = EXAMPLE
    ids = torch.zeros(samples, tokens, dtype=torch.int64, device=model.device)
    with evaluating(model), torch.no_grad():
        kept = getattr(model(input_ids=ids, use_cache=True), "past_key_values", None)
    layers = getattr(kept, "layers", None)
    if not layers:
        raise _unsupported(model, "returns no cache of keys and values", type(kept).__name__)
    found = []
    for number, layer in enumerate(layers):
        for half in (getattr(layer, "keys", None), getattr(layer, "values", None)):
            if half is None or half.ndim != 4 or hasattr(layer, "conv_states"):
                raise _unsupported(model, f"keeps other state in layer {number}", type(layer).__name__)
            found.append(torch.zeros(samples, half.shape[1], slots, half.shape[3], dtype=half.dtype))
    return found


def _cache(torch, past, position):
    """A Cache of transformers over these tensors, whose layers write each sequence's new rows where it stands."""
    from transformers.cache_utils import Cache, CacheLayerMixin

    class Layer(CacheLayerMixin):
        is_sliding = False

        def __init__(self, keys, values):
            super().__init__()
            self.keys, self.values, self.is_initialized = keys, values, True
            self.slots = keys.shape[2]

        def lazy_initialization(self, key_states, value_states):
            pass

        def update(self, key_states, value_states, *_, **__):
            self.keys = _written(torch, self.keys, key_states, position)
            self.values = _written(torch, self.values, value_states, position)
            return self.keys, self.values

        def get_mask_sizes(self, *_):
            return self.slots, 0

        def get_seq_length(self):
            return 0

        def get_max_length(self):
            return self.slots

    return Cache(layers=[Layer(keys, values) for keys, values in zip(past[::2], past[1::2])])


def _written(torch, kept, new, position):
    """`kept` (samples, heads, slots, width) with the rows of `new` from each sample's position on. Rows beyond the last
    slot, which are padding, are dropped."""
    tokens = new.shape[2]
    row = torch.arange(kept.shape[2])[None, :] - position  # of `new`, for each slot
    inside = ((row >= 0) & (row < tokens))[:, None, :, None]
    index = row.clamp(0, tokens - 1)[:, None, :, None].expand(-1, kept.shape[1], -1, kept.shape[3])
    return torch.where(inside, new.to(kept.dtype).gather(2, index), kept)


@contextlib.contextmanager
def _decoding(torch, model):
    """Within it, forward of `model` takes and gives the cache. It stays the same module, with the same names. Gives
    names of what transformers was asked for and is not built here."""
    own, refused = type(model), []
    takes = inspect.signature(own.forward).parameters
    head = model.get_output_embeddings()

    def forward(self, input_ids, position, count, past):
        tokens, slots = input_ids.shape[1], past[0].shape[2]
        kept = _cache(torch, past, position)
        named = {"input_ids": input_ids, "past_key_values": kept, "use_cache": True, "return_dict": True}
        if "position_ids" in takes:
            named["position_ids"] = (position + torch.arange(tokens)[None, :]).clamp(max=slots - 1)
        last = _last(count)
        with _masks(torch, position, tokens, slots, refused), tables(torch, self, position, tokens, slots), \
                _rows(head, last):
            logits = own.forward(self, **named).logits
        logits = (last(logits) if head is None else logits).squeeze(1).float()
        return (logits, *(half for layer in kept.layers for half in (layer.keys, layer.values)))

    model.__class__ = type(own.__name__, (own,), {"forward": forward, "__module__": own.__module__})
    try:
        with evaluating(model, whole=True):  # par.export then leaves all parts in their mode
            yield refused
    finally:
        model.__class__ = own


def _last(count):
    """Takes the row of the last counted token of (samples, tokens, width)."""
    def taken(rows):
        return rows.gather(1, (count - 1)[:, :, None].expand(-1, -1, rows.shape[2]))
    return taken


@contextlib.contextmanager
def _rows(head, last):
    """Within it the head computes scores of one token of each sample."""
    hook = head and head.register_forward_pre_hook(lambda _, given: (last(given[0]), *given[1:]))
    try:
        yield
    finally:
        if hook:
            hook.remove()


@contextlib.contextmanager
def _masks(torch, position, tokens, slots, refused):
    """Within it, models of transformers that ask for a mask get that of the cache: a query sees the slots up to its
    own, of a window the last ones."""
    def causal(config, inputs_embeds, window=None, or_mask_function=None, and_mask_function=None, **_):
        if or_mask_function is not None or and_mask_function is not None:
            return refuse("a mask function")
        query = position[:, :, None] + torch.arange(tokens)[None, :, None]
        slot = torch.arange(slots)[None, None, :]
        seen = slot <= query
        if window is not None:
            seen = seen & (slot > query - window)
        # A finite number, which an attention that is one op takes; of booleans the exporter makes -inf.
        return torch.where(seen[:, None], 0.0, torch.finfo(inputs_embeds.dtype).min).to(inputs_embeds.dtype)

    def sliding(config, inputs_embeds, **named):
        return causal(config, inputs_embeds, window=config.sliding_window, **named)

    def refuse(name):
        refused.append(name)
        raise NotImplementedError(name)

    instead = {"create_causal_mask": causal, "create_sliding_window_causal_mask": sliding,
               **{name: lambda *_, name=name, **__: refuse(name) for name in REFUSED}}
    rooms = [room for path, room in list(sys.modules.items()) if path.startswith("transformers.models.")]
    before = [(room, name, vars(room)[name]) for room in rooms for name in instead if name in vars(room)]
    try:
        for room, name, _ in before:
            setattr(room, name, instead[name])
        yield
    finally:
        for room, name, own in before:
            setattr(room, name, own)

"""transformers makes masks otherwise while it is exported: a whole tensor where training has None and
is_causal, since what a mask of zeros and ones has in it is not known then."""

import contextlib
import inspect
import sys

from . import notes

SKIPS = (
    "_ignore_causal_mask_sdpa",
    "_ignore_bidirectional_mask_sdpa",
)  # what decides whether there is a mask
ASKED = ("is_torchdynamo_exporting", "is_tracing")  # and asks these


@contextlib.contextmanager
def hidden(torch, module, mode):
    """Within, masks are those of training: what makes them believes that nothing is exported, and looks into
    a mask that the model's code makes (of ones, where it is given none). A mask that is an input stays one,
    and one of a window is made where the length is open, which decides whether the window matters. `mode`:
    that of tensors without memory, in which the example's run has seen no values, or None."""
    with _models_untraced(), _masks_of_training(torch, module, mode):
        yield


@contextlib.contextmanager
def _models_untraced():
    """Models themselves ask before they make a mask of ones, without which some fail, and before they look at
    values."""
    name = "is_torchdynamo_compiling"
    rooms = [
        room
        for path, room in list(sys.modules.items())
        if path.startswith("transformers.models.") and name in vars(room)
    ]
    before = [vars(room)[name] for room in rooms]
    try:
        for room in rooms:
            setattr(room, name, lambda: False)
        yield
    finally:
        for room, asked in zip(rooms, before):
            setattr(room, name, asked)


@contextlib.contextmanager
def _masks_of_training(torch, module, mode):
    masks = sys.modules.get("transformers.masking_utils")
    before = {name: getattr(masks, name) for name in (*SKIPS, *ASKED) if hasattr(masks, name)}
    if len(before) < len(SKIPS) + len(ASKED):  # another version of transformers
        yield
        return
    honest = []

    def exporting():
        return before["is_torchdynamo_exporting"]() and bool(honest)

    def tracing(tensor=None):
        own = (
            mode is None
            and tensor is not None
            and notes.is_traced(torch, [tensor])
            and notes.is_constant(torch, module, tensor)
        )
        return before["is_tracing"](tensor) and not own

    def skips(original):
        signature = inspect.signature(original)

        def decided(*arguments, **named):
            given = signature.bind(*arguments, **named).arguments
            if given.get("local_attention_size") is None or isinstance(given.get("kv_length"), int):
                return original(*arguments, **named)
            honest.append(True)
            try:
                return original(*arguments, **named)
            finally:
                honest.pop()

        return decided

    instead = {
        **{name: skips(before[name]) for name in SKIPS},
        "is_torchdynamo_exporting": exporting,
        "is_tracing": tracing,
    }
    try:
        for name, function in instead.items():
            setattr(masks, name, function)
        yield
    finally:
        for name, function in before.items():
            setattr(masks, name, function)

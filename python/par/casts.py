"""torch.autocast in forward: ONNX has no such regions."""
import contextlib


@contextlib.contextmanager
def exportable(torch):
    """Within, autocast does nothing, and the dtypes that it would compute in are listed. torch.export would make each
    region one call, of one place in the model, and the exporter inlines it without its casts."""
    kind = torch.amp.autocast_mode.autocast
    enter, leave, found = kind.__enter__, kind.__exit__, []

    def entered(self):
        name = str(self.fast_dtype).removeprefix("torch.")
        if self._enabled and name not in found:
            found.append(name)
        return self

    kind.__enter__, kind.__exit__ = entered, lambda self, *_: False
    try:
        yield found
    finally:
        kind.__enter__, kind.__exit__ = enter, leave


def warning(dtypes):
    """The warning about them."""
    word = {"bfloat16": "bf16", "float16": "fp16"}.get(dtypes[0], dtypes[0])
    return (f"torch.autocast to {dtypes[0]} in forward is not in the file: Par computes as precision says, "
            f"e.g. precision: {word}")

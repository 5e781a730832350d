"""Arrays in memory as .safetensors files, which par-run reads."""
import json
import pathlib
import struct
from typing import Any

from . import tables
from .errors import Error


def as_file(arrays: Any, path: pathlib.Path, option: str) -> Any:
    """`arrays` as par-run takes it: a path stays, a dict of arrays is written to `path`; a list holds either.

    Tables of `datasets` are written as dicts are, where they are data.
    """
    if isinstance(arrays, (list, tuple)):
        return [as_file(one, path.with_name(f"{i}-{path.name}"), option) for i, one in enumerate(arrays)]
    if option.endswith("data") and tables.is_table(arrays):
        arrays = tables.columns(arrays)
    if not isinstance(arrays, dict):
        return arrays
    write({str(name): _view(value, f'{option}["{name}"]') for name, value in arrays.items()}, path)
    return path


def write(views, path):
    """Writes a dict of memoryviews: eight bytes of the header's length, the header in JSON, the arrays' bytes."""
    header, offset = {}, 0
    for name, view in views.items():
        header[name] = {"dtype": _type(view), "shape": list(view.shape), "data_offsets": [offset, offset + view.nbytes]}
        offset += view.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for view in views.values():
            out.write(view if view.c_contiguous else view.tobytes())


def _view(value, what):
    """The memory of a numpy array, a torch tensor or any other buffer of numbers."""
    if hasattr(value, "detach"):
        try:
            value = value.detach().cpu().numpy()
        except TypeError:
            pass  # bfloat16, which numpy has not
    try:
        view = memoryview(value)
    except (TypeError, ValueError):
        view = None
    if view is None or not _type(view):
        found = str(getattr(value, "dtype", type(value).__name__))
        raise Error(f"{what} is {found}; give a numpy array or a torch tensor of float, int or bool numbers, or a "
                    ".safetensors file", code=2)
    return view


def _type(view):
    """"F32": the name that safetensors has for the elements of a buffer, or None."""
    kind, bits = view.format.lstrip("@=<"), 8 * view.itemsize
    if kind == "?":
        return "BOOL"
    if kind == "B":
        return "U8"
    if kind in ("e", "f", "d"):
        return f"F{bits}"
    return f"I{bits}" if kind in ("b", "h", "i", "l", "q") else None

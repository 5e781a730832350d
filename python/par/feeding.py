"""Arrays of Python as addresses that the runtime reads, and its results as arrays."""
from __future__ import annotations

import ctypes
import sys
from typing import Any, Dict, Optional, Sequence, Tuple

from .errors import Error

# ParType of runtime/include/par/api/par.h, and the words of bundles.
WORDS = ("f32", "f64", "f16", "bf16", "i64", "i32", "i16", "i8", "u8", "i1")
CODES = {word: code for code, word in enumerate(WORDS)}
_NUMPY = {"f4": "f32", "f8": "f64", "f2": "f16", "i8": "i64", "i4": "i32", "i2": "i16", "i1": "i8", "u1": "u8",
          "b1": "i1"}
_TORCH = {"torch.float32": "f32", "torch.float64": "f64", "torch.float16": "f16", "torch.bfloat16": "bf16",
          "torch.int64": "i64", "torch.int32": "i32", "torch.int16": "i16", "torch.int8": "i8", "torch.uint8": "u8",
          "torch.bool": "i1"}
_FORMATS = {"e": "f16", "f": "f32", "d": "f64", "?": "i1", "B": "u8"}
_OF_NUMPY = {word: letters for letters, word in _NUMPY.items()}


class Fed:
    """An array in memory: the address of its first element, its type, its shape, and the owner that keeps it alive."""
    __slots__ = ("address", "word", "shape", "owner")

    def __init__(self, address: int, word: str, shape: Tuple[int, ...], owner: Any) -> None:
        self.address, self.word, self.shape, self.owner = address, word, shape, owner


def is_torch(value: Any) -> bool:
    """Whether it is a tensor of PyTorch, which is not imported for that."""
    return type(value).__module__.partition(".")[0] == "torch" or hasattr(value, "detach")


def fed(value: Any, name: str) -> Fed:
    """A numpy array, a tensor of PyTorch, a buffer, or an array with DLPack, without a copy where it is dense and in
    the host's memory. Raises par.Error for anything else."""
    if is_torch(value):
        return _of_torch(value, name)
    if hasattr(value, "__array_interface__"):
        return _of_numpy(value, name)
    if hasattr(value, "__dlpack__"):
        numpy = _numpy()
        if numpy is not None:
            return _of_numpy(numpy.from_dlpack(value), name)
    return _of_buffer(value, name)


def _of_torch(value: Any, name: str) -> Fed:
    tensor = value.detach()
    if tensor.device.type != "cpu":
        tensor = tensor.cpu()
    tensor = tensor.contiguous()
    word = _TORCH.get(str(tensor.dtype))
    if word is None:
        raise _refused(name, tensor.dtype)
    return Fed(tensor.data_ptr(), word, tuple(tensor.shape), tensor)


def _of_numpy(value: Any, name: str) -> Fed:
    facts = value.__array_interface__
    if facts.get("strides") is not None:
        value = value.copy(order="C")
        facts = value.__array_interface__
    word = _NUMPY.get(facts["typestr"][1:])
    if word is None or facts["typestr"][0] == (">" if sys.byteorder == "little" else "<"):
        raise _refused(name, getattr(value, "dtype", facts["typestr"]))
    return Fed(facts["data"][0], word, tuple(facts["shape"]), value)


def _of_buffer(value: Any, name: str) -> Fed:
    try:
        view = memoryview(value)
    except TypeError:
        raise _refused(name, type(value).__name__) from None
    letter = view.format.lstrip("@=<")
    word = _FORMATS.get(letter) or (f"i{8 * view.itemsize}" if letter in ("b", "h", "i", "l", "q") else None)
    if word is None:
        raise _refused(name, f"a buffer of format {view.format}")
    shape = view.shape or ()
    if not view.c_contiguous or view.readonly:  # ctypes takes the address of writable memory only
        view = memoryview(bytearray(view.tobytes()))
    return Fed(_address(view), word, shape, view)


def _address(view: Any) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(view)) if view.nbytes else 1


def _refused(name: str, what: object) -> Error:
    return Error(f"{name} is {what}; give a numpy array, a torch tensor or another array of float, int or bool numbers",
                 code=2, file=name)


def empty(word: str, shape: Sequence[int], torch: bool) -> Tuple[Any, int]:
    """An array for a tensor of the runtime, and its address: of PyTorch, of numpy, or where there is none a memoryview.
    bf16, which numpy has not, comes as its bits (uint16)."""
    if torch:
        import torch as library
        kinds = {name: getattr(library, text.partition(".")[2]) for text, name in _TORCH.items()}
        tensor = library.empty(tuple(shape), dtype=kinds[word])
        return tensor, tensor.data_ptr()
    numpy = _numpy()
    if numpy is not None:
        array = numpy.empty(tuple(shape), dtype="u2" if word == "bf16" else _OF_NUMPY[word])
        return array, array.__array_interface__["data"][0]
    letters = {"f32": "f", "f64": "d", "f16": "e", "bf16": "H", "i64": "q", "i32": "i", "i16": "h", "i8": "b",
               "u8": "B", "i1": "?"}
    count = 1
    for size in shape:
        count *= size
    memory: Any = memoryview(bytearray(max(1, count) * size_of(word)))
    view = memory[:count * size_of(word)].cast(letters[word])
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    return (view.cast("B").cast(letters[word], list(shape)) if count else view), address


def size_of(word: str) -> int:
    """Bytes of an element."""
    return {"f32": 4, "f64": 8, "f16": 2, "bf16": 2, "i64": 8, "i32": 4, "i16": 2}.get(word, 1)


_found: Dict[str, Any] = {}


def _numpy() -> Optional[Any]:
    """numpy where it is installed: nothing here needs it."""
    if "numpy" not in _found:
        try:
            import numpy
            _found["numpy"] = numpy
        except ImportError:
            _found["numpy"] = None
    return _found["numpy"]

"""par.compile and par.check of a module: exported on the way, its file beside the bundle, which takes its weights from
there."""
import contextlib
import os
import pathlib
import tempfile

from .errors import Error

EXPORTING = ("dynamic", "outputs", "opset", "weights")


def is_module(model):
    return hasattr(model, "named_parameters")


def read_call(model, arguments, plan, inputs, options):
    """(inputs, plan) of what follows `model`: a plan, or of a module inputs and a plan. Refuses what fits neither."""
    known = [name for name in options if name not in EXPORTING]
    if known:
        raise TypeError(f"par.compile has no argument {known[0]!r}")
    most = 2 if is_module(model) else 1
    if len(arguments) + (plan is not None) + (inputs is not None) > most:
        raise Error("par.compile takes " + ("a module, example inputs and a plan" if most == 2
                                            else "a model's file and a plan"), code=2)
    if not is_module(model):
        if options or inputs is not None:
            raise Error(f'"{next(iter(options), "inputs")}" is for a module; "{os.fspath(model)}" is exported already',
                        code=2)
        return None, plan if plan is not None or not arguments else arguments[0]
    given = list(arguments)
    if inputs is None:
        if not given:
            raise Error(f"par.compile of a module ({type(model).__name__}) needs example inputs", code=2,
                        notes=['par.compile(module, {"tokens": tokens}, plan, dynamic={"tokens": ["batch", "seq"]})'])
        inputs = given.pop(0)
    return inputs, plan if plan is not None or not given else given[0]


@contextlib.contextmanager
def beside(module, inputs, out, options):
    """Exports `module` to OUT.onnx beside the bundle OUT, and gives (its path, OUT). If the compilation then fails, the
    earlier file is put back, for the bundle to which it belongs."""
    from .export import export

    out = pathlib.Path(out or f"{type(module).__name__}.par")
    if not out.absolute().parent.is_dir():
        raise Error(f'"{out}" cannot be written: there is no folder "{out.parent}"', code=2)
    place = out.with_name(f"{out.name.rstrip('/')}.onnx")
    with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.absolute().parent) as folder:
        new, old = pathlib.Path(folder, "new"), pathlib.Path(folder, "old")
        new.mkdir()
        old.mkdir()
        export(module, inputs, new / place.name, **options)
        _move(place, old)
        try:
            _move(new / place.name, place.parent)
            yield place, out
        except BaseException:
            _move(place, new)
            _move(old / place.name, place.parent)
            raise


def _move(model, folder):
    """Moves a model's file and its data; what is not there stays so."""
    for file in (model.with_name(model.name + ".data"), model):
        if file.exists():
            os.replace(file, folder / file.name)


@contextlib.contextmanager
def structure(module, inputs, options):
    """The path of a file that goes again, without weights."""
    from .export import export

    with tempfile.TemporaryDirectory(prefix="par-check-") as folder:
        yield export(module, inputs, pathlib.Path(folder, f"{type(module).__name__}.onnx"),
                     **{**options, "weights": False})

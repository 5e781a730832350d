"""par.compile: a model and a plan to a bundle, as par-compile does."""
from __future__ import annotations

import ctypes
import os
from typing import Any, Optional, Union

from . import exported
from .bundle import Bundle
from .findings import take
from .libraries import CHECK, CHECK_PHASES, WITH_WEIGHTS, compiler
from .plan import compile_options


def compile(model: Any, *arguments: Any, plan: Any = None, inputs: Any = None, out: Any = None, set: Any = None,
            check_phases: bool = False, with_weights: bool = False, plugins: Any = (), **options: Any) -> Bundle:
    """Compiles a model under a plan and writes a bundle, once it is proved.

        par.compile("model.onnx", plan)
        par.compile(module, {"tokens": tokens}, plan, dynamic={"tokens": ["batch", "seq"]})

    model: path of a .onnx or .onnx.gz file; or a torch.nn.Module, which is exported first, with example inputs and the
    options of par.export (dynamic, outputs, opset, weights). Its file lies beside the bundle, OUT.onnx, where the
    bundle finds its weights.
    plan: path of a plan (docs/plan.md), a dict with its keys ({"mesh": {"dp": 4}, "train": {"loss": "cross_entropy"}}),
    or a list of files and then dicts, later ones overriding earlier ones; None is the empty plan: one rank, prediction.
    out: the folder to write; the default is the model's name + ".par" in the working directory.
    set: overrides that come last, {"batch.microbatches": 8} or ["batch.microbatches=8"].
    check_phases: interprets the program before and after every phase and compares; slow, for small models.
    with_weights: a copy of the model's weights goes into the bundle, which then needs no model.
    plugins: libraries that add ops, optimizers and passes (docs/plugins.md): a path or a list of these. Code of them
    runs in this process and stays loaded.

    Returns a Bundle. Raises par.Error with the place and all that is wrong (.findings); nothing is written then.
    Several threads may compile at once, and other Python threads run meanwhile.
    """
    inputs, plan = exported.read_call(model, arguments, plan, inputs, options)
    flags = (CHECK_PHASES if check_phases else 0) | (WITH_WEIGHTS if with_weights else 0)
    if not exported.is_module(model):
        text, folder, warnings, report = _run(model, plan, out, set, flags, plugins)
    else:
        with exported.beside(model, inputs, out, options) as (file, folder):
            text, folder, warnings, report = _run(file, plan, folder, set, flags, plugins)
    return Bundle(folder, summary=text, warnings=warnings, report=report)


def check(model: Any, *arguments: Any, plan: Any = None, inputs: Any = None, set: Any = None, plugins: Any = (),
          **options: Any) -> str:
    """All of par.compile but writing the bundle: the plan, the memory bound, the proof and the prediction.

    Returns the summary as text (bytes of a rank at its peak, what it sends in a step, the predicted step). Raises
    par.Error as par.compile does.
    """
    inputs, plan = exported.read_call(model, arguments, plan, inputs, options)
    if not exported.is_module(model):
        return _run(model, plan, None, set, CHECK, plugins)[0]
    with exported.structure(model, inputs, options) as file:
        return _run(file, plan, None, set, CHECK, plugins)[0]


def names(model: Union[str, os.PathLike[str]], kind: Optional[str] = None) -> str:
    """The names of `model` that a plan can use, as text: one a line with shape, type and bytes.

    kind: "params", "modules", "nodes" or "inputs"; None prints all. Raises par.Error.
    """
    library = compiler()
    return take(library, library.par_list(os.fsencode(model), None if kind is None else kind.encode()))[0]


def _run(model, plan, out, set, flags, plugins):
    library = compiler()
    with compile_options(model, plan, set, out, flags, plugins) as options:
        return take(library, library.par_compile(ctypes.byref(options)), options.places)

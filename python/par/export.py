"""torch.onnx.export for training: nothing folded, nothing merged, every parameter under its PyTorch name."""
from __future__ import annotations

import contextlib
import itertools
import os
import pathlib
import warnings
from typing import Any, Optional, Sequence, Union

from . import (attention, bags, branches, buffers, casts, checks, complexes, detached, experts, failures, gradients,
               hooks,
               inputs as examples, nested, probe, progress, selections, settings, structure, traced, translations)
from .arguments import Arguments
from .errors import Error

SIGNATURE = "pkg.torch.export.ExportedProgram.graph_signature"
LARGEST_MODEL = 1 << 30  # bytes of weights from which they lie in a file beside the model (protobuf ends at 2 GiB)


def export(module: Any, inputs: Any, path: Union[str, os.PathLike[str]], *, dynamic: Any = None,
           outputs: Optional[Sequence[str]] = None, opset: int = 20, weights: bool = True) -> str:
    """Writes `module` to the ONNX file `path` as Par trains it.

    module: a torch.nn.Module, in the mode it is to be trained in: as a whole in training mode, parts that are in eval
    mode (a frozen batch norm) stay so; as a whole in eval mode, all of it is exported in training mode. Dropout and
    batch norm thus do what they do in training. Every part is left in the mode it had.
    inputs: example inputs, a dict by the names of forward's arguments or a tuple, with *args, lists, dicts, dataclasses
    and None as forward has them. The file's inputs are the tensors in them, called x, xs.0 (of a list or *xs) and
    batch.tokens (of a dict or dataclass); anything else is a constant of the file. The file has the examples' shapes,
    except the dims of `dynamic`.
    dynamic: names of symbolic dims, for each input a list by dim (None: fixed) or a dict dim -> name: {"input_ids":
    ["batch", "seq"]}. The default fixes all. The same name is the same size. The examples must have 2 or more there:
    torch fixes sizes of 0 and 1.
    outputs: names of the outputs, in the order that the module returns them. The default: the names of a ModelOutput, a
    dataclass or a dict; `loss` for a scalar, else `output`, `output.1`, ...
    opset: of the file, 18 or more.
    weights: False exports only the structure, which needs no memory for weights: the module may lie on the meta device
    (`with torch.device("meta")`, accelerate's init_empty_weights). par-run takes the weights later, from --weights,
    such as a folder of safetensors files that Hugging Face wrote, or makes fresh ones, --init.

    ONNX holds forward's computation; metadata of the file holds PyTorch's rules for gradients, so that Par trains as
    PyTorch does: parameters that do not require them are frozen (another choice: train.only in the plan), padding_idx
    and scale_grad_by_freq of embeddings act as there, and `detach()` and `torch.no_grad()` stop gradients. Buffers that
    forward writes are state of the training step (par.buffers). There is a warning, and Par trains otherwise, for hooks
    on gradients and own `torch.autograd.Function`s, of which only forward is exported (those whose gradient would be
    lost are refused), for torch.autocast, which precision in the plan replaces, and for a branch on a tensor's value,
    of which the file holds the side that the example took. While it exports, `use_cache` and the like of transformers'
    configurations are off, and experts are matmuls of all tokens with all experts. docs/pytorch.md lists all changes.

    Returns the path. Raises par.Error where the module cannot be exported or the file lost a parameter or buffer that
    the module's forward uses; nothing is written then. Needs torch, onnx and onnxscript.
    """
    path = _target(path)
    torch = _torch()
    module = _unwrapped(torch, module)
    structure.check_weights(torch, module, weights)
    arguments = Arguments(torch, module, inputs)
    names, values = arguments.names, structure.examples(torch, arguments.values, weights)
    dims = examples.dynamic_dims(names, values, dynamic)
    attributes = [(vars(part), dict(vars(part)), hooks.held(part)) for part in module.modules()]
    if not module.training:
        module.train()
    before = [(value, value.detach().clone()) for value in module.buffers()]
    temporary = path.with_name(f".{path.name}.{os.getpid()}.onnx")
    try:
        with progress.line(f"par.export: PyTorch traces {_describe(module)}"), structure.without_memory(
            torch, module, weights) as mode:
            with settings.exportable(module), traced.hidden(torch, module, mode):
                versions = buffers.versions(module)
                found = probe.run(torch, module, arguments, values, mode)
                written, cumulative = buffers.written(torch, module, versions), buffers.cumulative(torch, module)
                _restore(torch, before)  # the file's statistics are those of before
                with contextlib.nullcontext() if found.plain else nested.flat(torch, module, arguments), \
                        buffers.returned(module, written), buffers.momenta(module, cumulative), \
                        experts.exportable(torch, module), gradients.tracing(torch) as functions, \
                        casts.exportable(torch) as dtypes, \
                        branches.exportable(torch, module, found.conditions, written) as followed, \
                        selections.exportable(torch, module, found.chosen, written):
                    program = _run_exporter(torch, module, names, values, dims, outputs or found.outputs, opset)
            buffers.note(torch, module, program, written)
            examples.check(program.model.graph, dims)
            _make_distinct(program.model.graph)
            used = _reaching_outputs(program.exported_program.graph, program.exported_program.graph_signature)
            _check(module, program, used)
            gradients.note(torch, module, program, used, cumulative)
            gradients.warn(functions)
            if hooked := hooks.found(torch, module) + found.hooked:
                warnings.warn(hooks.warning(hooked, gradients.some), stacklevel=2)
            if dtypes:
                warnings.warn(casts.warning(dtypes), stacklevel=2)
            if followed:
                warnings.warn(branches.warning(followed, gradients.some), stacklevel=2)
            _write(torch, module, program, temporary, path.name, weights)
        _move(temporary, path)
    finally:
        _remove(temporary)
        _restore(torch, before)
        for now, then, kept in attributes:  # the mode, and tensors of the exporter's that forward kept on the module
            for name in now.keys() - then.keys():
                del now[name]
            now.update(then)
            hooks.put_back(kept)
    return str(path)


def _target(path):
    """Says before the export, which takes a while, that the file cannot be written."""
    path = pathlib.Path(path)
    if path.is_dir():
        raise Error(f'"{path}" is a folder; the path of the ONNX file is needed, as {path / "model.onnx"}', code=2)
    if not path.parent.is_dir():
        raise Error(f'"{path}" cannot be written: there is no folder "{path.parent}"', code=2)
    return path


def _restore(torch, before):
    """A run in training mode moves batch norm's statistics. A buffer that forward made in place of another (ConViT's
    table of distances, for the size that it meets first) stays."""
    with torch.no_grad():
        for value, copy in before:
            value.copy_(copy)


def _torch():
    try:
        import onnx  # noqa: F401
        import onnxscript  # noqa: F401
        import torch
    except ImportError as missing:
        raise Error(f"par.export needs the package {missing.name}", code=2,
                    notes=["pip install torch onnx onnxscript"]) from missing
    return torch


def _unwrapped(torch, module):
    """The user's own module, of one that torch.compile or data parallelism wraps."""
    parallel = (torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel)
    while isinstance(module, parallel) or hasattr(module, "_orig_mod"):
        module = module.module if isinstance(module, parallel) else module._orig_mod
    return module


def _describe(module):
    """`LlamaForCausalLM (6738 M parameters)`."""
    count = sum(parameter.numel() for parameter in module.parameters())
    return type(module).__name__ + (f" ({count / 1e6:.0f} M parameters)" if count >= 1e6 else "")


@contextlib.contextmanager
def _without_gradients(module):
    """Within, no parameter requires a gradient: torch decomposes attention with a mask that requires one (T5, BEiT) to
    other strides than it traced, and fails. The file's marks of gradients (detach) stay."""
    needs = [parameter for parameter in module.parameters() if parameter.requires_grad]
    try:
        for parameter in needs:
            parameter.requires_grad_(False)
        yield
    finally:
        for parameter in needs:
            parameter.requires_grad_(True)


def _run_exporter(torch, module, names, values, dims, outputs, opset):
    shapes = examples.dynamic_shapes(torch, dims and dict(zip(nested.identifiers(names), dims.values())))
    try:
        with warnings.catch_warnings(), _without_gradients(module), attention.exportable(torch), bags.exportable(
            torch), \
                checks.exportable(torch), complexes.exportable(torch), detached.exportable(torch):
            warnings.filterwarnings("ignore", message="Exporting a model while it is in training mode")  # we want it
            warnings.filterwarnings("ignore", message="# The axis name")  # a symbol that several inputs share is fine
            return torch.onnx.export(module, (), kwargs=dict(zip(nested.identifiers(names), values)), dynamo=True,
                                     optimize=False,
                                     input_names=names, output_names=outputs, opset_version=opset, verbose=False,
                                     dynamic_shapes=shapes, custom_translation_table=translations.table(torch))
    except Error:
        raise
    except Exception as reason:
        raise failures.as_error(torch, reason) from reason


def _check(module, program, used):
    """Every parameter and buffer among the `used` names must be an initializer that a node reads."""
    signature = program.exported_program.graph_signature
    graph = program.model.graph
    held = {name for name, value in graph.initializers.items() if value.uses() or value.is_graph_output()}
    wanted = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
    lost = [target for name, target in wanted.items()
            if name in used and target not in held and not _tied(module, target, held)]
    if lost:
        raise Error(f"the exporter lost {len(lost)} of {len(wanted)} parameters and buffers: {', '.join(lost[:4])}"
                    + (f" and {len(lost) - 4} more" if len(lost) > 4 else ""),
                    notes=["this is a defect of the exporter or of par.export; the file was not written"])


def _make_distinct(graph):
    """Values get names that no parameter has: the exporter calls the result of a transpose `t`, and a parameter of that
    name so too, which makes two of them one in the file."""
    taken = {*graph.initializers, *(value.name for value in graph.inputs)}
    made = {value.name for node in graph.all_nodes() for value in node.outputs}
    for node in graph.all_nodes():
        for value in node.outputs:
            if value.name in taken:
                value.name = next(name for name in (f"{value.name}.{i}" for i in itertools.count(1))
                                  if name not in taken | made)
                taken.add(value.name)


def _reaching_outputs(graph, signature):
    """Names of the nodes on which the outputs depend; what only makes a buffer's next value (a counter) leaves the
    graph, and so does what nothing reads (Falcon's rotary tables beside ALiBi)."""
    output = next(node for node in graph.nodes if node.op == "output")
    found, ahead = set(), [node for node in output.all_input_nodes if node.name not in signature.buffers_to_mutate]
    while ahead:
        node = ahead.pop()
        if node.name not in found:
            found.add(node.name)
            ahead += node.all_input_nodes
    return found


def _tied(module, target, held):
    """Whether another name of the same tensor is held."""
    tensors = dict(module.named_parameters(remove_duplicate=False))
    tensors.update(module.named_buffers(remove_duplicate=False))
    return any(other is tensors.get(target) and name in held for name, other in tensors.items() if name != target)


def _write(torch, module, program, temporary, name, weights):
    if not weights:
        return structure.write(torch, program.model, temporary, name)
    held = sum(value.numel() * value.element_size() for value in (*module.parameters(), *module.buffers()))
    program.save(str(temporary), include_initializers=True, external_data=held > LARGEST_MODEL)


def _move(temporary, path):
    """The weights' file first: a model without its weights must never stand at `path`."""
    data = temporary.with_name(temporary.name + ".data")
    if not data.exists():
        os.replace(temporary, path)
        return
    import onnx
    model = onnx.load(str(temporary), load_external_data=False)
    for tensor in model.graph.initializer:
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = path.name + ".data"
    temporary.write_bytes(model.SerializeToString())
    os.replace(data, path.with_name(path.name + ".data"))
    os.replace(temporary, path)


def _remove(temporary):
    for file in (temporary, temporary.with_name(temporary.name + ".data")):
        file.unlink(missing_ok=True)

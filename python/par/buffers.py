"""Buffers that forward writes: a codebook's moving averages, a router's bias, spectral norm's vectors, counters.

They are outputs of the file that say which buffer they are the next value of; par-compile makes state of them
(docs/plan.md, 4).
"""
import contextlib
import functools

from .errors import Error

KEY = "par.updates"  # of an output's metadata
PREFIX = "par.next."


def versions(module):
    """State that shows whether a run of forward wrote a buffer: the tensor, and how often it was changed in place."""
    return {name: (buffer, buffer._version) for name, buffer in module.named_buffers()}


def written(torch, module, before):
    """Names of the buffers that a run of forward wrote since `before`, but batch norms' statistics, which their nodes
    move, and their counts of steps, which only those read that have no momentum."""
    own = _statistics(torch, module) - {_counter(name) for name in cumulative(torch, module)}
    return [name for name, buffer in module.named_buffers() if name not in own and name in before
            and (before[name][0] is not buffer or before[name][1] != buffer._version)]


def _statistics(torch, module):
    norms = torch.nn.modules.batchnorm._NormBase
    return {f"{name}.{buffer}".lstrip(".") for name, part in module.named_modules() if isinstance(part, norms)
            for buffer, _ in part.named_buffers(recurse=False)}


def cumulative(torch, module):
    """The batch norms whose moving statistics are the mean of all steps' (momentum=None)."""
    norms = torch.nn.modules.batchnorm._NormBase
    return [name for name, part in module.named_modules() if isinstance(part, norms) and part.momentum is None
            and part.training and part.num_batches_tracked is not None]


def _counter(name):
    return f"{name}.num_batches_tracked".lstrip(".")


@contextlib.contextmanager
def momenta(module, names):
    """Within, batch norms of these names have some momentum, since 1 / the number of steps is not a constant that the
    exporter can trace. par-compile uses the file's metadata (`par.training`) instead."""
    parts = dict(module.named_modules())
    try:
        for name in names:
            parts[name].momentum = 0.1
        yield
    finally:
        for name in names:
            parts[name].momentum = None


@contextlib.contextmanager
def returned(module, names):
    """Within, forward returns its results and then these buffers with their final values."""
    if not names:
        yield
        return
    forward, had = module.forward, "forward" in vars(module)

    @functools.wraps(forward)
    def giving(*arguments, **options):
        result = forward(*arguments, **options)
        held = dict(module.named_buffers())
        return result, [held[name].clone() for name in names]

    module.forward = giving
    try:
        yield
    finally:
        if had:
            module.forward = forward
        else:
            del module.forward


def _hold(graph, name, buffer):
    """Adds a buffer that the exporter left out because no node reads it, as spectral norm's vectors, which each step
    recomputes."""
    if name in graph.initializers:
        return
    import onnx_ir
    from onnx_ir.tensor_adapters import TorchTensor
    tensor = TorchTensor(buffer.detach().clone(), name=name)
    kind = onnx_ir.TensorType(tensor.dtype)
    graph.register_initializer(onnx_ir.Value(name=name, shape=tensor.shape, type=kind, const_value=tensor))


def note(torch, module, program, names):
    """Says of the outputs that the exporter made of them, the last ones, what they are. One that the graph does not
    write (a table that the first run of forward made) is none. Others that it writes are refused: the file would keep
    them."""
    mutated = set(program.exported_program.graph_signature.buffers_to_mutate.values())
    outputs = program.model.graph.outputs
    for output, name in zip(list(outputs)[len(outputs) - len(names):], names):
        if name in mutated:
            output.name = PREFIX + name
            output.metadata_props[KEY] = name
            _hold(program.model.graph, name, dict(module.named_buffers())[name])
        else:
            outputs.remove(output)
    if others := sorted(mutated - set(names) - _statistics(torch, module)):
        raise Error(f"forward writes the buffers {', '.join(others[:4])}{' and others' if len(others) > 4 else ''} "
                    f"when it is "
                    f"traced, and did not when it was run: what they become is not known",
                    notes=["call the module once before the export, so that what the first call makes is there"])

"""The example inputs of par.export, and which of their dims stay open."""
import inspect

from .errors import Error


def by_name(torch, module, inputs):
    """Names and values in the order of forward's arguments; arguments left out stay out. What is no tensor is a constant."""
    kinds = inspect.Parameter
    signature = inspect.signature(module.forward).parameters.values()
    named = [p for p in signature if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD, kinds.KEYWORD_ONLY)]
    parameters, forward = [p.name for p in named], f"forward of {type(module).__name__}"
    note = "its arguments are " + ", ".join(str(p) for p in signature)
    if isinstance(inputs, dict):
        unknown = [name for name in inputs if name not in parameters]
        if unknown:
            raise Error(f'{forward} has no argument "{unknown[0]}"', code=2, notes=[note])
        inputs = {name: inputs[name] for name in parameters if name in inputs}
    else:
        inputs = inputs if isinstance(inputs, (tuple, list)) else (inputs,)
        if len(inputs) > len(parameters):
            raise Error(f"{len(inputs)} inputs for {forward}, which takes {len(parameters)}", code=2)
        inputs = dict(zip(parameters, inputs))
    lacking = [p.name for p in named if p.default is p.empty and p.name not in inputs]
    if lacking:
        raise Error(f'{forward} needs "{lacking[0]}", for which there is no example', code=2, notes=[note])
    for name, value in inputs.items():
        if not isinstance(value, (torch.Tensor, bool, int, float, str, type(None))):
            raise Error(f'input "{name}" is a {type(value).__name__}, and the inputs of a file are tensors', code=2,
                        notes=["export a module whose forward takes each tensor as an argument and calls this one"])
        if name in {*dict(module.named_parameters()), *dict(module.named_buffers())}:
            raise Error(f'input "{name}" is called as a parameter or buffer of {type(module).__name__}, and a file holds one of a '
                        f'name', code=2, notes=["give forward's argument another name"])
    return list(inputs), [_apart(torch, value) for value in inputs.values()]


def _apart(torch, value):
    """torch.export takes one tensor that stands for two inputs (labels=input_ids) as one input that is read twice."""
    return value.detach().clone().requires_grad_(value.requires_grad) if isinstance(value, torch.Tensor) else value


def dynamic_dims(names, values, dynamic):
    """{input: {dim: symbol}} of what the caller said, with dims counted from 0; None if nothing is dynamic."""
    if not dynamic:
        return None
    unknown = [name for name in dynamic if name not in names]
    if unknown:
        raise Error(f'dynamic names "{unknown[0]}", which is no input', code=2, notes=["inputs are " + ", ".join(names)])
    dims, sizes = {}, {}
    for name, value in zip(names, values):
        dims[name] = {} if hasattr(value, "ndim") else None
        for dim, symbol in _said(name, value, dynamic.get(name)):
            if not -value.ndim <= dim < value.ndim:
                raise Error(f'dynamic names dim {dim} of "{name}", which has {value.ndim}', code=2)
            dim %= value.ndim
            if value.shape[dim] < 2:
                raise Error(f'dim {dim} of the example for "{name}" is {value.shape[dim]}, and dynamic calls it "{symbol}":'
                            f" torch fixes sizes of 0 and 1, so the file would hold no other", code=2,
                            notes=[f'give an example whose "{symbol}" is 2 or more; any size then trains'])
            size, first = sizes.setdefault(symbol, (value.shape[dim], f'dim {dim} of "{name}"'))
            if size != value.shape[dim]:
                raise Error(f'"{symbol}" is {size} in {first} and {value.shape[dim]} in dim {dim} of "{name}": what dynamic calls '
                            f"alike has one size", code=2, notes=["two sizes need two names; where one is meant, the examples must agree"])
            dims[name][dim] = symbol
    return dims


def _said(name, value, said):
    """What `dynamic` says of one input, as pairs of a dim and its symbol."""
    if said is None:
        return []
    if not isinstance(said, (list, tuple, dict)):
        raise Error(f'dynamic says {said!r} of "{name}", which is neither a list by dim nor a dict', code=2,
                    notes=['for instance ["batch", None], or {0: "batch"}'])
    if not hasattr(value, "ndim"):
        raise Error(f'dynamic names dims of "{name}", which is a {type(value).__name__} and no tensor', code=2)
    pairs = list(said.items() if isinstance(said, dict) else enumerate(said))
    for dim, symbol in pairs:
        if not hasattr(dim, "__index__"):
            raise Error(f'dynamic names dim {dim!r} of "{name}", which is no number', code=2, notes=['for instance {0: "batch"}'])
        if symbol is not None and not (isinstance(symbol, str) and symbol.isidentifier()):
            raise Error(f'dynamic calls dim {dim} of "{name}" {symbol!r}, which is no name', code=2,
                        notes=["None leaves a dim as the example has it"])
    return [(dim, symbol) for dim, symbol in pairs if symbol is not None]


def check(graph, dims):
    """torch.export makes a dim that was asked to be open as fixed as what it meets, without a word."""
    for value in graph.inputs:
        for dim, symbol in ((dims or {}).get(value.name) or {}).items():
            if value.shape is not None and isinstance(value.shape[dim], int):
                others = f'; if other inputs have "{symbol}" too, say so for each of them' if len(graph.inputs) > 1 else ""
                raise Error(f'dim {dim} of "{value.name}", which dynamic calls "{symbol}", came out as {value.shape[dim]}: forward '
                            f"needs it to be that, or meets it with a dim that is fixed", code=2,
                            notes=["None in its place in dynamic leaves it fixed" + others])


def dynamic_shapes(torch, dims):
    """The same as torch.export takes it: one Dim a symbol."""
    if dims is None:
        return None
    symbols = {}
    return {name: said and {dim: symbols.setdefault(symbol, torch.export.Dim(symbol)) for dim, symbol in said.items()}
            for name, said in dims.items()}

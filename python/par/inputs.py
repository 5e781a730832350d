"""Which dims of par.export's example inputs stay open."""
from .errors import Error


def dynamic_dims(names, values, dynamic):
    """{input: {dim: symbol}} of what the caller said, with dims counted from 0; None if nothing is dynamic."""
    if not dynamic:
        return None
    unknown = [name for name in dynamic if name not in names]
    if unknown:
        raise Error(f'dynamic names "{unknown[0]}", which is no input', code=2,
                    notes=["inputs are " + ", ".join(names)])
    dims, sizes = {}, {}
    for name, value in zip(names, values):
        dims[name] = {} if hasattr(value, "ndim") else None
        for dim, symbol in _said(name, value, dynamic.get(name)):
            if not -value.ndim <= dim < value.ndim:
                raise Error(f'dynamic names dim {dim} of "{name}", which has {value.ndim}', code=2)
            dim %= value.ndim
            if value.shape[dim] < 2:
                raise Error(f'dim {dim} of the example for "{name}" is {value.shape[dim]}, and dynamic calls it '
                            f'"{symbol}":'
                            f" torch fixes sizes of 0 and 1, so the file would hold no other", code=2,
                            notes=[f'give an example whose "{symbol}" is 2 or more; any size then trains'])
            size, first = sizes.setdefault(symbol, (value.shape[dim], f'dim {dim} of "{name}"'))
            if size != value.shape[dim]:
                raise Error(f'"{symbol}" is {size} in {first} and {value.shape[dim]} in dim {dim} of "{name}": what '
                            f'dynamic calls '
                            f"alike has one size", code=2,
                            notes=["two sizes need two names; where one is meant, the examples must agree"])
            dims[name][dim] = symbol
    return dims


def _said(name, value, said):
    """The part of `dynamic` for one input, as pairs of a dim and its symbol."""
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
            raise Error(f'dynamic names dim {dim!r} of "{name}", which is no number', code=2,
                        notes=['for instance {0: "batch"}'])
        if symbol is not None and not (isinstance(symbol, str) and symbol.isidentifier()):
            raise Error(f'dynamic calls dim {dim} of "{name}" {symbol!r}, which is no name', code=2,
                        notes=["None leaves a dim as the example has it"])
    return [(dim, symbol) for dim, symbol in pairs if symbol is not None]


def check(graph, dims):
    """torch.export makes a dim that was asked to be open as fixed as what it meets, without a word."""
    for value in graph.inputs:
        for dim, symbol in ((dims or {}).get(value.name) or {}).items():
            if value.shape is not None and isinstance(value.shape[dim], int):
                others = f'; if other inputs have "{symbol}" too, say so for each of them' if len(
                    graph.inputs) > 1 else ""
                raise Error(f'dim {dim} of "{value.name}", which dynamic calls "{symbol}", came out as '
                            f'{value.shape[dim]}: forward '
                            f"needs it to be that, or meets it with a dim that is fixed", code=2,
                            notes=["None in its place in dynamic leaves it fixed" + others])


def dynamic_shapes(torch, dims):
    """The same as torch.export takes it: one Dim a symbol."""
    if dims is None:
        return None
    symbols = {}
    return {name: said and {dim: symbols.setdefault(symbol, torch.export.Dim(symbol)) for dim, symbol in said.items()}
            for name, said in dims.items()}

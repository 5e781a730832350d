"""A failure of the exporter as a par.Error that names the place and the way out."""
import os
import re
import traceback

from .errors import Error

BY_DATA = {"GuardOnDataDependentSymNode", "DynamicOutputShapeException", "DataDependentOutputException",
           "PendingUnbackedSymbolNotFound"}
UNTRACED = ("fake tensor in the exported program constant", "does not require grad and does not have a grad_fn")


def as_error(torch, reason):
    """The exporter's own errors have many types; the innermost says what was wrong."""
    root, chain = reason, [reason]
    while root.__cause__ is not None:
        root = root.__cause__
        chain.append(root)
    notes = [] if root is reason else [f"{type(root).__name__}: {_first_line(root)}"]
    place = _place(torch, chain) or _place_of_node(torch, chain)
    if place:
        notes.append(f"{place}: this call")
    if type(root).__name__ in BY_DATA:
        notes.append("a size or a branch depends on data there, which an ahead-of-time program cannot hold: compute "
                     "everything and choose by a mask (torch.where, weights of 0, ignore_index of a loss)")
    if type(root).__name__ == "DispatchError":
        notes.append("the exporter has no ONNX for that operator: write it from others there (matmuls, sums, sort, "
                     "topk, gather, where), or from smaller parts")
    if taken := re.search(r"attribute '(\w+)' already exists", str(root)):
        notes.append(f'PyTorch\'s graph has a "{taken[1]}" of its own: call that parameter, buffer or module otherwise')
    if any(text in str(root) for text in UNTRACED):
        notes.append(
            "torch traces no torch.autograd.grad in forward, nor a tensor that forward gets past it: compute it by "
            "operators")
    if "complex-valued" in str(root):
        notes.append("few operators take complex numbers in ONNX (matmuls, view, view_as_real do): write cos and sin "
                     "apart, as most rotary positions do, or give the tensor its shape by view")
    return Error(f"torch.onnx.export failed: {_first_line(reason)}", notes=notes)


def of_forward(torch, module, reason, mode):
    """Forward's own error, on the example. `mode`: that of tensors without memory, or None."""
    place = _place(torch, [reason])
    notes = [f"{place}: this call"] if place else []
    if mode is not None and type(reason).__name__ in BY_DATA:
        notes.append("a size or a branch depends on values there, and weights=False has none: export with weights")
    return Error(f"forward of {type(module).__name__} fails on the example: {type(reason).__name__}: "
                 f"{_first_line(reason)}",
                 code=2, notes=notes)


def _place(torch, chain):
    """The line of forward that failed, of what PyTorch says or of the innermost frame that is not its own."""
    text = str(chain[0])
    said = re.search(r'raised this error:\s+File "([^"]+)", line (\d+)', text) or _last(
        re.findall(r'File "([^"]+)", line (\d+)', text.partition("Original traceback:")[2]))
    if said and not (said[1] if isinstance(said, re.Match) else said[0]).startswith(os.path.dirname(__file__)):
        return f"{said[1]}:{said[2]}" if isinstance(said, re.Match) else ":".join(said)
    own = [os.path.dirname(module.__file__) for module in (torch, os)] + [os.path.dirname(__file__)]
    frames = [frame for one in reversed(chain) for frame in traceback.extract_tb(one.__traceback__)]
    users = [frame for frame in frames if os.path.isfile(frame.filename) and not frame.filename.startswith(tuple(own))
             and "site-packages" not in frame.filename and frame.name == "forward"]
    return f"{users[-1].filename}:{users[-1].lineno}" if users else None


def _place_of_node(torch, chain):
    """The line of forward that the node of PyTorch's graph is from which the exporter could not translate."""
    for one in chain:
        for frame, _ in traceback.walk_tb(one.__traceback__):
            node = frame.f_locals.get("node")
            if isinstance(node, torch.fx.Node):
                said = _last(re.findall(r'File "([^"]+)", line (\d+)', node.stack_trace or ""))
                if said:
                    return ":".join(said)
    return None


def _last(found):
    return found[-1] if found else None


def _first_line(reason):
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(reason)).strip().splitlines()
    return re.sub(r" This is step \d/\d of .*", "", text[0]) if text else type(reason).__name__

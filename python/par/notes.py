"""Facts from a run of the module on its example that the exporter's run, whose tensors have no values, cannot know."""

import sys


class Notes:
    """Values by their place in the code and in the order of the calls there."""

    def __init__(self):
        self._values, self._next = {}, {}

    def add(self, place, value):
        self._values.setdefault(place, []).append(value)

    def rewind(self):
        """Forward begins once more."""
        self._next.clear()

    def next(self, place):
        """The note of this call at this place; None if the example's run had none."""
        values, number = self._values.get(place, ()), self._next.get(place, 0)
        self._next[place] = number + 1
        return values[number] if number < len(values) else None


def place():
    """The code that called the caller, and where in it: a line may call twice."""
    frame = sys._getframe(2)
    return frame.f_code, frame.f_lasti


def line(place):
    code, at = place
    number = next((line for start, end, line in code.co_lines() if start <= at < end), code.co_firstlineno)
    return f"{code.co_filename}:{number}"


def is_traced(torch, values):
    """Whether one of the values is a tensor of the exporter's run."""
    return any(isinstance(value, torch._subclasses.FakeTensor) for value in values)


def is_constant(torch, module, tensor, written=()):
    """Whether a tensor of the exporter's run is made only of the code's constants and of buffers. `written`: the
    buffers that forward writes, which do not count as constant."""
    from torch.fx.experimental import proxy_tensor

    mode = proxy_tensor.get_proxy_mode()
    if mode is None or mode.tracer is None:
        return False

    def node_of(value):
        slot = proxy_tensor.get_proxy_slot(value, mode.tracer, None)
        return getattr(getattr(slot, "proxy", None), "node", None)

    first = node_of(tensor)
    fixed = {
        node_of(buffer)
        for name, buffer in module.named_buffers()
        if name not in written and isinstance(buffer, torch._subclasses.FakeTensor)
    }
    if first is None:
        return False
    found, ahead, shared = set(), [first], _aliases(torch, first.graph)
    while ahead:
        node = ahead.pop()
        if node.op == "placeholder" and node not in fixed:
            return False
        if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
            return False  # drawn again in each step
        if node not in found:
            found.add(node)
            ahead += shared.get(node, [])
            ahead += node.all_input_nodes
    return True


def _aliases(torch, graph):
    """{node: nodes that may share its memory}: what is written into a view is in the tensor, too."""
    groups = {}
    for node in graph.nodes:
        schema = getattr(node.target, "_schema", None)
        if (
            node.op != "call_function"
            or schema is None
            or not any(result.alias_info for result in schema.returns)
        ):
            continue
        together = groups.setdefault(node, [node])
        for argument, said in zip(node.args, schema.arguments):
            if isinstance(argument, torch.fx.Node) and said.alias_info:
                together += (
                    members for members in groups.get(argument, [argument]) if members not in together
                )
        for member in together:
            groups[member] = together
    return groups

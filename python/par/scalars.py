"""torch.add and torch.sub of a number and a tensor, in that order, which the exporter's promotion of types
knows no operator for."""


def turn(torch, graph_module):
    """number + alpha * tensor becomes alpha * tensor + number, and the difference likewise."""
    aten = torch.ops.aten
    for part in graph_module.modules():
        if not isinstance(part, torch.fx.GraphModule):
            continue
        for node in list(part.graph.nodes):
            if node.target not in (aten.add.Tensor, aten.sub.Tensor) or not isinstance(
                node.args[0], (bool, int, float)
            ):
                continue
            number, tensor = node.args
            factor = node.kwargs.get("alpha", 1)
            factor = factor if node.target is aten.add.Tensor else -factor
            with part.graph.inserting_before(node):
                scaled = part.graph.call_function(aten.mul.Tensor, (tensor, factor))
                scaled.meta = dict(node.meta)
            node.target, node.args, node.kwargs = aten.add.Tensor, (scaled, number), {}
        part.recompile()

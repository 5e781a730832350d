"""How PyTorch differentiates a module, where no ONNX operator says it: what par.export adds to the file, or warns
of."""
import contextlib
import json
import warnings

from . import functions, scalars
from .errors import Error

KEY = "par.training"  # of the model's metadata; read by par-compile (docs/plan.md, 4)
TIED = "par.tied"
VERSION = 1


def note(torch, module, program, used, cumulative):
    """Writes parameters without gradients, the further names of tied ones and the embeddings that mask or scale theirs
    into the file's metadata. `used`: the names of PyTorch's graph that an output depends on. `cumulative`:
    batch norms whose statistics are the mean of all steps'."""
    said = {}
    frozen = _frozen(module, program.model.graph.initializers)
    if frozen:
        said["frozen"] = frozen
    embeddings = _embeddings(torch, program, used)
    if embeddings:
        said["embeddings"] = embeddings
    if cumulative:
        said["cumulative"] = cumulative
    tied = _tied(module, program.model.graph.initializers)
    if tied:
        program.model.metadata_props[TIED] = json.dumps(tied)
    if said:
        program.model.metadata_props[KEY] = json.dumps({"version": VERSION, **said})


def _frozen(module, initializers):
    """Initializers that need no gradient; a tied one bears one of its names."""
    return [name for name, parameter in module.named_parameters(remove_duplicate=False)
            if not parameter.requires_grad and name in initializers]


def _tied(module, initializers):
    """The further names of each parameter that has several, whether a node of that module reads it or not, and the one
    in the file."""
    names = {}
    for name, parameter in module.named_parameters(remove_duplicate=False):
        names.setdefault(id(parameter), []).append(name)
    owners = {name: next((other for other in each if other in initializers), None) for each in names.values()
              for name in each}
    return {name: owner for name, owner in owners.items() if owner and name not in initializers}


def _gradient_of(torch, node):
    """padding_idx and scale_grad_by_freq of an embedding; (-1, False) of others."""
    if node.target is not torch.ops.aten.embedding.default:
        return -1, False
    padding = node.args[2] if len(node.args) > 2 else node.kwargs.get("padding_idx", -1)
    by_frequency = node.args[3] if len(node.args) > 3 else node.kwargs.get("scale_grad_by_freq", False)
    return padding, by_frequency


def _check_branches(torch, graph_module, inside=False):
    """Refuses embeddings in a body of control flow: the file names only those of its own graph, so that they would
    train wrongly."""
    control = {getattr(torch.ops.higher_order, name, None) for name in ("cond", "while_loop", "scan")}
    for node in graph_module.graph.nodes:
        if inside and _gradient_of(torch, node) != (-1, False):
            raise Error("an embedding with padding_idx or scale_grad_by_freq in a branch of torch.cond, or a body of "
                        "while_loop or "
                        "scan, is not supported", notes=["look it up before the branch"])
        if node.op == "call_function" and node.target in control:
            for body in node.all_input_nodes:
                part = getattr(graph_module, str(body.target), None) if body.op == "get_attr" else None
                if isinstance(part, torch.fx.GraphModule):
                    _check_branches(torch, part, inside=True)


def _embeddings(torch, program, used):
    """The nodes of embeddings whose gradient is not that of a lookup, by what PyTorch's own graph says of each call: a
    tied head or another lookup of the same table keeps the whole gradient."""
    _check_branches(torch, program.exported_program.graph_module)
    calls = {}
    for node in program.exported_program.graph.nodes:
        if node.target is torch.ops.aten.embedding_renorm.default:
            raise Error("forward uses an embedding with max_norm, which rescales rows of its weight where it looks "
                        "them up; "
                        "no training step holds that",
                        notes=["take max_norm off, or rescale in forward what was looked up"])
        padding, by_frequency = _gradient_of(torch, node) if node.name in used else (-1, False)
        if padding >= 0 or by_frequency:
            calls[node.name] = (padding, by_frequency)
    found = []
    for node in program.model.graph:
        call = node.metadata_props.get("pkg.torch.onnx.fx_node", "").split(" ")[0].removeprefix("%")
        if node.op_type == "Gather" and call in calls:
            padding, by_frequency = calls.pop(call)
            entry = {"node": node.name}
            if padding >= 0:
                entry["padding_row"] = padding
            if by_frequency:
                entry["scale_by_frequency"] = True
            found.append(entry)
    if calls:
        raise Error(f"the exporter left no trace of the embedding {next(iter(calls))}, "
                    "whose gradient is not a lookup's",
                    notes=["this is a defect of the exporter or of par.export; the file was not written"])
    return found


def warn(functions):
    """Says what of the module's training the file does not hold. `functions`: the own ones that forward used."""
    if functions:
        warnings.warn(f"the backward of {some(functions)} (torch.autograd.Function) is not in the file: Par "
                      f"differentiates "
                      f"what its forward computes", stacklevel=3)


def some(names):
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


@contextlib.contextmanager
def tracing(torch):
    """While the exporter traces: what `torch.no_grad()` makes is detached, and own autograd functions are listed.

    torch.export keeps a region without gradients as one call, which the exporter then inlines as if it had some.
    `Module.to`, which casts under no_grad what keeps its gradient, does nothing where there is nothing to cast (the
    routers of Switch call it in each forward).
    """
    export, names = torch.export.export, []

    def exported(*arguments, **options):
        program = export(*arguments, **options)
        _detach_regions(torch, program.graph_module)
        scalars.turn(torch, program.graph_module)
        return program

    def called(cls, *_):
        if cls.__name__ not in names:
            names.append(cls.__name__)

    move = torch.nn.Module.to

    def moved(module, *arguments, **options):
        device, dtype = torch._C._nn._parse_to(*arguments, **options)[:2]
        tensors = [*module.parameters(), *module.buffers()]
        same = all(device in (None, t.device) and (dtype in (None, t.dtype) or not t.is_floating_point())
                   for t in tensors)
        return module if same else move(module, *arguments, **options)

    torch.export.export, torch.nn.Module.to = exported, moved
    try:
        with functions.calls(torch, called):
            yield names
    finally:
        torch.export.export, torch.nn.Module.to = export, move


def _detach_regions(torch, graph_module):
    """Puts a detach after every float that leaves a region without gradients."""
    region = torch.ops.higher_order.wrap_with_set_grad_enabled
    for part in graph_module.modules():
        if not isinstance(part, torch.fx.GraphModule):
            continue
        for call in list(part.graph.nodes):
            if call.op != "call_function" or call.target is not region or call.args[0]:
                continue
            for result in list(call.users):
                value = result.meta.get("val")
                if isinstance(value, torch.Tensor) and value.is_floating_point():
                    _detach(torch, part.graph, result)
        part.recompile()


def _detach(torch, graph, result):
    users = [user for user in result.users if user.op != "output"]  # the signature knows results by their names
    with graph.inserting_after(result):
        detached = graph.call_function(torch.ops.aten.detach.default, (result,))
    detached.meta = dict(result.meta)
    for user in users:
        user.replace_input_with(result, detached)

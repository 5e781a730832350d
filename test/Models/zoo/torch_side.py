#!/usr/bin/env python3
"""PyTorch's part of the zoo, in a process of its own: exports a recipe's model, or trains it for a few steps.

    torch_side.py NAME FOLDER export      model.onnx, data.safetensors, and what `first` writes
    torch_side.py NAME FOLDER first       first.json: first loss and norm of its gradient
    torch_side.py NAME FOLDER exact       exact.json: the same in float64
    torch_side.py NAME FOLDER reordered   reordered.json: the same in float32 with sums in another order
    torch_side.py NAME FOLDER nudge       nudged-weights.safetensors: the last bit of every weight is another
    torch_side.py NAME FOLDER double      f64/model.onnx, f64/data.safetensors: the model and its data in float64;
    double.json: whether
                                          it rounds to float32 by itself, as losses of OPT and norms of T5 do
    torch_side.py NAME FOLDER time        time.json: an eager step's time and peak memory, one thread

NAME@plans is the recipe as the plans run it.

Needs torch and the recipe's library.
"""
import json
import pathlib
import sys
import time
import warnings

import torch
from recipe import build, data, first_batch, import_wrappers
from zoo import find

STEPS = 5  # the first is not timed; as many as Par takes (real_models.py)


def has_batch_norm(module):
    return any(isinstance(part, torch.nn.modules.batchnorm._BatchNorm) for part in module.modules())


def export(recipe, folder):
    import_wrappers()
    import par
    from safetensors.torch import save_file
    module, arrays = build(recipe), data(recipe)
    begin = time.monotonic()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        par.export(module, first_batch(recipe, arrays), folder / "model.onnx")
    facts = {"parameters": sum(weights.numel() for weights in module.parameters()),
             "batch_norm": has_batch_norm(module),
             "export_s": round(time.monotonic() - begin, 1),
             "warnings": [str(each.message) for each in said if "in Par" in str(each.message)]}
    save_file(arrays, str(folder / "data.safetensors"))
    write_first(module, first_batch(recipe, arrays), folder / "first.json")
    (folder / "facts.json").write_text(json.dumps(facts))


def write_first(module, batch, path):
    path.write_text(json.dumps(loss_and_norm(module, batch)))


def loss_and_norm(module, batch):
    loss = module(**batch)
    loss.backward()
    return {"loss": loss.item(), "norm": gradient_norm(module)}


def first(recipe, folder):
    write_first(build(recipe), first_batch(recipe, data(recipe)), folder / "first.json")


def gradient_norm(module):
    gradients = [weights.grad.double() for weights in module.parameters() if weights.grad is not None]
    return torch.sqrt(sum((gradient ** 2).sum() for gradient in gradients)).item()


def high_water():
    """MiB that this process held at its peak."""
    line = next(line for line in pathlib.Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def doubles(arrays):
    return {name: values.double() if values.is_floating_point() else values for name, values in arrays.items()}


def double(recipe, folder):
    import_wrappers()
    import onnx
    import par
    from safetensors.torch import save_file
    (folder / "f64").mkdir(exist_ok=True)
    arrays = doubles(data(recipe))
    par.export(build(recipe).double(), first_batch(recipe, arrays), folder / "f64/model.onnx")
    save_file(arrays, str(folder / "f64/data.safetensors"))
    graph = onnx.load(folder / "f64/model.onnx", load_external_data=False).graph
    single = any(node.op_type == "Cast" and attribute.name == "to" and attribute.i == onnx.TensorProto.FLOAT
                 for node in graph.node for attribute in node.attribute)
    (folder / "double.json").write_text(json.dumps({"single": single}))


def exact(recipe, folder):
    """In float64."""
    found = loss_and_norm(build(recipe).double(), doubles(first_batch(recipe, data(recipe))))
    (folder / "exact.json").write_text(json.dumps(found))


def reordered(recipe, folder):
    """As float32 with channels last, whose kernels add in another order, a sample of what rounding may do."""
    last = {name: values.contiguous(memory_format=torch.channels_last) if values.ndim == 4 else values
            for name, values in first_batch(recipe, data(recipe)).items()}
    found = loss_and_norm(build(recipe).to(memory_format=torch.channels_last), last)
    (folder / "reordered.json").write_text(json.dumps(found))


def nudge(recipe, folder):
    from safetensors.torch import save_file
    weights = {name: (values.detach().contiguous().view(torch.int32) ^ 1).view(torch.float32).clone()
               for name, values in build(recipe).named_parameters(remove_duplicate=False)}
    save_file(weights, str(folder / "nudged-weights.safetensors"))
    (folder / "nudge.json").write_text(json.dumps({"weights": len(weights)}))


def step_time(recipe, folder):
    """Times of steps that take the norm of the gradient, as Par's do."""
    torch.set_num_threads(1)
    module, arrays = build(recipe), data(recipe, STEPS)
    optimizer = torch.optim.SGD(module.parameters(), lr=1e-3)
    walls, cpus = [], []
    for step in range(STEPS):
        batch = {name: values[step * recipe.batch:(step + 1) * recipe.batch] for name, values in arrays.items()}
        wall, cpu = time.perf_counter(), time.process_time()
        optimizer.zero_grad()
        module(**batch).backward()
        torch.nn.utils.get_total_norm([weights.grad for weights in module.parameters() if weights.grad is not None])
        optimizer.step()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    found = {"wall_s": min(walls[1:]), "cpu_s": min(cpus[1:]), "peak_mib": high_water()}
    (folder / "time.json").write_text(json.dumps(found))


def main():
    name, folder, what = sys.argv[1:]
    parts = {"export": export, "first": first, "exact": exact, "reordered": reordered, "nudge": nudge, "double": double,
             "time": step_time}
    parts[what](find(name), pathlib.Path(folder))


if __name__ == "__main__":
    main()

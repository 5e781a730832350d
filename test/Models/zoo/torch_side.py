#!/usr/bin/env python3
"""PyTorch's part of the zoo, in a process of its own: exports a recipe's model, or trains it for a few steps.

    torch_side.py NAME FOLDER export      model.onnx and data.safetensors
    torch_side.py NAME FOLDER eager       reference.json: losses, norm of the first gradient, a step's time, peak memory
    torch_side.py NAME FOLDER double      double.json: first loss and norm in float64

Needs torch and the recipe's library. One thread in all but export.
"""
import json
import pathlib
import sys
import time
import warnings

import torch
from recipe import build, data, first_batch, import_wrappers
from zoo import RECIPES

STEPS = 3  # the first is not timed


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
    facts = {"parameters": sum(weights.numel() for weights in module.parameters()), "batch_norm": has_batch_norm(module),
             "export_s": round(time.monotonic() - begin, 1),
             "warnings": [str(each.message) for each in said if "in Par" in str(each.message)]}
    save_file(arrays, str(folder / "data.safetensors"))
    (folder / "facts.json").write_text(json.dumps(facts))


def gradient_norm(module):
    return torch.sqrt(sum((weights.grad.double() ** 2).sum() for weights in module.parameters() if weights.grad is not None)).item()


def high_water():
    """MiB that this process held at its peak."""
    line = next(line for line in pathlib.Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def eager(recipe, folder):
    module, arrays = build(recipe), data(recipe)
    rate = 1e-3 if has_batch_norm(module) else 1e-2
    optimizer = torch.optim.SGD(module.parameters(), lr=rate)
    losses, walls, cpus, norm = [], [], [], None
    for step in range(STEPS):
        batch = {name: values[step * recipe.batch:(step + 1) * recipe.batch] for name, values in arrays.items()}
        wall, cpu = time.perf_counter(), time.process_time()
        optimizer.zero_grad()
        loss = module(**batch)
        loss.backward()
        norm = norm or gradient_norm(module)
        optimizer.step()
        losses.append(loss.item())
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    (folder / "reference.json").write_text(json.dumps({
        "losses": losses, "norm": norm, "wall_s": min(walls[1:]), "cpu_s": min(cpus[1:]), "peak_mib": high_water()}))


def double(recipe, folder):
    module = build(recipe).double()
    batch = {name: values.double() if values.is_floating_point() else values
             for name, values in first_batch(recipe, data(recipe)).items()}
    loss = module(**batch)
    loss.backward()
    (folder / "double.json").write_text(json.dumps({"loss": loss.item(), "norm": gradient_norm(module)}))


def main():
    name, folder, what = sys.argv[1:]
    if what != "export":
        torch.set_num_threads(1)
    {"export": export, "eager": eager, "double": double}[what](RECIPES[name], pathlib.Path(folder))


if __name__ == "__main__":
    main()

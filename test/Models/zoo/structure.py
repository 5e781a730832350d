#!/usr/bin/env python3
"""Exports models without their weights: external data in a file that does not exist.

    structure.py NAME... --out FOLDER     of big.py: traced on fake tensors, so that 70 billion parameters need no
    memory
    structure.py --wide [NAME...] --out FOLDER    of wide.py, packed and without the lines of Python
    structure.py --suite [NAME...] --out FOLDER   of suite.py, without the weights and where the lines of Python stood;
    models
                                                  with batch norm in float64 too, in FOLDER/f64

Buffers keep their values: positions, inverse frequencies and masks are part of the structure.
"""
import argparse
import dataclasses
import gzip
import importlib
import pathlib
import sys
import tempfile
import time

from recipe import build_transformers, data, import_wrappers

KIND = "pkg.torch.export.graph_signature.InputSpec.kind"


def of_one_layer(recipe, keys):
    """The recipe with one layer, whose buffers are those of every layer."""
    return dataclasses.replace(recipe, sizes={key: 1 if key in keys else size for key, size in recipe.sizes.items()})


class Untouched:
    """Within it, weights are allocated and not written: the pages are never there."""

    def __enter__(self):
        import torch
        self.saved = {name: getattr(torch.Tensor, name)
                      for name in ("normal_", "uniform_", "fill_", "zero_", "trunc_normal_")
                      if hasattr(torch.Tensor, name)}

        def skip(original):
            return lambda tensor, *more, **named: tensor if tensor.numel() > 1 << 20 else original(
                tensor, *more, **named)

        for name, original in self.saved.items():
            setattr(torch.Tensor, name, skip(original))

    def __exit__(self, *_):
        import torch
        for name, original in self.saved.items():
            setattr(torch.Tensor, name, original)


def buffers_of(recipe, keys):
    """Values of the buffers by name, layers counted as 0."""
    with Untouched():
        return {name: value.clone() for name, value in build_transformers(of_one_layer(recipe, keys)).named_buffers()}


def same_in_layer_0(name):
    return ".".join("0" if part.isdigit() else part for part in name.split("."))


def export_big(recipe, keys, path, lines=True):
    """Writes the model, with the lines of Python or without, and returns its number of parameters."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
    import_wrappers()
    exporting, experts = importlib.import_module("par.export"), importlib.import_module("par.experts")
    buffers = buffers_of(recipe, keys)
    arrays = data(recipe, steps=1)
    with FakeTensorMode(allow_non_fake_inputs=True):
        module = build_transformers(recipe)
        module.train()
        examples = [torch.zeros_like(each) for each in arrays.values()]
        with experts.exportable(torch, module):
            program = exporting._run_exporter(torch, module, list(arrays), examples, None, ["loss"], 20)
    offset, parameters = 0, {name for name, _ in module.named_parameters(remove_duplicate=False)}
    for name, value in program.model.graph.initializers.items():
        if name in parameters:
            value.const_value, offset = absent(name, value.const_value, offset)
        else:
            raw = value.const_value.raw
            # Forward's values computed from numbers: a tensor that is not fake, or one that remembers its value.
            lifted = getattr(raw, "constant", None) if isinstance(raw, FakeTensor) else raw
            value.const_value = present(name, buffers.get(same_in_layer_0(name), lifted))
    if not lines:
        drop_lines(program.model)
    save(program.model, path)
    return sum(weights.numel() for weights in module.parameters())


def absent(name, tensor, offset):
    """The tensor as external data from `offset`, and what follows it."""
    import onnx_ir
    data_type, shape = tensor.dtype, tensor.shape
    length = int(data_type.itemsize)
    for size in shape:
        length *= int(size)
    return onnx_ir.ExternalTensor("weights.bin", offset, length, data_type, shape=shape, name=name), offset + length


def present(name, value):
    import onnx_ir
    return onnx_ir.Tensor(value.detach().numpy(), name=name)


def save(model, path):
    import onnx_ir
    data_bytes = onnx_ir.to_proto(model).SerializeToString()
    path = pathlib.Path(path)
    # Equal files for equal models: gzip would write the time.
    path.write_bytes(gzip.compress(data_bytes, mtime=0) if path.suffix == ".gz" else data_bytes)


def strip(source, to):
    """A copy of an export without the values of parameters and the lines of Python."""
    import onnx_ir
    model, offset = onnx_ir.load(source), 0
    for name, value in model.graph.initializers.items():
        if value.metadata_props.get(KIND) == "PARAMETER":
            value.const_value, offset = absent(name, value.const_value, offset)
    drop_lines(model)
    save(model, to)


def drop_lines(model):
    """Removes the lines of Python from which nodes come."""
    for node in model.graph:
        for key in ("pkg.torch.onnx.stack_trace", "pkg.torch.onnx.fx_node"):
            node.metadata_props.pop(key, None)


def export_suite(names, folder):
    import torch_side
    from suite import SUITE
    for recipe in SUITE:
        if not names or recipe.name in names:
            with tempfile.TemporaryDirectory() as work:
                model, kept = pathlib.Path(work) / "model.onnx", folder / f"{recipe.name}.onnx.gz"
                torch_side.export(recipe, model.parent)
                strip(model, kept)
                if torch_side.has_batch_norm(torch_side.build(recipe)):
                    torch_side.double(recipe, model.parent)
                    (folder / "f64").mkdir(exist_ok=True)
                    strip(model.parent / "f64/model.onnx", folder / "f64" / kept.name)
            print(f"{recipe.name:20} {kept.stat().st_size:,} bytes", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--suite", action="store_true")
    parser.add_argument("--wide", action="store_true")
    options = parser.parse_args()
    if options.suite:
        return export_suite(options.names, options.out)
    from big import BIG, LAYERS
    from wide import WIDE
    known = {recipe.name: recipe for recipe in (WIDE if options.wide else BIG)}
    ending = ".onnx.gz" if options.wide else ".onnx"
    for name in options.names or known:
        begin = time.monotonic()
        try:
            count = export_big(known[name], LAYERS, options.out / f"{name}{ending}", lines=not options.wide)
            print(f"{name:20} {count / 1e9:6.2f} B parameters, {time.monotonic() - begin:.0f} s", flush=True)
        # the exporter's own errors have many types; the next model is not this one's matter
        except Exception as reason:
            print(f"{name:20} {type(reason).__name__}: {str(reason).strip().splitlines()[:1]}", flush=True)


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Exports modules of train_modules.py and train_architectures.py into a folder, with their data and the losses of ten
steps of PyTorch in float64, so that the suite, which has no torch, can train them (test/Execute/exported.test).

    python3 python/tests/write_references.py test/Execute/Inputs/exported
"""
import gzip
import json
import pathlib
import sys
import tempfile

import torch
import train_architectures
import train_modules
from safetensors.torch import save_file
from train_architectures import STEPS, doubled, optimizer_of, par, rate, torch_losses

NAMES = ("frozen", "frozen_norm", "frequency_padding", "padding", "no_grad", "bends", "mixtral", "gpt_oss",
         "deepseek_v3")


def write(name, folder):
    make, feed = {**train_modules.MODULES, **train_architectures.ARCHITECTURES}[name]
    torch.manual_seed(7)
    module, data = make(), feed()
    with tempfile.TemporaryDirectory() as place:
        model = pathlib.Path(place) / "model.onnx"
        par.export(module, {name: values.chunk(STEPS)[0] for name, values in data.items()}, model)
        (folder / f"{name}.onnx.gz").write_bytes(gzip.compress(model.read_bytes(), mtime=0))
    save_file(data, str(folder / f"{name}.safetensors"))
    return {"optimizer": {"kind": optimizer_of(module), "lr": rate(module)},
            "losses": torch_losses(*doubled(module, data))}


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    (folder / "references.json").write_text(json.dumps({name: write(name, folder) for name in NAMES}, indent=1) + "\n")

#!/usr/bin/env python3
"""Exports the models on which the plans of docs/plan.md §2 are run, without their weights: export.py --out FOLDER.
Needs torch.

gpt2    the names that the page speaks of, twelve layers as its cuts want them, as small as eight ranks allow
decoder decoder/export.py --size page --structure decoder
vgg     torchvision's VGG-16, sixteen times as narrow, for images of 32 x 32, without dropout
parts   what the page's other plans name: `embedding`, `layers`, `experts.w1` and `.w2` (stacked), `fc`
"""
import argparse
import pathlib
import sys
import tempfile

import torch
import transformers
from torchvision.models import vgg

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path += [str(ROOT / "python"), str(ROOT / "test/Models/zoo")]
import par  # noqa: E402
from structure import strip  # noqa: E402


class Experts(torch.nn.Module):
    """Every token sees every expert."""

    def __init__(self, count, width):
        super().__init__()
        self.gate = torch.nn.Linear(width, count, bias=False)
        self.w1 = torch.nn.Parameter(torch.randn(count, width, 2 * width) * 0.1)
        self.w2 = torch.nn.Parameter(torch.randn(count, 2 * width, width) * 0.1)

    def forward(self, x):
        shares = torch.softmax(self.gate(x), dim=-1)
        inner = torch.tanh(torch.einsum("bsd,edh->ebsh", x, self.w1))
        return torch.einsum("ebsh,ehd,bse->bsd", inner, self.w2, shares)


class Parts(torch.nn.Module):
    def __init__(self, symbols=64, width=32):
        super().__init__()
        self.embedding = torch.nn.Embedding(symbols, width)
        self.layers = torch.nn.ModuleList(torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.Tanh())
                                          for _ in range(4))
        self.experts = Experts(4, width)
        self.fc = torch.nn.Linear(width, symbols)

    def forward(self, input_ids):
        x = self.embedding(input_ids)
        for layer in self.layers:
            x = x + layer(x)
        return self.fc(x + self.experts(x))


def gpt2():
    config = transformers.GPT2Config(n_layer=12, n_embd=32, n_head=4, n_positions=16, vocab_size=64, use_cache=False,
                                     resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, attn_implementation="eager")
    return transformers.GPT2LMHeadModel(config)


def narrow_vgg(divide=16):
    """VGG-16 for images of 32 x 32. Without dropout: an asynchronous schedule has one counter of random numbers for all
    stages."""
    widths = [step if step == "M" else step // divide for step in vgg.cfgs["D"]]
    model = vgg.VGG(vgg.make_layers(widths), num_classes=10, dropout=0.0)
    for number, (inner, outer) in {0: (512 * 49 // divide, 256), 3: (256, 256), 6: (256, 10)}.items():
        model.classifier[number] = torch.nn.Linear(inner, outer)
    return model


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    ids, images = {"input_ids": torch.zeros(2, 16, dtype=torch.int64)}, {"x": torch.zeros(2, 3, 32, 32)}
    for name, module, inputs in (("gpt2", gpt2(), ids), ("parts", Parts(), ids), ("vgg", narrow_vgg(), images)):
        with tempfile.TemporaryDirectory() as work:
            file = pathlib.Path(work) / "model.onnx"
            dynamic = {name: ["batch", *[None] * (value.dim() - 1)] for name, value in inputs.items()}
            par.export(module, inputs, file, dynamic=dynamic, outputs=["logits"])
            strip(file, options.out / f"{name}.onnx.gz")


if __name__ == "__main__":
    main()

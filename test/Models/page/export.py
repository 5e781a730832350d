#!/usr/bin/env python3
"""Exports the models on which the plans of docs/plan.md §2 are run, without their weights: export.py --out FOLDER. Needs torch.

gpt2    the names that the page speaks of, twelve layers as its cuts want them, as small as eight ranks allow
decoder decoder/export.py --size page --structure decoder
parts   what the page's other plans name: `embedding`, `layers`, `experts.w1` and `.w2` (stacked), `fc`
"""
import argparse
import pathlib
import sys
import tempfile

import torch
import transformers

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
        self.layers = torch.nn.ModuleList(torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.Tanh()) for _ in range(4))
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    for name, module in (("gpt2", gpt2()), ("parts", Parts())):
        with tempfile.TemporaryDirectory() as work:
            file = pathlib.Path(work) / "model.onnx"
            ids = torch.zeros(2, 16, dtype=torch.int64)
            par.export(module, {"input_ids": ids}, file, dynamic={"input_ids": ["batch", None]}, outputs=["logits"])
            strip(file, options.out / f"{name}.onnx.gz")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Exports the model that bubbles.py and the table "Without a flush" are measured on, with random tokens:
FOLDER/gpt8.onnx, FOLDER/gpt8.safetensors.

    python3 bench/gpt8.py FOLDER

GPT-2 with 8 layers of 512, vocabulary 256, head untied, at transformers' other defaults (all dropouts 0.1); 64 rows of
128 tokens. Needs torch, transformers, onnx, onnxscript and safetensors, as test/Models/zoo/README.md installs them. The
seed is fixed.
"""
import pathlib
import sys

import torch
from safetensors.torch import save_file
from transformers import GPT2Config, GPT2LMHeadModel

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import par  # noqa: E402


class Named(torch.nn.Module):
    """With GPT-2's own names of parameters, and only logits as its output."""

    def __init__(self):
        super().__init__()
        model = GPT2LMHeadModel(GPT2Config(vocab_size=256, n_positions=128, n_embd=512, n_layer=8, n_head=8,
                                           tie_word_embeddings=False, use_cache=False))
        self.transformer, self.lm_head = model.transformer, model.lm_head

    def forward(self, input_ids):
        return self.lm_head(self.transformer(input_ids, use_cache=False)[0])


def main():
    folder = pathlib.Path(sys.argv[1])
    torch.manual_seed(0)
    model, example = Named(), torch.randint(0, 256, (2, 128))
    par.export(model, {"input_ids": example}, folder / "gpt8.onnx", dynamic={"input_ids": ["batch", "seq"]},
               outputs=["logits"])
    tokens = torch.randint(0, 256, (64, 129))
    save_file({"input_ids": tokens[:, :128].contiguous(), "labels": tokens[:, 1:].contiguous()},
              str(folder / "gpt8.safetensors"))


if __name__ == "__main__":
    main()

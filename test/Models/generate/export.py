#!/usr/bin/env python3
"""Exports a small Mistral with a window for test/Models/generate.py, and PyTorch's tokens: export.py --out FOLDER.
Needs torch and transformers. FOLDER gets model.onnx and tokens.json: prompts, and what `generate` makes of each.
"""
import argparse
import json
import pathlib
import sys

import torch
import transformers

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "python"))
import par  # noqa: E402

LENGTHS, NEW = (5, 2, 11, 1, 20), 64
KEPT = ("namespace",)


def strip(path):
    """Leaves out the lines of Python, most of the file."""
    import onnx

    model = onnx.load(path)
    for node in model.graph.node:
        kept = [entry for entry in node.metadata_props if entry.key in KEPT]
        del node.metadata_props[:]
        node.metadata_props.extend(kept)
    onnx.save(model, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, required=True)
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(1)
    config = transformers.MistralConfig(
        hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        vocab_size=96, max_position_embeddings=256, sliding_window=9)
    model = transformers.MistralForCausalLM(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:  # as different tokens as a trained one chooses
                parameter.normal_(0, 0.3)
    prompts = [torch.randint(0, 96, (length,)).tolist() for length in LENGTHS]
    tokens = [model.generate(torch.tensor([prompt]), do_sample=False, max_new_tokens=NEW, eos_token_id=None,
                             pad_token_id=0)[0, len(prompt):].tolist() for prompt in prompts]
    strip(par.export_decoder(model, out / "model.onnx"))
    (out / "tokens.json").write_text(json.dumps({"prompts": prompts, "tokens": tokens}) + "\n")
    print(f"{len({token for each in tokens for token in each})} different tokens")


if __name__ == "__main__":
    main()

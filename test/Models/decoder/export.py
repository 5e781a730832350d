#!/usr/bin/env python3
"""Exports GPT-2 for decoding, one call a token, and PyTorch's tokens: export.py --out FOLDER [--size small|gpt2].
Needs torch.

The caches have a fixed length; each call shifts them by its new rows. `next_token`, `next_position` and `present.*` are
the inputs `last`, `position` and `past.*` of the next call. An id below 0 stands for the token that the call before has
chosen: a file of ids is a prompt, then a -1 for each requested token. FOLDER gets model.onnx,
data.safetensors (ids, call after call) and tokens.json (the chosen tokens, the same). --structure gives model.onnx.gz
without weights instead, whose dims are open.
"""
import argparse
import json
import pathlib
import sys

import torch
import transformers

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path += [str(ROOT / "python"), str(ROOT / "test/Models"), str(ROOT / "test/Models/zoo")]
import par  # noqa: E402
from runs import write_safetensors  # noqa: E402

SIZES = {
    "small": dict(n_layer=2, n_embd=24, n_head=4, n_positions=64, vocab_size=61),
    "page": dict(n_layer=12, n_embd=32, n_head=4, n_positions=2048, vocab_size=64),
    "gpt2": {},
}
BATCH, PROMPT, CALLS = 4, 5, 20
DECODER = """
def forward(self, ids, last, position, {past}):
    return self.call(ids, last, position, [{past}])
"""


class Decoder(torch.nn.Module):
    """The parameters of a GPT-2 under their own names, and a forward that takes and gives the caches."""

    def __init__(self, model):
        super().__init__()
        self.transformer, self.lm_head, self.heads = model.transformer, model.lm_head, model.config.n_head

    def apart(self, x):
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def attend(self, attn, x, keys, values, mask):
        query, key, value = (self.apart(part) for part in attn.c_attn(x).split(x.shape[-1], -1))
        keys = torch.cat([keys, key], 2)[:, :, x.shape[1]:]
        values = torch.cat([values, value], 2)[:, :, x.shape[1]:]
        attended = torch.nn.functional.scaled_dot_product_attention(query, keys, values, attn_mask=mask)
        return attn.c_proj(attended.transpose(1, 2).flatten(2)), keys, values

    def call(self, ids, last, position, past):
        new, kept = torch.arange(ids.shape[1]), torch.arange(past[0].shape[2])
        place = kept + position + ids.shape[1] - past[0].shape[2]  # of what a cache holds; below 0: nothing yet
        mask = (place >= 0) & (place <= (position + new)[:, None])
        x = self.transformer.wte(torch.where(ids < 0, last, ids)) + self.transformer.wpe(position + new)
        present = []
        for number, block in enumerate(self.transformer.h):
            attended, keys, values = self.attend(block.attn, block.ln_1(x), *past[2 * number:2 * number + 2], mask)
            x = x + attended
            x = x + block.mlp(block.ln_2(x))
            present += [keys, values]
        chosen = self.lm_head(self.transformer.ln_f(x[:, -1:])).argmax(-1)
        return (chosen, chosen.clone(), position + ids.shape[1], *present)


def make(size):
    """The decoder, an example of its inputs, and the names of its outputs. A file names each tensor, so forward
    does."""
    config = transformers.GPT2Config(**SIZES[size], use_cache=False, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    torch.manual_seed(1)
    decoder = Decoder(transformers.GPT2LMHeadModel(config))
    with torch.no_grad():
        for name, parameter in decoder.named_parameters():
            if parameter.dim() > 1:  # as different tokens as a trained one chooses
                parameter.normal_(0, 0.3 if size != "gpt2" or "wte" in name else 0.05)
    names = [f"{half}{i}" for i in range(config.n_layer) for half in ("key", "value")]
    made = {}
    exec(DECODER.format(past=", ".join(f"past_{name}" for name in names)), made)
    Decoder.forward = made["forward"]
    width = config.n_embd // config.n_head
    inputs = {"ids": torch.zeros(BATCH, 2, dtype=torch.int64), "last": torch.zeros(BATCH, 1, dtype=torch.int64),
              "position": torch.zeros(1, dtype=torch.int64)}
    inputs |= {f"past_{name}": torch.zeros(BATCH, config.n_head, 32, width) for name in names}
    return decoder, inputs, ["token", "next_token", "next_position"] + [f"present_{name}" for name in names]


@torch.no_grad()
def decode(decoder, inputs):
    """Ids and chosen tokens of every call, (calls, batch)."""
    ids = torch.full((CALLS, BATCH, 1), -1)
    ids[:PROMPT] = torch.randint(0, decoder.lm_head.out_features, (PROMPT, BATCH, 1))
    state, tokens = list(inputs.values())[1:], []
    for call in ids:
        token, *state = decoder(call, *state)
        tokens.append(token.flatten().tolist())
    return ids.squeeze(2).tolist(), tokens


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--structure", metavar="NAME", help="writes NAME.onnx.gz without weights")
    options = parser.parse_args()
    decoder, inputs, outputs = make(options.size)
    caches = {name: ["batch", None, "past", None] for name in inputs if name.startswith("past_")}
    dynamic = {"ids": ["batch", "seq"], "last": ["batch", None], **caches}
    model = options.out / "model.onnx"
    options.out.mkdir(parents=True, exist_ok=True)
    par.export(decoder, inputs, model, dynamic=dynamic, outputs=outputs)
    if options.structure:
        from structure import strip
        strip(model, options.out / f"{options.structure}.onnx.gz")
        return model.unlink()
    ids, tokens = decode(decoder, inputs)
    write_safetensors(options.out / "data.safetensors",
                      {"ids": ([CALLS * BATCH, 1], [number for call in ids for number in call])})
    (options.out / "tokens.json").write_text(json.dumps(tokens) + "\n")
    print(f"{len({token for call in tokens for token in call})} different tokens in {CALLS} calls of {BATCH}")


if __name__ == "__main__":
    main()

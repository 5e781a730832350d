#!/usr/bin/env python3
"""Decoders of transformers beside `generate`: small, with random weights, greedy, 64 tokens of three prompts.

    decode_models.py [NAME...] [--plan one] [--keep FOLDER]

Each is exported by par.export_decoder, compiled for one rank, tp 2 and pp 2 with a prefill of 8 tokens a call, and run.
A line a model and plan; exit status 0: all tokens are the same. Needs torch and transformers.
"""
import argparse
import os
import pathlib
import sys
import tempfile
import time
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import par  # noqa: E402

PROMPTS, NEW = ([5, 17, 3, 9, 11], [7, 2], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]), 64
SMALL = dict(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, vocab_size=96,
             max_position_embeddings=256)
GROUPED = dict(SMALL, num_key_value_heads=2)
WIDE = dict(GROUPED, head_dim=8)
LATENT = dict(SMALL, kv_lora_rank=16, q_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=8, v_head_dim=8)
OLD = dict(n_embd=32, n_layer=2, n_head=4, vocab_size=96, n_positions=256)
MODELS = {  # the first ten are the issue's
    "Llama": GROUPED, "Qwen2": GROUPED, "Qwen3": WIDE, "Mistral": dict(GROUPED, sliding_window=9),
    "Gemma": dict(WIDE, tie_word_embeddings=False),
    "Gemma2": dict(WIDE, sliding_window=9, tie_word_embeddings=False), "Phi": SMALL, "GPT2": OLD,
    "Mixtral": dict(GROUPED, num_local_experts=4, num_experts_per_tok=2, sliding_window=None), "GPTNeoX": SMALL,
    "OPT": dict(hidden_size=32, ffn_dim=64, num_hidden_layers=2, num_attention_heads=4, vocab_size=96,
                max_position_embeddings=256, word_embed_proj_dim=32),
    "Bloom": dict(hidden_size=32, n_layer=2, n_head=4, vocab_size=96),
    "Falcon": dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, vocab_size=96),
    "GPTJ": dict(OLD, rotary_dim=4), "Phi3": dict(GROUPED, pad_token_id=0),
    "Starcoder2": dict(GROUPED, sliding_window=9), "StableLm": GROUPED,
    "Gemma3Text": dict(WIDE, sliding_window=9, tie_word_embeddings=False),
    "Mpt": dict(d_model=32, n_layers=2, n_heads=4, vocab_size=96), "Olmo2": dict(GROUPED, pad_token_id=0),
    "Cohere": GROUPED, "GptOss": dict(WIDE, num_local_experts=4, num_experts_per_tok=2, sliding_window=9),
    "GPTBigCode": OLD, "Apertus": GROUPED, "Arcee": GROUPED, "BioGpt": SMALL, "CodeGen": dict(OLD, rotary_dim=4),
    "Cohere2": dict(WIDE, sliding_window=9), "DeepseekV3": dict(
        LATENT, n_routed_experts=4, num_experts_per_tok=2, n_group=2, topk_group=1, moe_intermediate_size=32,
        first_k_dense_replace=1, n_shared_experts=1),
    "Ernie4_5": WIDE, "Exaone4": dict(GROUPED, sliding_window=9, sliding_window_pattern=2),
    "Glm": dict(WIDE, pad_token_id=0), "Glm4": dict(WIDE, pad_token_id=0),
    "GPTNeo": dict(hidden_size=32, num_layers=2, num_heads=4, vocab_size=96, max_position_embeddings=256,
                   attention_types=[[["global", "local"], 1]], window_size=9, intermediate_size=64),
    "Granite": GROUPED, "Helium": WIDE, "HunYuanDenseV1": WIDE, "MiniCPM3": LATENT,
    "Ministral": dict(WIDE, sliding_window=9), "Nemotron": WIDE, "Olmo": dict(GROUPED, pad_token_id=0),
    "Olmo3": dict(GROUPED, sliding_window=9, pad_token_id=0),
    "Olmoe": dict(GROUPED, num_experts=4, num_experts_per_tok=2, pad_token_id=0), "Persimmon": SMALL,
    "Phimoe": dict(GROUPED, num_local_experts=4),
    "Qwen2Moe": dict(GROUPED, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32,
                     shared_expert_intermediate_size=64, decoder_sparse_step=1),
    "Qwen3Moe": dict(WIDE, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32), "SeedOss": WIDE,
    "SmolLM3": dict(GROUPED, pad_token_id=0),
    "XGLM": dict(d_model=32, ffn_dim=64, num_layers=2, attention_heads=4, vocab_size=96, max_position_embeddings=256),
}
CACHE = {"carry": {"present.*": "past.*"}, "dims": {"seq": 1, "cache": 96}, "prefill": {"seq": 8}, "batch": 3}
PLANS = {"one": {}, "tp2": {"use": ["megatron"], "mesh": {"tp": 2}}, "pp2": {"mesh": {"pp": 2}}}
REFUSED = {("GPTBigCode", "tp2"): "blocks is 3"}  # one head of keys beside all of queries: megatron cannot cut it so


def build(name):
    """A model whose logits spread, so that it chooses different tokens."""
    import torch
    import transformers

    torch.manual_seed(1)
    model = transformers.AutoModelForCausalLM.from_config(getattr(transformers, f"{name}Config")(**MODELS[name]))
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0, 0.3)
    return model.eval()


def wanted_of(model):
    import torch

    return [model.generate(torch.tensor([prompt]), do_sample=False, max_new_tokens=NEW, min_new_tokens=NEW,
                           eos_token_id=None, pad_token_id=0)[0, len(prompt):].tolist() for prompt in PROMPTS]


def attempt(name, path, plan, folder, wanted):
    """How many tokens differ, or the refusal as text."""
    try:
        bundle = par.compile(path, [CACHE, PLANS[plan]], out=folder / f"{name}-{plan}.par")
        with par.Decoder(bundle) as decoder:
            got = decoder.generate(PROMPTS, max_new_tokens=NEW)
    except par.Error as error:
        return error.message
    return sum(a != b for mine, theirs in zip(got, wanted) for a, b in zip(mine, theirs))


def check(name, plans, folder):
    """The model's lines; how many of them fail."""
    began, failed = time.monotonic(), 0
    model = build(name)
    wanted = wanted_of(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = par.export_decoder(model, folder / f"{name}.onnx")
    print(f"{name}: {len({token for one in wanted for token in one})} different tokens, exported in "
          f"{time.monotonic() - began:.0f} s", flush=True)
    for plan in plans:
        outcome, refusal = attempt(name, path, plan, folder, wanted), REFUSED.get((name, plan))
        held = outcome == 0 if refusal is None else refusal in str(outcome)
        failed += not held
        said = f"{outcome} of {NEW * len(PROMPTS)} tokens differ" if isinstance(outcome, int) else f"refused: {outcome}"
        print(f"{name} {plan}: {said}   {'pass' if held else 'FAIL'}", flush=True)
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(MODELS))
    parser.add_argument("--plan", action="append", choices=PLANS)
    parser.add_argument("--keep", type=pathlib.Path, help="models and bundles stay in this folder")
    parser.add_argument("--bin", type=pathlib.Path, help="of a build; default: as par finds it")
    options = parser.parse_args()
    if options.bin:
        os.environ["PAR_HOME"] = str(options.bin.resolve().parent)
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    with tempfile.TemporaryDirectory(prefix="par-decode-") as scratch:
        folder = options.keep or pathlib.Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        failed = sum(check(name, options.plan or PLANS, folder) for name in options.names or MODELS)
    print(f"{failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()

"""Models of 7 to 70 billion parameters, to be planned and not to be run: published sizes, sequences of 2,048 to
8,192."""
from recipe import decoder

BATCH = 32  # 8 microbatches of one sample on each of 4 replicas
ROTARY = dict(rope_type="default", rope_theta=10000.0)


def big(name, model, length, layers, width, heads, wide, vocabulary, layer_key="num_hidden_layers", **more):
    """`wide` is the width inside the MLP."""
    sizes = {"vocab_size": vocabulary, "hidden_size": width, layer_key: layers, "num_attention_heads": heads,
             "intermediate_size": wide, "max_position_embeddings": length, **more}
    return decoder(name, model, {key: size for key, size in sizes.items() if size is not None}, length=length,
                   batch=BATCH)


BIG = [
    big("llama-2-7b", "LlamaForCausalLM", 4096, 32, 4096, 32, 11008, 32000, rope_parameters=ROTARY),
    big("llama-2-13b", "LlamaForCausalLM", 4096, 40, 5120, 40, 13824, 32000, rope_parameters=ROTARY),
    big("llama-2-70b", "LlamaForCausalLM", 4096, 80, 8192, 64, 28672, 32000, num_key_value_heads=8,
        rope_parameters=ROTARY),
    big("llama-3-8b", "LlamaForCausalLM", 8192, 32, 4096, 32, 14336, 128256, num_key_value_heads=8,
        rope_parameters={**ROTARY, "rope_theta": 500000.0}),
    big("mistral-7b", "MistralForCausalLM", 8192, 32, 4096, 32, 14336, 32000, num_key_value_heads=8,
        sliding_window=4096,
        rope_parameters=ROTARY),
    big("qwen2.5-7b", "Qwen2ForCausalLM", 4096, 28, 3584, 28, 18944, 152064, num_key_value_heads=4,
        rope_parameters={**ROTARY, "rope_theta": 1e6}),
    big("qwen2.5-32b", "Qwen2ForCausalLM", 4096, 64, 5120, 40, 27648, 152064, num_key_value_heads=8,
        rope_parameters={**ROTARY, "rope_theta": 1e6}),
    big("gemma-7b", "GemmaForCausalLM", 8192, 28, 3072, 16, 24576, 256000, num_key_value_heads=16, head_dim=256),
    big("falcon-7b", "FalconForCausalLM", 2048, 32, 4544, 71, None, 65024, multi_query=True, parallel_attn=True,
        bias=False,
        alibi=False, new_decoder_architecture=False),
    big("gpt-neox-20b", "GPTNeoXForCausalLM", 2048, 44, 6144, 64, 24576, 50432,
        rope_parameters={**ROTARY, "partial_rotary_factor": 0.25}),
    big("opt-13b", "OPTForCausalLM", 2048, 40, 5120, 40, None, 50272, ffn_dim=20480, word_embed_proj_dim=5120),
    big("opt-30b", "OPTForCausalLM", 2048, 48, 7168, 56, None, 50272, ffn_dim=28672, word_embed_proj_dim=7168),
    big("phi-3-medium", "Phi3ForCausalLM", 4096, 40, 5120, 40, 17920, 32064, num_key_value_heads=10,
        sliding_window=2047),
    big("yi-34b", "LlamaForCausalLM", 4096, 60, 7168, 56, 20480, 64000, num_key_value_heads=8,
        rope_parameters={**ROTARY, "rope_theta": 5e6}),
    big("olmo-7b", "OlmoForCausalLM", 2048, 32, 4096, 32, 11008, 50304),
    decoder("mpt-7b", "MptForCausalLM", dict(vocab_size=50432, d_model=4096, n_heads=32, n_layers=32, max_seq_len=2048),
            length=2048, batch=BATCH),
    decoder("bloom-7b1", "BloomForCausalLM", dict(vocab_size=250880, hidden_size=4096, n_layer=30, n_head=32),
            length=2048,
            batch=BATCH),
    big("mixtral-8x7b", "MixtralForCausalLM", 4096, 32, 4096, 32, 14336, 32000, num_key_value_heads=8,
        num_local_experts=8,
        num_experts_per_tok=2, rope_parameters={**ROTARY, "rope_theta": 1e6}),
    big("qwen1.5-moe-a2.7b", "Qwen2MoeForCausalLM", 4096, 24, 2048, 16, 5632, 151936, num_key_value_heads=16,
        num_experts=60,
        num_experts_per_tok=4, moe_intermediate_size=1408, shared_expert_intermediate_size=5632),
]
LAYERS = ("num_hidden_layers", "n_layers", "n_layer")


def shards(columns, rows, more=None):
    """Columns of what enters a block, tables, and rows of what leaves it; nn.Linear stores [out, in]."""
    return {**{f"{name}.weight": "{0: tp}" for name in columns.split()},
            **{f"{name}.weight": "{1: tp}" for name in rows.split()}, **(more or {})}


# By the names that the models use; one that a model lacks is an error.
LLAMA = shards("{q,k,v}_proj {gate,up}_proj embed_tokens lm_head", "o_proj down_proj")
MIXTRAL = shards("{q,k,v}_proj embed_tokens lm_head", "o_proj", {"experts.{gate_up,down}_proj": "{0: tp}"})
QWEN_MOE = {**MIXTRAL, **shards("shared_expert.{gate,up}_proj", "shared_expert.down_proj")}
OPT = shards("{q,k,v}_proj fc1 embed_tokens", "out_proj fc2")
PHI = shards("qkv_proj gate_up_proj embed_tokens lm_head", "o_proj down_proj")
NEOX = shards("query_key_value dense_h_to_4h embed_in lm_head", "attention.dense dense_4h_to_h")
BLOOM = shards("query_key_value dense_h_to_4h word_embeddings", "self_attention.dense dense_4h_to_h")
FALCON = shards("dense_h_to_4h word_embeddings", "dense_4h_to_h")  # 71 heads are no multiple of 4
MPT = shards("Wqkv up_proj wte", "out_proj down_proj")
FAMILIES = {"OPTForCausalLM": OPT, "Phi3ForCausalLM": PHI, "GPTNeoXForCausalLM": NEOX, "BloomForCausalLM": BLOOM,
            "FalconForCausalLM": FALCON, "MptForCausalLM": MPT, "MixtralForCausalLM": MIXTRAL,
            "Qwen2MoeForCausalLM": QWEN_MOE}
# The module that is repeated.
REPEATED = {"FalconForCausalLM": "h.*", "BloomForCausalLM": "h.*", "MptForCausalLM": "blocks.*"}


def plan(recipe):
    """bf16 on 64 GPUs, every layer computed again in the backward part."""
    layers = REPEATED.get(recipe.model, "layers.*")
    shards = "".join(f'  "{name}": {rule}\n' for name, rule in FAMILIES.get(recipe.model, LLAMA).items())
    return ("target: cuda\nprecision: bf16\nmesh: {pp: 4, dp: 4, tp: 4}\nbatch: {size: 32, microbatches: 8}\n"
            f'train: {{optimizer: {{kind: adamw, lr: 1e-4}}, clip: 1.0}}\nrecompute: {{each: "{layers}"}}\n'
            f'pipeline: {{schedule: 1f1b, cuts: {{"{layers}": even}}}}\nshard:\n{shards}')

"""Configurations of transformers made small by the names of their fields."""

import dataclasses

from wrappers import without_dropout

VOCABULARY = 96
WIDTHS = dict.fromkeys(
    (
        "hidden_size",
        "d_model",
        "n_embd",
        "dim",
        "emb_dim",
        "embedding_size",
        "word_embed_proj_dim",
        "embed_dim",
        "feat_extract_dim",
        "encoder_hidden_size",
        "decoder_hidden_size",
    ),
    32,
)
DEPTHS = dict.fromkeys(
    (
        "num_hidden_layers",
        "n_layer",
        "n_layers",
        "num_layers",
        "encoder_layers",
        "decoder_layers",
        "num_encoder_layers",
        "num_decoder_layers",
    ),
    2,
)
HEADS = dict.fromkeys(
    (
        "num_attention_heads",
        "n_head",
        "n_heads",
        "num_heads",
        "encoder_attention_heads",
        "decoder_attention_heads",
    ),
    4,
)
INNER = dict.fromkeys(
    (
        "intermediate_size",
        "ffn_dim",
        "d_ff",
        "n_inner",
        "encoder_ffn_dim",
        "decoder_ffn_dim",
        "hidden_dim",
        "feed_forward_size",
        "ffn_hidden_size",
        "shared_expert_intermediate_size",
    ),
    64,
)
LENGTHS = dict.fromkeys(
    ("max_position_embeddings", "n_positions", "max_seq_len", "n_ctx", "max_sequence_length"), 64
)
EXPERTS = {
    **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"), 4),
    **dict.fromkeys(("num_experts_per_tok", "moe_k", "num_experts_per_token"), 2),
    "moe_intermediate_size": 16,
    "n_shared_experts": 1,
    "n_group": 2,
    "topk_group": 1,
    "first_k_dense_replace": 1,
}
PARTS = {
    "num_key_value_heads": 2,
    "head_dim": 8,
    "d_kv": 8,
    "q_lora_rank": 16,
    "kv_lora_rank": 16,
    "qk_rope_head_dim": 4,
    "qk_nope_head_dim": 8,
    "v_head_dim": 8,
    "sliding_window": 8,
    "state_size": 8,
    "expand": 2,
    "conv_kernel": 4,
}
IMAGES = {"image_size": 32, "patch_size": 8}
FIELDS = {
    "vocab_size": VOCABULARY,
    **WIDTHS,
    **DEPTHS,
    **HEADS,
    **INNER,
    **LENGTHS,
    **EXPERTS,
    **PARTS,
    **IMAGES,
}
SYMBOLS = {
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "sep_token_id": 3,
    "decoder_start_token_id": 2,
}


def config(kind, **sizes):
    """One of the class, without dropout; `sizes` say what the names do not. Fields that are lists stay as they are."""
    known = {field.name: field.default for field in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else {}
    small = {
        name: value
        for name, value in FIELDS.items()
        if name in known and (known[name] is None or isinstance(known[name], int))
    }
    for name, value in SYMBOLS.items():
        if isinstance(known.get(name), int) and known[name] >= VOCABULARY:
            small[name] = value
    made = without_dropout(kind(**{**small, **sizes}))
    made._experts_implementation = "eager"  # grouped_mm knows no float64
    return made

"""Thin forms of a dozen architectures, whose exports the suite keeps without weights: few channels, but the tables of
real lengths (512 tokens, windows of 7 x 7, buckets of 32), far above what is folded element by element."""
from encoders import pictures
from recipe import Recipe, decoder
from vision import timm, tv

ROTARY = dict(rope_type="default", rope_theta=10000.0)
THIN = dict(vocab_size=512, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
            max_position_embeddings=512)
GROUPED = dict(THIN, num_key_value_heads=2)

SUITE = [
    decoder("llama", "LlamaForCausalLM", {**GROUPED, "tie_word_embeddings": True, "rope_parameters": ROTARY},
            length=512),
    decoder("mistral", "MistralForCausalLM", {**GROUPED, "sliding_window": 64, "rope_parameters": ROTARY}),
    decoder("bloom", "BloomForCausalLM", dict(vocab_size=512, hidden_size=64, n_layer=2, n_head=4)),
    decoder("gpt-neo", "GPTNeoForCausalLM", dict(
        vocab_size=512, hidden_size=64, num_layers=2, num_heads=4, window_size=64, max_position_embeddings=512,
        attention_types=[[["global", "local"], 1]])),
    decoder("granite-moe", "GraniteMoeForCausalLM", {**GROUPED, "num_local_experts": 4, "num_experts_per_tok": 2},
            length=64),
    # The input's gradient is three sums over ranks, of routed experts and twice of the shared one, separated by its
    # gate's addend.
    decoder("qwen2-moe", "Qwen2MoeForCausalLM", {
        **THIN, "num_key_value_heads": 4, "num_experts": 12, "num_experts_per_tok": 4, "moe_intermediate_size": 32,
        "shared_expert_intermediate_size": 128}, length=64),
    decoder("deberta-v3", "DebertaV2ForMaskedLM", {
        **THIN, "relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_biased_input": False,
        "type_vocab_size": 0, "position_buckets": 32, "norm_rel_ebd": "layer_norm", "share_att_key": True}, length=128),
    decoder("t5", "T5ForConditionalGeneration", dict(
        vocab_size=512, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, decoder_start_token_id=0),
            length=128),
    Recipe("whisper", "transformers", "WhisperForConditionalGeneration", dict(
        vocab_size=512, d_model=64, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=128, decoder_ffn_dim=128, num_mel_bins=16, max_source_positions=128, max_target_positions=64,
        pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1), ("sound", 16, 256, 32, 512),
           "WhisperConfig"),
    tv("swin", size=112, model="SwinTransformer", patch_size=[4, 4], embed_dim=16, depths=[2, 2], num_heads=[2, 4],
       window_size=[7, 7], stochastic_depth_prob=0.0, num_classes=1000),
    pictures("beit", "BeitForImageClassification", "BeitConfig", dict(
        hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128, patch_size=8,
        use_relative_position_bias=True, use_mean_pooling=True), size=96),
    timm("convnextv2_atto", size=64, depths=(1, 1, 1, 1), dims=(16, 32, 48, 64)),
    timm("resnet10t", size=64),
]

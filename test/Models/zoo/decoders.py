"""Language models that predict the next symbol: transformers, published sizes."""
from recipe import SMALL_HEAD, decoder

GPT2 = dict(vocab_size=50257, n_positions=1024, n_embd=768, n_layer=4, n_head=12)
ROTARY = dict(rope_type="default", rope_theta=10000.0)

DECODERS = [
    decoder("gpt2", "GPT2LMHeadModel", GPT2, cut="4 of 12 layers"),
    decoder("openai-gpt", "OpenAIGPTLMHeadModel", {**GPT2, "vocab_size": 40478, "n_positions": 512},
            cut="4 of 12 layers"),
    decoder("gpt-neo-125m", "GPTNeoForCausalLM", dict(
        vocab_size=50257, max_position_embeddings=2048, hidden_size=768, num_layers=4, num_heads=12, window_size=256,
        attention_types=[[["global", "local"], 2]]), cut="4 of 12 layers"),
    decoder("tiny-starcoder", "GPTBigCodeForCausalLM", dict(
        vocab_size=49152, n_positions=8192, n_embd=768, n_layer=4, n_head=12, n_inner=3072, multi_query=True),
        cut="4 of 20 layers"),
    decoder("codegen-350m", "CodeGenForCausalLM", dict(
        vocab_size=51200, n_positions=2048, n_embd=1024, n_layer=2, n_head=16, rotary_dim=32),
        cut="2 of 20 layers", vocabulary=SMALL_HEAD),
    decoder("pythia-160m", "GPTNeoXForCausalLM", dict(
        vocab_size=50304, hidden_size=768, num_hidden_layers=4, num_attention_heads=12, intermediate_size=3072,
        max_position_embeddings=2048, rope_parameters={**ROTARY, "partial_rotary_factor": 0.25}), cut="4 of 12 layers"),
    decoder("opt-125m", "OPTForCausalLM", dict(
        vocab_size=50272, hidden_size=768, num_hidden_layers=4, num_attention_heads=12, ffn_dim=3072,
        max_position_embeddings=2048, word_embed_proj_dim=768), cut="4 of 12 layers"),
    decoder("xglm-564m", "XGLMForCausalLM", dict(
        vocab_size=256008, d_model=1024, num_layers=2, attention_heads=16, ffn_dim=4096, max_position_embeddings=2048),
        cut="2 of 24 layers", vocabulary=SMALL_HEAD),
    decoder("biogpt", "BioGptForCausalLM", dict(
        vocab_size=42384, hidden_size=1024, num_hidden_layers=2, num_attention_heads=16, intermediate_size=4096,
        max_position_embeddings=1024), cut="2 of 24 layers", vocabulary=SMALL_HEAD),
    decoder("bloom-560m", "BloomForCausalLM", dict(vocab_size=250880, hidden_size=1024, n_layer=2, n_head=16),
            cut="2 of 24 layers", vocabulary=SMALL_HEAD),
    decoder("falcon-rw-1b", "FalconForCausalLM", dict(
        vocab_size=50304, hidden_size=2048, num_hidden_layers=2, num_attention_heads=32, alibi=True, bias=True,
        multi_query=False, parallel_attn=False, new_decoder_architecture=False),
        cut="2 of 24 layers", vocabulary=SMALL_HEAD),
    decoder("mpt-1b", "MptForCausalLM", dict(vocab_size=50368, d_model=2048, n_heads=16, n_layers=2, max_seq_len=2048),
            cut="2 of 24 layers", vocabulary=SMALL_HEAD),
    decoder("smollm-135m", "LlamaForCausalLM", dict(
        vocab_size=49152, hidden_size=576, num_hidden_layers=4, num_attention_heads=9, num_key_value_heads=3,
        intermediate_size=1536, max_position_embeddings=2048, tie_word_embeddings=True, rope_parameters=ROTARY),
        cut="4 of 30 layers"),
    decoder("llama-3.2-1b", "LlamaForCausalLM", dict(
        vocab_size=128256, hidden_size=2048, num_hidden_layers=2, num_attention_heads=32, num_key_value_heads=8,
        intermediate_size=8192, head_dim=64, max_position_embeddings=131072, tie_word_embeddings=True,
        rope_parameters=dict(rope_type="llama3", rope_theta=500000.0, factor=32.0, low_freq_factor=1.0,
                             high_freq_factor=4.0,
                             original_max_position_embeddings=8192)), cut="2 of 16 layers", vocabulary=SMALL_HEAD),
    decoder("mistral-7b", "MistralForCausalLM", dict(
        vocab_size=32000, hidden_size=4096, num_hidden_layers=1, num_attention_heads=32, num_key_value_heads=8,
        intermediate_size=14336, max_position_embeddings=32768, sliding_window=4096, rope_parameters=ROTARY),
        batch=2, cut="1 of 32 layers", vocabulary=SMALL_HEAD),
    decoder("qwen2.5-0.5b", "Qwen2ForCausalLM", dict(
        vocab_size=151936, hidden_size=896, num_hidden_layers=4, num_attention_heads=14, num_key_value_heads=2,
        intermediate_size=4864, max_position_embeddings=32768, tie_word_embeddings=True,
        rope_parameters={**ROTARY, "rope_theta": 1e6}), cut="4 of 24 layers", vocabulary=SMALL_HEAD),
    decoder("qwen3-0.6b", "Qwen3ForCausalLM", dict(
        vocab_size=151936, hidden_size=1024, num_hidden_layers=2, num_attention_heads=16, num_key_value_heads=8,
        head_dim=128,
        intermediate_size=3072, max_position_embeddings=40960, tie_word_embeddings=True,
        rope_parameters={**ROTARY, "rope_theta": 1e6}), cut="2 of 28 layers", vocabulary=SMALL_HEAD),
    decoder("gemma-2b", "GemmaForCausalLM", dict(
        vocab_size=256000, hidden_size=2048, num_hidden_layers=2, num_attention_heads=8, num_key_value_heads=1,
        head_dim=256,
        intermediate_size=16384, max_position_embeddings=8192), batch=2, cut="2 of 18 layers", vocabulary=SMALL_HEAD),
    decoder("gemma2-2b", "Gemma2ForCausalLM", dict(
        vocab_size=256000, hidden_size=2304, num_hidden_layers=2, num_attention_heads=8, num_key_value_heads=4,
        head_dim=256,
        intermediate_size=9216, max_position_embeddings=8192, sliding_window=4096, query_pre_attn_scalar=256,
        attn_logit_softcapping=50.0, final_logit_softcapping=30.0), batch=2, cut="2 of 26 layers",
            vocabulary=SMALL_HEAD),
    decoder("gemma3-270m", "Gemma3ForCausalLM", dict(
        vocab_size=262144, hidden_size=640, num_hidden_layers=6, num_attention_heads=4, num_key_value_heads=1,
        head_dim=256,
        intermediate_size=2048, max_position_embeddings=32768, sliding_window=512), config="Gemma3TextConfig",
        cut="6 of 18 layers", vocabulary=SMALL_HEAD),
    decoder("phi-1.5", "PhiForCausalLM", dict(
        vocab_size=51200, hidden_size=2048, num_hidden_layers=2, num_attention_heads=32, intermediate_size=8192,
        max_position_embeddings=2048, rope_parameters={**ROTARY, "partial_rotary_factor": 0.5}),
        cut="2 of 24 layers", vocabulary=SMALL_HEAD),
    decoder("phi-3-mini", "Phi3ForCausalLM", dict(
        vocab_size=32064, hidden_size=3072, num_hidden_layers=2, num_attention_heads=32, num_key_value_heads=32,
        intermediate_size=8192, max_position_embeddings=4096, sliding_window=2047, pad_token_id=0), batch=2,
        cut="2 of 32 layers", vocabulary=SMALL_HEAD),  # its published padding, 32000, is not in the small head
    decoder("stablelm-2-1.6b", "StableLmForCausalLM", dict(
        vocab_size=100352, hidden_size=2048, num_hidden_layers=2, num_attention_heads=32, num_key_value_heads=32,
        intermediate_size=5632, max_position_embeddings=4096, use_qkv_bias=True,
        rope_parameters={**ROTARY, "partial_rotary_factor": 0.25}), cut="2 of 24 layers", vocabulary=SMALL_HEAD),
    decoder("starcoder2-3b", "Starcoder2ForCausalLM", dict(
        vocab_size=49152, hidden_size=3072, num_hidden_layers=2, num_attention_heads=24, num_key_value_heads=2,
        intermediate_size=12288, max_position_embeddings=16384, sliding_window=4096), batch=2, cut="2 of 30 layers",
        vocabulary=SMALL_HEAD),
    decoder("olmo-1b", "OlmoForCausalLM", dict(
        vocab_size=50304, hidden_size=2048, num_hidden_layers=2, num_attention_heads=16, intermediate_size=8192,
        max_position_embeddings=2048, tie_word_embeddings=True), cut="2 of 16 layers", vocabulary=SMALL_HEAD),
    decoder("olmo2-1b", "Olmo2ForCausalLM", dict(
        vocab_size=100352, hidden_size=2048, num_hidden_layers=2, num_attention_heads=16, intermediate_size=8192,
        max_position_embeddings=4096), cut="2 of 16 layers", vocabulary=SMALL_HEAD),
    decoder("granite-3.0-2b", "GraniteForCausalLM", dict(
        vocab_size=49155, hidden_size=2048, num_hidden_layers=2, num_attention_heads=32, num_key_value_heads=8,
        intermediate_size=8192, max_position_embeddings=4096, embedding_multiplier=12.0, logits_scaling=8.0,
        residual_multiplier=0.22, attention_multiplier=0.015625, tie_word_embeddings=True),
        cut="2 of 40 layers", vocabulary=SMALL_HEAD),
    decoder("granite-3.0-1b-a400m", "GraniteMoeForCausalLM", dict(
        vocab_size=49155, hidden_size=1024, num_hidden_layers=1, num_attention_heads=16, num_key_value_heads=8,
        intermediate_size=512, num_local_experts=32, num_experts_per_tok=8, max_position_embeddings=4096,
        embedding_multiplier=12.0, logits_scaling=6.0, residual_multiplier=0.22, attention_multiplier=0.015625,
        tie_word_embeddings=True), cut="1 of 24 layers", vocabulary=SMALL_HEAD),
]

"""Models of published widths and vocabularies with two layers, to be planned and not to be run: what the tables of
symbols cost beside the layers is that of the whole models."""
from recipe import decoder

BATCH = 32
ROTARY = dict(rope_type="default", rope_theta=10000.0)
LLAMA = dict(num_hidden_layers=2, rope_parameters=ROTARY)


def wide(name, model, length, **sizes):
    return decoder(name, model, sizes, length=length, batch=BATCH)


def gpt2(name, width, heads, length):
    return wide(name, "GPT2LMHeadModel", length, vocab_size=50257, n_embd=width, n_head=heads, n_layer=2,
                n_positions=length)


def t5(name, **more):
    return wide(name, "T5ForConditionalGeneration", 512, vocab_size=32128, d_model=1024, d_kv=64, num_layers=2,
                num_heads=16, decoder_start_token_id=0, **more)


WIDE = [
    gpt2("gpt2-xl", 1600, 25, 1024),
    gpt2("gpt3", 12288, 96, 2048),
    wide("llama-3-8b", "LlamaForCausalLM", 2048, vocab_size=128256, hidden_size=4096, num_attention_heads=32,
         num_key_value_heads=8, intermediate_size=14336, max_position_embeddings=2048, **LLAMA),
    wide("llama-3.2-1b", "LlamaForCausalLM", 2048, vocab_size=128256, hidden_size=2048, num_attention_heads=32,
         num_key_value_heads=8, intermediate_size=8192, max_position_embeddings=2048, tie_word_embeddings=True,
         **LLAMA),
    wide("bert-large", "BertForMaskedLM", 512, vocab_size=30522, hidden_size=1024, num_hidden_layers=2,
         num_attention_heads=16, intermediate_size=4096, max_position_embeddings=512),
    t5("t5-large", d_ff=4096),
    t5("flan-t5-large", d_ff=2816, feed_forward_proj="gated-gelu", tie_word_embeddings=False),
    wide("mixtral-8x7b", "MixtralForCausalLM", 2048, vocab_size=32000, hidden_size=4096, num_attention_heads=32,
         num_key_value_heads=8, intermediate_size=14336, max_position_embeddings=2048, num_local_experts=8,
         num_experts_per_tok=2, **LLAMA),
    wide("opt-2.7b", "OPTForCausalLM", 2048, vocab_size=50272, hidden_size=2560, word_embed_proj_dim=2560,
         num_hidden_layers=2, num_attention_heads=32, ffn_dim=10240, max_position_embeddings=2048),
]

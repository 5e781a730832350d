"""Encoders trained on masked symbols, encoder-decoders, sound and images: transformers, published sizes."""
from recipe import SMALL_HEAD, Recipe, decoder

BERT = dict(vocab_size=30522, hidden_size=768, num_hidden_layers=4, num_attention_heads=12, intermediate_size=3072,
            max_position_embeddings=512)
FOUR = "4 of 12 layers"


def pictures(name, model, config, sizes, cut="", size=224):
    sizes = {**sizes, "image_size": size, "num_labels": 1000}
    return Recipe(name, "transformers", model, sizes, ("images", size, 1000), config, cut=cut)


ENCODERS = [
    decoder("bert-base", "BertForMaskedLM", BERT, cut=FOUR),
    decoder("roberta-base", "RobertaForMaskedLM", {**BERT, "vocab_size": 50265, "max_position_embeddings": 514},
            cut=FOUR),
    decoder("distilbert", "DistilBertForMaskedLM", dict(
        vocab_size=30522, dim=768, n_layers=4, n_heads=12, hidden_dim=3072, max_position_embeddings=512),
            cut="4 of 6 layers"),
    decoder("electra-small", "ElectraForMaskedLM", {
        **BERT, "hidden_size": 256, "embedding_size": 128, "num_attention_heads": 4, "intermediate_size": 1024},
            cut=FOUR),
    decoder("albert-base", "AlbertForMaskedLM", {**BERT, "vocab_size": 30000, "embedding_size": 128}, cut=FOUR),
    decoder("deberta-base", "DebertaForMaskedLM", {
        **BERT, "vocab_size": 50265, "num_hidden_layers": 2, "relative_attention": True, "pos_att_type": ["c2p", "p2c"],
        "position_biased_input": False, "type_vocab_size": 0, "max_relative_positions": -1},
        cut="2 of 12 layers", vocabulary=SMALL_HEAD),
    decoder("deberta-v3-small", "DebertaV2ForMaskedLM", {
        **BERT, "vocab_size": 128100, "num_hidden_layers": 2, "relative_attention": True,
        "pos_att_type": ["p2c", "c2p"],
        "position_biased_input": False, "type_vocab_size": 0, "max_relative_positions": -1, "position_buckets": 256,
        "norm_rel_ebd": "layer_norm", "share_att_key": True}, cut="2 of 6 layers", vocabulary=SMALL_HEAD),
    decoder("mpnet-base", "MPNetForMaskedLM", {**BERT, "vocab_size": 30527, "max_position_embeddings": 514}, cut=FOUR),
    decoder("squeezebert", "SqueezeBertForMaskedLM", {**BERT, "embedding_size": 768}, cut=FOUR),
    decoder("mobilebert", "MobileBertForMaskedLM", dict(
        vocab_size=30522, hidden_size=512, num_hidden_layers=4, num_attention_heads=4, intermediate_size=512,
        max_position_embeddings=512, embedding_size=128, true_hidden_size=128, intra_bottleneck_size=128),
        cut="4 of 24 layers"),
    decoder("convbert-base", "ConvBertForMaskedLM", {**BERT, "embedding_size": 768}, cut=FOUR),
    decoder("roformer-base", "RoFormerForMaskedLM", {
        **BERT, "vocab_size": 50000, "embedding_size": 768, "max_position_embeddings": 1536}, config="RoFormerConfig",
        cut=FOUR, vocabulary=SMALL_HEAD),
    decoder("xlnet-base", "XLNetLMHeadModel", dict(vocab_size=32000, d_model=768, n_layer=2, n_head=12, d_inner=3072),
            config="XLNetConfig", cut="2 of 12 layers", vocabulary=SMALL_HEAD),
    decoder("fnet-base", "FNetForMaskedLM", {
        "vocab_size": 32000, "hidden_size": 768, "num_hidden_layers": 4, "intermediate_size": 3072,
        "max_position_embeddings": 512}, cut=FOUR, vocabulary=SMALL_HEAD),
    decoder("t5-small", "T5ForConditionalGeneration", dict(
        vocab_size=32128, d_model=512, d_kv=64, d_ff=2048, num_layers=2, num_heads=8, decoder_start_token_id=0),
        cut="2 of 6 layers each"),
    decoder("flan-t5-small", "T5ForConditionalGeneration", dict(
        vocab_size=32128, d_model=512, d_kv=64, d_ff=1024, num_layers=2, num_heads=6, decoder_start_token_id=0,
        feed_forward_proj="gated-gelu", tie_word_embeddings=False), cut="2 of 8 layers each"),
    decoder("bart-base", "BartForConditionalGeneration", dict(
        vocab_size=50265, d_model=768, encoder_layers=2, decoder_layers=2, encoder_attention_heads=12,
        decoder_attention_heads=12, encoder_ffn_dim=3072, decoder_ffn_dim=3072, max_position_embeddings=1024),
        cut="2 of 6 layers each", vocabulary=SMALL_HEAD),
    decoder("marian-en-de", "MarianMTModel", dict(
        vocab_size=58101, d_model=512, encoder_layers=2, decoder_layers=2, encoder_attention_heads=8,
        decoder_attention_heads=8, encoder_ffn_dim=2048, decoder_ffn_dim=2048, max_position_embeddings=512,
        pad_token_id=0, decoder_start_token_id=0), config="MarianConfig", cut="2 of 6 layers each",
            vocabulary=SMALL_HEAD),
    Recipe("whisper-tiny", "transformers", "WhisperForConditionalGeneration", dict(
        vocab_size=SMALL_HEAD, d_model=384, encoder_layers=2, decoder_layers=2, encoder_attention_heads=6,
        decoder_attention_heads=6, encoder_ffn_dim=1536, decoder_ffn_dim=1536, num_mel_bins=80,
        max_source_positions=1500,
        max_target_positions=448, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1),
        ("sound", 80, 3000, 64, SMALL_HEAD), "WhisperConfig", cut="2 of 4 layers each, head 8192"),
    Recipe("wav2vec2-base", "transformers", "Wav2Vec2ForSequenceClassification", dict(
        hidden_size=768, num_hidden_layers=2, num_attention_heads=12, intermediate_size=3072, apply_spec_augment=False,
        num_labels=10), ("samples", 16000, 10), "Wav2Vec2Config", cut="2 of 12 layers"),
    pictures("beit-base", "BeitForImageClassification", "BeitConfig", dict(
        hidden_size=768, num_hidden_layers=3, num_attention_heads=12, intermediate_size=3072, patch_size=16,
        use_relative_position_bias=True, use_mean_pooling=True), cut="3 of 12 layers"),
    pictures("dinov2-small", "Dinov2ForImageClassification", "Dinov2Config", dict(
        hidden_size=384, num_hidden_layers=6, num_attention_heads=6, mlp_ratio=4, patch_size=14), cut="6 of 12 layers"),
    pictures("segformer-b0", "SegformerForImageClassification", "SegformerConfig", dict(
        depths=[2, 2, 2, 2], hidden_sizes=[32, 64, 160, 256], num_attention_heads=[1, 2, 5, 8],
        sr_ratios=[8, 4, 2, 1])),
]

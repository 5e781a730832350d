"""The architectures that try_architectures.py tries, by name: classes of transformers whose configurations
tiny.py makes small, those of composed.py, and functions of torchvision and timm. SIZES says what the names of
fields do not."""

CAUSAL = {  # predict the next symbol
    "afmoe": "AfmoeForCausalLM", "apertus": "ApertusForCausalLM", "aria_text": "AriaTextForCausalLM",
    "bert-generation": "BertGenerationDecoder", "big_bird": "BigBirdForCausalLM",
    "bitnet": "BitNetForCausalLM", "bloom": "BloomForCausalLM", "cohere": "CohereForCausalLM",
    "cohere2": "Cohere2ForCausalLM", "deepseek_v4": "DeepseekV4ForCausalLM",
    "diffllama": "DiffLlamaForCausalLM", "doge": "DogeForCausalLM", "ernie4_5": "Ernie4_5ForCausalLM",
    "exaone4": "Exaone4ForCausalLM", "falcon": "FalconForCausalLM",
    "falcon_mamba": "FalconMambaForCausalLM", "gemma": "GemmaForCausalLM", "gemma2": "Gemma2ForCausalLM",
    "gemma3_text": "Gemma3ForCausalLM", "gemma4_unified_text": "Gemma4UnifiedForCausalLM",
    "glm4": "Glm4ForCausalLM", "glm4_moe": "Glm4MoeForCausalLM", "gpt2": "GPT2LMHeadModel",
    "gpt_bigcode": "GPTBigCodeForCausalLM", "gpt_neox": "GPTNeoXForCausalLM",
    "gpt_neox_japanese": "GPTNeoXJapaneseForCausalLM", "gpt_oss": "GptOssForCausalLM",
    "granite": "GraniteForCausalLM", "granitemoe": "GraniteMoeForCausalLM",
    "hunyuan_v1_moe": "HunYuanMoEV1ForCausalLM", "llama": "LlamaForCausalLM",
    "jetmoe": "JetMoeForCausalLM", "lfm2": "Lfm2ForCausalLM", "llama4": "Llama4ForCausalLM",
    "mamba": "MambaForCausalLM", "minimax": "MiniMaxForCausalLM", "mistral": "MistralForCausalLM",
    "mixtral": "MixtralForCausalLM", "mllama": "MllamaForCausalLM",
    "modernbert-decoder": "ModernBertDecoderForCausalLM", "mpt": "MptForCausalLM",
    "nemotron": "NemotronForCausalLM", "nemotron_h": "NemotronHForCausalLM", "olmo": "OlmoForCausalLM",
    "olmo2": "Olmo2ForCausalLM", "olmo_hybrid": "OlmoHybridForCausalLM", "olmoe": "OlmoeForCausalLM",
    "openai-gpt": "OpenAIGPTLMHeadModel", "opt": "OPTForCausalLM", "persimmon": "PersimmonForCausalLM",
    "phi": "PhiForCausalLM", "phi3": "Phi3ForCausalLM", "phimoe": "PhimoeForCausalLM",
    "qwen2": "Qwen2ForCausalLM", "qwen2_moe": "Qwen2MoeForCausalLM", "qwen3": "Qwen3ForCausalLM",
    "qwen3_moe": "Qwen3MoeForCausalLM", "smollm3": "SmolLM3ForCausalLM", "stablelm": "StableLmForCausalLM",
    "starcoder2": "Starcoder2ForCausalLM", "xglm": "XGLMForCausalLM", "xlm": "XLMWithLMHeadModel",
    "xlnet": "XLNetLMHeadModel", "codegen": "CodeGenForCausalLM", "gptj": "GPTJForCausalLM",
    "gpt_neo": "GPTNeoForCausalLM", "deepseek_v2": "DeepseekV2ForCausalLM",
    "deepseek_v3": "DeepseekV3ForCausalLM", "glm4_moe_lite": "Glm4MoeLiteForCausalLM",
    "minicpm3": "MiniCPM3ForCausalLM", "youtu": "YoutuForCausalLM", "mamba2": "Mamba2ForCausalLM",
    "qwen3_next": "Qwen3NextForCausalLM", "qwen3_5_text": "Qwen3_5ForCausalLM",
    "reformer": "ReformerModelWithLMHead"}
MASKED = {  # predict masked symbols
    "albert": "AlbertForMaskedLM", "bert": "BertForMaskedLM", "camembert": "CamembertForMaskedLM",
    "convbert": "ConvBertForMaskedLM", "data2vec-text": "Data2VecTextForMaskedLM",
    "deberta": "DebertaForMaskedLM", "deberta-v2": "DebertaV2ForMaskedLM",
    "distilbert": "DistilBertForMaskedLM", "electra": "ElectraForMaskedLM", "ernie": "ErnieForMaskedLM",
    "eurobert": "EuroBertForMaskedLM", "flaubert": "FlaubertWithLMHeadModel", "fnet": "FNetForMaskedLM",
    "gte": "GteForMaskedLM", "ibert": "IBertForMaskedLM",
    "jina_embeddings_v3": "JinaEmbeddingsV3ForMaskedLM", "layoutlm": "LayoutLMForMaskedLM",
    "longformer": "LongformerForMaskedLM", "megatron-bert": "MegatronBertForMaskedLM",
    "mobilebert": "MobileBertForMaskedLM", "modernbert": "ModernBertForMaskedLM",
    "mpnet": "MPNetForMaskedLM", "mra": "MraForMaskedLM", "nomic_bert": "NomicBertForMaskedLM",
    "nystromformer": "NystromformerForMaskedLM", "rembert": "RemBertForMaskedLM",
    "roberta": "RobertaForMaskedLM", "roberta-prelayernorm": "RobertaPreLayerNormForMaskedLM",
    "roformer": "RoFormerForMaskedLM", "squeezebert": "SqueezeBertForMaskedLM",
    "tapas": "TapasForMaskedLM", "ultrabert": "UltrabertForMaskedLM",
    "xlm-roberta": "XLMRobertaForMaskedLM", "xlm-roberta-xl": "XLMRobertaXLForMaskedLM",
    "yoso": "YosoForMaskedLM"}
TRANSLATING = {  # encoders and decoders
    "bart": "BartForConditionalGeneration", "t5": "T5ForConditionalGeneration",
    "longt5": "LongT5ForConditionalGeneration",
    "switch_transformers": "SwitchTransformersForConditionalGeneration",
    "mvp": "MvpForConditionalGeneration", "bigbird_pegasus": "BigBirdPegasusForConditionalGeneration",
    "blenderbot": "BlenderbotForConditionalGeneration", "led": "LEDForConditionalGeneration",
    "m2m_100": "M2M100ForConditionalGeneration", "marian": "MarianMTModel",
    "mbart": "MBartForConditionalGeneration", "mt5": "MT5ForConditionalGeneration",
    "nllb-moe": "NllbMoeForConditionalGeneration", "pegasus": "PegasusForConditionalGeneration",
    "pegasus_x": "PegasusXForConditionalGeneration", "prophetnet": "ProphetNetForConditionalGeneration",
    "seamless_m4t_v2": "SeamlessM4Tv2ForTextToText", "umt5": "UMT5ForConditionalGeneration"}
IMAGES = {  # classify images
    "beit": "BeitForImageClassification", "convnext": "ConvNextForImageClassification",
    "convnextv2": "ConvNextV2ForImageClassification", "cvt": "CvtForImageClassification",
    "data2vec_vision": "Data2VecVisionForImageClassification", "deit": "DeiTForImageClassification",
    "dinov2": "Dinov2ForImageClassification",
    "dinov2_registers": "Dinov2WithRegistersForImageClassification",
    "focalnet": "FocalNetForImageClassification", "ijepa": "IJepaForImageClassification",
    "levit": "LevitForImageClassification", "mobilenet_v1": "MobileNetV1ForImageClassification",
    "mobilenet_v2": "MobileNetV2ForImageClassification", "poolformer": "PoolFormerForImageClassification",
    "pvt": "PvtForImageClassification", "regnet": "RegNetForImageClassification",
    "resnet": "ResNetForImageClassification", "segformer": "SegformerForImageClassification",
    "swin": "SwinForImageClassification", "swinv2": "Swinv2ForImageClassification",
    "vit": "ViTForImageClassification", "vit_msn": "ViTMSNForImageClassification"}
SOUNDS = {  # classify sounds
    "wav2vec2": "Wav2Vec2ForSequenceClassification", "hubert": "HubertForSequenceClassification",
    "unispeech_sat": "UniSpeechSatForSequenceClassification", "wavlm": "WavLMForSequenceClassification",
    "data2vec_audio": "Data2VecAudioForSequenceClassification"}
MLA = {"num_key_value_heads": 4}  # latent attention has as many keys as queries
LINEAR_FIRST = {"layer_types": ["linear_attention", "full_attention"]}
HIERARCHY = {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1]}
HEADS = {"num_attention_heads": [1, 2, 2, 4]}
WINDOWS = {"embed_dim": 16, "depths": [1, 1], "num_heads": [2, 4], "window_size": 4, "patch_size": 4}
WAVES = {
    "apply_spec_augment": False,  # drawn by numpy
    "conv_dim": [8] * 7,
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 2,
}
REFORMER = {
    "is_decoder": True,
    "axial_pos_shape": [4, 4],
    "axial_pos_embds_dim": [16, 16],
    "attn_layers": ["local", "lsh"],
    "lsh_attn_chunk_length": 8,
    "local_attn_chunk_length": 8,
    "num_buckets": 2,
    "attention_head_size": 8,
}
SWITCH = {
    "decoder_start_token_id": 0,
    "num_sparse_encoder_layers": 1,
    "num_sparse_decoder_layers": 1,
    "expert_capacity": 16,
    "router_jitter_noise": 0.0,
}
NLLB = {
    "expert_capacity": 64,
    "second_expert_policy": "all",
    "encoder_sparse_step": 2,
    "decoder_sparse_step": 2,
    "moe_token_dropout": 0.0,
}
LED = {"attention_window": 8, "max_encoder_position_embeddings": 64, "max_decoder_position_embeddings": 64}
LEVIT = {
    "image_size": 64,
    "patch_size": 16,
    "hidden_sizes": [32, 48, 64],
    "num_attention_heads": [2, 3, 4],
    "depths": [1, 1, 1],
}
FOCAL = {"embed_dim": 16, "depths": [1, 1], "focal_levels": [2, 2], "focal_windows": [3, 3], "patch_size": 4}
SIZES = {
    **{f"causal/{name}": MLA for name in ("deepseek_v2", "deepseek_v3", "glm4_moe_lite")},
    **{f"causal/{name}": MLA for name in ("minicpm3", "youtu")},
    "causal/codegen": {"rotary_dim": 4},
    "causal/gptj": {"rotary_dim": 4},
    "causal/gpt_neo": {"attention_types": [[["global", "local"], 1]], "window_size": 8},
    "causal/mamba2": {"num_heads": 8, "head_dim": 8, "n_groups": 2, "chunk_size": 8},
    "causal/qwen3_next": LINEAR_FIRST,
    "causal/qwen3_5_text": LINEAR_FIRST,
    "causal/reformer": REFORMER,
    "masked/longformer": {"attention_window": [8, 8]},
    "masked/nystromformer": {"segment_means_seq_len": 16, "num_landmarks": 4},
    "translating/t5": {"decoder_start_token_id": 0},
    "translating/longt5": {"decoder_start_token_id": 0, "local_radius": 4},
    "translating/switch_transformers": SWITCH,
    "translating/led": LED,
    "translating/nllb-moe": NLLB,
    "images/convnext": {**HIERARCHY, "image_size": 64},
    "images/convnextv2": {**HIERARCHY, "image_size": 64},
    "images/poolformer": HIERARCHY,
    "images/resnet": {**HIERARCHY, "embedding_size": 8},
    "images/regnet": {**HIERARCHY, "embedding_size": 8},
    "images/segformer": {**HIERARCHY, **HEADS, "decoder_hidden_size": 16},
    "images/pvt": {**HIERARCHY, **HEADS, "sequence_reduction_ratios": [2, 2, 1, 1]},
    "images/cvt": {"embed_dim": [8, 16, 32], "num_heads": [1, 2, 2], "depth": [1, 2, 3]},
    "images/levit": {**LEVIT, "key_dim": [8, 8, 8]},
    "images/focalnet": FOCAL,
    "images/mobilenet_v1": {"depth_multiplier": 0.25},
    "images/mobilenet_v2": {"depth_multiplier": 0.35},
    "images/swin": WINDOWS,
    "images/swinv2": WINDOWS,
    **{f"sounds/{name}": WAVES for name in SOUNDS},
}
TORCHVISION = {  # what the function is called with
    "squeezenet1_1": {},
    "mobilenet_v2": {"width_mult": 0.25},
    "mobilenet_v3_small": {"width_mult": 0.5},
    "shufflenet_v2_x0_5": {},
    "mnasnet0_5": {},
    "resnet18": {},
    "regnet_y_400mf": {},
    "efficientnet_b0": {},
    "googlenet": {"aux_logits": False, "init_weights": False},
    "densenet121": {},
}
TIMM = {  # the images' sides
    **dict.fromkeys(("test_vit", "test_vit2", "test_vit3", "test_vit4", "test_vit_relpos"), 160),
    **dict.fromkeys(("test_resnet", "test_convnext", "test_convnext2", "test_convnext3", "test_byobnet"), 64),
    **dict.fromkeys(("test_efficientnet", "test_efficientnet_gn", "test_efficientnet_ln"), 64),
    **dict.fromkeys(("test_efficientnet_evos", "test_nfnet", "test_mambaout", "test_maxvit"), 64),
    **dict.fromkeys(("convnext_atto", "mobilenetv3_small_050", "lcnet_050", "ghostnet_050", "resnet10t"), 64),
    **dict.fromkeys(("mobilevitv2_050", "xcit_nano_12_p16_224", "test_coatnet"), 64),
}
COMPOSED = (
    "detr",
    "conditional_detr",
    "deformable_detr",
    "rt_detr",
    "llava",
    "paligemma",
    "dinov3_vit",
    "time_series_transformer",
    "informer",
    "autoformer",
)
KINDS = {"causal": CAUSAL, "masked": MASKED, "translating": TRANSLATING, "images": IMAGES, "sounds": SOUNDS}


def _all():
    """The kinds in turns, so that a run that is stopped has seen some of each."""
    kinds = {"composed": COMPOSED, **KINDS, "tv": TORCHVISION, "timm": TIMM}
    places = []
    for turn, (kind, models) in enumerate(kinds.items()):
        places += [(number / len(models), turn, f"{kind}/{name}") for number, name in enumerate(models)]
    return [name for _, _, name in sorted(places)]


ALL = _all()


def import_libraries():
    """Once, for all the processes that are forked."""
    import composed  # noqa: F401
    import timm  # noqa: F401
    import torchvision.models  # noqa: F401
    import transformers
    transformers.logging.set_verbosity_error()


def build(name):
    """The module with its loss, without dropout, and without weights that are all equal, which would hide
    wrong gradients."""
    import recipe
    import torch
    module = _build(*name.split("/"))
    recipe.stir(torch, module)
    return module


def _build(kind, name):
    import composed
    import tiny
    import transformers
    import wrappers
    if kind == "composed":
        return composed.MODELS[name][0]()
    if kind == "tv":
        import torchvision.models
        return wrappers.Classifier(getattr(torchvision.models, name)(num_classes=10, **TORCHVISION[name]))
    if kind == "timm":
        import timm
        sized = {"img_size": TIMM[name]} if any(word in name for word in ("vit", "coatnet",
                "xcit")) and "mobile" not in name else {}
        return wrappers.Classifier(timm.create_model(name, num_classes=10, **sized))
    model = getattr(transformers, KINDS[kind][name])
    labels = {"num_labels": 10} if kind in ("images", "sounds") else {}
    net = model(tiny.config(model.config_class, **labels, **SIZES.get(f"{kind}/{name}", {})))
    return wrappers.AsItComes(net, {"images": "pixel_values", "sounds": "input_values"}.get(kind,
            "input_ids"))


def feed(name, steps):
    """Samples of so many batches, by input."""
    import composed
    import tiny
    import torch
    kind, short = name.split("/")
    count = steps * composed.BATCH
    classes = torch.randint(0, 10, (count,))
    if kind == "composed":
        return composed.feed(composed.MODELS[short][1], count)
    if kind in ("causal", "masked", "translating"):
        ids = torch.randint(4, tiny.VOCABULARY, (count, 16))
        return {"x": ids, "labels": ids.clone()}
    if kind == "sounds":
        return {"x": torch.randn(count, 4000), "labels": classes}
    size = {"tv": 64, "images": SIZES.get(name, {}).get("image_size", 32)}.get(kind) or TIMM[short]
    return {"x": torch.randn(count, 3, size, size), "labels": classes}

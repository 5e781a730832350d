#!/usr/bin/env python3
"""Exports architectures of torchvision and transformers with par.export, and trains each ten steps in Par and in
PyTorch from the same random weights on the same random data: the losses must be equal.

    python3 python/tests/train_architectures.py --bin build/bin [--only gpt2,resnet18] [--work DIR] [--plan 'mesh: {dp:
    2}']

Needs torch, torchvision, transformers, onnx, onnxscript and safetensors. Sgd (some modules: adamw) at lr 0.01, and
0.001 for nets with batch norm. Par's losses must lie within 1e-5 (relative above 1) of PyTorch's float64 run. Some nets
with batch norm amplify rounding until float32 says little: there the bound is three times as far as PyTorch's own
float32 run lies from float64, which is printed beside. If two elements of a max pool's window differ by less than
float32's rounding (vgg11_bn, step 4: 0.79162912 and 0.79162919), either may get the gradient, and later steps differ.
Then Par must lie within the same bound of a float64 run whose first weights are moved by that rounding. Seeds are
fixed.
"""
import argparse
import copy
import json
import pathlib
import subprocess
import sys
import tempfile

import torch
import torchvision.models as vision
import transformers as hf
from safetensors.torch import save_file

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import par  # noqa: E402
from wrappers import Classifier, Language, without_dropout

STEPS = 10
MOVED_RUNS, MOVED_BY = 12, 2.0 ** -24  # relative: what rounding to float32 changes at most


def images(size, batch=4, classes=10):
    count = STEPS * batch
    return {"x": torch.randn(count, 3, size, size), "labels": torch.randint(0, classes, (count,))}


def words(length=16, vocabulary=96, batch=4):
    ids = torch.randint(0, vocabulary, (STEPS * batch, length))
    return {"input_ids": ids, "labels": ids.clone()}


def small(kind, **more):
    """A configuration of transformers, small and without dropout."""
    return without_dropout(getattr(hf, kind)(vocab_size=96, **more))


BERT = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
            max_position_embeddings=32)
LLAMA = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=64,
             max_position_embeddings=32)
EXPERTS = {"num_experts_per_tok": 2, "experts_implementation": "eager"}  # grouped_mm knows no float64
DEEPSEEK = {**LLAMA, "num_key_value_heads": 4, "q_lora_rank": 16, "kv_lora_rank": 16, "qk_rope_head_dim": 4,
            "v_head_dim": 8,
            "qk_nope_head_dim": 8, "n_routed_experts": 8, "n_group": 2, "topk_group": 1, "moe_intermediate_size": 16,
            "n_shared_experts": 1, "first_k_dense_replace": 1}


class Masked(Language):
    """An encoder-decoder that wants its mask to be said."""

    def forward(self, input_ids, labels):
        return self.net(input_ids=input_ids, labels=labels, use_cache=False,
                        attention_mask=torch.ones_like(input_ids)).loss


ARCHITECTURES = {
    "mixtral": (lambda: Language(hf.MixtralForCausalLM(small("MixtralConfig", **LLAMA, **EXPERTS,
                                                             num_local_experts=4))), words),
    "qwen2_moe": (lambda: Language(hf.Qwen2MoeForCausalLM(small(
        "Qwen2MoeConfig", **LLAMA, **EXPERTS, num_experts=4, moe_intermediate_size=16,
        shared_expert_intermediate_size=32))), words),
    "qwen3_moe": (lambda: Language(hf.Qwen3MoeForCausalLM(small(
        "Qwen3MoeConfig", **LLAMA, **EXPERTS, head_dim=8, num_experts=4, moe_intermediate_size=16))), words),
    "olmoe": (lambda: Language(hf.OlmoeForCausalLM(small("OlmoeConfig", **LLAMA, **EXPERTS, num_experts=4))), words),
    "granite_moe": (lambda: Language(hf.GraniteMoeForCausalLM(small(
        "GraniteMoeConfig", **LLAMA, **EXPERTS, num_local_experts=4))), words),
    "deepseek_v3": (lambda: Language(hf.DeepseekV3ForCausalLM(small("DeepseekV3Config", **DEEPSEEK, **EXPERTS))),
                    words),
    "glm4_moe": (lambda: Language(hf.Glm4MoeForCausalLM(small(
        "Glm4MoeConfig", **LLAMA, **EXPERTS, head_dim=8, n_routed_experts=4, moe_intermediate_size=16,
        n_shared_experts=1,
        first_k_dense_replace=1))), words),
    "gpt_oss": (lambda: Language(hf.GptOssForCausalLM(small(
        "GptOssConfig", **LLAMA, **EXPERTS, head_dim=8, num_local_experts=4, sliding_window=8))), words),
    "switch": (lambda: Masked(hf.SwitchTransformersForConditionalGeneration(small(
        "SwitchTransformersConfig", d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, num_decoder_layers=2,
        num_experts=4,
        num_sparse_encoder_layers=1, num_sparse_decoder_layers=1, router_jitter_noise=0.0, decoder_start_token_id=0,
        expert_capacity=5, attn_implementation="eager"))), words),
    "gpt2": (lambda: Language(hf.GPT2LMHeadModel(small("GPT2Config", n_embd=32, n_layer=2, n_head=4, n_positions=32))),
             words),
    "bert": (lambda: Language(hf.BertForMaskedLM(small("BertConfig", **BERT))), words),
    "roberta": (lambda: Language(hf.RobertaForMaskedLM(small("RobertaConfig",
                                                             **{**BERT, "max_position_embeddings": 40}))), words),
    "distilbert": (lambda: Language(hf.DistilBertForMaskedLM(
        small("DistilBertConfig", dim=32, n_layers=2, n_heads=4, hidden_dim=64, max_position_embeddings=32))), words),
    "electra": (lambda: Language(hf.ElectraForMaskedLM(small("ElectraConfig", embedding_size=32, **BERT))), words),
    "llama": (lambda: Language(hf.LlamaForCausalLM(small("LlamaConfig", **LLAMA))), words),
    "qwen2": (lambda: Language(hf.Qwen2ForCausalLM(small("Qwen2Config", **LLAMA))), words),
    "gpt_neox": (lambda: Language(hf.GPTNeoXForCausalLM(small(
        "GPTNeoXConfig", hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        max_position_embeddings=32))), words),
    "opt": (lambda: Language(hf.OPTForCausalLM(small(
        "OPTConfig", hidden_size=32, num_hidden_layers=2, num_attention_heads=4, ffn_dim=64, max_position_embeddings=32,
        word_embed_proj_dim=32))), words),
    "mistral": (lambda: Language(hf.MistralForCausalLM(small("MistralConfig", **LLAMA, head_dim=8, sliding_window=8))),
                words),
    "gemma": (lambda: Language(hf.GemmaForCausalLM(small("GemmaConfig", **LLAMA, head_dim=8))), words),
    "phi": (lambda: Language(hf.PhiForCausalLM(small("PhiConfig", **LLAMA))), words),
    "albert": (lambda: Language(hf.AlbertForMaskedLM(small("AlbertConfig", embedding_size=16, **BERT))), words),
    "bloom": (lambda: Language(hf.BloomForCausalLM(small("BloomConfig", hidden_size=32, n_layer=2, n_head=4))), words),
    "t5": (lambda: Language(hf.T5ForConditionalGeneration(small(
        "T5Config", d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, decoder_start_token_id=0,
        attn_implementation="eager"))), words),
    "vit": (lambda: Classifier(hf.ViTForImageClassification(hf.ViTConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=32, patch_size=8,
        num_labels=10, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0))), lambda: images(32)),
    "swin": (lambda: Classifier(vision.SwinTransformer(
        patch_size=[4, 4], embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=[4, 4], dropout=0.0,
        attention_dropout=0.0, stochastic_depth_prob=0.0, num_classes=10)), lambda: images(32)),
    "convnext": (lambda: Classifier(vision.ConvNeXt(
        [vision.convnext.CNBlockConfig(16, 32, 2), vision.convnext.CNBlockConfig(32, None, 2)], num_classes=10)),
        lambda: images(32)),
    "squeezenet": (lambda: Classifier(vision.squeezenet1_1(num_classes=10, dropout=0.0)), lambda: images(64)),
    # Batch norm over few values of random nets makes float32 useless: enough of them, so that the comparison says
    # something.
    "vgg11_bn": (lambda: Classifier(vision.vgg11_bn(num_classes=10, dropout=0.0)), lambda: images(32)),
    "resnet18": (lambda: Classifier(vision.resnet18(num_classes=10)), lambda: images(64, batch=16)),
    "densenet": (lambda: Classifier(vision.DenseNet(8, (2, 2, 2), 16, num_classes=10)), lambda: images(64, batch=8)),
    "mobilenet_v2": (lambda: Classifier(vision.mobilenet_v2(num_classes=10, dropout=0.0, width_mult=0.25)),
                     lambda: images(64, batch=16)),
    "mobilenet_v3": (lambda: Classifier(vision.mobilenet_v3_small(num_classes=10, dropout=0.0, width_mult=0.5)),
                     lambda: images(64, batch=16)),
    "shufflenet_v2": (lambda: Classifier(vision.shufflenet_v2_x0_5(num_classes=10)), lambda: images(64, batch=16)),
    "regnet": (lambda: Classifier(vision.RegNet(vision.regnet.BlockParams.from_init_params(
        depth=4, w_0=16, w_a=16.0, w_m=2.0, group_width=8, se_ratio=0.25), num_classes=10, stem_width=8)),
        lambda: images(64, batch=16)),
}


def has_batch_norm(module):
    return any(isinstance(part, torch.nn.modules.batchnorm._BatchNorm) for part in module.modules())


def rate(module):
    return 1e-3 if has_batch_norm(module) else 1e-2


def optimizer_of(module):
    return getattr(module, "optimizer", "sgd")


def torch_losses(module, data):
    module.train()
    kind = {"sgd": torch.optim.SGD, "adamw": torch.optim.AdamW}[optimizer_of(module)]
    optimizer = kind(module.parameters(), lr=rate(module))
    losses = []
    for step in range(STEPS):
        loss = module(**{name: values.chunk(STEPS)[step] for name, values in data.items()})
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def doubled(module, data):
    """Both in float64."""
    return copy.deepcopy(module).double(), {name: v.double() if v.is_floating_point() else v
                                            for name, v in data.items()}


def exact_losses(module, data):
    """In float64; in float32 of a model whose code makes float32 of what it computes, and fails then."""
    try:
        return torch_losses(*doubled(module, data))
    except RuntimeError:
        return torch_losses(copy.deepcopy(module), data)


def moved(module, seed):
    """In float64, with weights as far from the module's as rounding to float32 moves numbers."""
    generator = torch.Generator().manual_seed(seed)
    copied = copy.deepcopy(module).double()
    with torch.no_grad():
        for weights in copied.parameters():
            weights.mul_(1 + MOVED_BY * (2 * torch.rand(weights.shape, generator=generator) - 1).double())
    return copied


def apart(losses, wanted):
    return max(abs(a - b) / max(1, abs(b)) for a, b in zip(losses, wanted))


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise RuntimeError((done.stdout + done.stderr).strip()[-600:])


def par_losses(options, folder, plan):
    bundle, metrics = folder / "bundle.par", folder / "metrics.jsonl"
    metrics.unlink(missing_ok=True)
    run(f"{options.bin}/par-compile", folder / "model.onnx", plan, "-o", bundle, "-q")
    run(f"{options.bin}/par-run", bundle, "--data", folder / "data.safetensors", "--order", "sequential", "--steps",
        STEPS,
        "--metrics", metrics)
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    return [line["loss"] for line in lines if "loss" in line]


def trial(name, options, folder):
    torch.manual_seed(7)
    make, feed = ARCHITECTURES[name]
    module, data = make(), feed()
    folder.mkdir(parents=True, exist_ok=True)
    par.export(module, {name: values.chunk(STEPS)[0] for name, values in data.items()}, folder / "model.onnx")
    save_file(data, str(folder / "data.safetensors"))
    plan = folder / "plan.yaml"
    plan.write_text(f"train: {{optimizer: {{kind: {optimizer_of(module)}, lr: {rate(module)}}}}}\n{options.plan}\n")
    got, wanted = par_losses(options, folder, plan), exact_losses(module, data)
    if len(got) != STEPS:
        raise RuntimeError(f"{len(got)} losses, expected {STEPS}")
    theirs = apart(torch_losses(copy.deepcopy(module), data), wanted)
    bound = max(1e-5, 3 * theirs if has_batch_norm(module) else 0)
    worst = apart(got, wanted)
    for seed in range(MOVED_RUNS if worst > bound else 0):
        other = apart(got, torch_losses(moved(module, seed), doubled(module, data)[1]))
        if other <= bound:
            return other, theirs, bound, f" (weights moved by float32's rounding, draw {seed}; unmoved {worst:.1e})"
    return worst, theirs, bound, ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--plan", default="", help="further plan text")
    parser.add_argument("--work", default=tempfile.mkdtemp(prefix="par-architectures-"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    failures = 0
    for name in options.only.split(",") if options.only else ARCHITECTURES:
        try:
            worst, theirs, bound, note = trial(name, options, pathlib.Path(options.work) / name)
            print(f"{name:14} losses within {worst:.1e} of PyTorch's in float64, bound {bound:.1e}; PyTorch's in "
                  f"float32 within"
                  f" {theirs:.1e}{note}", flush=True)
            failures += not worst <= bound
        except (par.Error, RuntimeError) as error:
            print(f"{name:14} {error}", flush=True)
            failures += 1
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()

"""Models at the size that people train, as PyTorch has them: exported for Par, and the peer of their benchmark.

    torch_models.py export FOLDER                       where Par was built: NAME.onnx.gz, without weights
    torch_models.py train NAME STEPS WARM_UP            on a GPU: f32 weights, bf16 autocast, torch.compile, fused AdamW

`train` prints one line of JSON: {"ms": [of each step after the warm-up], "first", "own_mib", "version"}.
"""
import json
import pathlib
import sys
import time

import torch
from torch import nn

# name -> batch, shape of a sample, classes of the labels; tokens are their own labels.
SIZES = {
    "gpt2-xl": (8, [1024], 50257),
    "llama-1b": (4, [2048], 128256),
    "bert-base": (32, [512], 30522),
    "vit-base": (64, [3, 224, 224], 1000),
    "resnet50": (128, [3, 224, 224], 1000),
}


class Language(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, labels):
        return self.model(input_ids=input_ids, labels=labels).loss


class Images(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, images, labels):
        found = self.model(images)
        return nn.functional.cross_entropy(getattr(found, "logits", found), labels)


def build(name):
    import transformers
    if name == "gpt2-xl":
        return Language(transformers.GPT2LMHeadModel(transformers.GPT2Config(
            n_embd=1600, n_layer=48, n_head=25, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False)))
    if name == "llama-1b":
        return Language(transformers.LlamaForCausalLM(transformers.LlamaConfig(
            vocab_size=128256, hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_attention_heads=32,
            num_key_value_heads=8, max_position_embeddings=4096, tie_word_embeddings=True, use_cache=False)))
    if name == "bert-base":
        return Language(transformers.BertForMaskedLM(transformers.BertConfig(
            hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)))
    if name == "vit-base":
        return Images(transformers.ViTForImageClassification(transformers.ViTConfig(
            hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, num_labels=1000)))
    import torchvision
    return Images(torchvision.models.resnet50())


def samples(name, device="cpu"):
    batch, shape, classes = SIZES[name]
    if len(shape) == 1:
        ids = torch.randint(0, classes, (batch, *shape), device=device)
        return {"input_ids": ids, "labels": ids.clone()}
    return {"images": torch.randn(batch, *shape, device=device),
            "labels": torch.randint(0, classes, (batch,), device=device)}


def export(folder):
    here = pathlib.Path(__file__).resolve()
    sys.path[:0] = [str(here.parent.parent.parent / "python"),
                    str(here.parent.parent.parent / "test" / "Models" / "zoo")]
    import par
    import structure
    folder.mkdir(parents=True, exist_ok=True)
    for name in SIZES:
        model = folder / f"{name}.onnx"
        par.export(build(name), samples(name), model)
        structure.strip(model, folder / f"{name}.onnx.gz")
        for file in folder.glob(f"{name}.onnx*"):
            if file.suffix != ".gz":
                file.unlink()
        print(f"{name}: {(folder / f'{name}.onnx.gz').stat().st_size:,} bytes", flush=True)


def train(name, steps, warm_up):
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.benchmark = True
    model, images = build(name).to("cuda"), "images" in samples(name)
    model = model.to(memory_format=torch.channels_last) if images else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    run = torch.compile(model)
    data = [samples(name, "cuda") for _ in range(2)]
    times, losses = [], []
    for step in range(steps):
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = run(**data[step % 2])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        times.append((time.perf_counter() - begin) * 1e3)
    print(json.dumps({"ms": times[warm_up:], "first": losses[0], "own_mib": torch.cuda.max_memory_allocated() / 2**20,
                      "version": torch.__version__}))


if __name__ == "__main__":
    if sys.argv[1] == "export":
        export(pathlib.Path(sys.argv[2]))
    else:
        train(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))

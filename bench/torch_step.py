"""PyTorch's side of model_step.py: the same architecture with random weights, in a process of its own.

    python torch_step.py MODEL eager|compile STEPS DATA

prints one JSON line per step (wall and CPU seconds, loss, peak memory), the first of them a warm-up.
"""

import json
import os
import pathlib
import sys
import time


def high_water(pid):
    """VmHWM of a process in KiB."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1])
    return 0


def build_gpt2():
    import torch
    import transformers

    config = transformers.GPT2Config(resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, attn_implementation="sdpa")
    model = transformers.GPT2LMHeadModel(config)
    return model, torch.optim.AdamW(model.parameters(), lr=1e-4), lambda batch: model(**batch).loss


def build_bert():
    import torch
    import transformers

    config = transformers.BertConfig(hidden_dropout_prob=0, attention_probs_dropout_prob=0, attn_implementation="sdpa")
    model = transformers.BertForMaskedLM(config)
    return model, torch.optim.AdamW(model.parameters(), lr=1e-4), lambda batch: model(**batch).loss


def build_resnet50():
    import torch
    import torchvision

    model = torchvision.models.resnet50()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    loss = torch.nn.functional.cross_entropy
    return model, optimizer, lambda batch: loss(model(batch["pixel_values"]), batch["labels"])


BUILDERS = {"gpt2-124m": build_gpt2, "bert-base": build_bert, "resnet50": build_resnet50}


def main():
    import torch
    from safetensors.torch import load_file

    name, how, steps, data = sys.argv[1:]
    torch.set_num_threads(1)
    torch.manual_seed(0)
    samples = load_file(data)
    batch = {key: value[: len(value) // 2] for key, value in samples.items()}  # the file holds two batches
    model, optimizer, compute_loss = BUILDERS[name]()
    model.train()
    if how == "compile":
        compute_loss = torch.compile(compute_loss)
    for _ in range(int(steps) + 1):
        wall, cpu = time.perf_counter(), time.process_time()
        optimizer.zero_grad()
        loss = compute_loss(batch)
        loss.backward()
        optimizer.step()
        record = {"loss": loss.item(), "wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
        record |= {"hwm_kib": high_water(os.getpid()), "version": torch.__version__}
        print(json.dumps(record), flush=True)


if __name__ == "__main__":
    main()

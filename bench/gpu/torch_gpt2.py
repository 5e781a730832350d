"""PyTorch's side of the benchmark: GPT-2 with f32 weights, bf16 autocast, fused AdamW, random tokens.

    torch_gpt2.py compile|eager BATCH SEQUENCE STEPS WARM_UP [--cpu]

prints one line of JSON: {"ms": [of each step after the warm-up], "first", "last" (losses), "own_mib", "version"}.
--cpu: two small layers on the CPU, to try the script itself.
"""
import json
import sys
import time

import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attend, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, sequence, width = x.shape
        split = self.attend(self.ln_1(x)).view(batch, sequence, 3, self.heads, width // self.heads)
        q, k, v = split.permute(2, 0, 3, 1, 4)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.project(y.transpose(1, 2).reshape(batch, sequence, width))
        return x + self.down(functional.gelu(self.up(self.ln_2(x)), approximate="tanh"))


class GPT2(nn.Module):
    def __init__(self, layers=12, width=768, heads=12, vocabulary=50257, sequence=1024):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(sequence, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.ln, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        self.apply(self.begin)
        self.head.weight = self.tokens.weight

    @staticmethod
    def begin(module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.ln(x))
        return functional.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


def main():
    how, (batch, sequence, steps, warm_up) = sys.argv[1], map(int, sys.argv[2:6])
    on_cpu = "--cpu" in sys.argv
    if not on_cpu and not torch.cuda.is_available():
        sys.exit("error: PyTorch has no CUDA device")
    device = "cpu" if on_cpu else "cuda"
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    small = {"layers": 2, "width": 64, "heads": 2, "sequence": sequence}
    model = (GPT2(**small) if on_cpu else GPT2(sequence=sequence)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    run = torch.compile(model) if how == "compile" else model
    data = torch.randint(0, 50257, (2, batch, sequence), device=device)
    times, losses = [], []
    for step in range(steps):
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = run(data[step % 2])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())  # waits for the GPU, as a run that prints its loss does
        times.append((time.perf_counter() - begin) * 1e3)
    own = 0 if on_cpu else torch.cuda.max_memory_allocated() / 2**20
    print(json.dumps({"ms": times[warm_up:], "first": losses[0], "last": losses[-1], "own_mib": own,
                      "version": torch.__version__}))


if __name__ == "__main__":
    main()

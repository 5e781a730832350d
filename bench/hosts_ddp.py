#!/usr/bin/env python3
"""A rank of DistributedDataParallel over Gloo, for hosts.py: hosts_ddp.py wide|tiny STEPS ROWS TOKENS. Prints JSON: the
milliseconds of each step, and processor seconds a step."""
import json
import sys
import time

import torch
import torch.distributed
from torch.nn.parallel import DistributedDataParallel

WIDTH, HIDDEN = 1024, 2048
WARM = 2


def wide(rows, _):
    layers = [torch.nn.Linear(WIDTH, HIDDEN, bias=False), torch.nn.ReLU(),
              torch.nn.Linear(HIDDEN, HIDDEN, bias=False), torch.nn.ReLU(),
              torch.nn.Linear(HIDDEN, WIDTH, bias=False)]
    x = torch.rand(rows, WIDTH)
    return torch.nn.Sequential(*layers), lambda model: torch.nn.functional.mse_loss(model(x), x)


def tiny(_, tokens):
    from transformers import GPT2Config, GPT2LMHeadModel
    config = GPT2Config(vocab_size=256, n_positions=128, n_embd=128, n_layer=4, n_head=4, resid_pdrop=0, embd_pdrop=0,
                        attn_pdrop=0, use_cache=False)
    x = torch.randint(0, 256, (8, tokens))
    return GPT2LMHeadModel(config), lambda model: model(input_ids=x, labels=x).loss


def main():
    name, steps, rows, tokens = sys.argv[1], *map(int, sys.argv[2:5])
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    model, loss_of = {"wide": wide, "tiny": tiny}[name](rows, tokens)
    model = DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    times, cpu = [], 0.0
    for step in range(steps):
        if step == WARM:
            cpu = time.process_time()
        begin = time.perf_counter()
        loss = loss_of(model)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        loss.item()
        times.append(1e3 * (time.perf_counter() - begin))
    print(json.dumps({"ms": times, "cpu": (time.process_time() - cpu) / (steps - WARM)}))
    torch.distributed.destroy_process_group()


main()

#!/usr/bin/env python3
"""search.py export NAME FILE: writes the structure of a published model (no weights): llama-3.1-8b, llama-2-7b,
gpt3-175b, llama-3.1-405b. Needs torch and transformers; minutes for the largest.
search.py [--compile PATH] ROW...: the time of `par-compile --fit` or `--auto`, and what it found. A row is
NAME=FILE=FLAGS, as "gpt2-xl, 64=gpt2-xl.onnx=--fit --gpus=64xh100-sxm --set precision=bf16". Prints a line of a table
for each: name, user and wall seconds, candidates, profiles, whole compilations, step, gap, plan."""
import re
import resource
import subprocess
import sys
import time

LLAMA = {
    "llama-2-7b": dict(hidden_size=4096, intermediate_size=11008, num_hidden_layers=32, num_attention_heads=32,
                       num_key_value_heads=32, vocab_size=32000, max_position_embeddings=4096),
    "llama-3.1-8b": dict(hidden_size=4096, intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32,
                         num_key_value_heads=8, vocab_size=128256, max_position_embeddings=8192),
    "llama-3.1-405b": dict(hidden_size=16384, intermediate_size=53248, num_hidden_layers=126,
                           num_attention_heads=128, num_key_value_heads=8, vocab_size=128256,
                           max_position_embeddings=8192),
}


def export(name, file):
    import par
    import torch
    import transformers
    with torch.device("meta"):
        if name == "gpt3-175b":
            length = 2048
            model = transformers.GPT2LMHeadModel(transformers.GPT2Config(
                n_embd=12288, n_layer=96, n_head=96, n_positions=length, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0))
        else:
            length = 4096
            model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
                rms_norm_eps=1e-5, tie_word_embeddings=False, **LLAMA[name]))
    tokens = torch.zeros(4, length, dtype=torch.long)
    par.export(model, {"input_ids": tokens, "labels": tokens}, file, weights=False,
               dynamic={"input_ids": ["batch", None], "labels": ["batch", None]})


def measure(compiler, row):
    name, file, flags = row.split("=", 2)
    begin, before = time.time(), resource.getrusage(resource.RUSAGE_CHILDREN)
    run = subprocess.run([compiler, file, *flags.split()], capture_output=True, text=True)
    took, after = time.time() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    if run.returncode != 0:
        return f"| {name} | exit {run.returncode}: {run.stderr.strip().splitlines()[-1]} |"
    find = lambda pattern: (re.search(pattern, run.stdout) or ["", "0"])[1]
    return " | ".join([f"| {name}", f"{after.ru_utime - before.ru_utime:.1f}", f"{took:.1f}",
                       find(r"search  (\d+) plans"), find(r"ranks: (\d+) compilation"),
                       find(r"(\d+) plans? compiled whole"), find(r"best .*?step (.*?),"), find(r"gap (.*?%)"),
                       find(r"best    (.*?): step") + " |"])


def main():
    arguments = sys.argv[1:]
    if arguments[:1] == ["export"]:
        return export(*arguments[1:])
    compiler = "build/bin/par-compile"
    if arguments[:1] == ["--compile"]:
        compiler, arguments = arguments[1], arguments[2:]
    if not arguments:
        sys.exit(__doc__)
    print("| model, ranks | user s | wall s | plans | profiles | whole | step | gap | found |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for row in arguments:
        print(measure(compiler, row), flush=True)


main()

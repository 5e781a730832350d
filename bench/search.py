#!/usr/bin/env python3
"""search.py export NAME FILE: writes the structure of a published model (no weights), one of MODELS below. Needs torch
and transformers; minutes for the largest.
search.py [--compile PATH] ROW...: the time of `par-compile --fit` or `--auto`, and what it found. A row is
NAME=FILE=FLAGS, as "gpt2-xl, 64=gpt2-xl.onnx=--fit --gpus=64xh100-sxm --set precision=bf16". Prints a line of a table
for each: name, user and wall seconds, candidates, profiles, whole compilations, step, gap, plan.
search.py fits [--compile PATH] [--folder F] [--transcripts]: a table of `--fit` of the models of FITS, whose files
NAME.onnx are in the folder (written where they are not there); or what each prints, with --alternatives."""
import argparse
import json
import pathlib
import re
import resource
import subprocess
import sys
import time


def decoder(kind, width, inner, layers, heads, groups, vocabulary, length=4096, **more):
    """A config of transformers whose model is KIND + ForCausalLM, and the tokens of a sample."""
    return kind, length, dict(hidden_size=width, intermediate_size=inner, num_hidden_layers=layers,
                              num_attention_heads=heads, num_key_value_heads=groups, vocab_size=vocabulary,
                              max_position_embeddings=length, use_cache=False, **more)


MODELS = {
    "llama-3.2-1b": decoder("Llama", 2048, 8192, 16, 32, 8, 128256, tie_word_embeddings=True),
    "qwen2.5-3b": decoder("Qwen2", 2048, 11008, 36, 16, 2, 151936, tie_word_embeddings=True),
    "llama-2-7b": decoder("Llama", 4096, 11008, 32, 32, 32, 32000, tie_word_embeddings=False),
    "mistral-7b": decoder("Mistral", 4096, 14336, 32, 32, 8, 32000, tie_word_embeddings=False, sliding_window=None),
    "llama-3.1-8b": decoder("Llama", 4096, 14336, 32, 32, 8, 128256, tie_word_embeddings=False),
    "llama-2-13b": decoder("Llama", 5120, 13824, 40, 40, 40, 32000, tie_word_embeddings=False),
    "gpt-neox-20b": decoder("GPTNeoX", 6144, 24576, 44, 64, 64, 50432, 2048, tie_word_embeddings=False,
                            attention_dropout=0, hidden_dropout=0),
    "qwen2.5-32b": decoder("Qwen2", 5120, 27648, 64, 40, 8, 152064, tie_word_embeddings=False),
    "llama-3.1-70b": decoder("Llama", 8192, 28672, 80, 64, 8, 128256, tie_word_embeddings=False),
    "gpt3-175b": ("GPT2", 2048, dict(n_embd=12288, n_layer=96, n_head=96, n_positions=2048, resid_pdrop=0,
                                     embd_pdrop=0, attn_pdrop=0, use_cache=False)),
    "llama-3.1-405b": decoder("Llama", 16384, 53248, 126, 128, 8, 128256, tie_word_embeddings=False),
}
HEADS = {"GPT2": "GPT2LMHeadModel"}

# Each model's devices and samples of a step; the precision is bf16.
FITS = [("llama-3.2-1b", "8xa100-40g", 64), ("qwen2.5-3b", "8xa100-80g", 64), ("mistral-7b", "8xh100-sxm", 64),
        ("llama-3.1-8b", "8xh100-sxm", 64), ("llama-2-13b", "16xa100-40g", 128), ("gpt-neox-20b", "32xa100-80g", 512),
        ("qwen2.5-32b", "64xh100-sxm", 512), ("llama-3.1-70b", "128xh100-sxm", 512),
        ("gpt3-175b", "1024xh100-sxm", 1536), ("llama-3.1-405b", "16384xh100-sxm", 4096)]


def export(name, file):
    import par
    import torch
    import transformers
    kind, length, sizes = MODELS[name]
    with torch.device("meta"):
        model = getattr(transformers, HEADS.get(kind, kind + "ForCausalLM"))(
            getattr(transformers, kind + "Config")(**sizes))
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


def fits(arguments):
    parser = argparse.ArgumentParser(prog="search.py fits")
    parser.add_argument("--compile", default="build/bin/par-compile")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("build/published"))
    parser.add_argument("--transcripts", action="store_true")
    parser.add_argument("names", nargs="*", help="of models; default: all of FITS")
    options = parser.parse_args(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.transcripts:
        return print_transcripts(options)
    print("| model | devices | samples | B | fits from | plan | step | tokens a second | peak | gap | limited by "
          "| user s |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, gpus, batch, file in chosen(options):
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        run = subprocess.run([options.compile, file, "--fit", f"--gpus={gpus}", "--set", f"batch={batch}", "--set",
                              "precision=bf16", "--json"], capture_output=True, text=True)
        took = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
        print(f"| {name} | {gpus} | {batch} | {describe(run)} | {took:.1f} |", flush=True)


def chosen(options):
    """The rows of FITS that are asked for, each with its file, which is written where it is not there."""
    for name, gpus, batch in FITS:
        if options.names and name not in options.names:
            continue
        file = options.folder / f"{name}.onnx"
        if not file.exists():
            export(name, file)
        yield name, gpus, batch, file


def print_transcripts(options):
    """Prints the text of `--fit --alternatives` of each model, with its time."""
    for name, gpus, batch, file in chosen(options):
        flags = f"--fit --gpus {gpus} --set batch={batch} --set precision=bf16 --alternatives"
        begin, before = time.time(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        run = subprocess.run([options.compile, file, *flags.split()], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             text=True)
        user, wall = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before, time.time() - begin
        print(f"## {name}\n\n```text\n$ par-compile {name}.onnx {flags}\n{run.stdout}"
              f"(exit {run.returncode}, user {user:.1f} s, wall {wall:.1f} s)\n```\n", flush=True)


def describe(run):
    """Cells of a table of what `--fit --json` has said."""
    if run.returncode:
        said = run.stderr.strip().splitlines()
        return f" | | exit {run.returncode}: {said[-1] if said else ''} | | | | | "
    report = json.loads(run.stdout)
    search, fit = report["search"], report["fit"]
    best = search["alternatives"][0]
    return " | ".join([f"{report['model']['elements'] / 1e9:.1f}", f"{search['fewest']['ranks']}", best["plan"],
                       f"{best['step_ns'] / 1e6:,.0f} ms", f"{fit['tokens_per_second']:,.0f}",
                       f"{best['peak'] / 2**30:.1f} GiB", f"{search['gap_percent']:.1f} %", fit["limited_by"]])


def main():
    arguments = sys.argv[1:]
    if arguments[:1] == ["export"]:
        return export(*arguments[1:])
    if arguments[:1] == ["fits"]:
        return fits(arguments[1:])
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

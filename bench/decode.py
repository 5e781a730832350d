#!/usr/bin/env python3
"""Tokens a second of a decoder on one thread: Par, ONNX Runtime with the same file, and PyTorch.

    decode.py [--size small|gpt2|llama|qwen] [--prompt 64 [17...]] [--new 64] [--cache 256] [--keep FOLDER] [--only par]

A prompt of each length is a row of the batch. Random weights, greedy. Times of prefill and of steps apart, by the clock
and as CPU time of the process, which other work on the machine changes less. ONNX Runtime has its caches bound (no
copies but its own), PyTorch a DynamicCache, and shorter prompts padded on the left; `generate` of transformers takes
one prompt after the other. All choose the same tokens, or the status is 1. Needs torch, transformers and onnxruntime;
figures for the record are taken on an idle machine.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))
SIZES = {
    "small": ("GPT2", dict(n_embd=256, n_layer=4, n_head=8, vocab_size=8192, n_positions=1024)),
    "gpt2": ("GPT2", dict(n_positions=1024)),
    "llama": ("Llama", dict(hidden_size=1024, intermediate_size=2816, num_hidden_layers=12, num_attention_heads=16,
                            num_key_value_heads=4, vocab_size=32000, max_position_embeddings=2048)),
    "qwen": ("Qwen2", dict(hidden_size=896, intermediate_size=4864, num_hidden_layers=12, num_attention_heads=14,
                           num_key_value_heads=2, vocab_size=32000, max_position_embeddings=2048,
                           tie_word_embeddings=True)),
}


def build(size):
    import torch
    import transformers

    torch.manual_seed(1)
    kind, sizes = SIZES[size]
    config = getattr(transformers, f"{kind}Config")(**sizes)
    return transformers.AutoModelForCausalLM.from_config(config).eval()


def prompts_of(options):
    import random

    choose = random.Random(1)
    return [[choose.randrange(8192) for _ in range(length)] for length in options.prompt]


def cpu_of(pid):
    """Seconds of user and system time of a process."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def now():
    return time.perf_counter(), time.process_time()


def between(*marks):
    """Times between marks by the clock, and as CPU time."""
    return [[after[i] - before[i] for before, after in zip(marks, marks[1:])] for i in (0, 1)]


def run_par(options, folder, prompts):
    import par

    plan = {"batch": len(prompts), "dims": {"seq": 1, "cache": options.cache},
            "prefill": {"seq": max(options.prompt)}, "carry": {"present.*": "past.*"}}
    bundle = par.compile(folder / "model.onnx", plan, out=folder / "model.par")
    with par.Decoder(bundle) as decoder:
        decoder.generate(prompts, max_new_tokens=2)
        began = cpu_of(decoder.pid)
        decoder.generate(prompts, max_new_tokens=1)
        prefilled = cpu_of(decoder.pid)
        tokens = decoder.generate(prompts, max_new_tokens=options.new)
        prefill = prefilled - began
        times = [decoder.times["prefill_s"], decoder.times["step_s"]]
        return tokens, times, [prefill, cpu_of(decoder.pid) - prefilled - prefill]


def run_onnxruntime(options, folder, prompts):
    import numpy
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    settings.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), settings, providers=["CPUExecutionProvider"])
    sizes = {"batch": len(prompts), "cache": options.cache}
    past = [onnxruntime.OrtValue.ortvalue_from_numpy(numpy.zeros([sizes.get(dim, dim) for dim in one.shape],
                                                                 numpy.float32))
            for one in session.get_inputs() if one.name.startswith("past.")]

    def call(ids, position, count):
        nonlocal past
        binding = session.io_binding()
        for name, value in (("input_ids", ids), ("position", position), ("count", count)):
            binding.bind_cpu_input(name, value)
        for i, value in enumerate(past):
            binding.bind_ortvalue_input(f"past.{i}", value)
        for one in session.get_outputs():
            binding.bind_output(one.name)
        session.run_with_iobinding(binding)
        logits, *past = binding.get_outputs()
        return logits.numpy().argmax(-1)

    def generate(new):
        ones, counts = numpy.ones((len(prompts), 1), numpy.int64), numpy.array([[count] for count in options.prompt])
        padded = numpy.array([prompt + [0] * (max(options.prompt) - len(prompt)) for prompt in prompts])
        began = now()
        chosen = call(padded, 0 * ones, counts)
        prefilled = now()
        tokens = [chosen]
        for i in range(new - 1):
            tokens.append(chosen := call(chosen[:, None], counts + i, ones))
        return numpy.stack(tokens, 1).tolist(), *between(began, prefilled, now())

    generate(2)
    return generate(options.new)


def run_torch(options, folder, prompts):
    import torch

    torch.set_num_threads(1)
    model, longest = build(options.size), max(options.prompt)
    ids = torch.tensor([[0] * (longest - len(prompt)) + prompt for prompt in prompts])
    shown = torch.tensor([[0] * (longest - count) + [1] * count for count in options.prompt])

    def generate(new):
        with torch.no_grad():
            mask, began = shown, now()
            out = model(ids, attention_mask=mask, position_ids=(mask.cumsum(-1) - 1).clamp(min=0), use_cache=True,
                        logits_to_keep=1)
            chosen = out.logits[:, -1].argmax(-1)
            prefilled = now()
            tokens = [chosen]
            for _ in range(new - 1):
                mask = torch.cat([mask, torch.ones_like(mask[:, :1])], 1)
                out = model(chosen[:, None], attention_mask=mask, position_ids=mask.sum(-1, keepdim=True) - 1,
                            past_key_values=out.past_key_values, use_cache=True)
                tokens.append(chosen := out.logits[:, -1].argmax(-1))
            return torch.stack(tokens, 1).tolist(), *between(began, prefilled, now())

    generate(2)
    return generate(options.new)


def run_generate(options, folder, prompts):
    import torch

    torch.set_num_threads(1)
    model = build(options.size)

    def generate(new):
        return [model.generate(torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt), dtype=torch.int64),
                               do_sample=False, max_new_tokens=new, min_new_tokens=new, eos_token_id=None,
                               pad_token_id=0)[0, len(prompt):].tolist() for prompt in prompts]

    generate(1)
    began = now()
    generate(1)
    prefilled = now()
    tokens = generate(options.new)
    clock, cpu = between(began, prefilled, now())
    return tokens, [clock[0], clock[1] - clock[0]], [cpu[0], cpu[1] - cpu[0]]


RUNS = {"par": run_par, "onnxruntime": run_onnxruntime, "torch": run_torch, "generate": run_generate}


def one(options):
    """In a process of its own: one line of JSON."""
    tokens, clock, cpu = RUNS[options.one](options, options.keep, prompts_of(options))
    print(json.dumps({"tokens": tokens, "clock": clock, "cpu": cpu}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--prompt", type=int, nargs="+", default=[64])
    for name, value in (("new", 64), ("cache", 256)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--keep", type=pathlib.Path, help="folder of the model and the bundle")
    parser.add_argument("--only", action="append", choices=RUNS)
    parser.add_argument("--one", choices=RUNS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        return one(options)
    with tempfile.TemporaryDirectory(prefix="par-decode-") as scratch:
        folder = options.keep or pathlib.Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "model.onnx").exists():
            import par
            par.export_decoder(build(options.size), folder / "model.onnx")
        sys.exit(table(options, folder))


def table(options, folder):
    first, different = None, 0
    for name in options.only or RUNS:
        command = [sys.executable, __file__, "--one", name, "--size", options.size, "--keep", str(folder)]
        command += ["--new", str(options.new), "--cache", str(options.cache), "--prompt", *map(str, options.prompt)]
        found = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
        first = first or found["tokens"]
        different += first != found["tokens"]
        made = len(options.prompt) * (options.new - 1)
        (prefill, steps), (prefill_cpu, steps_cpu) = found["clock"], found["cpu"]
        print(f"{name:12} prefill {prefill * 1e3:7.1f} ms (cpu {prefill_cpu * 1e3:7.1f})   "
              f"{made / steps:7.1f} tokens/s "
              f"(by cpu {made / steps_cpu:7.1f})   tokens {'the same' if first == found['tokens'] else 'DIFFER'}",
              flush=True)
    return different > 0


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""A real training run: a GPT of 10.8 million parameters learns the Jargon File, byte by byte, on four ranks.

    apt-get download jargon-text     # Debian's package; the text is in the public domain
    python3 bench/train_text.py --text jargon-text_*.deb --bin build/bin

The model is an nn.Module of this file, exported by par.export with PyTorch's initial weights. Par trains it on two
pipeline stages and two replicas. After some steps the whole job is killed (SIGKILL to every process); it is resumed
from its last checkpoint and must repeat, bit for bit, the losses of the steps that the killed job had made after that
checkpoint. The trained weights are exported, as safetensors and in the ONNX model, and loaded into the module, whose
loss on text held out must be Par's. For comparison PyTorch trains the module on the same windows for the first
--torch-steps. Writes result.json, from which curves.py draws the picture. Ends with 1 if one of the equalities fails.
"""
import argparse
import gzip
import json
import math
import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy
import torch
from safetensors.numpy import save_file
from safetensors.torch import load_file

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import par  # noqa: E402

LAYERS, WIDTH, HEADS, WINDOW, BATCH, SYMBOLS = 6, 384, 6, 128, 8, 256
PEAK, FLOOR, WARMUP, DECAY, CLIP = 1e-3, 1e-4, 100, 0.1, 1.0
HELD_OUT = 0.05  # the text's last part
BOUND = 1e-5     # between Par's loss on the text held out and PyTorch's, relative: both add in f32, in other orders


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = torch.nn.LayerNorm(WIDTH), torch.nn.LayerNorm(WIDTH)
        self.qkv, self.out = torch.nn.Linear(WIDTH, 3 * WIDTH), torch.nn.Linear(WIDTH, WIDTH)
        self.up, self.down = torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        heads = self.qkv(self.ln_1(x)).unflatten(-1, (3, HEADS, WIDTH // HEADS)).permute(2, 0, 3, 1, 4)
        mixed = torch.nn.functional.scaled_dot_product_attention(heads[0], heads[1], heads[2], is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.down(torch.nn.functional.gelu(self.up(self.ln_2(x)), approximate="tanh"))


class GPT(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = torch.nn.Embedding(SYMBOLS, WIDTH), torch.nn.Embedding(WINDOW, WIDTH)
        self.h = torch.nn.ModuleList(Block() for _ in range(LAYERS))
        self.ln_f, self.head = torch.nn.LayerNorm(WIDTH), torch.nn.Linear(WIDTH, SYMBOLS, bias=False)
        for name, value in self.named_parameters():
            if value.ndim == 2:
                torch.nn.init.normal_(value, std=0.02 / math.sqrt(2 * LAYERS) if "out." in name or "down." in name
                                      else 0.02)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe.weight[:tokens.shape[1]]
        for block in self.h:
            x = block(x)
        return self.head(self.ln_f(x))


def plan(steps):
    return f"""# Two stages of three layers on two replicas; a step is two microbatches of two windows on each.
mesh: {{pp: 2, dp: 2}}
dims: {{seq: {WINDOW}}}
batch: {{size: {BATCH}, microbatches: 2}}
train:
  loss: cross_entropy
  optimizer:
    kind: adamw
    weight_decay: {DECAY}
    lr: {{peak: {PEAK}, warmup: {min(WARMUP, steps // 2)}, decay: cosine, steps: {steps}, floor: {FLOOR}}}
  clip: {CLIP}
pipeline: {{schedule: 1f1b, cuts: {{h.*: even}}}}
"""


def rate(step, steps):
    """docs/plan.md's learning rate, for PyTorch's side; `step` counts from 0."""
    warmup = min(WARMUP, steps // 2)
    if step < warmup:
        return PEAK * (step + 1) / warmup
    return FLOOR + (PEAK - FLOOR) * 0.5 * (1 + math.cos(math.pi * min(1, (step - warmup) / (steps - warmup))))


def read_text(path):
    if path.suffix == ".deb":
        folder = path.with_suffix("")
        subprocess.run(["dpkg-deb", "-x", path, folder], check=True)
        path = folder / "usr/share/doc/jargon-text/jargon.txt.gz"
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def windows(text):
    """Windows of bytes and the bytes that follow them, whole batches of them."""
    symbols = numpy.frombuffer(text, numpy.uint8).astype(numpy.int64)
    count = (len(symbols) - 1) // WINDOW // BATCH * BATCH
    cut = lambda start: symbols[start:start + count * WINDOW].reshape(count, WINDOW).copy()  # noqa: E731
    return {"tokens": cut(0), "labels": cut(1)}


def prepare(options):
    """Data, model and bundle."""
    text = read_text(options.text)
    split = int(len(text) * (1 - HELD_OUT))
    train, held = windows(text[:split]), windows(text[split:])
    order = numpy.random.default_rng(0).permutation(len(train["tokens"]))  # drawn here, so that PyTorch reads the same
    train = {name: rows[order] for name, rows in train.items()}
    save_file(train, options.work / "train.safetensors")
    save_file(held, options.work / "held.safetensors")
    torch.manual_seed(0)
    module = GPT()
    model = par.export(module, {"tokens": torch.zeros(2, WINDOW, dtype=torch.int64)}, options.work / "gpt.onnx",
                       dynamic={"tokens": ["batch", "seq"]})
    (options.work / "plan.yaml").write_text(plan(options.steps))
    tool(options, "par-compile", model, options.work / "plan.yaml", "-o", options.work / "gpt.par")
    count = sum(value.numel() for value in module.parameters())
    print(f"text    {len(text):,} bytes: {len(train['tokens']):,} windows of {WINDOW} to train, "
          f"{len(held['tokens']):,} held"
          f" out; {count / 1e6:.1f} M parameters", flush=True)
    return module, train, held, count


def tool(options, name, *arguments):
    subprocess.run([str(options.bin / name), *map(str, arguments)], check=True)


def lines(path):
    """Lines that a job has written to its metrics; a killed one may have left half a line."""
    found = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            found.append(json.loads(line))
        except ValueError:
            break
    return found


def losses(path):
    return {line["step"]: line["loss"] for line in lines(path) if "loss" in line}


def train_killed(options, arguments, metrics):
    """Trains until step --kill is done, then kills every process of the job."""
    job = subprocess.Popen([str(options.bin / "par-run"), *map(str, arguments), "--metrics", str(metrics)],
                           start_new_session=True)
    while job.poll() is None and options.kill not in losses(metrics):
        time.sleep(0.2)
    if job.poll() is not None:
        sys.exit(f"par-run ended with {job.returncode} before it was to be killed")
    os.killpg(job.pid, signal.SIGKILL)
    job.wait()
    print(f"killed  after step {max(losses(metrics))}", flush=True)


def train_par(options):
    """The killed job and the one that goes on: what result.json says of them."""
    work, every = options.work, options.save_every
    first, second = work / "killed.jsonl", work / "resumed.jsonl"
    first.unlink(missing_ok=True)
    second.unlink(missing_ok=True)
    common = [work / "gpt.par", "--data", work / "train.safetensors", "--order", "sequential", "--steps", options.steps,
              "--save", work / "ckpt", "--save-every", every, "--eval-every", every, "--eval-data",
              work / "held.safetensors"]
    began = time.monotonic()
    train_killed(options, common, first)
    tool(options, "par-run", *common, "--resume", "auto", "--metrics", second)
    seconds = time.monotonic() - began
    before, after = losses(first), losses(second)
    shared = sorted(set(before) & set(after))
    same = bool(shared) and all(before[step] == after[step] for step in shared)
    print(f"resumed steps {shared[0] if shared else '?'} to {shared[-1] if shared else '?'} were made twice: losses"
          f" {'equal bit for bit' if same else 'DIFFER'}", flush=True)
    evaluated = {line["step"]: line["eval_loss"] for file in (first, second) for line in lines(file)
                 if "eval_loss" in line}
    return {"par": {**before, **after}, "held": evaluated, "seconds": seconds, "resumed_equal": same,
            "killed": max(before), "resumed_from": min(after) - 1}


def held_loss(module, held):
    module.eval()
    sums = 0.0
    with torch.no_grad():
        for start in range(0, len(held["tokens"]), BATCH):
            rows = {name: torch.from_numpy(values[start:start + BATCH]) for name, values in held.items()}
            logits = module(rows["tokens"])
            sums += torch.nn.functional.cross_entropy(logits.flatten(0, 1), rows["labels"].flatten()).item()
    return sums / (len(held["tokens"]) // BATCH)


def check_export(options, held):
    """Par's loss of the last checkpoint, and PyTorch's with the weights that Par exported, both ways."""
    import onnx
    work, metrics = options.work, options.work / "eval.jsonl"
    metrics.unlink(missing_ok=True)
    for name in ("trained.safetensors", "trained.onnx"):
        tool(options, "par-run", work / "gpt.par", "--eval", "--weights", work / "ckpt" / str(options.steps), "--data",
             work / "held.safetensors", "--export", work / name, "--metrics", metrics)
    ours = lines(metrics)[-1]["eval_loss"]
    weights = load_file(work / "trained.safetensors")
    module = GPT()
    module.load_state_dict(weights)
    theirs = held_loss(module, held)
    written = {value.name: onnx.numpy_helper.to_array(value)
               for value in onnx.load(work / "trained.onnx").graph.initializer}
    alike = all(name in written and numpy.array_equal(value.numpy(), written[name]) for name, value in weights.items())
    difference = abs(ours - theirs) / theirs
    print(f"held    Par {ours:.7f}, PyTorch with the exported weights {theirs:.7f}: {difference:.1e} apart, bound "
          f"{BOUND:g};"
          f" the .onnx file holds {'the same' if alike else 'OTHER'} weights", flush=True)
    return ours, theirs, difference <= BOUND and alike


def train_torch(options, module, train):
    """PyTorch on the same windows, from the same weights."""
    torch.set_num_threads(options.torch_threads)
    optimizer = torch.optim.AdamW(module.parameters(), lr=PEAK, weight_decay=DECAY)
    module.train()
    found, began = {}, time.monotonic()
    for step in range(options.torch_steps):
        at = numpy.arange(step * BATCH, (step + 1) * BATCH) % len(train["tokens"])
        logits = module(torch.from_numpy(train["tokens"][at]))
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), torch.from_numpy(train["labels"][at]).flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(module.parameters(), CLIP)
        for group in optimizer.param_groups:
            group["lr"] = rate(step, options.steps)
        optimizer.step()
        found[step + 1] = loss.item()
    return found, time.monotonic() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=pathlib.Path, required=True,
                        help="jargon-text_*.deb, its jargon.txt.gz, or a text")
    parser.add_argument("--bin", type=pathlib.Path, default="build/bin", help="where the tools are")
    parser.add_argument("--work", type=pathlib.Path, default="build/train-text", help="folder for what is written")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--save-every", type=int, default=250)
    parser.add_argument("--kill", type=int, default=550, help="the step after which the job is killed")
    parser.add_argument("--torch-steps", type=int, default=300, help="steps of PyTorch for comparison")
    parser.add_argument("--torch-threads", type=int, default=2)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    module, train, held, count = prepare(options)
    result = {"parameters": count, **train_par(options)}
    result["par_held"], result["torch_held"], equal = check_export(options, held)
    result["torch"], result["torch_seconds"] = train_torch(options, module, train)
    worst = max((abs(result["par"][step] - loss) for step, loss in result["torch"].items()), default=0)
    print(f"trained {options.steps} steps in {result['seconds']:.0f} s; PyTorch's first {options.torch_steps} in"
          f" {result['torch_seconds']:.0f} s, losses at most {worst:.1e} apart", flush=True)
    (options.work / "result.json").write_text(json.dumps(result))
    sys.exit(0 if result["resumed_equal"] and equal else 1)


if __name__ == "__main__":
    main()

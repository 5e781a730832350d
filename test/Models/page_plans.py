#!/usr/bin/env python3
"""Runs the plans of docs/plan.md §2 unchanged, and compares them with one rank, a line a claim.

    page_plans.py --bin build/bin [--page docs/plan.md] [--only "ZeRO-1"]... [--steps 3]

PLANS lists plans that train on a CPU by the begin of their comments, each with the model of the folder page that has
its names. One rank has the same batch and the same `train`: losses differ only by the order of additions, and so do
weights, except for adamw's steps of gradients that are only rounding. A plan without `train` decodes tokens, which are
one rank's except for ties. REFUSED are plans that need features of docs/roadmap.md: the compiler refuses each with
located messages, every one about a key of NOT_YET, which the roadmap lists. A plan of the page in neither list fails,
and one that is not refused any more belongs to PLANS. Only Python's standard library is used. Exit status 0: all
hold.
"""

import argparse
import math
import pathlib
import random
import re
import shutil
import subprocess
import tempfile

from runs import HERE, Claims, Runs, largest, read_safetensors, write_safetensors

PAGE = HERE.parents[1] / "docs/plan.md"
ROADMAP = HERE.parents[1] / "docs/roadmap.md"
TOKENS, SYMBOLS = 16, 64  # of a sample, as the models of the folder page have them
PLANS = {
    "naive": "gpt2", "GPipe": "gpt2", "1F1B": "gpt2", "DDP": "gpt2", "ZeRO-1": "gpt2", "2: gradients": "gpt2",
    "3, parameters": "gpt2", "FSDP with CPU offload": "gpt2", "Megatron tensor": "gpt2", "TP + sequence": "gpt2",
    "FSDP x TP": "gpt2", "pipeline inside data": "parts", "the same table": "parts", "MoE": "parts",
    "inference": "decoder", "hybrid": "parts", "PipeDream": "vgg", "PTD-P": "gpt2",
}
REFUSED = {
    "context": "gpt2",
}
# The subject of a refusal, and its name in the roadmap.
NOT_YET = {
    r"sequence": "`sequence`",
}


def read_section(page, number):
    """From a heading to the next."""
    return re.search(rf"^## {number}\..*?(?=^## |\Z)", page, re.M | re.S)[0]


def read_plans(page):
    """Comment -> text of the documents of §2's block."""
    block = read_section(page, 2).split("```yaml\n")[1].split("```")[0]
    documents = re.split(r"^--- # ", block, flags=re.M)[1:]
    return {title: text for title, _, text in (document.partition("\n") for document in documents)}


def list_of(title):
    """The lists in which the plan with this comment stands."""
    return [name for name, plans in (("PLANS", PLANS), ("REFUSED", REFUSED)) if any(map(title.startswith, plans))]


def find(plans, name):
    texts = [text for title, text in plans.items() if title.startswith(name)]
    if len(texts) != 1:
        raise SystemExit(f"{len(texts)} plans of the page begin with {name!r}: {list(plans)}")
    return texts[0]


def one_rank(text):
    """A plan of one rank that trains as this one does, and its batch."""
    batch = int(re.search(r"batch: (?:\{size: )?(\d+)", text)[1])
    train = re.search(r"train: \{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}", text)[0]
    precision = re.search(r"precision: .*\n|$", text)[0]
    # Recomputed values are rounded to bf16 at other places than saved ones.
    recompute = re.search(r"recompute: .*\n|$", text)[0] if precision else ""
    return f"batch: {batch}\n{train}\n{precision}{recompute}", batch


def data_of(runs, batch):
    choose, count = random.Random(batch), batch * 2
    rows = {name: ([count, TOKENS], [choose.randrange(SYMBOLS) for _ in range(count * TOKENS)])
            for name in ("input_ids", "labels")}
    file = runs.work / f"data-{batch}.safetensors"
    write_safetensors(file, rows)
    return file


def is_noise(name, text):
    """A bias of keys has no gradient but rounding, of which adamw makes steps of the learning rate. So has any bias in
    bf16 whose gradient is a sum of 512 samples, each of which eight ranks round (recomputed or not: the same bits)."""
    return name.endswith("c_attn.bias") or (of_single_samples(text) and name.endswith(".bias"))


def of_single_samples(text):
    return "microbatch_size: 1" in text and "bf16" in text


def difference(whole, part):
    norm = math.sqrt(math.fsum(a * a for a in whole))
    return math.sqrt(math.fsum((a - b) ** 2 for a, b in zip(whole, part))) / (norm + 1e-3)


class Page:
    def __init__(self, runs, claims, steps):
        self.runs, self.claims, self.steps = runs, claims, steps
        self.whole = {}  # what one rank computed, by model and plan

    def train(self, model, text):
        bundle = self.runs.compile(model, re.sub(r"^target: .*\n", "", text, flags=re.M))
        lines, weights = self.runs.train(bundle, data_of(self.runs, one_rank(text)[1]), self.steps, "--init")
        return [line["loss"] for line in lines], read_safetensors(weights)

    def decode(self, model, text, batch, calls=4):
        """The tokens that a model with caches chooses for random ones, call by call."""
        bundle = self.runs.compile(model, re.sub(r"^target: .*\n", "", text, flags=re.M))
        ids, tokens = self.runs.work / "ids.safetensors", self.runs.work / "tokens.safetensors"
        choose = random.Random(batch)
        write_safetensors(ids, {"ids": ([batch * calls, 1], [choose.randrange(SYMBOLS) for _ in range(batch * calls)])})
        self.runs.run(self.runs.binaries / "par-run", bundle, "--data", ids, "--init", "--output", tokens)
        return read_safetensors(tokens, ("I64",))["token"][1]

    def check_decoding(self, name, text):
        model, batch = HERE / f"page/{PLANS[name]}.onnx.gz", int(re.search(r"^batch: (\d+)", text, re.M)[1])
        one = "".join(re.findall(r"^(?:dims|batch|precision|carry): .*\n", text, re.M))
        whole, found = self.decode(model, one, batch), self.decode(model, text, batch)
        # Fresh weights make scores of which the two largest are often one in bf16, whose sums differ by their order.
        same = sum(a == b for a, b in zip(whole, found)) / len(whole)
        self.claims.hold(f"{name}: {len(found)} tokens that are one rank's", same, 0.85, least=True)
        self.claims.hold(f"{name}: different tokens", len(set(found)), 8, least=True)

    def check_asynchronous(self, name, text):
        """Batches between two flushes are not one rank's but for the first; asynchronous.py holds the others. Two of
        them here, since sixteen processes share the cores."""
        model, (one, batch) = HERE / f"page/{PLANS[name]}.onnx.gz", one_rank(text)
        choose, data = random.Random(batch), self.runs.work / "images.safetensors"
        pixels = [choose.uniform(-1, 1) for _ in range(batch * 3 * 32 * 32)]
        write_safetensors(data,
                          {"x": ([2 * batch, 3, 32, 32], pixels * 2),
                           "labels": ([2 * batch], [choose.randrange(10) for _ in range(2 * batch)])})
        bundle = self.runs.compile(model, text, "--set", "pipeline.flush_every=2")
        proved = self.runs.run(self.runs.binaries / "par-verify", bundle)
        ranks = re.search(r"(\d+) ranks", proved)[1]
        self.claims.equal(f"{name}: ranks proved", ranks, "16")
        found = [line["loss"] for line in self.runs.train(bundle, data, 2, "--init")[0]]
        whole = [line["loss"] for line in self.runs.train(self.runs.compile(model, one), data, 2, "--init")[0]]
        self.claims.hold(f"{name}: first loss to one rank's", abs(found[0] - whole[0]), 1e-5)

    def check(self, name, text):
        if "train:" not in text:
            return self.check_decoding(name, text)
        if "schedule: pipedream" in text:
            return self.check_asynchronous(name, text)
        model, one = HERE / f"page/{PLANS[name]}.onnx.gz", one_rank(text)[0]
        if (model, one) not in self.whole:
            self.whole[model, one] = self.train(model, one)
        losses, weights = self.whole[model, one]
        found, parts = self.train(model, text)
        self.claims.equal(f"{name}: steps", len(found), self.steps)
        self.claims.hold(f"{name}: losses to one rank's", largest(abs(a - b) for a, b in zip(losses, found)),
                         2e-5 if "bf16" in text else 1e-5)  # eight ranks' partial sums are rounded: 1.2e-5 seen
        shares = {key: difference(weight[1], parts[key][1])
                  for key, weight in weights.items() if not is_noise(key, text)}
        # Gradients of bf16 matmuls differ by 2^-9 of themselves; adamw makes steps of lr of them, a twentieth of a
        # weight. If single samples are rounded, an element in some hundred steps the other way.
        bound = 2e-2 if of_single_samples(text) else 1e-3 if "bf16" in text else 1e-4
        self.claims.hold(f"{name}: {len(shares)} weights to one rank's", largest(shares.values()), bound,
                         unit="of their norm")

    def check_refused(self, name, text, open_keys):
        model, file = HERE / f"page/{REFUSED[name]}.onnx.gz", self.runs.work / "page.yaml"
        file.write_text(text)
        command = [self.runs.binaries / "par-compile", model, file, "--print-plan"]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=self.runs.timeout)
        said = re.findall(r"page.yaml:\d+:\d+: error: (.*) is not supported yet", done.stderr)
        known = [key for key in said
                 if any(re.fullmatch(form, key) and word in open_keys for form, word in NOT_YET.items())]
        self.claims.equal(f"{name}: exit status", done.returncode, 1)
        self.claims.equal(
            f"{name}: refusals that the roadmap does not know",
            (bool(said), [key for key in said if key not in known]),
            (True, []),
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", help="default: on the PATH",
                        default=pathlib.Path(shutil.which("par-compile") or ".").parent)
    parser.add_argument("--page", type=pathlib.Path, default=PAGE)
    parser.add_argument("--roadmap", type=pathlib.Path, default=ROADMAP)
    parser.add_argument(
        "--only", action="append", help="how a plan's comment begins; repeat", choices=[*PLANS, *REFUSED]
    )
    parser.add_argument("--steps", type=int, default=3)
    options = parser.parse_args()
    text = options.page.read_text()
    plans, claims = read_plans(text), Claims()
    for title in plans:
        claims.equal(f"{title[:40]}: lists that know it", len(list_of(title)), 1)
    with tempfile.TemporaryDirectory(prefix="par-page-") as work:
        page = Page(Runs(options.bin, work, timeout=900), claims, options.steps)
        for name in options.only or [*PLANS, *REFUSED]:
            with claims.watch(name):
                plan = find(plans, name)
                page.check(name, plan) if name in PLANS else page.check_refused(name, plan, options.roadmap.read_text())
    claims.finish()


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Continues prompts through par.Decoder: the tokens are PyTorch's, and drawn ones the same, on every plan.

    generate.py --bin build/bin [--plan tp2]... [--device sim]

generate/export.py makes the model, a small Mistral with a window of 9, and PyTorch's tokens. Only Python's standard
library is used. Exit status 0: all hold.
"""
import argparse
import json
import os
import pathlib
import shutil
import sys
import tempfile

from runs import HERE, Claims, Runs, read_safetensors, write_safetensors

sys.path.insert(0, str(HERE.parents[1] / "python"))
import par  # noqa: E402

MODEL = HERE / "generate"
CACHE = "carry: {present.*: past.*}\ndims: {seq: 1, cache: 96}\n"
PLANS = {
    "one": "batch: 3\nprefill: {seq: 8}\n",
    "one, no prefill": "batch: 3\n",
    "one, a row": "batch: 1\nprefill: {seq: 8}\n",
    "tp2": "batch: 3\nprefill: {seq: 8}\nuse: [megatron]\nmesh: {tp: 2}\n",
    "tp2 whole": "batch: 3\nprefill: {seq: 8}\nuse: [megatron]\nmesh: {tp: 2}\nshard: {logits: {}}\n",
    "pp2": "batch: 3\nprefill: {seq: 8}\nmesh: {pp: 2}\n",
    "pp2 m2": "batch: {size: 4, microbatches: 2}\nprefill: {seq: 8}\nmesh: {pp: 2}\n",
    "dp2": "batch: 4\nprefill: {seq: 8}\nmesh: {dp: 2}\n",
    "pp2tp2": "batch: 3\nprefill: {seq: 8}\nuse: [megatron]\nmesh: {pp: 2, tp: 2}\n",
}
DRAWS = dict(max_new_tokens=24, temperature=0.9, top_k=40, top_p=0.95, seed=5)


def compare(claims, name, got, wanted):
    wrong = sum(a != b for mine, theirs in zip(got, wanted) for a, b in zip(mine, theirs))
    claims.hold(f"{name}: tokens of {len(wanted)} prompts that are not PyTorch's", wrong)
    claims.equal(f"{name}: lengths", [len(one) for one in got], [len(one) for one in wanted])


def check_stops(claims, decoder, prompts, tokens):
    """A sequence ends with its first stop token, and its row goes to the next prompt."""
    stop = tokens[0][9]
    ended = [one[:one.index(stop) + 1] if stop in one else one for one in tokens]
    got = decoder.generate(prompts, max_new_tokens=64, stop=[stop])
    claims.equal("stops: lengths", [len(one) for one in got], [len(one) for one in ended])
    claims.equal("stops: tokens are PyTorch's", got == ended, True)
    for _ in decoder.stream(prompts, max_new_tokens=5):
        break  # the next request comes after the rest of this one
    first = [token for _, token in zip(range(3), (t for _, t in decoder.stream(prompts[:1], max_new_tokens=9)))]
    claims.equal("stream: first tokens", first, tokens[0][:3])


def check_refusals(claims, decoder, prompts, tokens):
    try:
        decoder.generate([[1] * 60], max_new_tokens=64)
        claims.equal("too long", "nothing is said", "an error")
    except par.Error as error:
        claims.equal("too long", error.message, "a prompt of 60 tokens and 64 new ones do not fit into the cache of 96 "
                     "slots; ask for fewer, or compile with --set dims.cache=124")
    claims.equal("after an error", decoder.generate(prompts[:1], max_new_tokens=4), [tokens[0][:4]])


def check_predict(claims, runs, bundle):
    """Without --generate the bundle predicts as any: nothing is asked or written for `prefill`."""
    data, output = runs.work / "data.safetensors", runs.work / "output.safetensors"
    write_safetensors(data, {"input_ids": ([3, 1], [5, 6, 7]), "position": ([3, 1], [0, 0, 0]),
                             "count": ([3, 1], [1, 1, 1])})
    runs.run(runs.binaries / "par-run", bundle, "--data", data, "--output", output)
    claims.equal("predict: arrays", {name: shape for name, (shape, _) in read_safetensors(output).items()},
                 {"logits": [3, 96]})


def check(options, claims, runs):
    wanted = json.loads((MODEL / "tokens.json").read_text())
    prompts, tokens = wanted["prompts"], wanted["tokens"]
    claims.hold("different tokens", len({token for one in tokens for token in one}), 40, least=True)
    drawn = None
    for name in options.plan or PLANS:
        bundle = runs.compile(MODEL / "model.onnx", CACHE + PLANS[name])
        runs.run(runs.binaries / "par-verify", bundle)
        with claims.watch(name), par.Decoder(bundle) as decoder:
            compare(claims, name, decoder.generate(prompts, max_new_tokens=64), tokens)
            mine = decoder.generate(prompts, **DRAWS)
            drawn = drawn or mine
            claims.equal(f"{name}: drawn tokens are those of the first plan", mine == drawn, True)
            claims.equal(f"{name}: drawn again", decoder.generate(prompts, **DRAWS) == mine, True)
            if name == "one":
                claims.equal("another seed", decoder.generate(prompts, **{**DRAWS, "seed": 6}) == mine, False)
                claims.equal("greedy tokens are others", [one[:24] for one in tokens] == mine, False)
                check_stops(claims, decoder, prompts, tokens)
                check_predict(claims, runs, bundle)
                check_refusals(claims, decoder, prompts, tokens)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", help="default: on the PATH",
                        default=pathlib.Path(shutil.which("par-compile") or ".").parent)
    parser.add_argument("--plan", action="append", choices=PLANS)
    parser.add_argument("--device", choices=["cpu", "sim"], default="cpu")
    options = parser.parse_args()
    os.environ["PAR_HOME"] = str(pathlib.Path(options.bin).resolve().parent)
    if options.device == "sim":
        os.environ["PAR_DEVICE"] = "sim:3"
    claims = Claims()
    with tempfile.TemporaryDirectory(prefix="par-generate-") as work:
        check(options, claims, Runs(options.bin, work, timeout=600))
    claims.finish()


if __name__ == "__main__":
    main()

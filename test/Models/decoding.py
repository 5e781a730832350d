#!/usr/bin/env python3
"""Decodes greedily with caches that stay on the devices (the plan's `carry`): the tokens are PyTorch's, on every plan.

    decoding.py --bin build/bin [--model FOLDER] [--plan tp2]... [--device sim]

FOLDER holds what decoder/export.py writes; the default is the small one that stands beside it, `export.py --size gpt2
--out FOLDER` makes GPT-2 of its real size. Each call takes one token of each sequence; prompts come from the file of
ids, then each call takes what the one before has chosen. Only Python's standard library is used. Exit status 0: all
hold.
"""
import argparse
import json
import pathlib
import shutil
import struct
import tempfile

from runs import HERE, Claims, Runs, read_safetensors

CARRY = "carry: {present_*: past_*, next_token: last, next_position: position}\ndims: {seq: 1, past: 32}\n"
PLANS = {
    "one": "mesh: {}\n",
    "dp2": "mesh: {dp: 2}\n",
    "tp2": "use: [megatron]\nmesh: {tp: 2}\n",
    "tp4": "use: [megatron]\nmesh: {tp: 4}\n",
    "pp2": "mesh: {pp: 2}\npipeline: {cuts: [h.1]}\n",
    "pp2tp2": "use: [megatron]\nmesh: {pp: 2, tp: 2}\npipeline: {cuts: [h.1]}\n",
    "dp2tp2": "use: [megatron]\nmesh: {dp: 2, tp: 2}\n",
}
# Besides one microbatch: stages that work on several at a time, each with its own samples of carried values.
SEVERAL = {"one": (2, 4), "dp2": (2,), "tp2": (2,), "pp2": (2, 4), "pp2tp2": (2, 4)}
CASES = {f"{name} m{count}" if count > 1 else name: (plan, count)
         for name, plan in PLANS.items() for count in (1, *SEVERAL.get(name, ()))}


def state_bytes(bundle):
    """Bytes of the carried tensors on a rank: those of the first program."""
    manifest = json.loads((bundle / "manifest.json").read_text())
    carried = {tensor["name"] for tensor in manifest["tensors"] if tensor["kind"] == "counter"}
    sizes = {"f32": 4, "i64": 8}
    total = 0
    for buffer in json.loads((bundle / "role-0.json").read_text())["buffers"]:
        if buffer.get("tensor") in carried:
            count = sizes[buffer["type"]] * len(buffer["at"])
            for size in buffer["shape"]:
                count *= size
            total += count
    return total


def decode(runs, folder, case, device):
    """The tokens, call by call, and the bytes that are carried."""
    plan, count = CASES[case]
    bundle = runs.compile(folder / "model.onnx", f"{CARRY}batch: {{size: 4, microbatches: {count}}}\n{plan}")
    results = runs.work / "tokens.safetensors"
    flags = ["--device", device, "--interleavings", "3"] if device == "sim" else []
    runs.run(runs.binaries / "par-verify", bundle)
    runs.run(runs.binaries / "par-run", bundle, "--data", folder / "data.safetensors", "--output", results, *flags)
    shape, tokens = read_safetensors(results, ("I64",))["token"]
    return shape, list(tokens), state_bytes(bundle)


def check(options, claims, runs):
    wanted = json.loads((options.model / "tokens.json").read_text())
    flat = [token for call in wanted for token in call]
    claims.hold("different tokens", len(set(flat)), 8, least=True)
    whole = None
    for name in options.plan or CASES:
        with claims.watch(name):
            shape, tokens, kept = decode(runs, options.model, name, options.device)
            whole = whole or kept
            claims.equal(f"{name}: shape of the tokens", shape, [len(flat), 1])
            claims.equal(f"{name}: tokens of {len(wanted)} calls that are not PyTorch's",
                         sum(a != b for a, b in zip(tokens, flat)), 0)
            print(f"{name}: {kept} bytes are carried on rank 0")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", help="default: on the PATH",
                        default=pathlib.Path(shutil.which("par-compile") or ".").parent)
    parser.add_argument("--model", type=pathlib.Path, default=HERE / "decoder")
    parser.add_argument("--plan", action="append", choices=CASES)
    parser.add_argument("--device", choices=["cpu", "sim"], default="cpu")
    options = parser.parse_args()
    claims = Claims()
    with tempfile.TemporaryDirectory(prefix="par-decoding-") as work:
        check(options, claims, Runs(options.bin, work, timeout=600))
    claims.finish()


if __name__ == "__main__":
    main()

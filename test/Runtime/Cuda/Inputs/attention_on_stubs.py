"""Trains a language model whose attentions are calls of cuDNN on stub libraries, and as its decomposition on the CPU,
in 16 bits and in f32: attention_on_stubs.py MODEL FOLDER CASE..., where CASE is PRECISION or PRECISION:PLAN, a file."""
import collections
import sys

import on_stubs

# Both computations round values between matmuls, each in its places: 2^-9 or 2^-12 of a value, independently for each
# token, and a loss is a mean over 64 tokens; half as much again for the sum of steps. Without the causal mask the first
# loss is twice as far.
BOUND = {"bf16": 1.5 * 2**-9 / 8, "fp16": 1.5 * 2**-12 / 8}


def kind_of(call):
    """Kind of a graph, by its first node: the matmul of queries and keys, or the sum of cotangents times results."""
    return "forward" if call["arguments"].startswith("matmul") else "backward"


def distance(wanted, found):
    return max(abs(a - b) / abs(a) for a, b in zip(wanted, found, strict=True))


def main():
    on_stubs.prepare()
    exact = on_stubs.losses(on_stubs.compile_bundle("exact", "f32"), {})
    for case in sys.argv[3:]:
        precision, _, plan = case.partition(":")
        flags = [plan] if plan else []
        narrow = on_stubs.losses(on_stubs.compile_bundle("cpu", precision, *flags), {})
        found, calls = on_stubs.losses_on_stub(precision, *flags)
        graphs = collections.Counter(kind_of(call) for call in calls if call["call"] == "cudnnBackendExecute")
        near = distance(exact, found) < BOUND[precision] and distance(narrow, found) < BOUND[precision]
        print(f"{precision}: forward {graphs['forward'] / on_stubs.STEPS:g}, backward "
              f"{graphs['backward'] / on_stubs.STEPS:g} a step;",
              "losses within their roundings" if near else f"losses {found}, not {narrow} or {exact}")


main()

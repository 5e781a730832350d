#!/usr/bin/env python3
"""Holds what a layer of a GPT keeps for backward, of one microbatch on a rank of tp, against the closed form of
"Reducing Activation Recomputation in Large Transformer Models" (Korthikanti et al., table 2): in 16 bits, with sequence
parallelism, no recomputation and attention taken apart at most 34 s b h / t + 5 a s^2 b / t bytes.

    activations.py --bin build/bin [--ranks 4]... [--table]

Printed are the closed form, what `--explain=memory` says of one layer, and what each term comes to here: of s b h / t
elements the two norms keep their operands and results, attention its queries, keys, values and result, the MLP what
enters its GELU (4 h wide), all in 2 bytes: 24 s b h / t. The probabilities are f32: 4 a s^2 b / t. Each norm keeps a
mean and a deviation a token in f32: 16 s b / t. (No dropout: its masks and results, 2 s b h + 8 s b h / 4 and 3 a s^2 b
of the closed form, are not there; neither is the GELU's result, 8 s b h, which is computed again.) The column `saved`
of the summary is the whole of `--explain=memory`: that of a bundle with several slots for microbatches is as many times
that. With --table the lines of one layer are printed too. Exit status 0: all hold.
"""
import argparse
import pathlib
import re
import shutil
import tempfile

from runs import HERE, Claims, Runs

LAYERS, SEQUENCE, BATCH, HIDDEN, HEADS = 4, 32, 4, 64, 4  # of test/Models/gpt2; BATCH: a microbatch on a rank
LINE = re.compile(r"^ *(\d+) x +(\d+)  (\S+) +(.*)$", re.MULTILINE)


def plan(ranks, recompute="none"):
    return (f"mesh: {{tp: {ranks}}}\nuse: [megatron-sp]\nbatch: {{size: {2 * BATCH}, microbatches: 2}}\nprecision: "
            f"bf16\n"
            f"train: {{}}\nrecompute: {recompute}\ncollectives: {{bucket: 0}}\n")


def explained(runs, work, text):
    """Bytes that a microbatch keeps, and the lines: (count, bytes, type, place)."""
    file = work / "plan.yaml"
    file.write_text(text)
    said = runs.run(runs.binaries / "par-compile", HERE / "gpt2/model.onnx", file, "-q", "--explain=memory", "-o",
                    work / "no.par")
    total = int(re.search(r"stage 0 saves (\d+) bytes of a microbatch in 1 slot", said)[1])
    return total, [(int(count), int(size), kind, where) for count, size, kind, where in LINE.findall(said)]


def column(runs, work, text):
    """The summary's column, to its three digits."""
    file = work / "plan.yaml"
    file.write_text(text)
    said = runs.run(runs.binaries / "par-compile", HERE / "gpt2/model.onnx", file, "-o", work / "no.par", "--check")
    row = re.search(r"^  stage 0 .*$", said, re.MULTILINE)[0]
    number, unit = re.findall(r"([\d.]+) (B|KiB|MiB)", row)[3]
    return float(number) * {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20}[unit]


def check(runs, claims, work, ranks, table):
    total, lines = explained(runs, work, plan(ranks))
    layers = [line for line in lines if ".h." in line[3]]
    alike = [line for line in layers if line[3].startswith(f"layers 0 to {LAYERS - 1}: ") and line[0] % LAYERS == 0]
    saved = sum(count * size for count, size, *_ in layers) // LAYERS
    elements, scores = SEQUENCE * BATCH * HIDDEN // ranks, HEADS * SEQUENCE**2 * BATCH // ranks
    norms = 4 * 4 * SEQUENCE * BATCH // ranks
    bound = 34 * elements + 5 * scores
    title = f"gpt2 megatron-sp tp{ranks}"
    print(f"{title}: 34 s b h / t + 5 a s^2 b / t = {bound} bytes; a layer keeps {saved}")
    claims.equal(f"{title}: lines add up", sum(count * size for count, size, *_ in lines), total)
    claims.equal(f"{title}: layers are alike", alike, layers)
    claims.hold(f"{title}: bytes of a layer to the closed form", saved, bound, unit="bytes")
    claims.equal(f"{title}: 24 s b h / t + 4 a s^2 b / t + 16 s b / t", saved, 24 * elements + 4 * scores + norms)
    shown = column(runs, work, plan(ranks))
    claims.hold(f"{title}: column saved to all lines", abs(shown - total) / total, 0.005)
    if table:
        for count, size, kind, where in layers:
            print(f"  {count // LAYERS} x {size:8} {kind:24} {where}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", help="default: on the PATH",
                        default=pathlib.Path(shutil.which("par-compile") or ".").parent)
    parser.add_argument("--ranks", action="append", type=int, choices=(2, 4), help="default: all")
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    claims = Claims()
    with tempfile.TemporaryDirectory(prefix="par-activations-") as work:
        for ranks in options.ranks or (2, 4):
            check(Runs(options.bin, work), claims, pathlib.Path(work), ranks, options.table)
    claims.finish()


if __name__ == "__main__":
    main()

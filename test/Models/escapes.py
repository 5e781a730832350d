#!/usr/bin/env python3
"""Changes the results of bundles of many kinds, alike on all ranks or on one, and counts those that par-verify accepts.

    escapes.py --bin build/bin [--each 4] [--seed 1] [--keep FOLDER]

Each bundle is broken `each` times in each way (listed in runtime/test/Alike.h). A proved bundle is run besides the
original for two steps of each entry; weights and results that differ by more than 1e-5 of the largest are wrong. The
table counts them by fault; docs/bundle.md lists the kinds that are left. Only Python's standard library is used. Exit
status 0: all bundles are proved as they are.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
MLP, GPT = HERE / "mlp" / "model.onnx", HERE.parent.parent / "examples" / "tiny-gpt.onnx"
TINY = ["--set", "dims.seq=8"]
ADAM = "train: {optimizer: {kind: adamw, lr: 1e-3}, clip: 1.0}\n"  # the model has its loss
GPT_ADAM = ADAM.replace("{opt", "{loss: cross_entropy, opt")
SGD = "train: {optimizer: sgd, clip: 0.1}\n"
TP = "shard: {fc2.weight: {0: tp}, fc3.weight: {1: tp}}\nuse: []\n"
TWO = "batch: {microbatches: 2}\n"
PLANS = {  # model, plan
    "one": (MLP, SGD),
    "one-m4": (MLP, ADAM + "batch: {microbatches: 4}\n"),
    "dp2": (MLP, SGD + "mesh: {dp: 2}\n"),
    "dp2-m2": (MLP, ADAM + "mesh: {dp: 2}\n" + TWO),
    "dp2tp2": (MLP, SGD + "mesh: {dp: 2, tp: 2}\n" + TP + TWO),
    "tp2": (MLP, SGD + "mesh: {tp: 2}\n" + TP),
    "zero1": (MLP, ADAM + "mesh: {dp: 2}\nzero: {level: 1, min_size: 0}\n" + TWO),
    "zero2": (MLP, ADAM + "mesh: {dp: 2}\nzero: {level: 2, min_size: 0}\n" + TWO),
    "zero3": (MLP, ADAM + "mesh: {dp: 2}\nzero: {level: 3, min_size: 0}\n" + TWO),
    "dp2tp2-zero2": (MLP, SGD + "mesh: {dp: 2, tp: 2}\nzero: {level: 2, min_size: 0}\n" + TP + TWO),
    "1f1b": (MLP, ADAM + "mesh: {pp: 2}\npipeline: {schedule: 1f1b, cuts: auto}\nbatch: {microbatches: 4}\n"),
    "gpipe": (MLP, SGD + "mesh: {pp: 2}\npipeline: {schedule: gpipe, cuts: auto}\nbatch: {microbatches: 4}\n"),
    "zb-h1": (MLP, SGD + "mesh: {pp: 2}\npipeline: {schedule: zb-h1, cuts: auto}\nbatch: {microbatches: 4}\n"),
    "pp2dp2": (MLP, SGD + "mesh: {pp: 2, dp: 2}\npipeline: {cuts: auto}\nbatch: {microbatches: 4}\n"),
    "pp2dp2-zero1": (MLP,
                     ADAM + "mesh: {pp: 2, dp: 2}\npipeline: {cuts: auto}\nzero: {level: 1, min_size: 0}\nbatch: "
                            "{microbatches: 4}\n"),
    "gpt-one": (GPT, GPT_ADAM),
    "gpt-dp2": (GPT, GPT_ADAM + "mesh: {dp: 2}\n" + TWO),
    "gpt-tp2": (GPT, GPT_ADAM + "mesh: {tp: 2}\nuse: [megatron]\n"),
    "gpt-tp2sp": (GPT, GPT_ADAM + "mesh: {tp: 2}\nuse: [megatron-sp]\n"),
    "gpt-1f1b": (GPT, GPT_ADAM + "mesh: {pp: 2}\npipeline: {cuts: auto}\nbatch: {microbatches: 4}\n"),
    "gpt-zero3": (GPT, GPT_ADAM + "mesh: {dp: 2}\nzero: 3\n" + TWO),
    "predict": (MLP, "mesh: {tp: 2}\nshard: {fc2.weight: {0: tp}, fc3.weight: {1: tp}}\n"),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--each", default="4")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for the bundles")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="par-escapes-") as folder:
        work = options.keep or pathlib.Path(folder)
        work.mkdir(exist_ok=True)
        bundles = []
        for name, (model, plan) in PLANS.items():
            (work / f"{name}.yaml").write_text(plan)
            command = [options.bin / "par-compile", model, work / f"{name}.yaml", "-q", "-o", work / f"{name}.par"]
            done = subprocess.run(list(map(str, command + (TINY if model == GPT else []))), capture_output=True,
                                  text=True)
            if done.returncode:
                print(f"{name}: not compiled: {done.stderr.strip()}")
            else:
                bundles.append(work / f"{name}.par")
        done = subprocess.run([options.bin / "escapes", "--each", options.each, "--seed", options.seed, *bundles])
    return 1 if len(bundles) < len(PLANS) or done.returncode == 1 else 0


if __name__ == "__main__":
    sys.exit(main())

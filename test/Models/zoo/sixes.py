#!/usr/bin/env python3
"""Exports thin architectures for a batch of 6, with weights and data, in a folder as models.py takes them: microbatches
of 3.

    sixes.py --out FOLDER [NAME...]      then: schedules.py --bin build/bin --models FOLDER --microbatches 3

The shared models are exported for batches of 8 and 16, which 3 does not divide. These are suite.py's, with four layers
where two are not enough for four stages, sequences of 64, and a batch of 12 where a norm looks at a batch. Such a net
amplifies the order of sums above any bound, so it is in float64. Needs torch.
"""
import argparse
import dataclasses
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import torch_side  # noqa: E402
from recipe import build  # noqa: E402
from suite import SUITE  # noqa: E402

CHOSEN = ["llama", "bloom", "granite-moe", "deberta-v3", "t5", "whisper", "swin", "beit", "resnet10t"]
LAYERS = {"num_hidden_layers", "n_layer"}


def of_six(recipe):
    sizes = {key: 4 if key in LAYERS else size for key, size in recipe.sizes.items()}
    feed = ("words", 64, *recipe.feed[2:]) if recipe.feed[0] == "words" else recipe.feed
    return dataclasses.replace(recipe, sizes=sizes, feed=feed, batch=12 if torch_side.has_batch_norm(build(recipe))
                               else 6)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    for recipe in map(of_six, (each for each in SUITE if each.name in (options.names or CHOSEN))):
        folder = options.out / recipe.name
        folder.mkdir(parents=True, exist_ok=True)
        norms = torch_side.has_batch_norm(build(recipe))
        if norms:
            torch_side.double(recipe, folder)
            for file in (folder / "f64").iterdir():
                file.replace(folder / file.name)
            (folder / "f64").rmdir()
        else:
            torch_side.export(recipe, folder)
        (folder / "reference.json").write_text(json.dumps({
            "model": recipe.name, "B": recipe.batch, "batch_norm": norms, "variants": {},
            "runs": {"sgd": {"options": {"lr": 0.1}}}}))
        print(f"{recipe.name:20} batch {recipe.batch}", flush=True)


if __name__ == "__main__":
    main()

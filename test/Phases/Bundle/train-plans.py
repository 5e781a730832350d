#!/usr/bin/env python3
"""Random plans of one model train as one rank does: compiled, proved, run on all ranks, losses compared.

    train-plans.py MODEL DATA [--count N] [--seed S]

Each case draws a mesh (stages, replicas, tensor parts, in any order), microbatches, shardings (some of them uneven),
cuts, schedule, recomputation, buckets, overlap, optimizer and clipping, compiles MODEL (the multilayer perceptron of
test/Models) with them and takes four steps. The last line counts cases; the exit status is 1 if one failed.
"""
import argparse
import os
import random
import re
import subprocess
import sys
import tempfile

STEPS = 4


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    return done.returncode, done.stdout, done.stderr


class Trainer:
    def __init__(self, model, data, folder):
        self.model, self.data, self.folder = model, data, folder

    def train(self, settings):
        """(loss, gradient norm) of every step, or the text of what went wrong."""
        bundle = os.path.join(self.folder, "case.par")
        command = ["par-compile", self.model, "-o", bundle, "-q"]
        for setting in settings:
            command += ["--set", setting]
        code, out, err = run(command)
        if code:
            return f"par-compile ended with {code}: {err}"
        code, out, err = run(["par-run", bundle, "--data", self.data, "--order", "sequential", "--steps", str(STEPS),
                              "--log-every", "1"])
        if code:
            return f"par-run ended with {code}: {err}"
        lines = re.findall(r"loss (\S+) .*?\|g\| (\S+)", out)
        return [(float(loss), float(norm)) for loss, norm in lines]


def training(choose):
    optimizer = choose.choice(["{kind: sgd, lr: 0.1}", "{kind: momentum, lr: 0.05}", "{kind: adamw, lr: 0.01}"])
    return [f"train.optimizer={optimizer}", f"train.clip={choose.choice(['none', '1.0', '0.5'])}"]


def cutting(choose):
    """Settings that say where things go; None if the batch of 16 rows does not divide."""
    pp, dp, tp = choose.choice([1, 1, 2, 3]), choose.choice([1, 2, 4]), choose.choice([1, 2, 3, 4])
    microbatches = choose.choice([1, 2, 4, 8])
    if pp * dp * tp > 12 or 16 % (dp * microbatches):
        return None
    mesh = [f"{name}: {size}" for name, size in [("pp", pp), ("dp", dp), ("tp", tp)] if size > 1]
    choose.shuffle(mesh)
    settings = [f"batch.microbatches={microbatches}",
                "collectives.bucket=" + choose.choice(["0", "1KiB", "10KiB", "25MiB"]),
                "collectives.overlap=" + choose.choice(["true", "true", "false"]),
                "recompute=" + choose.choice(["none", "none", "full", "{each: fc*}"])]
    if mesh:
        settings.append("mesh={" + ", ".join(mesh) + "}")
    if tp > 1:
        names = [f"fc{i}.{kind}" for i in (1, 2, 3) for kind in ("weight", "bias")]
        rules = [f"{name}: {{{choose.randrange(2 if 'weight' in name else 1)}: tp}}" for name in names
                 if choose.random() < 0.6]
        settings.append("shard={" + ", ".join(rules) + "}")
    if pp > 1:
        settings.append("pipeline.schedule=" + choose.choice(["gpipe", "1f1b"]))
        if pp == 3:
            settings.append("pipeline.cuts=[fc2, fc3]")
        elif choose.random() < 0.5:
            settings.append("pipeline.cuts=[" + choose.choice(["fc2", "fc3"]) + "]")
    return settings


def agree(ours, reference):
    """The lines print four digits of a loss and two of a norm."""
    return len(ours) == STEPS and all(
        abs(loss - expected) <= 2.1e-4 and abs(norm - length) <= 0.011
        for (loss, norm), (expected, length) in zip(ours, reference))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("data")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    references, failed, done, seed = {}, 0, 0, options.seed
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(options.model, options.data, folder)
        while done < options.count:
            choose = random.Random(seed)
            seed += 1
            how, where = training(choose), cutting(choose)
            if where is None:
                continue
            done += 1
            if str(how) not in references:
                references[str(how)] = trainer.train(how)
            ours, reference = trainer.train(how + where), references[str(how)]
            if isinstance(ours, str) or isinstance(reference, str) or not agree(ours, reference):
                failed += 1
                print(f"seed {seed - 1}: {how + where}\n  one rank: {reference}\n  cut: {ours}")
    print(f"{done} plans, {failed} failed")
    return failed > 0


sys.exit(main())

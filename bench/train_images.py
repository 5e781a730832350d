#!/usr/bin/env python3
"""A real training run: a convolutional net with batch norm learns to read handwritten digits, on one rank and on
several.

    pip download --no-deps scikit-learn      # BSD; it ships 1,797 images of the UCI optical digits (CC BY 4.0)
    python3 bench/train_images.py --digits scikit_learn-*.whl --bin build/bin

The net is an nn.Module of this file, exported by par.export with PyTorch's initial weights. Par trains it on one rank,
on two replicas, and on two replicas of two tensor halves (each convolution's filters and the classifier's inputs);
PyTorch trains it on the same images in the same order. Each result then predicts the images held out, by the moving
statistics that training left. Par's predictions come from an inference bundle of the same file (par-run --output), and
again from PyTorch with the weights that Par exported: both must read the same digits. Writes result.json, from which
curves.py draws the picture. Ends with 1 if Par reads fewer digits than PyTorch, beyond --slack of them.
"""
import argparse
import gzip
import json
import pathlib
import subprocess
import sys
import zipfile

import numpy
import torch
from safetensors.numpy import load_file as load_arrays
from safetensors.numpy import save_file
from safetensors.torch import load_file

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import par  # noqa: E402

BATCH, HELD_OUT = 64, 357  # 1,440 to train
RATE, MOMENTUM = 0.05, 0.9
PLANS = {
    "one rank": "",
    "dp 2": "mesh: {dp: 2}\n",
    "dp 2 x tp 2": "mesh: {dp: 2, tp: 2}\nshard:\n  conv1.weight: {0: tp}\n  conv2.weight: {0: tp}\n"
                   "  conv3.weight: {0: tp}\n  classifier.weight: {1: tp}\n",
}
TRAIN = (f"batch: {BATCH}\n"
         f"train: {{loss: cross_entropy, optimizer: {{kind: momentum, lr: {RATE}, momentum: {MOMENTUM}}}}}\n")


class Net(torch.nn.Module):
    """Three convolutions of 3 x 3, each with batch norm; a mean over what is left of the image."""

    def __init__(self):
        super().__init__()
        for i, (before, after) in enumerate(((1, 32), (32, 64), (64, 64)), 1):
            setattr(self, f"conv{i}", torch.nn.Conv2d(before, after, 3, padding=1, bias=False))
            setattr(self, f"norm{i}", torch.nn.BatchNorm2d(after))
        self.classifier = torch.nn.Linear(64, 10)

    def forward(self, image):
        x = torch.relu(self.norm1(self.conv1(image)))
        x = torch.nn.functional.max_pool2d(torch.relu(self.norm2(self.conv2(x))), 2)
        x = torch.relu(self.norm3(self.conv3(x)))
        return self.classifier(x.mean((2, 3)))


def read_digits(path):
    """Images as floats from 0 to 1, and which digits they show."""
    if path.suffix == ".whl":
        packed = zipfile.ZipFile(path).read("sklearn/datasets/data/digits.csv.gz")
    else:
        packed = path.read_bytes()
    rows = numpy.loadtxt(gzip.decompress(packed).decode().splitlines(), delimiter=",")
    return (rows[:, :64] / 16).astype(numpy.float32).reshape(-1, 1, 8, 8), rows[:, 64].astype(numpy.int64)


def prepare(options):
    """The images of every step in order, those held out, and the model."""
    images, digits = read_digits(options.digits)
    generator = numpy.random.default_rng(0)
    order = generator.permutation(len(images))
    held, kept = order[:HELD_OUT], order[HELD_OUT:]
    drawn = numpy.concatenate([generator.permutation(kept) for _ in range(-(-options.steps * BATCH // len(kept)))])
    drawn = drawn[:options.steps * BATCH]
    save_file({"image": images[drawn], "labels": digits[drawn]}, options.work / "train.safetensors")
    save_file({"image": images[held]}, options.work / "held.safetensors")
    torch.manual_seed(0)
    net = Net()
    par.export(net, {"image": torch.zeros(2, 1, 8, 8)}, options.work / "net.onnx", dynamic={"image": ["batch"]})
    return net, (images[drawn], digits[drawn]), (images[held], digits[held])


def tool(options, name, *arguments):
    done = subprocess.run([str(options.bin / name), *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)


def train_par(options, name, text):
    """Losses by step, and the checkpoint."""
    work = options.work / name.replace(" ", "")
    work.mkdir(exist_ok=True)
    (work / "plan.yaml").write_text(text + TRAIN)
    metrics = work / "metrics.jsonl"
    metrics.unlink(missing_ok=True)
    tool(options, "par-compile", options.work / "net.onnx", work / "plan.yaml", "-o", work / "net.par")
    tool(options, "par-run", work / "net.par", "--data", options.work / "train.safetensors", "--order", "sequential",
         "--steps",
         options.steps, "--metrics", metrics, "--save", work / "ckpt", "--export", work / "trained.safetensors")
    return {line["step"]: line["loss"] for line in map(json.loads, metrics.read_text().splitlines())}, work


def predict_par(options, work):
    """The digits that an inference bundle of the same model reads with the checkpoint's weights."""
    bundle, found = work / "predict.par", work / "scores.safetensors"
    (work / "predict.yaml").write_text(f"batch: {BATCH}\n")
    tool(options, "par-compile", options.work / "net.onnx", work / "predict.yaml", "-o", bundle)
    tool(options, "par-run", bundle, "--weights", work / "ckpt" / str(options.steps), "--data",
         options.work / "held.safetensors",
         "--output", found)
    (scores,) = load_arrays(found).values()
    return scores


def predict_torch(net, images):
    net.eval()
    with torch.no_grad():
        return net(torch.from_numpy(images)).numpy()


def train_torch(options, net, images, digits):
    torch.set_num_threads(1)
    optimizer = torch.optim.SGD(net.parameters(), lr=RATE, momentum=MOMENTUM)
    net.train()
    found = {}
    for step in range(options.steps):
        at = slice(step * BATCH, (step + 1) * BATCH)
        loss = torch.nn.functional.cross_entropy(net(torch.from_numpy(images[at])), torch.from_numpy(digits[at]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found[step + 1] = loss.item()
    return found


def try_plan(options, name, text, held):
    """Losses, how many digits were read, and whether PyTorch reads the same with the exported weights."""
    images, digits = held
    losses, work = train_par(options, name, text)
    scores = predict_par(options, work)
    net = Net()
    missing = net.load_state_dict(load_file(work / "trained.safetensors"), strict=False).missing_keys
    same = all(key.endswith("num_batches_tracked") for key in missing)
    apart = abs(predict_torch(net, images) - scores).max()
    return losses, int((scores.argmax(1) == digits).sum()), same and apart < 1e-4 * abs(scores).max(), apart


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--digits", type=pathlib.Path, required=True, help="scikit_learn-*.whl, or its digits.csv.gz")
    parser.add_argument("--bin", type=pathlib.Path, default="build/bin", help="where the tools are")
    parser.add_argument("--work", type=pathlib.Path, default="build/train-images", help="folder for what is written")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--slack", type=int, default=3,
                        help="digits that Par may read less than PyTorch: roundings differ")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    net, train, held = prepare(options)
    result = {"held": HELD_OUT, "losses": {}, "correct": {}}
    result["losses"]["PyTorch"] = train_torch(options, net, *train)
    theirs = int((predict_torch(net, held[0]).argmax(1) == held[1]).sum())
    result["correct"]["PyTorch"] = theirs
    print(f"PyTorch       last loss {result['losses']['PyTorch'][options.steps]:.4f}, {theirs} of {HELD_OUT} held out "
          f"right",
          flush=True)
    failed = False
    for name, text in PLANS.items():
        losses, right, alike, apart = try_plan(options, name, text, held)
        result["losses"][f"Par, {name}"], result["correct"][f"Par, {name}"] = losses, right
        failed |= right < theirs - options.slack or not alike
        apart_at_first = max(abs(losses[i] - result["losses"]["PyTorch"][i])
                             for i in range(1, min(21, options.steps + 1)))
        print(f"Par, {name:12} last loss {losses[options.steps]:.4f}, {right} of {HELD_OUT} held out right; first 20 "
              f"losses"
              f" within {apart_at_first:.1e}"
              f" of PyTorch's; its scores and PyTorch's with the exported weights {apart:.1e} apart", flush=True)
    (options.work / "result.json").write_text(json.dumps(result))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

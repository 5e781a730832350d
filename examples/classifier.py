#!/usr/bin/env python3
"""A timm classifier on two ranks with a user's own DataLoader: augmentation, accuracy each epoch, the best save, early
stopping; and the same loop in PyTorch beside it.

    PAR_HOME=build python3 examples/classifier.py [--folder FOLDER] [--model test_convnext] [--epochs 4]

Needs torch, timm, onnx and onnxscript. Images are drawn, nothing is downloaded: a bright disc in one of five places.
"""
from __future__ import annotations

import argparse
import copy
import pathlib
import sys
import tempfile
from typing import Any, Dict, Iterator, List, Tuple

import timm
import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))
import par  # noqa: E402

CLASSES, SIZE, BATCH, RATE = 5, 32, 16, 2e-3
PLACES = ((8, 8), (8, 24), (24, 8), (24, 24), (16, 16))


class Discs(Dataset):  # type: ignore[type-arg]
    """Images of a disc; in training shifted and with other brightness, each epoch anew."""

    def __init__(self, count: int, seed: int, augment: bool = False) -> None:
        self.count, self.seed, self.augment, self.epoch = count, seed, augment, 0

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Tuple[torch.Tensor, int]:
        draw = torch.Generator().manual_seed(self.seed * 1_000_003 + index)
        label = int(torch.randint(CLASSES, (), generator=draw))
        rows, columns = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
        row, column = PLACES[label]
        disc = ((rows - row) ** 2 + (columns - column) ** 2 < 20).float()
        image = disc + torch.randn(3, SIZE, SIZE, generator=draw)
        if self.augment:
            draw.manual_seed((self.seed + self.epoch) * 7_368_787 + index)
            shift = torch.randint(-2, 3, (2,), generator=draw).tolist()
            image = image.roll(shift, (1, 2)) * (0.8 + 0.4 * float(torch.rand((), generator=draw)))
        return image, label


class Passes:
    """The batches of a loader; each pass is the next epoch of its data."""

    def __init__(self, loader: Any, data: Discs) -> None:
        self.loader, self.data, self.begun = loader, data, 0

    def __iter__(self) -> Iterator[Any]:
        self.data.epoch = self.begun
        self.begun += 1
        yield from self.loader


class Classifier(torch.nn.Module):
    """The loss, and a metric beside it: both are means over the samples."""

    def __init__(self, model: str) -> None:
        super().__init__()
        self.net = timm.create_model(model, num_classes=CLASSES)

    def forward(self, images: torch.Tensor, labels: torch.Tensor) -> Dict[str, torch.Tensor]:
        scores = self.net(images)
        return {"loss": F.cross_entropy(scores, labels), "accuracy": (scores.argmax(-1) == labels).float().mean()}


class Epochs(par.Callback):
    """Prints a line after each epoch."""

    def __init__(self, beside: List[Dict[str, float]]) -> None:
        self.beside = beside
        self.told: List[Dict[str, float]] = []  # of each epoch
        self.losses: List[float] = []

    def on_step(self, job: par.Job, step: int, scalars: par.Scalars) -> None:
        self.losses.append(scalars.loss)

    def on_eval(self, job: par.Job, step: int, scalars: par.Scalars) -> None:
        ours = {"loss": sum(self.losses) / len(self.losses), "eval_loss": scalars.loss,
                "accuracy": scalars["accuracy"]}
        theirs = self.beside[len(self.told)]
        self.told.append(ours)
        print(f"epoch {len(self.told)}  " + "  ".join(
            f"{name} {value:.6f} (PyTorch {theirs[name]:.6f})" for name, value in ours.items()), flush=True)
        self.losses = []


def train_in_pytorch(module: Classifier, loader: Any, held_out: Any, epochs: int) -> List[Dict[str, float]]:
    """The usual loop, whose evaluation weighs each batch with its samples."""
    optimizer = torch.optim.AdamW(module.parameters(), lr=RATE)
    told = []
    for _ in range(epochs):
        losses = []
        module.train()
        for images, labels in loader:
            loss = module(images, labels)["loss"]
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(float(loss.detach()))
        module.eval()
        sums = {"loss": 0.0, "accuracy": 0.0}
        with torch.no_grad():
            for images, labels in held_out:
                for name, value in module(images, labels).items():
                    sums[name] += float(value) * len(labels)
        count = len(held_out.dataset)
        told.append({"loss": sum(losses) / len(losses), "eval_loss": sums["loss"] / count,
                     "accuracy": sums["accuracy"] / count})
    return told


def main(folder: pathlib.Path, model: str, epochs: int, samples: int) -> Epochs:
    torch.manual_seed(0)
    module = Classifier(model)
    example = (torch.randn(BATCH, 3, SIZE, SIZE), torch.zeros(BATCH, dtype=torch.long))
    par.export(module, example, folder / "model.onnx", dynamic={"images": ["batch"], "labels": ["batch"]})
    bundle = par.compile(folder / "model.onnx", {
        "mesh": {"dp": 2}, "batch": BATCH,
        "train": {"loss": "loss", "optimizer": {"kind": "adamw", "lr": RATE}}}, out=folder / "model.par")

    data, held = Discs(samples, seed=1, augment=True), Discs(samples // 3 + 5, seed=2)
    # Not shuffled here: both loops are to see the same samples.
    loader = DataLoader(data, batch_size=BATCH, drop_last=True)
    held_out = DataLoader(held, batch_size=BATCH)  # the last batch is smaller
    beside = train_in_pytorch(copy.deepcopy(module), Passes(loader, data), held_out, epochs)

    best = par.BestCheckpoint(folder / "best", metric="accuracy", highest=True)
    stopping = par.EarlyStopping(patience=2, metric="accuracy", highest=True)
    ours = Epochs(beside)
    with par.open(bundle) as job:  # with the weights of the exported module
        fitted = job.fit(Passes(loader, data), epochs=epochs, inputs=("images", "labels"), eval=held_out,
                         callbacks=[ours, best, stopping], progress=sys.stderr.isatty())
        job.resume(best.path)
        print(f"{len(fitted.losses)} steps, ended by {fitted.stopped}; best accuracy {best.value:.4f} at step "
              f"{job.step}")
    return ours


if __name__ == "__main__":
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--folder", type=pathlib.Path)
    arguments.add_argument("--model", default="test_convnext")
    arguments.add_argument("--epochs", type=int, default=4)
    arguments.add_argument("--samples", type=int, default=160)
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        main(given.folder or pathlib.Path(scratch), given.model, given.epochs, given.samples)

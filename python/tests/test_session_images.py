#!/usr/bin/env python3
"""A convolutional net with batch norms that its file keeps, through sessions: predictions and training as PyTorch's.

    PAR_HOME=build python3 python/tests/test_session_images.py

Needs torch, onnx and onnxscript.
"""
import pathlib
import sys
import tempfile
import unittest
import warnings

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
import par  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402

BATCH, CLASSES = 4, 7


class Block(nn.Module):
    """A residual block as torchvision's."""

    def __init__(self, width):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)

    def forward(self, x):
        return torch.relu(x + self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x))))))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(),
                                  nn.MaxPool2d(2))
        self.block = Block(8)
        self.wide = nn.Sequential(nn.Conv2d(8, 16, 1), nn.BatchNorm2d(16, affine=False), nn.ReLU6())
        self.head = nn.Linear(16, CLASSES)

    def forward(self, images):
        return self.head(self.wide(self.block(self.stem(images))).mean((2, 3)))


class WithLoss(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, images, labels):
        return nn.functional.cross_entropy(self.net(images), labels)


class Images(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="par-images-")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        warnings.simplefilter("ignore")
        torch.manual_seed(3)
        self.net = Net()
        with torch.no_grad():  # statistics that are not 0 and 1
            for _ in range(3):
                self.net(2 * torch.randn(16, 3, 32, 32) + 1)
        self.images = torch.randn(BATCH, 3, 32, 32)

    def exported(self, module, inputs, name):
        par.export(module.train(), inputs, self.folder / name, dynamic={key: ["batch"] for key in inputs})
        return self.folder / name

    def test_predictions(self):
        import onnx

        file = self.exported(self.net, {"images": self.images}, "net.onnx")
        kinds = [node.op_type for node in onnx.load(file).graph.node]
        self.assertEqual(kinds.count("BatchNormalization"), 4, kinds)
        with torch.no_grad():
            wanted = self.net.eval()(self.images)
        bundle = par.compile(file, {"batch": BATCH}, out=self.folder / "net.par")
        with par.open(bundle) as job:
            found, = job.predict(images=self.images).values()
            torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)
            more = torch.randn(2 * BATCH + 1, 3, 32, 32)
            found, = job.predict(images=more).values()
            with torch.no_grad():
                torch.testing.assert_close(found, self.net(more), rtol=1e-5, atol=1e-5)

    def test_training_and_then_predictions(self):
        whole = WithLoss(self.net)
        labels = torch.randint(0, CLASSES, (BATCH,))
        trained = par.compile(self.exported(whole, {"images": self.images, "labels": labels}, "whole.onnx"),
                              {"batch": BATCH, "train": {"optimizer": {"kind": "sgd", "lr": 0.05}}},
                              out=self.folder / "whole.par")
        served = par.compile(self.exported(self.net, {"images": self.images}, "net.onnx"), {"batch": BATCH},
                             out=self.folder / "net.par")
        optimizer = torch.optim.SGD(whole.train().parameters(), lr=0.05)
        with par.open(trained) as job:
            for step in range(5):
                batch = {"images": torch.randn(BATCH, 3, 32, 32), "labels": labels}
                loss = whole(**batch)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                self.assertAlmostEqual(job.train(batch).loss, loss.item(), places=4)
            with torch.no_grad():
                self.assertAlmostEqual(job.eval(batch).loss, whole.eval()(**batch).item(), places=4)
            weights = {name.removeprefix("net."): value for name, value in job.state().items()}
        with par.open(served, weights=weights) as job:
            found, = job.predict(images=self.images).values()
        with torch.no_grad():
            torch.testing.assert_close(found, self.net.eval()(self.images), rtol=1e-4, atol=1e-4)


if __name__ == "__main__":
    unittest.main()

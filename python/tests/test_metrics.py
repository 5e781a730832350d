#!/usr/bin/env python3
"""Evaluation and metrics beside a PyTorch loop: sizes that do not divide, labels that do not count, several ranks.

    PAR_HOME=build python3 python/tests/test_metrics.py

Needs torch, onnx, onnxscript and a built Par.
"""
import json
import pathlib
import shutil
import sys
import tempfile
import unittest

import torch
from torch.nn import functional as F

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "python"))
import par  # noqa: E402

BATCH, CLASSES, WIDTH = 8, 5, 6
PLANS = {"one rank": {}, "dp 2, 2 microbatches": {"mesh": {"dp": 2}, "batch.microbatches": 2},
         "pp 2, 4 microbatches": {"mesh": {"pp": 2}, "batch.microbatches": 4}}


class Net(torch.nn.Module):
    """Three metrics beside a loss of labels that count."""

    def __init__(self):
        super().__init__()
        self.first, self.norm = torch.nn.Linear(WIDTH, 16), torch.nn.BatchNorm1d(16)
        self.last = torch.nn.Linear(16, CLASSES)

    def scores(self, x):
        return self.last(torch.relu(self.norm(self.first(x))))

    def forward(self, x, labels):
        scores = self.scores(x)
        counts = labels != -100
        hits = (scores.argmax(-1) == labels) & counts
        return {"loss": F.cross_entropy(scores, labels), "accuracy": hits.sum() / counts.sum(),
                "size": scores.square().mean(), "hits": hits.sum()}


class Plain(Net):
    """Without statistics, which are those of a microbatch on a replica."""

    def __init__(self):
        super().__init__()
        self.norm = torch.nn.Identity()


class Heads(Plain):
    """A loss that is a sum of means over different labels, of a mean over samples and of a penalty; sums and counts."""

    def forward(self, x, labels):
        scores = self.scores(x)
        second = torch.where(labels == 1, -100, labels)
        loss = F.cross_entropy(scores, labels) + 0.3 * F.cross_entropy(scores, second) - 0.1 * scores.square().mean()
        return {"loss": loss + 0.01 * self.last.weight.square().sum(), "total": scores.abs().sum() + 2.0,
                "count": (labels != -100).sum(), "mixed": scores.abs().sum() / 7 + scores.mean()}


class Summed(Plain):
    def forward(self, x, labels):
        return {"loss": F.cross_entropy(self.scores(x), labels, reduction="sum")}


class Regression(Net):
    def forward(self, x, labels):
        return {"loss": F.mse_loss(self.scores(x)[:, 0], labels.float())}


class Contrast(Net):
    """A loss that compares the samples of a batch: no mean over samples."""

    def forward(self, x, labels):
        scores = F.normalize(self.scores(x))
        return {"loss": F.cross_entropy(scores @ scores.transpose(0, 1), labels * 0 + torch.arange(BATCH))}


class Metrics(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="par-metrics-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.files = {}
        torch.manual_seed(0)
        cls.x = torch.randn(43, WIDTH)
        cls.labels = torch.randint(0, CLASSES, (43,))
        cls.labels[torch.rand(43) < 0.4] = -100
        cls.labels[8:16] = -100  # a batch without a label that counts
        cls.labels[42] = -100    # the row that fills the last batch

    def exported(self, net):
        """The file of a net, which is exported once."""
        if net not in self.files:
            self.files[net] = self.export(net)
        return self.files[net]

    def export(self, net):
        net.eval()
        for value in net.norm.buffers():
            if value.is_floating_point():
                value.uniform_(0.5, 2)
        path = self.folder / f"{type(net).__name__}.onnx"
        batch = {"x": ["batch"], "labels": ["batch"]} if not isinstance(net, Contrast) else None
        par.export(net, (self.x[:BATCH], self.labels[:BATCH].clamp(0)), path, dynamic=batch)
        return path

    def compiled(self, net, plan, name):
        return par.compile(self.exported(net), [{"batch": {"size": BATCH}, "train": {"loss": "loss"}},
                                                {key: value for key, value in plan.items() if "." not in key}],
                           set={key: value for key, value in plan.items() if "." in key},
                           out=self.folder / f"{name}.par".replace(" ", "-"))

    def expected(self, net, rows):
        """As a PyTorch loop has them: sums over all samples and labels."""
        with torch.no_grad():
            x, labels = self.x[:rows], self.labels[:rows]
            scores = net.scores(x)
            counts = int((labels != -100).sum())
            hits = int(((scores.argmax(-1) == labels) & (labels != -100)).sum())
            return {"loss": float(F.cross_entropy(scores, labels)), "accuracy": hits / counts,
                    "size": float(scores.square().mean()), "hits": hits}

    def test_means_over_all_samples_and_labels(self):
        net = Net()
        for name, plan in PLANS.items():
            bundle = self.compiled(net, plan, name)
            manifest = json.loads((pathlib.Path(bundle.path) / "manifest.json").read_text())
            means = {one["name"]: one.get("mean") for one in manifest["outputs"]}
            self.assertEqual({key: means[key] for key in ("loss", "accuracy", "size", "hits")},
                             {"loss": "count(loss)", "accuracy": "count(accuracy)", "size": "samples",
                              "hits": "sum(hits)"})
            with par.open(bundle) as job:
                for rows in (43, 40, 19, 5):
                    with self.subTest(plan=name, rows=rows):
                        expected = self.expected(net, rows)
                        data = {"x": self.x[:rows], "labels": self.labels[:rows]}
                        run = par.run(bundle, data=data, evaluate=True, quiet=True)
                        line = run.metrics[-1]
                        self.assertEqual((line["samples"], line["left_out"]), (rows, 0))
                        scalars = job.eval(data)
                        self.assertEqual(scalars.counts["loss"], int((self.labels[:rows] != -100).sum()))
                        for key, value in expected.items():
                            self.assertAlmostEqual(line[f"eval_{key}"], value, delta=4e-6 * max(1, value))
                            self.assertAlmostEqual(scalars[key], value, delta=4e-6 * max(1, value))
                        self.assertNotIn("count(loss)", scalars)

    def test_sums_and_sums_of_means_are_those_of_all_rows(self):
        for net in (Heads(), Summed()):
            for name, plan in PLANS.items():
                bundle = self.compiled(net, plan, f"{type(net).__name__} {name}")
                with par.open(bundle) as job:
                    for rows in (43, 8, 24, 5):
                        with self.subTest(net=type(net).__name__, plan=name, rows=rows), torch.no_grad():
                            x, labels = self.x.roll(-16, 0)[:rows], self.labels.roll(-16, 0)[:rows]
                            data = {"x": x, "labels": labels}
                            run = par.run(bundle, data=data, evaluate=True, quiet=True)
                            scalars = job.eval(data)
                            batches = [{key: value[i:i + 3] for key, value in data.items()} for i in range(0, rows, 3)]
                            fitted = job.fit([], epochs=1, eval=batches, progress=False)
                            expected = net(**data)
                            self.assertEqual((run.metrics[-1]["samples"], run.metrics[-1]["left_out"]), (rows, 0))
                            self.assertEqual(set(scalars), set(expected))
                            for key, value in expected.items():
                                for found in (run.metrics[-1][f"eval_{key}"], scalars[key], fitted.evals[0][key]):
                                    self.assertAlmostEqual(found, float(value), delta=1e-5 * max(1, abs(float(value))))

    def test_training_gives_metrics(self):
        net = Plain()
        data = {"x": self.x[16:40], "labels": self.labels[16:40]}
        for name, plan in PLANS.items():
            with self.subTest(plan=name):
                bundle = self.compiled(net, plan, name)
                run = par.run(bundle, data=data, steps=3, order="sequential", quiet=True,
                              log=f"csv:{self.folder / 'log.csv'}")
                with par.open(bundle) as job:
                    out = job.train(x=self.x[16:24], labels=self.labels[16:24])
                net.train()
                with torch.no_grad():
                    for key, value in net(self.x[16:24], self.labels[16:24]).items():
                        self.assertAlmostEqual(run.metrics[0][key], float(value), places=5)
                        self.assertAlmostEqual(out[key], float(value), places=5)
                net.eval()
                rows = (self.folder / "log.csv").read_text().splitlines()
                self.assertEqual(rows[0].split(",")[0], "step")
                self.assertLess({"loss", "lr", "accuracy"}, set(rows[0].split(",")))
                self.assertEqual([row.split(",")[0] for row in rows[1:]], ["1", "2", "3"])
                self.assertEqual(float(rows[1].split(",")[rows[0].split(",").index("accuracy")]),
                                 run.metrics[0]["accuracy"])

    def test_fit_weighs_evaluations(self):
        net = Net()
        bundle = self.compiled(net, {}, "one rank")
        with par.open(bundle, set={"lr": 0}) as job:
            batches = [{"x": self.x[a:b], "labels": self.labels[a:b]} for a, b in ((0, 8), (8, 16), (16, 43))]
            fitted = job.fit(batches[:1], eval=batches, progress=False)
            whole = job.eval(x=self.x, labels=self.labels)
        for key, value in whole.items():
            self.assertAlmostEqual(fitted.evals[0][key], value, places=5)

    def test_a_mean_over_elements(self):
        net = Regression()
        bundle = self.compiled(net, {"mesh": {"dp": 2}}, "regression")
        with torch.no_grad():
            expected = float(net(self.x, self.labels.clamp(0))["loss"])
        data = {"x": self.x, "labels": self.labels.clamp(0)}
        self.assertAlmostEqual(par.run(bundle, data=data, evaluate=True, quiet=True).metrics[-1]["eval_loss"], expected,
                               delta=1e-5 * expected)

    def test_a_loss_that_compares_samples(self):
        bundle = self.compiled(Contrast(), {}, "contrast")
        data = {"x": self.x, "labels": self.labels.clamp(0)}
        run = par.run(bundle, data=data, evaluate=True, quiet=True)
        self.assertIn("3 of 43 samples left out: they fill no batch of 8   loss: mean of the batches' values, for it "
                      "is no mean over samples", run.text)
        with par.open(bundle) as job, self.assertRaises(par.Error) as caught:
            job.eval(data)
        self.assertEqual((caught.exception.code, caught.exception.message.split(";")[0]),
                         (2, "43 rows are no whole batches of 8, and the loss is no mean over samples, of which others "
                             "could fill up a batch"))


if __name__ == "__main__":
    unittest.main()

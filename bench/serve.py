#!/usr/bin/env python3
"""Latency of a call: par-run --bench beside ONNX Runtime, one thread each, in turns, on the same exported models.

    serve.py [mobilenet resnet50 bert-base] [--batch 1 8] [--rounds 3] [--seconds 2] [--core 0]

Needs torch, torchvision, transformers, onnx, onnxscript, onnxruntime, numpy and safetensors from PyPI. MobileNet v2
reads images of 96 x 96, ResNet-50 of 224 x 224, BERT-base 128 tokens; weights are random, statistics of batch norms
too, and torch.onnx.export folds these as it does for any server. Both sides compute as many calls a round as fill the
seconds, three at least, after one warm-up; --core pins both. A line for each model and batch: median over rounds of p50
and p90, CPU time a call, the ratios ONNX Runtime / Par of p50 and of CPU time (above 1: Par is faster), and how far
results are apart, relative to the largest. The exit status is 1 if results are more than 1e-3 apart.

--start measures the time until the first answer instead: of par-run --serve from its start on, of par.open and a call
in Python, and of ONNX Runtime's session and a call, the last two without the start of Python; medians over rounds.
"""
import argparse
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import time

SHAPES = {"mobilenet": (3, 96, 96), "resnet50": (3, 224, 224), "bert-base": (128,)}
TOLERANCE = 1e-3  # f32 through 50 layers in another order of additions is within 1e-5; a wrong layout is not


def build(name):
    """The module and its example inputs, of a batch of 2: torch fixes sizes of 1."""
    import torch

    torch.manual_seed(0)
    if name == "bert-base":
        import transformers

        class Encoder(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.bert = transformers.BertModel(transformers.BertConfig(attn_implementation="sdpa"))

            def forward(self, input_ids, attention_mask):
                return self.bert(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state

        tokens = torch.ones(2, *SHAPES[name], dtype=torch.int64)
        # two tensors: of one the exporter makes one input
        return Encoder(), {"input_ids": tokens, "attention_mask": torch.ones_like(tokens)}
    import torchvision

    module = torchvision.models.mobilenet_v2() if name == "mobilenet" else torchvision.models.resnet50()
    for part in module.modules():
        if isinstance(part, torch.nn.BatchNorm2d):
            for value, low, high in ((part.weight, 0.8, 1.2), (part.bias, -0.1, 0.1), (part.running_mean, -0.1, 0.1),
                                     (part.running_var, 0.1, 0.3)):
                torch.nn.init.uniform_(value, low, high)
    return module, {"x": torch.zeros(2, *SHAPES[name])}


def export(name, path):
    import torch

    module, inputs = build(name)
    batch = torch.export.Dim("batch")
    torch.onnx.export(module.eval(), tuple(inputs.values()), path, dynamo=True, external_data=False, verbose=False,
                      input_names=list(inputs), dynamic_shapes=tuple({0: batch} for _ in inputs))


def data_of(name, batch):
    import numpy

    random = numpy.random.default_rng(1)
    if name != "bert-base":
        return {"x": random.standard_normal((batch, *SHAPES[name]), dtype="float32")}
    return {"input_ids": random.integers(0, 30522, (batch, *SHAPES[name])),
            "attention_mask": numpy.ones((batch, *SHAPES[name]), "int64")}


def percentile(times, share):
    return sorted(times)[min(len(times) - 1, int(share * len(times)))]


def peer(model, name, batch, seconds, results):
    """ONNX Runtime's round, in a process of its own: its figures as JSON; its first result to a file."""
    import numpy
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    began = time.perf_counter()
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    load = time.perf_counter() - began
    data = data_of(name, batch)
    numpy.save(results, session.run(None, data)[0])
    began = time.perf_counter()
    session.run(None, data)
    calls = max(3, int(float(seconds) / (time.perf_counter() - began)))
    times, before = [], time.process_time()
    for _ in range(calls):
        began = time.perf_counter()
        session.run(None, data)
        times.append(1e3 * (time.perf_counter() - began))
    cpu = 1e3 * (time.process_time() - before) / calls
    print(json.dumps({"p50": percentile(times, 0.5), "p90": percentile(times, 0.9), "cpu": cpu, "calls": calls,
                      "load": 1e3 * load}))


def peer_start(model, name, batch):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    data, began = data_of(name, batch), time.perf_counter()
    onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"]).run(None, data)
    print(1e3 * (time.perf_counter() - began))


def session_start(bundle, name, batch):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
    import par

    data, began = data_of(name, batch), time.perf_counter()
    with par.open(bundle, threads=1) as job:
        job.predict(data)
        print(1e3 * (time.perf_counter() - began))


class Case:
    """One model and batch size."""

    def __init__(self, options, name, batch):
        self.options, self.name, self.batch = options, name, batch
        self.model = options.work / f"{name}.onnx"
        self.bundle = options.work / f"{name}-{batch}.par"
        self.results = options.work / f"{name}-{batch}.npy"
        if not self.model.exists():
            export(name, self.model)
        subprocess.run([options.bin / "par-compile", "-q", self.model, "--set", f"batch={batch}", "-o", self.bundle],
                       check=True)

    def pinned(self, *command):
        core = self.options.core
        return subprocess.run([*(["taskset", "-c", str(core)] if core is not None else []), *map(str, command)],
                              check=True, stdout=subprocess.PIPE, text=True,
                              env=dict(os.environ, OMP_NUM_THREADS="1")).stdout

    def round(self):
        ort = json.loads(self.pinned(sys.executable, __file__, "--peer", self.model, self.name, self.batch,
                                     self.options.seconds, self.results))
        file = self.options.work / "bench.json"
        self.pinned(self.options.bin / "par-run", self.bundle, f"--bench={file}", "--iterations", ort["calls"],
                    "--warm-up", 1, "--threads", 1, "-q")
        found = json.loads(file.read_text())
        par = {"p50": found["latency_ms"]["p50"], "p90": found["latency_ms"]["p90"], "cpu": found["cpu_ms"],
               "load": found["load_ms"]}
        return par, ort

    def apart(self):
        """The largest difference of the results for one batch, over the largest result."""
        import numpy
        from safetensors.numpy import load_file, save_file

        data, out = self.options.work / "data.safetensors", self.options.work / "out.safetensors"
        save_file(data_of(self.name, self.batch), data)
        self.pinned(self.options.bin / "par-run", self.bundle, "--data", data, "--output", out, "-q")
        ours, theirs = next(iter(load_file(out).values())), numpy.load(self.results)
        return float(numpy.abs(ours - theirs).max() / numpy.abs(theirs).max())

    def first_answer(self):
        """Milliseconds from the start of par-run --serve to its first answer."""
        from safetensors.numpy import save

        data, path = save(data_of(self.name, self.batch)), str(self.options.work / "par.sock")
        core = ["taskset", "-c", str(self.options.core)] if self.options.core is not None else []
        began = time.perf_counter()
        server = subprocess.Popen([*core, str(self.options.bin / "par-run"), str(self.bundle), "--serve", path,
                                   "--threads", "1"], stdout=subprocess.PIPE, env=dict(os.environ, OMP_NUM_THREADS="1"))
        server.stdout.readline()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(path)
            client.sendall(b"safetensors %d\n" % len(data) + data)
            answer = client.makefile("rb")
            answer.read(int(answer.readline().split()[1]))
        took = 1e3 * (time.perf_counter() - began)
        server.terminate()
        server.communicate()
        return took

    def start(self):
        rounds = [(self.first_answer(),
                   float(self.pinned(sys.executable, __file__, "--session", self.bundle, self.name, self.batch)),
                   float(self.pinned(sys.executable, __file__, "--peer-start", self.model, self.name, self.batch)))
                  for _ in range(self.options.rounds)]
        serve, session, ort = map(statistics.median, zip(*rounds))
        print(f"| {self.name} | {self.batch} | {serve:.0f} | {session:.0f} | {ort:.0f} |", flush=True)

    def compare(self):
        rounds = [self.round() for _ in range(self.options.rounds)]
        par, ort = ({key: statistics.median(one[side][key] for one in rounds) for key in ("p50", "p90", "cpu", "load")}
                    for side in (0, 1))
        apart = self.apart()
        print(f"| {self.name} | {self.batch} | {par['p50']:.3f} | {par['p90']:.3f} | {ort['p50']:.3f} | "
              f"{ort['p90']:.3f} | **{ort['p50'] / par['p50']:.2f}** | {par['cpu']:.3f} | {ort['cpu']:.3f} | "
              f"{ort['cpu'] / par['cpu']:.2f} | {par['load']:.0f}, {ort['load']:.0f} | {apart:.0e} |", flush=True)
        return apart <= TOLERANCE


def main():
    if sys.argv[1:2] == ["--peer"]:
        return peer(*sys.argv[2:4], int(sys.argv[4]), *sys.argv[5:])
    for flag, side in (("--peer-start", peer_start), ("--session", session_start)):
        if sys.argv[1:2] == [flag]:
            return side(*sys.argv[2:4], int(sys.argv[4]))
    keep_lines = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=keep_lines)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"of {', '.join(SHAPES)}; default: all")
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2, help="of timed calls on each side in each round")
    parser.add_argument("--core", type=int, help="to which both are pinned")
    parser.add_argument("--bin", type=pathlib.Path, default="build/bin", help="where the tools are")
    parser.add_argument("--start", action="store_true", help="time until the first answer")
    parser.add_argument("--work", type=pathlib.Path, default="build/serve", help="folder for what is written")
    options = parser.parse_args()
    for name in options.models:
        if name not in SHAPES:
            parser.error(f"no model {name}; there are {', '.join(SHAPES)}")
    options.work.mkdir(parents=True, exist_ok=True)
    if options.start:
        print(f"load {os.getloadavg()[0]:.1f}; ms until the first answer\n\n| model | batch | par-run --serve | "
              "par.open | ONNX Runtime |\n|" + " --- |" * 5, flush=True)
        for name in options.models or SHAPES:
            for batch in options.batch:
                Case(options, name, batch).start()
        return 0
    print(f"load {os.getloadavg()[0]:.1f}; ms\n\n| model | batch | Par p50 | p90 | ONNX Runtime p50 | p90 | ratio | "
          "Par CPU | ONNX Runtime CPU | ratio | load | apart |\n|" + " --- |" * 12, flush=True)
    agree = [Case(options, name, batch).compare() for name in options.models or SHAPES for batch in options.batch]
    return 0 if all(agree) else 1


if __name__ == "__main__":
    sys.exit(main())

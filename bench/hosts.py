#!/usr/bin/env python3
"""Training over two hosts, which are network namespaces of this one, at 10 and 1 Gb/s.

    hosts.py --bin build/bin [--part ddp|trace|levels|order]... [--rate 10gbit]... [--rounds 3] [--steps 12]

ddp      data parallel, a rank of one thread on each host: Par by tcp beside PyTorch's DistributedDataParallel over
         Gloo, in turns; same batch, f32, AdamW. `wide` is an MLP of 10.5 million parameters, `tiny` a GPT of 0.84.
trace    how much of Par's exchange of gradients runs beside backward
levels   two hosts of two ranks: collectives.algorithm hierarchical beside flat
order    collectives.deterministic beside none
Printed are medians of the steps after the first two of each turn, and processor seconds a step of all ranks, which say
more while other work shares the cores. Needs root, ip and tc; for ddp torch and transformers. The defaults take about
six minutes on two cores.
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
for folder in ("test/Models/cluster", "test/Phases/Import/Inputs", "bench"):
    sys.path.insert(0, str(ROOT / folder))
import encode
from jobs import Starter
from network import Network, sh
from processes import cpu_seconds

WARM = 2
WIDTH, HIDDEN, LAYERS, ROWS, TOKENS = 1024, 2048, 3, 32, 64
RATES = ["10gbit", "1gbit"]
# A slow way out of each host of two ranks.
HARDWARE = """name: two-a-host
peak: {f32: 50000, f64: 25000}
memory: 10000
link: 4000
latency: 4000
launch: 250
overlap: true
cores: host
ranks: 2
between: {link: 125, latency: 60000}
"""


def wide_model():
    lines = [f"input x f32[batch,{WIDTH}]", f"input t f32[batch,{WIDTH}]", "output loss f32[]"]
    sizes = [WIDTH, *[HIDDEN] * (LAYERS - 1), WIDTH]
    last = "x"
    for layer, (rows, columns) in enumerate(zip(sizes, sizes[1:])):
        lines.append(f"absent w{layer} f32[{rows},{columns}] w{layer}.bin")
        lines.append(f"node m{layer} MatMul {last},w{layer} -> h{layer}")
        last = f"h{layer}"
        if layer + 1 < LAYERS:
            lines.append(f"node r{layer} Relu h{layer} -> a{layer}")
            last = f"a{layer}"
    lines += [f"node e Sub {last},t -> d", "node p Mul d,d -> q", "node l ReduceMean q -> loss keepdims=0"]
    return "\n".join(lines) + "\n"


class Bench:
    def __init__(self, options, work):
        self.options, self.work, self.par_run = options, work, options.bin.resolve() / "par-run"
        self.starter = None
        (work / "two.yaml").write_text(HARDWARE)
        self.files = {}

    def wide(self, ranks, *settings):
        """Bundle and data of the MLP."""
        model = self.work / "wide.onnx"
        if not model.exists():
            model.write_bytes(encode.encode(wide_model().splitlines()))
            self.write_rows(self.work / "wide.safetensors")
        return self.compile(model, "wide", [f"mesh.dp={ranks}", f"batch.size={ROWS * ranks}", *settings]), \
            ["--data", self.work / "wide.safetensors"]

    def write_rows(self, file):
        choose = random.Random(1)
        numbers = [choose.uniform(-1, 1) for _ in range(256 * WIDTH)]
        body, header = b"", {}
        for name in "xt":
            data = struct.pack(f"<{len(numbers)}f", *numbers)
            header[name] = {"dtype": "F32", "shape": [256, WIDTH], "data_offsets": [len(body), len(body) + len(data)]}
            body += data
        text = json.dumps(header).encode()
        file.write_bytes(struct.pack("<Q", len(text)) + text + body)

    def tiny(self, ranks, *settings):
        settings = [f"mesh.dp={ranks}", f"batch.size={8 * ranks}", f"dims.seq={TOKENS}", "train.loss=cross_entropy",
                    *settings]
        return self.compile(ROOT / "examples/tiny-gpt.onnx", "tiny", settings), ["--text", ROOT / "README.md"]

    def compile(self, model, name, settings):
        key = (name, *settings)
        if key not in self.files:
            bundle = self.work / f"{name}{len(self.files)}.par"
            flags = [part for setting in [*settings, "train.optimizer={kind: adamw, lr: 1e-4}"]
                     for part in ("--set", setting)]
            sh(str(self.options.bin / "par-compile"), str(model), *flags, "-q", "-o", str(bundle))
            self.files[key] = bundle
        return self.files[key]

    def par(self, made, hosts, more=()):
        """Milliseconds of each step, and processor seconds a step of all ranks together."""
        bundle, data = made
        metrics = self.starter.next().with_suffix(".jsonl")
        flags = ["--init", *data, "--steps", self.options.steps, "--metrics", metrics, "-q", "--threads", 1, *more]
        job = self.starter.by_hand(hosts, bundle, [*flags, "--comm", "tcp"])
        marks, seen = {}, 0
        while any(process.poll() is None for process in job.processes):
            lines = metrics.read_text().count("\n") if metrics.exists() else 0
            if lines != seen:
                seen = lines
                try:
                    marks[seen] = sum(cpu_seconds([process.pid]) for process in job.processes)
                except OSError:
                    pass  # a rank has ended
            time.sleep(0.002)
        if any(process.returncode for process in job.processes):
            sys.exit(job.text())
        steps = [json.loads(line) for line in metrics.read_text().splitlines()]
        first, last = min(mark for mark in marks if mark >= WARM), max(marks)
        return [step["ms"] for step in steps if "ms" in step][WARM:], \
            (marks[last] - marks[first]) / max(1, last - first)

    def ddp(self, model):
        """The same of PyTorch's."""
        self.starter.port += 1
        command = [sys.executable, str(ROOT / "bench/hosts_ddp.py"), model, str(self.options.steps), str(ROWS),
                   str(TOKENS)]
        ranks, said = [], []
        for rank, host in enumerate("ab"):
            environment = {**os.environ, "RANK": str(rank), "WORLD_SIZE": "2", "MASTER_PORT": str(self.starter.port),
                           "MASTER_ADDR": self.starter.network.address["a"], "GLOO_SOCKET_IFNAME": "net",
                           "OMP_NUM_THREADS": "1"}
            ranks.append(subprocess.Popen([*self.starter.network.inside(host), *command], env=environment, text=True,
                                          stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        for rank in ranks:
            out, errors = rank.communicate(timeout=300)
            if rank.returncode:
                sys.exit(errors)
            said.append(json.loads(out.splitlines()[-1]))
        return said[0]["ms"][WARM:], sum(rank["cpu"] for rank in said)

    def turns(self, title, ways):
        """Medians of rounds, way by way in turns, and the ratio of the others to the first."""
        found = {name: ([], []) for name in ways}
        for _ in range(self.options.rounds):
            for name, run in ways.items():
                times, cpu = run()
                found[name][0].extend(times)
                found[name][1].append(cpu)
        base = None
        for name, (times, cpus) in found.items():
            wall, cpu = statistics.median(times), statistics.median(cpus)
            base = base or (wall, cpu)
            ratio = "" if name == next(iter(found)) else (f"   {wall / base[0]:.2f} x the time, "
                                                            f"{cpu / base[1]:.2f} x the CPU seconds of the first")
            print(f"{title} {name:14} {wall:8.1f} ms a step, {cpu * 1000:7.1f} CPU ms{ratio}", flush=True)

    def trace(self, rate):
        """Seconds of rank 0's last steps in which a collective was under way, and the part of it beside a kernel."""
        for name, make, bucket in (("wide", self.wide, "1MiB"), ("tiny", self.tiny, "64KiB")):
            file, name = self.work / "trace.json", f"{name}, buckets of {bucket}"
            made = make(2, f"collectives.bucket={bucket}")
            self.par(made, "ab", ["--trace", f"{file}:{WARM}-{self.options.steps - 1}"])
            exchange, beside, compute = overlap(json.loads(file.read_text())["traceEvents"])
            print(f"{rate} {name}: exchange {exchange * 1e3:.1f} ms, of it {beside * 1e3:.1f} ms "
                  f"({100 * beside / max(exchange, 1e-9):.0f} %) beside {compute * 1e3:.1f} ms of kernels", flush=True)

    def play(self, rate, parts):
        if "ddp" in parts:
            for name, make in (("wide", self.wide), ("tiny", self.tiny)):
                made = make(2)
                ways = {"Par": lambda: self.par(made, "ab"), "DDP over Gloo": lambda: self.ddp(name)}
                self.turns(f"{rate} {name}", ways)
        if "trace" in parts:
            self.trace(rate)
        if "levels" in parts:
            hardware = f"target.hardware={self.work / 'two.yaml'}"
            ways = {word: self.wide(4, hardware, f"collectives.algorithm={word}") for word in ("hierarchical",)}
            ways["flat"] = self.wide(4)
            self.turns(f"{rate} wide, 2 hosts of 2 ranks",
                       {name: lambda made=made: self.par(made, "aabb") for name, made in ways.items()})
        if "order" in parts:
            ways = {"none": self.wide(2), "deterministic": self.wide(2, "collectives.deterministic=true")}
            self.turns(f"{rate} wide", {name: lambda made=made: self.par(made, "ab") for name, made in ways.items()})


def spans(events, kinds):
    """Sorted, merged (begin, end) of events, in microseconds."""
    merged = []
    for begin, end in sorted((event["ts"], event["ts"] + event["dur"]) for event in events if kinds(event)):
        if merged and begin <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([begin, end])
    return merged


def overlap(events):
    """Seconds of exchange, of exchange beside kernels, and of kernels, of rank 0."""
    mine = [event for event in events if event.get("ph") == "X" and event["pid"] == 0]
    exchange = spans(mine, lambda event: event["tid"] == "data" and event["cat"] in ("coll", "group"))
    kernels = spans(mine, lambda event: event["tid"] == "compute" and event["cat"] in ("kernel", "call"))
    beside = sum(max(0, min(a[1], b[1]) - max(a[0], b[0])) for a in exchange for b in kernels)
    total = lambda found: sum(end - begin for begin, end in found)
    return total(exchange) / 1e6, beside / 1e6, total(kernels) / 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--part", action="append", choices=["ddp", "trace", "levels", "order"], help="default: all")
    parser.add_argument("--rate", action="append", help="default: 10gbit and 1gbit")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=12)
    options = parser.parse_args()
    work = pathlib.Path(tempfile.mkdtemp(prefix="par-bench-hosts-"))
    bench = Bench(options, work)
    try:
        for rate in options.rate or RATES:
            network = Network("ab", rate)
            bench.starter = Starter(network, bench.par_run, work)
            try:
                bench.play(rate, options.part or ["ddp", "trace", "levels", "order"])
            finally:
                network.close()
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()

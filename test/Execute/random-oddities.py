#!/usr/bin/env python3
"""Random small models with what exporters rarely write: dims of 0 and of 1 anywhere, odd names, any order of inputs,
outputs, initializers and nodes. Each trains under a random plan as on one rank, save, resume and export included, or is
refused with a sentence.

    random-oddities.py [--bin FOLDER] [--count 50] [--seed 1] [--keep FOLDER] [-v]
"""
import argparse
import json
import math
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE.parent / "Models"), str(HERE.parent / "Phases" / "Import" / "Inputs")]
from encode import attribute, block, metadata, number, tensor, value_info  # noqa: E402
from runs import read_safetensors, write_safetensors  # noqa: E402

STEPS = 4
ODD_NAMES = ["w", "W", "1", "a b", "a.b.", ".a", "a..b", "a/b", "/", "a'b", 'a"b', "a\\b", "β.weight", "重み", "@s0",
             "%0", "{a,b}", "*", "a?",
             "a:b", "a=b", "a;b", "a+b", "a,b", "lr", "step", "clip", "seed", "loss_scale", "good_steps",
             "par.training", "par.draws", "constant.0",
             "labels", "grad_norm", "train", "h.0.w", "h.00.w", "in(w)", "grad(w)", "null", "true", "~", "#w", "- w",
             "a\nb", "a\tb", "", "n" * 300,
             "long." * 200 + "w", "w.m", "w.v", "s0", "..", "x" * 70000]
PLANS = ["mesh: {dp: 2}", "mesh: {dp: 2}\nzero: {level: 1, min_size: 0}",
         "mesh: {dp: 2}\nzero: {level: 2, min_size: 0}",
         "mesh: {dp: 2}\nzero: {level: 3, min_size: 0}", "mesh: {dp: 2}\nzero: {level: 3, min_size: 0, gather: step}",
         "mesh: {pp: 2}\npipeline: {schedule: gpipe}",
         "mesh: {pp: 2}", "mesh: {pp: 2, dp: 2}\nzero: {level: 2, min_size: 0}", "mesh: {tp: 2}\nshard: {SHARDS}",
         "mesh: {tp: 2, dp: 2}\nshard: {SHARDS}",
         "offload: [params, states]", "recompute: full", "precision: bf16",
         "mesh: {dp: 2}\ncollectives: {bucket: 0, overlap: false}", ""]


class Graph:
    """A chain of layers, and what it reads."""

    def __init__(self, draw, kind):
        self.draw, self.kind = draw, kind
        self.count = 0
        self.inits, self.nodes, self.extra = [], [], []
        self.batch = draw.choice([2, 4, 4, 8]) if kind != "ones" else draw.choice([1, 1, 2])
        self.names = draw.sample(ODD_NAMES, 12) if kind == "names" else []
        self.taken = {"x", "y", "loss"}

    def name(self):
        self.count += 1
        if self.names and self.draw.random() < 0.3:
            name = self.names.pop()
            if name not in self.taken:
                self.taken.add(name)
                return name
        return f"v{self.count}"

    def init(self, shape, values=None, kind="f32"):
        size = math.prod(shape)
        values = values if values is not None else [self.draw.randrange(-8, 9) / 8 for _ in range(size)]
        name = self.name() if kind == "f32" else f"c{len(self.inits)}"
        self.inits.append((name, f"{kind}[{','.join(map(str, shape))}]", values))
        return name

    def emit(self, op, inputs, *attributes):
        name = self.name() or "unnamed"
        self.nodes.append((op, inputs, [name], attributes))
        return name

    def width(self):
        return self.draw.choice([0, 0, 1, 2, 3] if self.kind == "empty" else [1, 1, 1, 2] if self.kind == "ones"
                                else [2, 3, 4])

    def linear(self, h, width, out):
        h = self.emit("MatMul", [h, self.init([width, out])])
        return self.emit("Add", [h, self.init(self.draw.choice([[out], [1, out]]))])

    def layer(self, h, width):
        """One more layer: its name and width."""
        return self.draw.choice([self.widen, self.widen, self.beside, self.through, self.scale, self.cut, self.sums,
                                 self.turn, self.fed])(h, width)

    def widen(self, h, width):
        out = self.width()
        return self.emit("Tanh", [self.linear(h, width, out)]), out

    def beside(self, h, width):
        out = self.width()
        return self.emit("Concat", [h, self.linear(h, width, out)], "axis=1"), width + out

    def through(self, h, width):
        middle = self.width()
        return self.emit("Add", [h, self.linear(self.linear(h, width, middle), middle, width)]), width

    def scale(self, h, width):
        return self.emit("Mul", [h, self.init(self.draw.choice([[], [1], [width], [1, 1], [1, width]]))]), width

    def cut(self, h, width):
        size = self.draw.randint(0 if self.kind == "empty" else min(1, width), width)
        ints = [self.init([1], [value], "i64") for value in (width - size, width, 1)]
        return self.emit("Slice", [h, *ints]), size

    def sums(self, h, width):
        total = self.emit("ReduceSum", [h, self.init([1], [1], "i64")], "keepdims=1")
        return self.emit("Concat", [h, total], "axis=1"), width + 1

    def turn(self, h, width):
        shape = self.init([3], [self.batch, width, 1], "i64")
        h = self.emit("Transpose", [self.emit("Reshape", [h, shape], "allowzero=1")], "perm=[0,2,1]")
        return self.emit("Reshape", [h, self.init([2], [self.batch, width], "i64")], "allowzero=1"), width

    def fed(self, h, width):
        if self.extra:
            return h, width
        size = self.width()
        name = self.name() or "z"
        self.extra.append((name, size))
        return self.emit("Concat", [h, name], "axis=1"), width + size

    def finish(self, h, width):
        if width == 0:
            h, width = self.emit("Add", [self.linear(h, 0, 2), self.init([2])]), 2
        e = self.emit("Sub", [h, "y"])
        e = self.emit("ReduceMean", [self.emit("Mul", [e, e])], f"keepdims={self.draw.choice([0, 0, 1])}")
        loss = self.emit("Reshape", [e, self.init([1], [1], "i64")]) if self.draw.random() < 0.3 else e
        self.nodes.append(("Identity", [loss], ["loss"], ()))
        self.out = width

    def encode(self):
        """The file, in a drawn order of what has none."""
        draw, shuffled = self.draw, lambda items: draw.sample(items, len(items))
        inputs = [("x", f"f32[{self.batch},{self.inner}]"), ("y", f"f32[{self.batch},{self.out}]")]
        inputs += [(name, f"f32[{self.batch},{size}]") for name, size in self.extra]
        outputs = [("loss", "f32")] + [(node[2][0], "f32")
                                       for node in draw.sample(self.nodes[:-1], min(1, len(self.nodes) - 1))]
        nodes = [block(1, self.encode_node(i, *node)) for i, node in enumerate(self.nodes)]
        if self.kind == "orders":
            inputs, outputs, self.inits = shuffled(inputs), shuffled(outputs), shuffled(self.inits)
            if draw.random() < 0.3:
                nodes = shuffled(nodes)
        graph = b"".join(block(11, value_info(*each))
                         for each in inputs) + b"".join(block(12, value_info(*each)) for each in outputs)
        graph += b"".join(block(5, tensor(*each)) for each in self.inits) + b"".join(nodes)
        if self.kind != "names":  # else what is trained is guessed: no tensor of no elements or one
            lines = "".join(f"p_{i}: PARAMETER target='{name}'\n" for i, (name, kind, _) in enumerate(self.inits)
                            if kind.startswith("f32"))
            graph += metadata(16, "pkg.torch.export.ExportedProgram.graph_signature", "# inputs\n" + lines)
        return number(1, 10) + block(8, number(2, 20)) + block(7, graph)

    def encode_node(self, i, op, inputs, outputs, attributes):
        name = self.draw.choice(ODD_NAMES) if self.kind == "names" and self.draw.random() < 0.2 else f"n{i}"
        return (b"".join(block(1, each) for each in inputs) + b"".join(block(2, each) for each in outputs)
                + block(3, name) + block(4, op) +
                b"".join(block(5, attribute(each)) for each in attributes))


def build(draw):
    graph = Graph(draw, draw.choice(["empty", "empty", "ones", "names", "orders"]))
    graph.inner = graph.width() or 2
    width = draw.choice([1, 2, 3])
    h = graph.linear("x", graph.inner, width)  # so that something is trained
    for _ in range(draw.randint(1, 4)):
        h, width = graph.layer(h, width)
    graph.finish(h, width)
    return graph


def draw_plan(draw, graph):
    """A plan, and the one of one rank that means the same."""
    kind = draw.choice(["{kind: sgd, lr: 0.1}", "{kind: momentum, lr: 0.1}", "{kind: adamw, lr: 0.01}"])
    common = "train: {loss: loss, optimizer: %s%s}\n" % (kind, draw.choice(["", ", clip: 1.0"]))
    plan = draw.choice([plan for plan in PLANS if graph.batch > 1 or "dp" not in plan])
    microbatches = draw.choice([m for m in (1, 1, 2) if graph.batch % (m * (2 if "dp" in plan else 1)) == 0] or [1])
    rules = []
    for name, kind, _ in graph.inits:
        dims = [i for i, size in enumerate(kind.partition("[")[2][:-1].split(",")) if size not in ("", "1")]
        if kind.startswith("f32") and dims and draw.random() < 0.7:
            rules.append(f"{json.dumps(name, ensure_ascii=False)}: {{{draw.choice(dims)}: tp}}")
    plan = plan.replace("SHARDS", ", ".join(rules))
    if "bf16" in plan:
        common += plan + "\n"
    return common + f"batch: {{size: {graph.batch}, microbatches: {microbatches}}}\n" + (
        "" if "bf16" in plan else plan + "\n"), common


class Trial:
    def __init__(self, binaries, folder):
        self.binaries, self.folder = binaries, folder

    def call(self, tool, *arguments):
        """None after a success, what is said where it is refused; what is wrong with a tool is raised."""
        done = subprocess.run([str(self.binaries / tool), *map(str, arguments)], cwd=self.folder, capture_output=True,
                              timeout=120)
        said = done.stderr.decode(errors="replace")
        if done.returncode == 0:
            return None
        sentence = next((line for line in said.splitlines() if " error: " in line or line.startswith("error: ")), "")
        if done.returncode not in (1, 5) or not sentence or "internal" in said or len(sentence) > 4000:
            raise AssertionError(f"{tool} {' '.join(map(str, arguments))}: exit {done.returncode}: {said[-1500:]}")
        return f"{done.returncode} {sentence}"

    def train(self, name, plan, *more):
        """(losses, weights), or a sentence."""
        (self.folder / f"{name}.yaml").write_text(plan)
        refused = self.call("par-compile", "model.onnx", f"{name}.yaml", "-o", f"{name}.par", "-q")
        if refused:
            return refused
        metrics, weights = self.folder / f"{name}.jsonl", self.folder / f"{name}.safetensors"
        metrics.unlink(missing_ok=True)
        refused = self.call("par-run", f"{name}.par", "--data", "data.safetensors", "--order", "sequential", "--steps",
                            STEPS, "--metrics", metrics,
                            "--export", weights, "-q", *more)
        if refused:
            return refused
        losses = [json.loads(line)["loss"] for line in metrics.read_text().splitlines()]
        return losses, {key: values for key, (_, values) in read_safetensors(weights).items()}


def far(a, b):
    """The largest difference of two results; infinite where they are of other names or lengths."""
    if len(a[0]) != len(b[0]) or a[1].keys() != b[1].keys():
        return math.inf
    pairs = list(zip(a[0], b[0])) + [pair for name in a[1] for pair in zip(a[1][name], b[1][name])]
    worst = max((abs(x - y) / max(1, abs(y)) for x, y in pairs), default=0)
    return worst if all(len(a[1][name]) == len(b[1][name]) for name in a[1]) and not math.isnan(worst) else math.inf


def check(draw, trial):
    """"trained" or what was refused."""
    graph = build(draw)
    (trial.folder / "model.onnx").write_bytes(graph.encode())
    rows = graph.batch * STEPS
    arrays = {name: ([rows, size], [draw.gauss(0, 1) for _ in range(rows * size)])
              for name, size in [("x", graph.inner), ("y", graph.out), *graph.extra]}
    write_safetensors(trial.folder / "data.safetensors", arrays)
    plan, common = draw_plan(draw, graph)
    one = trial.train("one", common + f"batch: {graph.batch}\n")
    many = trial.train("many", plan, "--save", "saves", "--save-every", "2")
    if isinstance(one, str) or isinstance(many, str):
        return f"{graph.kind}: {many if isinstance(many, str) else one}"
    tolerance = 5e-2 if "bf16" in plan else 1e-4
    assert far(many, one) <= tolerance, f"{graph.kind}: {far(many, one)} from one rank's: {many} and {one}\n{plan}"
    resumed = trial.train("many", plan, "--resume", "saves/2")
    assert not isinstance(resumed, str), resumed
    assert resumed[0] == many[0][2:] and resumed[1] == many[1], f"resumed: {resumed}, not {many}"
    return "trained"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", help="default: on the PATH",
                        default=pathlib.Path(shutil.which("par-compile") or ".").parent)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=pathlib.Path, help="where the folder of a failure goes")
    parser.add_argument("-v", action="store_true")
    options = parser.parse_args()
    trained, refused, failed = 0, 0, 0
    for seed in range(options.seed, options.seed + options.count):
        with tempfile.TemporaryDirectory(prefix="par-odd-") as work:
            try:
                found = check(random.Random(seed), Trial(pathlib.Path(options.bin).resolve(), pathlib.Path(work)))
                trained += found == "trained"
                refused += found != "trained"
            except (AssertionError, subprocess.TimeoutExpired, OSError) as failure:
                failed, found = failed + 1, f"FAILED {failure}"
                if options.keep:
                    shutil.copytree(work, options.keep / str(seed), dirs_exist_ok=True)
            if options.v or found.startswith("FAILED"):
                print(f"seed {seed}: {found[:1200]}", flush=True)
    print(f"{options.count} models: {trained} trained, {refused} refused, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

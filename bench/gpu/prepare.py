"""gpu-check prepare: compiles the bundles and collects them, the runtime, the libraries it needs and this script."""
import array
import gzip
import json
import pathlib
import random
import re
import shutil
import struct
import subprocess
import tarfile
import time

import speed
import thin
from cases import OPTIMIZER_KEYS, SEQUENCE, benchmark_plan, cases

HERE = pathlib.Path(__file__).resolve().parent
TOOLS = ["par-run", "par-verify", "cuda-kernels-check", "cuda-kernels-speed"]
STUBS = ["libcuda-stub.so", "libcublaslt-stub.so", "libcudnn-stub.so", "libnccl-stub.so"]
# Models whose numbers a dry run shows; others would take too much of what may be carried.
TWINS = {"cnn", "gpt2", "mlp", "resnet", "unet"}
# Used only where the machine's own C library is older than the one that the tools were linked with.
SYSTEM = re.compile(r"^(ld-linux|libc\.|libm\.|libdl\.|libpthread\.|librt\.)")


class Folder:
    def __init__(self, path, target):
        self.path, self.target, self.bundles = path, target, []
        marker = path / "prepared.json"
        if path.exists() and any(path.iterdir()) and not marker.exists():
            raise SystemExit(f"gpu-check: error: {path} is not empty and no earlier prepare made it")
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
        self.manifest = {"target": target, "prepared": time.strftime("%Y-%m-%d %H:%M:%S"), "bundles": self.bundles}
        self.save()

    def save(self):
        (self.path / "prepared.json").write_text(json.dumps(self.manifest, indent=1) + "\n")

    def bytes(self):
        return sum(file.stat().st_size for file in self.path.rglob("*") if file.is_file())

    def compile_twin(self, compiler, model, file, entry):
        """The same kernels as code of the CPU: by it the stubs of a dry run compute what generated kernels would."""
        twin = f"{entry['path'].removesuffix('.par')}.cpu.par"
        command = [compiler, "-q", model, file, "--host-code", "-o", self.path / twin]
        subprocess.run(list(map(str, command)), check=True)
        entry["twin"] = twin

    def compile(self, compiler, model, plan, entry):
        """A bundle beside its model, or what the compiler says against it."""
        name = "-".join(str(entry[key]) for key in ("case", "optimizer", "precision"))
        file, bundle = model.parent / "plan.yaml", model.parent / f"{name}.par"
        file.write_text(plan + f"target: {self.target}\n")
        command = [compiler, "-q", model, file, "-o", bundle]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        entry["path"] = str(bundle.relative_to(self.path))
        if done.returncode != 0:
            shutil.rmtree(bundle, ignore_errors=True)
            lines = [line for line in done.stderr.splitlines() if "error:" in line] or done.stderr.splitlines() or [""]
            entry["refused"] = lines[0].replace(f"{file}:", "plan:").replace(f"{model}", model.name)
            entry["crashed"] = done.returncode < 0
        elif self.target != "cpu" and entry["model"] in TWINS:
            self.compile_twin(compiler, model, file, entry)
        file.unlink()
        self.bundles.append(entry)
        print(f"  {entry['model']:10} {name:20} " + (entry.get("refused") or "compiled"), flush=True)


def libraries(tools):
    """Every shared library that the tools need, by name."""
    found = {}
    for tool in tools:
        text = subprocess.run(["ldd", str(tool)], capture_output=True, text=True, check=True).stdout
        for line in text.splitlines():
            path = re.search(r"(/\S+) \(0x", line)
            if path:
                found[pathlib.Path(path[1]).name] = pathlib.Path(path[1]).resolve()
    return found


def collect_tools(folder, build):
    tools = [build / "bin" / name for name in TOOLS]
    stubs = [build / "lib" / name for name in STUBS]
    missing = [str(path) for path in tools + stubs[:3] if not path.exists()]
    if missing:
        raise SystemExit(f"gpu-check: error: build these first: {', '.join(missing)}")
    stubs = [stub for stub in stubs if stub.exists()]
    with tarfile.open(folder.path / "tools.tar.gz", "w:gz", compresslevel=1) as out:
        for tool in tools:
            out.add(tool, f"bin/{tool.name}")
        for stub in stubs:
            out.add(stub, f"stubs/{stub.name}")
        for name, path in sorted(libraries(tools + stubs).items()):
            if name not in STUBS:
                out.add(path, f"{'system' if SYSTEM.match(name) else 'lib'}/{name}")


def collect_kernels(folder, build):
    """Generated kernels by themselves, on sizes that are measured."""
    tool = build / "bin" / "par-compile-kernels"
    if not tool.exists():
        raise SystemExit(f"gpu-check: error: build this first: {tool}")
    subprocess.run([str(tool), str(HERE / "rows.mlir"), str(folder.path / "kernels")], check=True)


def collect_model(folder, compiler, source):
    to = folder.path / "models" / source.name
    to.mkdir(parents=True)
    for name in ("model.onnx", "data.safetensors", "reference.json"):
        shutil.copyfile(source / name, to / name)
    runs = json.loads((source / "reference.json").read_text())["runs"]
    for case, optimizer, precision, ranks, plan in cases(source.name, runs):
        options = {key: runs[optimizer]["options"][key] for key in OPTIMIZER_KEYS[optimizer]}
        plan += f"precision: {precision}\ntrain: {{optimizer: {json.dumps({'kind': optimizer, **options})}}}\n"
        entry = {"model": source.name, "case": case, "optimizer": optimizer, "precision": precision, "ranks": ranks}
        folder.compile(compiler, to / "model.onnx", plan, entry)


def write_tokens(path, batch):
    """Two batches of random tokens, the labels the same: the model shifts them."""
    rows, draw = 2 * batch, random.Random(0)
    body = array.array("q", (draw.randrange(50257) for _ in range(rows * SEQUENCE))).tobytes()
    header = {name: {"dtype": "I64", "shape": [rows, SEQUENCE], "data_offsets": [i * len(body), (i + 1) * len(body)]}
              for i, name in enumerate(("input_ids", "labels"))}
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + 2 * body)


def collect_benchmark(folder, compiler, models, batch):
    packed = models / "structure" / "gpt2-124m-dynamic.onnx.gz"
    if not packed.exists():
        print(f"  no benchmark: there is no {packed}")
        return
    to = folder.path / "benchmark"
    to.mkdir()
    (to / "model.onnx").write_bytes(gzip.decompress(packed.read_bytes()))
    write_tokens(to / "data.safetensors", batch)
    entry = {"model": "gpt2-124m", "case": "benchmark", "optimizer": "adamw", "precision": "bf16", "ranks": 1}
    folder.compile(compiler, to / "model.onnx", benchmark_plan(batch), entry)
    folder.manifest["benchmark"] = {"batch": batch, "sequence": SEQUENCE}


def prepare(options):
    folder = Folder(options.folder.resolve(), options.target)
    compiler = options.build / "bin" / "par-compile"
    if not compiler.exists():
        raise SystemExit(f"gpu-check: error: build this first: {compiler}")
    models = [path.parent for path in sorted(options.models.glob("*/reference.json"))
              if not options.only or path.parent.name in options.only]
    if not models:
        raise SystemExit(f"gpu-check: error: {options.models} has no such model with a reference.json")
    for model in models:
        collect_model(folder, compiler, model)
    if not options.only or "gpt2-124m" in options.only:
        collect_benchmark(folder, compiler, options.models, options.batch)
    if options.target != "cpu":
        thin.collect(folder, options.build, options.only)
        if options.speed:
            speed.collect(folder, options.build, options.speed)
        collect_kernels(folder, options.build)
    collect_tools(folder, options.build)
    shutil.copy(HERE.parent / "gpu-check", folder.path / "gpu-check")
    shutil.copytree(HERE, folder.path / "gpu", ignore=shutil.ignore_patterns("__pycache__"))
    folder.save()
    megabytes = folder.bytes() / 1e6
    refused = sum("refused" in entry for entry in folder.bundles)
    print(f"{folder.path}: {megabytes:.1f} MB, {len(folder.bundles) - refused} bundles, {refused} refused by the "
          f"compiler")
    if megabytes > options.limit_mb:
        print(f"gpu-check: error: {megabytes:.1f} MB are more than the {options.limit_mb:g} MB that may be carried; "
              "--only takes fewer models")
        return 1
    return 0

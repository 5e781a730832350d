"""gpu-check run: the steps in their order, each with its own time, and the summary."""
import json
import os
import platform
import time

import benchmark
import speed
import thin
import training
from machine import Machine
from report import Broken, NotPossible, Refused, Step, write

# Least share of the copy's bandwidth for kernels that do little but move memory. The share of other kernels is only
# printed: windows that overlap, additions in a fixed order, ten rounds of Philox for each random number.
LEAST_SHARE = 0.8
NOT_MEMORY_BOUND = {"max_pool", "max_pool_grad", "scatter_add_rows", "dropout"}
# Builtins that no bundle of this compiler calls on cuda (norms and softmax are generated, above): bundles of before run
# on them, at 0.57 to 0.8 of the copy on an H100.
NOT_EMITTED = {"softmax", "softmax_backward", "layer_norm", "layer_norm_backward"}
# Tests of what libraries compute, which is there without nvcc.
OF_LIBRARIES = ("CudaConvolution.", "CudaAttention.", "CudaGemm.")
# Tests of entries that the stub only takes.
NOT_IN_STUB = {"CudaReduce.givesTheBitsOfTheCpu", "CudaCopy.copiesAnyBytes"}


def kernels(machine, step):
    """Every builtin kernel, and cuDNN's convolutions and attentions, against the CPU builtin of its name, and the
    epilogues of matmuls."""
    machine.need_gpu()
    if not machine.dry and not machine.cuda:
        raise NotPossible("these bundles are for cpu")
    report = machine.work / "kernels.json"
    machine.run(step, "cuda-kernels-check", f"--gtest_output=json:{report}", good=(0, 1))
    suites = json.loads(report.read_text())["testsuites"]
    tests = [(f"{suite['name']}.{test['name']}", test.get("failures", [])) for suite in suites
             for test in suite["testsuite"]]
    launches = machine.calls["cuLaunchKernel"]
    own = [failures for name, failures in tests if not name.startswith(OF_LIBRARIES)]
    if own and all("built without nvcc" in str(failures) for failures in own):
        raise Refused("this runtime was built without nvcc and has no builtin kernels for cuda")
    for name, failures in tests:
        said = failures[0]["failure"] if failures else ""
        if machine.dry and name in NOT_IN_STUB:
            step.note(name, "not shown", "its launches are taken; the stub has no form of it")
        elif machine.dry and not failures:
            step.note(name, "not shown", "operands arrive as they should, by the CPU's form in the stub")
        else:
            step.note(name, "fail" if failures else "pass", " ".join(said.split())[:300])
    if machine.dry:
        step.note("what is launched is taken", "pass" if launches else "fail", f"{launches} launches on the stub")


def measure(machine, step, kind, *arguments):
    """The shares of builtin or of generated kernels, by one process with a copy of its own."""
    found = json.loads(machine.run(step, "cuda-kernels-speed", *arguments))
    if machine.dry:
        step.note(f"{kind} kernels: shares of the copy bandwidth", "not shown",
                  f"{len(found['kernels'])} kernels are launched "
                  f"({', '.join(kernel['name'] for kernel in found['kernels'])}); "
                  "the stub has no bandwidth")
        return
    step.figures.setdefault("bandwidth", {})[kind] = found
    step.figures.setdefault("table", []).append(f"copy {found['copy'] / 1e9:.0f} GB/s, and {kind} kernels:")
    for kernel in found["kernels"]:
        step.figures["table"].append(f"{kernel['name']:30} {kernel['bytes'] / kernel['seconds'] / 1e9:6.0f} GB/s  "
                                     f"{kernel['share']:.2f} of the copy  {kernel['seconds'] * 1e6:.0f} us")
        plain = kernel["name"].removesuffix("_bf16").removesuffix("_f16")
        if kernel["name"] not in NOT_MEMORY_BOUND and not (kind == "builtin" and plain in NOT_EMITTED):
            step.hold(f"{kind} {kernel['name']}: share of the copy bandwidth", kernel["share"], LEAST_SHARE, least=True)


def attentions(machine, step):
    """Operations a second of cuDNN's attentions, only for the table."""
    found = json.loads(machine.run(step, "cuda-kernels-speed", "--attention", *(["0"] if machine.dry else [])))
    step.figures["attention"] = found
    for one in found["attention"]:
        step.figures.setdefault("table", []).append(
            f"{one['name']:36} {one['seconds'] * 1e3:7.3f} ms  {one['flops'] / one['seconds'] / 1e12:4.0f} TFLOP/s  "
            f"workspace {one['workspace'] / 2**20:.0f} MiB")


def bandwidth(machine, step):
    """Bytes a second of builtin and generated kernels (norms, softmax, rope, ...) as a share of a copy's."""
    machine.need_gpu()
    if not machine.dry and not machine.cuda:
        raise NotPossible("these bundles are for cpu")
    generated = ["--generated", machine.folder / "kernels", *(["65536"] if machine.dry else [])]
    if (machine.folder / "kernels").exists():
        step.attempt("generated kernels", measure, machine, step, "generated", *generated)
    step.attempt("attentions", attentions, machine, step)
    step.attempt("builtin kernels", measure, machine, step, "builtin", *(("16", "64") if machine.dry else ()))


def start(machine, step):
    """The carried programs start, and what they meet."""
    version = machine.start(step)
    step.note("the carried runtime starts", "pass", version)
    if machine.dry:
        step.note("a GPU", "not shown", "stub libraries stand for it")
    elif machine.cuda:
        said = machine.smi("name,driver_version,memory.total")
        step.note("a GPU", "pass" if said else "not possible", said or "nvidia-smi finds none")


# name -> (body, seconds at most). Unused time of a step is left to the next ones.
STEPS = {
    "start": (start, 30),
    "kernels": (kernels, 75),
    "bandwidth": (bandwidth, 50),
    "models": (training.models, 110),
    "structures": (thin.structures, 90),
    "ranks": (training.ranks, 70),
    "nccl": (training.nccl, 30),
    "graphs": (training.graphs, 30),
    "sanitizer": (training.sanitizer, 120),
    "benchmark": (benchmark.benchmark, 200),
    "speed": (speed.speed, 240),
}
BENCHMARK_RESERVE = 150  # seconds that no other step takes


def run_steps(machine, options, begin):
    steps = []
    for name, (body, seconds) in STEPS.items():
        if options.only and name not in options.only and name != "start":
            continue
        if machine.dry: # this host's cores do the GPU's work, maybe beside others'
            seconds *= 5
        rest = options.seconds * (5 if machine.dry else 1) - (time.monotonic() - begin)
        if name not in ("benchmark", "speed") and not options.only:
            rest -= BENCHMARK_RESERVE
        print(f"{name}: {body.__doc__.strip()}", flush=True)
        step = Step(name, min(seconds, rest))
        step.attempt(name, body, machine, step)
        step.seconds = time.monotonic() - step.begin
        if not step.claims:
            step.attempt(name, nothing)
        steps.append(step)
    return steps


def nothing():
    raise Broken("nothing was claimed")


def run(options):
    begin = time.monotonic()
    folder = options.folder.resolve()
    if not (folder / "prepared.json").exists():
        raise SystemExit(f"gpu-check: error: {folder} was not made by gpu-check prepare")
    machine = Machine(folder, options.dry_run)
    try:
        steps = run_steps(machine, options, begin)
        head = {"machine": f"{platform.node()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}",
                "gpu": "stub libraries (--dry-run)" if machine.dry else machine.smi("name") or "none",
                "target": machine.manifest["target"], "prepared": machine.manifest["prepared"],
                "started": time.strftime("%Y-%m-%d %H:%M:%S"), "seconds": round(time.monotonic() - begin, 1)}
    finally:
        machine.close()
    return write(folder, head, steps)

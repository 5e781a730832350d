"""The steps that train models: against references, several ranks against one, NCCL, graphs, the sanitizer."""
import json
import math
import shutil
import statistics

from cases import BOUNDS, RANK_BOUNDS
from report import Broken, NotPossible, Refused

STEPS = 10
STRUCTURE_STEPS = 2
NOT_FINITE = 5  # par-run's exit status


def title(bundle):
    return " ".join(bundle[key] for key in ("model", "case", "optimizer", "precision"))


def find(machine, **keys):
    return [bundle for bundle in machine.manifest["bundles"] if bundle["case"] != "benchmark"
            and all(bundle[key] == value for key, value in keys.items())]


def train(machine, step, bundle, *flags, steps=STEPS, environment=None, prefix=()):
    """Metrics of each step, and what was printed. Stubs compute no generated kernels: in a dry run losses mean nothing,
    and a run may end early because one is not finite."""
    if "refused" in bundle:
        raise Broken(f"par-compile crashed: {bundle['refused']}") if bundle.get("crashed") else Refused(
            bundle["refused"])
    machine.need_gpu()
    path = machine.folder / bundle["path"]
    metrics = machine.work / "metrics.jsonl"
    metrics.unlink(missing_ok=True)
    command = machine.command("par-run", path, "--data", path.parent / "data.safetensors", "--order", "sequential",
                              "--steps", steps, "--metrics", metrics, *flags)
    blind = machine.dry and machine.cuda
    if blind and "twin" in bundle:
        environment = {**(environment or {}), "PAR_STUB_BUNDLE": str(machine.folder / bundle["twin"])}
    text = machine.execute(step, [*prefix, *command], environment=environment, good=(0, NOT_FINITE) if blind else (0,))
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    lines = [line for line in lines if "loss" in line]
    if len(lines) != steps and not blind:
        raise Broken(f"{len(lines)} steps were made of {steps}")
    return lines, text


def losses(lines):
    return [math.nan if line["loss"] is None else line["loss"] for line in lines]


def far(found, wanted):
    """Greatest relative difference; a NaN stays one."""
    apart = [abs(a - b) / abs(b) for a, b in zip(found, wanted, strict=True)]
    return math.nan if any(map(math.isnan, apart)) else max(apart)


def compare(machine, step, bundle, what, found, wanted, bound):
    """The claim on numbers. In a dry run they are those of the CPU's code for the same plan, or cannot be shown."""
    if machine.dry and machine.cuda and "twin" in bundle:
        step.hold(what, far(found, wanted), bound, note="; on stubs, kernels by the CPU's code")
    elif machine.dry and machine.cuda:
        calls, launches = machine.calls.total(), machine.calls["cuLaunchKernel"]
        step.note(what, "not shown",
                  f"came to its end on the stubs, {calls} calls, {launches} kernels launched one by one, "
                                     f"{machine.calls['cuGraphLaunch']} graphs; the stubs run no GPU code")
    else:
        step.hold(what, far(found, wanted), bound)


def models(machine, step):
    """Ten losses of each model on one rank against PyTorch's in float64."""
    for bundle in find(machine, case="one"):
        what = f"{title(bundle)}: losses to float64's, relative"
        done = step.attempt(what, train, machine, step, bundle)
        if done:
            reference = json.loads((machine.folder / bundle["path"]).with_name("reference.json").read_text())
            wanted = reference["runs"][bundle["optimizer"]]["losses_f64"]
            machine.trained[bundle["path"]] = losses(done[0])
            compare(machine, step, bundle, what, losses(done[0]), wanted, BOUNDS[bundle["precision"]])


def alone(machine, step, bundle):
    """Losses of a bundle on one rank, as the models' step found them or of a run of its own."""
    if bundle["path"] not in machine.trained:
        done = step.attempt(f"{title(bundle)}: the run to compare with", train, machine, step, bundle)
        machine.trained[bundle["path"]] = losses(done[0]) if done else None
    return machine.trained[bundle["path"]]


def ranks(machine, step):
    """Four ranks, threads that share the GPU, against one."""
    for bundle in find(machine, ranks=4):
        what = f"{title(bundle)}: losses of 4 ranks to one's, relative"
        one = find(machine, **{key: bundle[key] for key in ("model", "optimizer", "precision")}, case="one")[0]
        done = step.attempt(what, train, machine, step, bundle, "--comm", "inproc")
        if done and (wanted := alone(machine, step, one)):
            compare(machine, step, bundle, what, losses(done[0]), wanted, RANK_BOUNDS[bundle["precision"]])


def smallest(machine):
    """The bundles that the steps below take: one rank, AdamW, f32; of GPT-2 first and of the MLP last where they are
    there."""
    found = find(machine, case="one", optimizer="adamw", precision="f32")
    return sorted(found, key=lambda bundle: {"gpt2": 0, "mlp": 2}.get(bundle["model"], 1))


def nccl(machine, step):
    """One rank with NCCL gives what it gives without."""
    if not machine.cuda:
        raise NotPossible("NCCL belongs to cuda, these bundles are for cpu")
    bundle = smallest(machine)[0]
    what = f"{title(bundle)}: losses with one rank of NCCL to those without, relative"
    # Without tuning: each run would time the algorithms of matmuls again, and equally fast ones differ in their last
    # bits.
    plain = step.attempt(what, train, machine, step, bundle, "--no-tuning")
    # NCCL then prints its version when it starts.
    done = step.attempt(what, train, machine, step, bundle, "--no-tuning", "--comm", "nccl",
                        environment={"NCCL_DEBUG": "VERSION"})
    if not plain or not done:
        return
    started = machine.calls["ncclCommInitRank"] + machine.calls["ncclCommInitRankConfig"] > 0 if machine.dry \
        else "NCCL version" in done[1]
    step.note("NCCL was started", "pass" if started else "not possible",
              "" if started else "the runtime starts no NCCL for one rank")
    compare(machine, step, bundle, what, losses(done[0]), losses(plain[0]), 0)


def graphs(machine, step):
    """The same numbers with captured graphs and without, and the time of a step with both."""
    if not machine.cuda:
        raise NotPossible("graphs belong to cuda, these bundles are for cpu")
    for bundle in smallest(machine)[:2]:
        what = f"{title(bundle)}: losses with graphs to those without, relative"
        runs, launched = {}, {}
        for value in ("0", "1"):
            runs[value] = step.attempt(what, train, machine, step, bundle, "--no-tuning",
                                       environment={"PAR_CUDA_GRAPHS": value})
            launched[value] = machine.calls["cuGraphLaunch"]
        if not all(runs.values()):
            continue
        compare(machine, step, bundle, what, losses(runs["1"][0]), losses(runs["0"][0]), 0)
        if machine.dry:
            right = launched["0"] == 0 and launched["1"] > 0
            step.note(f"{title(bundle)}: graphs are launched only where they are on", "pass" if right
                      else "fail",
                      f"{launched['1']} and {launched['0']} launches on the stub")
        else:
            times = [statistics.median(line["ms"] for line in runs[value][0][2:]) for value in ("1", "0")]
            step.figures.setdefault("table",
                                    []).append(
                                        f"{title(bundle)}: {times[0]:.3f} ms with graphs, {times[1]:.3f} without")


def sanitizer(machine, step):
    """compute-sanitizer on two steps of the smallest model and on some kernels."""
    tool = shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path="/usr/local/cuda/bin")
    if not machine.cuda:
        raise NotPossible("compute-sanitizer looks at a GPU, these bundles are for cpu")
    if machine.dry:
        raise NotPossible("stubs run nothing that compute-sanitizer could look at"
                          + ("" if tool else "; it is not here either"))
    if not tool:
        raise NotPossible("compute-sanitizer is not on PATH")
    machine.need_gpu()
    for check in ("memcheck", "racecheck"):
        prefix = [tool, "--tool", check, "--error-exitcode", "86"]
        bundle = smallest(machine)[-1]
        what = f"{title(bundle)}: {check} finds nothing in 2 steps"
        if step.attempt(what, train_watched, machine, step, bundle, prefix):
            step.note(what, "pass")
        what = f"kernels: {check} finds nothing in norms and cross entropy"
        if step.attempt(what, kernels_watched, machine, step, prefix):
            step.note(what, "pass")


def train_watched(machine, step, bundle, prefix):
    return train(machine, step, bundle, steps=2, prefix=prefix)


def kernels_watched(machine, step, prefix):
    command = machine.command("cuda-kernels-check", "--gtest_filter=CudaKernels.layerNorm*:CudaKernels.crossEntropy")
    return machine.execute(step, [*prefix, *command])

"""The benchmark: GPT-2 124M in bf16, Par against torch.compile in the same run and in turns."""
import json
import math
import pathlib
import statistics
import sys
import threading

from report import Broken, NotPossible, Refused

STEPS, WARM_UP = 40, 10

# Dense bf16 peak in FLOP/s, by a word of the GPU's name. (NVIDIA's data sheets, without sparsity)
PEAKS = {"H200": 989e12, "H100 PCIe": 756e12, "H100 NVL": 835e12, "H100": 989e12, "GH200": 989e12, "A100": 312e12,
         "B200": 2250e12}
# GPT-2 124M. FLOPs of a token, forward and backward: 6 N + 12 layers width T, with N the parameters that matmuls use
# (all but the positions'). (Chowdhery et al. 2022, PaLM, appendix B)
PARAMETERS, LAYERS, WIDTH = 124439808 - 1024 * 768, 12, 768


class Memory(threading.Thread):
    """The GPU's used memory in MiB while something runs, less what was used before."""

    def __init__(self, machine):
        super().__init__(daemon=True)
        self.machine, self.over = machine, threading.Event()
        self.before = self.peak = self.read()

    def read(self):
        return float(self.machine.smi("memory.used") or "nan")

    def run(self):
        while not self.over.wait(0.3):
            self.peak = max(self.peak, self.read())

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join()
        self.used = self.peak - self.before


def run_par(machine, step, bundle):
    path, metrics = machine.folder / bundle["path"], machine.work / "metrics.jsonl"
    metrics.unlink(missing_ok=True)
    with Memory(machine) as memory:
        machine.run(step, "par-run", path, "--init", "--data", path.parent / "data.safetensors", "--steps", STEPS,
                    "--metrics", metrics)
    lines = [line for line in map(json.loads, metrics.read_text().splitlines()) if "loss" in line]
    if len(lines) != STEPS:
        raise Broken(f"{len(lines)} steps were made of {STEPS}")
    return {"ms": [line["ms"] for line in lines[WARM_UP:]], "first": lines[0]["loss"], "last": lines[-1]["loss"],
            "own_mib": lines[-1].get("peak_bytes", math.nan) / 2**20, "mib": memory.used}


def run_torch(machine, step, how, size, *flags):
    script = pathlib.Path(__file__).with_name("torch_gpt2.py")
    command = [sys.executable, str(script), how, str(size["batch"]), str(size["sequence"]), str(STEPS), str(WARM_UP),
               *flags]
    with Memory(machine) as memory:
        text = machine.execute(step, command, own=False, most=step.left() - 25)
    return {**json.loads(text.splitlines()[-1]), "mib": memory.used}


def peak_of(name):
    """The longest word that fits."""
    return max(((len(word), peak) for word, peak in PEAKS.items() if word in name), default=(0, math.nan))[1]


def summarise(runs, size, peak):
    """Medians over all turns."""
    ms = statistics.median(value for run in runs for value in run["ms"])
    rate = size["batch"] * size["sequence"] / ms * 1e3
    flops = 6 * PARAMETERS + 12 * LAYERS * WIDTH * size["sequence"]
    return {"ms": ms, "tokens_per_second": rate, "mfu": rate * flops / peak, "mib": max(run["mib"] for run in runs),
            "own_mib": max(run["own_mib"] for run in runs), "turns": runs}


def claims(machine, step, par, torch, size):
    name = machine.smi("name") or "?"
    peak = peak_of(name)
    par, torch = summarise(par, size, peak), summarise(torch, size, peak)
    step.figures |= {"gpu": name, "peak_flops": None if math.isnan(peak) else peak, "par": par, "torch_compile": torch}
    step.figures["table"] = [f"GPT-2 124M, bf16, {size['batch']} x {size['sequence']} tokens, AdamW; {name}, "
                             f"peak {peak / 1e12:.0f} TFLOP/s; medians of {STEPS - WARM_UP} steps in each turn"]
    for who, of in (("Par", par), ("torch.compile", torch)):
        step.figures["table"].append(f"{who:14} {of['ms']:8.2f} ms  {of['tokens_per_second']:9.0f} tokens/s  MFU "
                                     f"{of['mfu']:.3f}  "
                                     f"GPU memory {of['mib']:6.0f} MiB, of which its own count {of['own_mib']:6.0f}")
    for who, of in (("Par", par), ("torch.compile", torch)):
        # Weights begin small, so that every symbol is as likely.
        step.hold(f"{who}: first loss to ln 50257, absolute", abs(of["turns"][0]["first"] - math.log(50257)), 0.5)
    step.hold("tokens a second: Par / torch.compile", par["tokens_per_second"] / torch["tokens_per_second"], 1,
              least=True)
    if par["mib"] > 0 and torch["mib"] > 0:
        step.hold("GPU memory: Par / torch.compile", par["mib"] / torch["mib"], 1)
    else:
        step.note("GPU memory: Par / torch.compile", "not possible",
                  "nvidia-smi does not tell what is used; by their own "
                  f"counts {par['own_mib']:.0f} and {torch['own_mib']:.0f} MiB")


def benchmark(machine, step):
    """GPT-2 124M bf16, Par against torch.compile, in turns: tokens/s, MFU, memory."""
    bundle = next((bundle for bundle in machine.manifest["bundles"] if bundle["case"] == "benchmark"), None)
    if not bundle:
        raise NotPossible("this folder was prepared without its bundle")
    size = machine.manifest["benchmark"]
    if "refused" in bundle:
        step.note("Par", "fail" if bundle.get("crashed") else "refused", bundle["refused"])
    elif machine.dry:
        said = step.attempt("par-verify", machine.run, step, "par-verify", machine.folder / bundle["path"])
        if said is not None:
            step.note("par-verify proves the bundle", "pass", said.splitlines()[-1].strip() if said else "")
    if machine.dry or not machine.cuda:
        raise NotPossible("speed and memory need a GPU")
    machine.need_gpu()
    par, torch = [], []
    if "refused" not in bundle:
        par.append(step.attempt("Par, first turn", run_par, machine, step, bundle))
    torch.append(step.attempt("torch.compile", run_torch, machine, step, "compile", size))
    if par and par[0]:
        par.append(step.attempt("Par, second turn", run_par, machine, step, bundle))
    par, torch = [run for run in par if run], [run for run in torch if run]
    if par and torch:
        claims(machine, step, par, torch, size)
    elif torch:
        alone = summarise(torch, size, peak_of(machine.smi("name") or "?"))
        step.figures["torch_compile"] = alone
        step.note("torch.compile without Par", "not shown",
                  f"{alone['tokens_per_second']:.0f} tokens/s, {alone['mib']:.0f} MiB; "
                                                      "there is nothing to compare with")

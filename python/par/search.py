"""par.fit: whether a model fits so many devices, and how, as par-compile --fit says it."""
import ctypes
import dataclasses
import os
from typing import Any, Optional, Tuple

from . import exported
from .findings import take
from .libraries import compiler
from .plan import compile_options
from .report import Memory, Plan, make, memory_of, plan_of, read_report


@dataclasses.dataclass(frozen=True)
class Reason:
    """Why the search has filled a key so: the best other value, and by how much the step is slower with it; second is
    None where no other value is possible or fits. compiled: both plans were, whole; else both are estimated from their
    layers. others: in which other keys the plan of that value differs, "" in none."""
    key: str
    value: str
    slower_percent: float
    second: Optional[str] = None
    compiled: bool = True
    others: str = ""


@dataclasses.dataclass(frozen=True)
class Alternative:
    """A plan around the best one. compiled: whole; else it is estimated from its layers."""
    plan: str
    step_ns: int
    peak: int
    slower_percent: float
    compiled: bool
    recomputes: bool


@dataclasses.dataclass(frozen=True)
class Fewest:
    """The fewest ranks that the model fits, and the best plan for them."""
    ranks: int
    plan: str
    step_ns: int
    peak: int


@dataclasses.dataclass(frozen=True)
class PeakValue:
    """Values of a name, type and purpose that live at the peak of a rank; bytes of all of them."""
    name: str
    type: str
    purpose: str
    count: int
    bytes: int


@dataclasses.dataclass(frozen=True)
class Found:
    """The best plan that a search has found. plan: its figures, and as text its keys; keys: each key with (value,
    origin); largest: at the peak of the fullest rank; step_ns: the predicted step, which none of the candidates is
    below bound_ns; mfu_percent: the model's FLOPs of a step as a part of the ranks' peak, None without matmuls; report:
    all facts, as docs/report.md has them. str() is what par-compile --fit prints."""
    summary: str
    plan: Plan
    keys: dict
    memory: Memory
    largest: Tuple[PeakValue, ...]
    step_ns: int
    bound_ns: int
    samples_per_second: float
    tokens_per_second: Optional[float]
    mfu_percent: Optional[float]
    limited_by: str
    candidates: int
    reasons: Tuple[Reason, ...]
    alternatives: Tuple[Alternative, ...]
    fewest: Optional[Fewest]
    report: dict = dataclasses.field(repr=False)

    def __str__(self) -> str:
        return self.summary


def fit(model: Any, *arguments: Any, gpus: str, plan: Any = None, inputs: Any = None, set: Any = None,
        **options: Any) -> Found:
    """Searches the plan with the shortest predicted step for the devices of `gpus`, "8xh100-sxm": a number and a
    hardware file's name or path. Needs no weights, compiles no kernel and writes nothing.

        found = par.fit("model.onnx", gpus="8xh100-sxm", set={"precision": "bf16", "batch": 256})
        print(found.plan.meshes, found.memory.roles[0].peak, found.limited_by)

    model, inputs, options: as par.compile takes them. plan, set: what they say is fixed, the rest is free.

    Raises par.Error: code 3 where nothing fits, with the plan that needs fewest bytes.
    """
    inputs, plan = exported.read_call(model, arguments, plan, inputs, options)
    if not exported.is_module(model):
        return _fit(model, plan, set, gpus)
    with exported.structure(model, inputs, options) as file:
        return _fit(file, plan, set, gpus)


def _fit(model, plan, set, gpus):
    library = compiler()
    with compile_options(model, plan, set) as options:
        summary, _, _, report = take(library, library.par_fit(ctypes.byref(options), os.fsencode(gpus)),
                                     options.places)
    return _found(summary, read_report(report))


def _found(summary, report):
    search, rate = report["search"], report["fit"]
    keys = {key["key"]: (key["value"], key["origin"]) for key in report["keys"]}
    fullest = max(report["memory_over_time"], key=lambda role: role["peak"])
    return Found(
        summary=summary, plan=plan_of(report, "\n".join(f"{key}: {value}" for key, (value, _) in keys.items())),
        keys=keys, memory=memory_of(report), largest=tuple(make(PeakValue, each) for each in fullest["largest"]),
        step_ns=report["prediction"]["step_ns"], bound_ns=search["bound_ns"],
        samples_per_second=rate["samples_per_second"], tokens_per_second=rate.get("tokens_per_second"),
        mfu_percent=report.get("utilization", {}).get("percent"), limited_by=rate["limited_by"],
        candidates=search["candidates"],
        reasons=tuple(make(Reason, each) for each in search["reasons"]),
        alternatives=tuple(make(Alternative, each) for each in search["alternatives"]),
        fewest=make(Fewest, search["fewest"]) if "fewest" in search else None, report=report)

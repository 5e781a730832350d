"""par.what_if: what keys of a plan would change, as par-compile --what-if says it."""
import ctypes
import dataclasses
from typing import Any, Dict, Tuple

from . import exported
from .errors import Error
from .findings import take
from .libraries import compiler
from .plan import compile_options, read_settings
from .report import Collective, Memory, Plan, collectives_of, memory_of, plan_of, read_report


@dataclasses.dataclass(frozen=True)
class Side:
    """One of two plans: its figures, its keys with (value, origin), bytes of each role and its limit, communications of
    a rank in a step, and the predicted step of one batch in ns."""
    plan: Plan
    keys: Dict[str, Tuple[str, str]]
    memory: Memory
    collectives: Tuple[Collective, ...]
    step_ns: int


@dataclasses.dataclass(frozen=True)
class Change:
    """A plan before and after a change. keys: those that differ, with both values, None where a plan has none;
    slower_percent: of the step after it, negative where it is faster; peak_bytes: more bytes of the fullest rank,
    negative where they are fewer. report: all facts, as docs/report.md has them. str() is what par-compile --what-if
    prints."""
    summary: str
    before: Side
    after: Side
    report: dict = dataclasses.field(repr=False)

    @property
    def keys(self) -> dict:
        names = {**self.before.keys, **self.after.keys}
        values = {name: tuple(side.keys.get(name, (None,))[0] for side in (self.before, self.after)) for name in names}
        return {name: pair for name, pair in values.items() if pair[0] != pair[1]}

    @property
    def slower_percent(self) -> float:
        return 100 * (self.after.step_ns - self.before.step_ns) / self.before.step_ns

    @property
    def peak_bytes(self) -> int:
        before, after = (max(role.peak for role in side.memory.roles) for side in (self.before, self.after))
        return after - before

    def __str__(self) -> str:
        return self.summary


def what_if(model: Any, *arguments: Any, change: Any, plan: Any = None, inputs: Any = None, set: Any = None,
            **options: Any) -> Change:
    """Compiles the plan without and with the settings of `change`, {"zero.level": 1} or ["zero.level=1"], and says what
    differs: keys, time, memory, communication and what forces it. Makes no machine code and writes nothing.

        change = par.what_if("model.onnx", "plan.yaml", change={"zero.level": 1})
        print(change.slower_percent, change.peak_bytes, change.keys)

    model, plan, inputs, set, options: as par.compile takes them. A plan above its memory limit is a result.

    Raises par.Error as par.compile does.
    """
    changes = read_settings(change)
    if not changes:
        raise Error("change is empty; give a key and its value, as {\"zero.level\": 1}", code=2)
    inputs, plan = exported.read_call(model, arguments, plan, inputs, options)
    if not exported.is_module(model):
        return _what_if(model, plan, set, changes)
    with exported.structure(model, inputs, options) as file:
        return _what_if(file, plan, set, changes)


def _what_if(model, plan, set, changes):
    library = compiler()
    texts = (ctypes.c_char_p * len(changes))(*(change.encode() for change in changes))
    with compile_options(model, plan, set) as options:
        summary, _, _, text = take(library, library.par_what_if(ctypes.byref(options), texts, len(changes)),
                                   options.places)
    report = read_report(text)
    return Change(summary, _side(report["before"]), _side(report["after"]), report)


def _side(facts):
    keys = {key["key"]: (key["value"], key["origin"]) for key in facts["keys"]}
    return Side(plan_of(facts, "\n".join(f"{key}: {value}" for key, (value, _) in keys.items())), keys,
                memory_of(facts), collectives_of(facts), facts["prediction"]["step_ns"])

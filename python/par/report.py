"""Facts of a compilation as data classes: the report of par-compile --json (docs/report.md)."""
import dataclasses
import json
from typing import Dict, Optional, Tuple

VERSION = 1  # of the schema


@dataclasses.dataclass(frozen=True)
class RoleMemory:
    """Bytes of one rank of a role (a program: all ranks of one stage) by purpose. peak is a bound, not an estimate;
    host is memory of the host beside it."""
    role: str
    ranks: int
    params: int
    grads: int
    states: int
    saved: int
    buffers: int
    peak: int
    host: int


@dataclasses.dataclass(frozen=True)
class Memory:
    """limit: bytes that a rank may use; None: unlimited."""
    roles: Tuple[RoleMemory, ...]
    limit: Optional[int] = None


@dataclasses.dataclass(frozen=True)
class Rule:
    """A rule of `shard`: where the plan has it, and its text, "attn.c_proj.weight {0: tp}"."""
    origin: str
    text: str


@dataclasses.dataclass(frozen=True)
class Collective:
    """Communications of one rank of a role in a step that are alike: count of them, each of so many bytes (of the whole
    tensor), over an axis of the plan. place: module and source line that they are from; overlap: what they run beside;
    rule: of the plan, that forces them; reason: the rule, or the other key of the plan that they are from. None where
    that is not known or nothing."""
    role: str
    axis: str
    kind: str
    type: str
    bytes: int
    count: int
    place: Optional[str] = None
    overlap: Optional[str] = None
    rule: Optional[Rule] = None
    reason: Optional[str] = None


@dataclasses.dataclass(frozen=True)
class Stage:
    """A stage of a pipeline: its modules, its operations in a step, and its percentage of all stages'."""
    modules: Tuple[str, ...]
    flops: float
    percent: float


@dataclasses.dataclass(frozen=True)
class Match:
    """Matches of a pattern of the plan: where the plan has it, its text, and the names by their kind ("parameter",
    "module", "node", "input" or "output"); no name: it matches nothing."""
    origin: str
    pattern: str
    names: Dict[str, Tuple[str, ...]]


@dataclasses.dataclass(frozen=True)
class Plan:
    """The completed plan: its text, which str() gives too, and its figures. A bundle that was opened by its path has
    the text only; its figures are None. meshes: for each mesh the size of each axis; one, or one a stage."""
    text: str
    ranks: Optional[int] = None
    meshes: Optional[Tuple[dict, ...]] = None
    stages: Optional[int] = None
    schedule: Optional[str] = None
    flush_every: Optional[int] = None
    microbatches: Optional[int] = None
    microbatch_size: Optional[int] = None
    sample_dims: Optional[Tuple[str, ...]] = None
    replicas: Optional[int] = None
    trains: Optional[bool] = None
    optimizers: Optional[Tuple[str, ...]] = None
    compute: Optional[str] = None
    states: Optional[str] = None
    accumulate: Optional[str] = None
    reduce: Optional[str] = None
    master_types: Optional[Tuple[str, ...]] = None
    batch_norm: Optional[str] = None
    seed: Optional[int] = None

    def __str__(self):
        return self.text

    def __contains__(self, part):
        return part in self.text


def read_report(text):
    """The report as a dict."""
    report = json.loads(text)
    if report["par_report"] != VERSION:
        raise ValueError(f"the report has version {report['par_report']}, this package reads {VERSION}")
    return report


def memory_of(report):
    memory = report["memory"]
    return Memory(tuple(make(RoleMemory, role) for role in memory["roles"]), memory.get("limit"))


def collectives_of(report):
    return tuple(make(Collective, {**each, "rule": make(Rule, each["rule"]) if "rule" in each else None})
                 for each in report["collectives"])


def stages_of(report):
    return tuple(make(Stage, each) for each in report["stages"])


def matches_of(report):
    return tuple(Match(each["origin"], each["pattern"],
                       {kind["kind"]: tuple(kind["names"]) for kind in each["kinds"]}) for each in report["matches"])


def plan_of(report, text):
    figures = report["plan"]
    meshes = tuple({axis["axis"]: axis["size"] for axis in mesh} for mesh in figures["meshes"])
    return make(Plan, {**figures, "text": text, "meshes": meshes})


def make(kind, values):
    """A data class of a JSON object; keys that are newer than this package are left out."""
    known = {field.name for field in dataclasses.fields(kind)}
    return kind(**{name: tuple(value) if isinstance(value, list) else value
                   for name, value in values.items() if name in known})

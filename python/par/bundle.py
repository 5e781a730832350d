"""par.Bundle: a compiled program, as a folder."""
from __future__ import annotations

import functools
import json
import os
import pathlib
from typing import TYPE_CHECKING, Any, Dict, Iterable, Tuple, Union

from . import report as reports
from .errors import Error

if TYPE_CHECKING:
    from .run import Run


class Bundle:
    """A bundle on disk (docs/bundle.md), from par.compile or from its path.

    path: the folder. summary: what par.compile said (text; "" for one that was opened by its path). warnings: the
    compiler's findings that were no errors.

    memory, collectives, stages, matches, plan: facts as data classes (par.report), and report: all of them as a dict
    (docs/report.md). They are the compiler's: a bundle that was opened by its path has the text of its plan only.
    """

    def __init__(self, path: Union[str, os.PathLike[str]], *, summary: str = "", warnings: Iterable[Any] = (),
                 report: Any = None) -> None:
        self.path = pathlib.Path(path)
        if not (self.path / "manifest.json").is_file():
            raise Error("not a bundle: it has no manifest.json", file=str(path))
        self.summary, self.warnings, self._report = summary, list(warnings), report

    def __fspath__(self) -> str:
        return os.fspath(self.path)

    def __repr__(self) -> str:
        return f"par.Bundle({str(self.path)!r})"

    @functools.cached_property
    def manifest(self) -> Dict[str, Any]:
        """manifest.json as Python values."""
        try:
            return json.loads(self._text("manifest.json"))
        except ValueError as error:
            raise Error(f"not a bundle: {error}", file=str(self.path / "manifest.json")) from None

    @functools.cached_property
    def report(self) -> Dict[str, Any]:
        """Everything that the compiler knows of the bundle, as Python values: docs/report.md."""
        if self._report is None:
            raise Error("was opened by its path; its report is the compiler's", code=2, file=str(self.path),
                        notes=["par.compile(model, plan) returns a bundle with a report"])
        return reports.read_report(self._report)

    @property
    def memory(self) -> reports.Memory:
        """Bytes of a rank of each role by purpose: par.report.Memory."""
        return reports.memory_of(self.report)

    @property
    def collectives(self) -> Tuple[reports.Collective, ...]:
        """Communications of a step, and what forced them: a tuple of par.report.Collective."""
        return reports.collectives_of(self.report)

    @property
    def stages(self) -> Tuple[reports.Stage, ...]:
        """Stages of a pipeline, with modules and shares of the work: a tuple of par.report.Stage; empty with one."""
        return reports.stages_of(self.report)

    @property
    def matches(self) -> Tuple[reports.Match, ...]:
        """Matches of each pattern of the plan: a tuple of par.report.Match."""
        return reports.matches_of(self.report)

    @property
    def plan(self) -> reports.Plan:
        """The completed plan that the bundle was compiled for: par.report.Plan."""
        text = self._text("plan.yaml")
        return reports.Plan(text) if self._report is None else reports.plan_of(self.report, text)

    def _text(self, name):
        """The content of a file of the bundle; what else may stand in its place (a pipe) is not waited for."""
        if not (self.path / name).is_file():
            raise Error("cannot open: not a plain file", file=str(self.path / name))
        return (self.path / name).read_text()

    def run(self, **options: Any) -> Run:
        """Trains or evaluates the bundle: par.run."""
        from .run import run
        return run(self, **options)

    def predict(self, *arrays: Any, **options: Any) -> str:
        """Predicts with a bundle compiled without `train`: par.predict."""
        from .run import predict
        if arrays:
            raise Error("predict takes arrays by the names of the model's inputs, and a file for what it predicts",
                        code=2,
                        notes=['bundle.predict(data={"input": array}, output="scores.safetensors")'])
        return predict(self, **options)

    def verify(self) -> Dict[str, Any]:
        """Proves the bundle again from its files: par.verify."""
        from .verify import verify
        return verify(self)

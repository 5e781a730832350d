"""par.Bundle: a compiled program, as a folder."""
import functools
import json
import os
import pathlib

from .errors import Error


class Bundle:
    """A bundle on disk (docs/bundle.md), from par.compile or from its path.

    path: the folder. summary: what par.compile said (text; "" for one that was opened by its path). warnings: the
    compiler's findings that were no errors.
    """

    def __init__(self, path, *, summary="", warnings=()):
        self.path = pathlib.Path(path)
        if not (self.path / "manifest.json").is_file():
            raise Error("not a bundle: it has no manifest.json", file=str(path))
        self.summary, self.warnings = summary, list(warnings)

    def __fspath__(self):
        return os.fspath(self.path)

    def __repr__(self):
        return f"par.Bundle({str(self.path)!r})"

    @functools.cached_property
    def manifest(self):
        """manifest.json as Python values."""
        try:
            return json.loads(self._text("manifest.json"))
        except ValueError as error:
            raise Error(f"not a bundle: {error}", file=str(self.path / "manifest.json")) from None

    @property
    def plan(self):
        """The completed plan that the bundle was compiled for, as text."""
        return self._text("plan.yaml")

    def _text(self, name):
        """The content of a file of the bundle; what else may stand in its place (a pipe) is not waited for."""
        if not (self.path / name).is_file():
            raise Error("cannot open: not a plain file", file=str(self.path / name))
        return (self.path / name).read_text()

    def run(self, **options):
        """Trains or evaluates the bundle: par.run."""
        from .run import run
        return run(self, **options)

    def predict(self, *arrays, **options):
        """Predicts with a bundle compiled without `train`: par.predict."""
        from .run import predict
        if arrays:
            raise Error("predict takes arrays by the names of the model's inputs, and a file for what it predicts",
                        code=2,
                        notes=['bundle.predict(data={"input": array}, output="scores.safetensors")'])
        return predict(self, **options)

    def verify(self):
        """Proves the bundle again from its files: par.verify."""
        from .verify import verify
        return verify(self)

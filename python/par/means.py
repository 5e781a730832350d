"""Scalar outputs over all samples and labels of several batches: means, and sums."""
from __future__ import annotations

import math
from typing import Dict, Mapping


class Means:
    """Adds up scalars of batches, each as `kinds` says of its name (`mean` of docs/bundle.md): "samples" or the scalar
    that counts labels, of a mean; "sum(...)"; "terms(...)", of what the scalars "term(NAME,i)" add up to; or
    "batch(...)", 1: a mean of batches."""

    def __init__(self, kinds: Mapping[str, str], batch: int) -> None:
        self.kinds, self._batch = kinds, batch
        self._sums: Dict[str, float] = {}
        self._weights: Dict[str, float] = {}

    def add(self, scalars: Mapping[str, float], share: float = 1.0, whole: bool = True) -> None:
        """Adds the scalars of a batch, `share` times; those that do not add up only where it is `whole`. A scalar of
        weight 0 is the mean of nothing, NaN."""
        for name, kind in self.kinds.items():
            if name not in scalars or kind.startswith("terms(") or not (whole or self.adds_up(name)):
                continue
            weight = share * (1.0 if kind.startswith(("sum(", "batch(")) else scalars.get(kind, float(self._batch)))
            self._weights[name] = self._weights.get(name, 0.0) + weight
            self._sums[name] = self._sums.get(name, 0.0) + (weight * scalars[name] if weight else 0.0)

    def merge(self, other: Means) -> None:
        """Adds what `other` has added up."""
        self.kinds = {**self.kinds, **other.kinds}
        for name, weight in other._weights.items():
            self._weights[name] = self._weights.get(name, 0.0) + weight
            self._sums[name] = self._sums.get(name, 0.0) + other._sums[name]

    def adds_up(self, name: str) -> bool:
        """Whether the batch can be filled up, and the filling taken off again."""
        return not self.kinds.get(name, "batch(").startswith("batch(")

    def values(self) -> Dict[str, float]:
        return {name: self._value(name) for name, kind in self.kinds.items()
                if not name.startswith("term(") and (name in self._sums or kind.startswith("terms("))}

    def weights(self) -> Dict[str, float]:
        """The samples, labels or batches of which each mean is; sums have none."""
        return {name: weight for name, weight in self._weights.items()
                if not name.startswith("term(") and not self.kinds[name].startswith("sum(")}

    def hides(self, name: str) -> bool:
        """Whether a scalar is only there for others."""
        return name.startswith("term(") or name in self.kinds.values()

    def _value(self, name: str) -> float:
        kind = self.kinds[name]
        if kind.startswith("terms("):
            terms = [other for other in self.kinds if other.startswith(f"term({name},")]
            return sum(self._value(term) for term in terms) if terms and terms[0] in self._sums else math.nan
        if kind.startswith("sum("):
            return self._sums[name]
        return self._sums[name] / self._weights[name] if self._weights[name] else math.nan

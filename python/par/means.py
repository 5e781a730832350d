"""Means of scalar outputs over the samples and labels of several batches."""
from __future__ import annotations

import math
from typing import Dict, Mapping


class Means:
    """Adds up scalars, each with its weight: the samples or labels of which it is the mean."""

    def __init__(self) -> None:
        self._sums: Dict[str, float] = {}
        self._weights: Dict[str, float] = {}

    def add(self, scalars: Mapping[str, float], weights: Mapping[str, float], share: float = 1.0) -> None:
        """Adds the scalars that have a weight, `share` times. A scalar of weight 0 is the mean of nothing, NaN."""
        for name, weight in weights.items():
            self._weights[name] = self._weights.get(name, 0.0) + share * weight
            self._sums[name] = self._sums.get(name, 0.0) + (share * weight * scalars[name] if weight else 0.0)

    def values(self) -> Dict[str, float]:
        return {name: value / self._weights[name] if self._weights[name] else math.nan
                for name, value in self._sums.items()}

    def weights(self) -> Dict[str, float]:
        return dict(self._weights)

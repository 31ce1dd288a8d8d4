"""The Universal Scalability Law, fitted to measured speed-ups.

    speed-up(n) = n / (1 + s (n - 1) + k n (n - 1))

s is the share of work that is not parallel (contention), k the price of every pair of ranks (coherency). With k above
zero the speed-up has a peak (Gunther 2007, "Guerrilla Capacity Planning"). Amdahl's law is the case k = 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

LEAST_POINTS = 3


@dataclass(frozen=True)
class ScalabilityLaw:
    """The two numbers of the law, none below zero."""

    contention: float
    coherency: float

    def speedup(self, num_ranks: float) -> float:
        """Of so many ranks over one."""
        n = num_ranks
        return n / (1 + self.contention * (n - 1) + self.coherency * n * (n - 1))

    @property
    def peak(self) -> float:
        """The number of ranks with the highest speed-up; infinite where more ranks are always faster."""
        if self.coherency == 0:
            return math.inf
        return max(1.0, math.sqrt(max(0.0, 1 - self.contention) / self.coherency))


def fit(speedups: Mapping[int, float]) -> ScalabilityLaw | None:
    """The law with the least squares of relative errors of n / speed-up - 1, which is linear in both numbers. None with
    fewer than three points, or without one rank."""
    if len(speedups) < LEAST_POINTS or 1 not in speedups:
        return None
    n = np.array(sorted(speedups), np.float64)
    cost = n / np.array([speedups[int(ranks)] for ranks in n])
    terms = np.stack([n - 1, n * (n - 1)], 1) / cost[:, None]
    target = (cost - 1) / cost
    found: list[tuple[float, tuple[float, float]]] = []
    for used in ([0, 1], [0], [1], list[int]()):
        values = np.zeros(2)
        if used:
            values[used] = np.linalg.lstsq(terms[:, used], target, rcond=None)[0]
        if (values >= 0).all():
            found.append((float(((terms @ values - target) ** 2).sum()), (float(values[0]), float(values[1]))))
    return ScalabilityLaw(*min(found)[1])

"""Several ranks compared with the fewest: speed-up, efficiency, and what is lost against the ideal.

Ideal means that a rank with as many items takes as long as a rank of the smallest run. With strong scaling (the same
global batch) twice the ranks have half the items each; with weak scaling (a global batch in proportion) as many.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ranks.hardware.scale.split import Parts, ShortRun

Scaling = Literal["strong", "weak"]
GOOD = 0.95
"""From this efficiency on nothing is named as the limit."""


@dataclass(frozen=True)
class Point:
    """One number of ranks."""

    scaling: Scaling
    num_ranks: int
    seconds: Parts
    """Of an iteration."""
    items_per_s: Mapping[str, float]
    """On all ranks, by kind."""
    speedup: float
    """Items per second relative to the fewest ranks."""
    efficiency: float
    """Items per second and rank, relative to the fewest ranks: 1 is ideal."""
    efficiency_low: float
    efficiency_high: float
    """Between which efficiencies the single rounds lie."""
    lost: Parts
    """1 - efficiency, split into shares of the iteration. A part that does better than ideal is negative."""
    peak_bytes: int
    """Of the rank that held most."""
    iterations: int
    """That were measured, in all rounds."""
    collectives: int
    """In these, on each rank."""

    @property
    def limit(self) -> str | None:
        """The largest part of the loss; None where there is little."""
        parts = vars(self.lost)
        return None if self.efficiency >= GOOD else max(parts, key=lambda name: parts[name])


def point(scaling: Scaling, rounds: Sequence[ShortRun], base: Sequence[ShortRun]) -> Point:
    """A number of ranks, from its rounds and those of the fewest ranks; the n-th of both are next to each other."""
    seconds = Parts.mean([run.parts for run in rounds])
    ideals = [other.parts.times(_ideal_factor(scaling, run, other)) for run, other in zip(rounds, base, strict=True)]
    ideal = Parts.mean(ideals)
    each = [best.total / run.parts.total for best, run in zip(ideals, rounds, strict=True)]
    ranks = len(rounds[0].ranks)
    efficiency = ideal.total / seconds.total
    kinds = rounds[0].items
    return Point(
        scaling,
        ranks,
        seconds,
        {kind: sum(run.items[kind] for run in rounds) / len(rounds) / seconds.total for kind in kinds},
        efficiency * ranks / len(base[0].ranks),
        efficiency,
        min(each),
        max(each),
        seconds.minus(ideal).times(1 / seconds.total),
        max(run.peak_bytes for run in rounds),
        sum(run.iterations for run in rounds),
        sum(run.collectives for run in rounds),
    )


def _ideal_factor(scaling: Scaling, run: ShortRun, base: ShortRun) -> float:
    """An ideal iteration relative to one of the fewest ranks: as the items of a rank, of the first kind."""
    fewer = len(base.ranks) / len(run.ranks)
    kind = next((kind for kind in run.items if base.items.get(kind)), None)
    if kind is None:
        return fewer if scaling == "strong" else 1.0
    return run.items[kind] / base.items[kind] * fewer

"""What `ranks scale` prints of several numbers of ranks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ranks.cli.columns import aligned
from ranks.cli.units import short_s, size
from ranks.hardware.scale.law import ScalabilityLaw
from ranks.hardware.scale.loss import Point
from ranks.hardware.units import rate

NAMES = {"compute": "compute", "communication": "communication", "data": "data", "skew": "the slowest rank"}
REMEDIES = {
    "communication": "a larger global batch, fewer and larger updates, or a faster link between the ranks",
    "data": "keep the data decoded in memory, or leave more cores to what loads it",
    "skew": "if the cores or GPUs are unequal, give them unequal work: ranks scale ... --shares auto; else look for "
    "other programs on this machine",
}
FIXED_COSTS = "the batch of a rank is too small, so fixed costs weigh more: give a larger global batch"
SHARED = "with as many items a rank computes longer in company: the ranks share memory bandwidth, power or cores"
EITHER = "the batch of a rank is too small (give a larger global batch), or the ranks share memory bandwidth"


def table(points: Sequence[Point], unit: str) -> str:
    """One line for each kind of scaling and number of ranks."""
    kind = next(iter(points[0].items_per_s), "")
    head = ["scaling", unit, "iteration", f"{kind or 'iterations'}/s", "speed-up", "efficiency (rounds)"]
    head += ["lost: compute", "communication", "data", "skew", "memory of a rank"]
    lines = [head]
    for p in points:
        lost = p.lost
        lines.append(
            [
                p.scaling,
                str(p.num_ranks),
                short_s(p.seconds.total),
                rate(p.items_per_s[kind] if kind else 1 / p.seconds.total),
                f"{p.speedup:.2f}",
                f"{p.efficiency:.0%} ({p.efficiency_low:.0%} to {p.efficiency_high:.0%})",
                *(_percent(share) for share in (lost.compute, lost.communication, lost.data, lost.skew)),
                size(p.peak_bytes),
            ]
        )
    return aligned(lines, left=[0])


def _percent(share: float) -> str:
    """0.123 -> '12.3 %', without a minus before zero."""
    return f"{round(100 * share, 1) + 0.0:.1f} %"


def limits(points: Sequence[Point], unit: str) -> Iterator[str]:
    """For each kind of scaling: what limits the largest number of ranks, and what to do."""
    largest = {point.scaling: point for point in points if point.num_ranks > points[0].num_ranks}
    for scaling, p in largest.items():
        where = f"{scaling} scaling, {p.num_ranks} {unit}"
        if p.limit is None:
            yield f"{where}: {p.efficiency:.0%} of ideal, nothing to gain"
            continue
        share = getattr(p.lost, p.limit)
        yield f"{where}: limited by {NAMES[p.limit]} ({share:.0%} of the time): {_remedy(p, largest)}"


def _remedy(p: Point, largest: Mapping[str, Point]) -> str:
    """What to do. Weak scaling tells fixed costs, which it does not have, from shared memory bandwidth."""
    assert p.limit is not None
    if p.limit != "compute":
        return REMEDIES[p.limit]
    if p.scaling == "weak":
        return SHARED
    weak = largest.get("weak")
    if weak is None or weak.num_ranks != p.num_ranks:
        return EITHER
    return SHARED if weak.lost.compute > p.lost.compute / 2 else FIXED_COSTS


def laws_in_words(laws: Mapping[str, ScalabilityLaw], unit: str) -> Iterator[str]:
    """The fitted laws."""
    for scaling, law in laws.items():
        numbers = f"contention {law.contention:.3g}, coherency {law.coherency:.3g}"
        if math.isinf(law.peak):
            end = "no peak"
        else:
            end = f"peak at {law.peak:.0f} {unit}, speed-up {law.speedup(law.peak):.1f}"
        yield f"{scaling} scaling, Universal Scalability Law: {numbers}; {end}"


def as_json(points: Sequence[Point], laws: Mapping[str, ScalabilityLaw]) -> dict[str, Any]:
    """All numbers."""
    return {
        "points": [asdict(p) | {"iteration_s": p.seconds.total, "limit": p.limit} for p in points],
        "laws": {
            scaling: asdict(law) | {"peak": None if math.isinf(law.peak) else law.peak} for scaling, law in laws.items()
        },
    }

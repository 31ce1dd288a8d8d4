"""The picture of `ranks scale`. Imports matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ranks.hardware.scale.loss import Point
from ranks.watch.report.figures import INK, panels, save

COLOURS = {"strong": INK, "weak": "#c0622b"}
PARTS = {"compute": "#1f4e79", "communication": "#c0622b", "data": "#5b8c5a", "skew": "#b9a44c"}


def draw(points: Sequence[Point], unit: str, title: str, path: Path) -> None:
    """Speed-up by the number of ranks with the ideal line, and what is lost, stacked."""
    figure, (left, right) = panels(1, 2, (10, 4))
    scalings = list(dict.fromkeys(p.scaling for p in points))
    counts = sorted({p.num_ranks for p in points})
    ideal = [count / counts[0] for count in counts]
    left.plot(counts, ideal, "--", color="#888888", linewidth=1, label="ideal")
    for scaling in scalings:
        own = [p for p in points if p.scaling == scaling]
        speedups = [p.speedup for p in own]
        low = [p.speedup * (1 - p.efficiency_low / p.efficiency) for p in own]
        high = [p.speedup * (p.efficiency_high / p.efficiency - 1) for p in own]
        errors = [[max(0.0, e) for e in side] for side in (low, high)]
        xs = [p.num_ranks for p in own]
        left.errorbar(xs, speedups, errors, fmt="o-", markersize=4, capsize=3, color=COLOURS[scaling], label=scaling)
    left.set_title("Speed-up", fontsize=10)
    left.set_xlabel(unit, fontsize=9)
    left.set_xticks(counts)
    left.set_xlim(0, counts[-1] + counts[0])
    left.set_ylim(0, None)
    left.yaxis.set_major_formatter("{x:g}")
    left.legend(fontsize=8, frameon=False)
    _stacked(right, points, scalings)
    right.set_title("Lost against ideal", fontsize=10)
    right.set_xlabel(unit, fontsize=9)
    figure.suptitle(title, fontsize=11)
    save(figure, path)


def _stacked(panel: Any, points: Sequence[Point], scalings: Sequence[str]) -> None:
    """A bar for each point with more than the fewest ranks. Parts that do better than ideal lie below zero."""
    shown = [p for p in points if p.num_ranks > points[0].num_ranks]
    for part, colour in PARTS.items():
        shares = [getattr(p.lost, part) for p in shown]
        above = [sum(max(0.0, getattr(p.lost, other)) for other in _before(part)) for p in shown]
        below = [sum(min(0.0, getattr(p.lost, other)) for other in _before(part)) for p in shown]
        bottoms = [up if share >= 0 else down for share, up, down in zip(shares, above, below, strict=True)]
        panel.bar(range(len(shown)), shares, 0.6, bottom=bottoms, color=colour, label=part)
    panel.axhline(0, color="#444444", linewidth=0.8)
    several = len(scalings) > 1
    panel.set_xticks(range(len(shown)), [f"{p.num_ranks}\n{p.scaling}" if several else str(p.num_ranks) for p in shown])
    panel.set_xlim(-0.6, max(len(shown) - 0.4, 2))
    panel.grid(visible=False, axis="x")
    panel.yaxis.set_major_formatter("{x:.0%}")
    panel.set_ylabel("share of the iteration", fontsize=9)
    panel.legend(fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(1, 1), reverse=True)


def _before(part: str) -> list[str]:
    """The parts that are stacked under this one."""
    names = list(PARTS)
    return names[: names.index(part)]

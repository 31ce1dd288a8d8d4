"""The pictures of a report: each metric over the iterations, and where the time went."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ranks.engine.files.jsonl import number
from ranks.watch.lines import JsonRow
from ranks.watch.metric_groups import SPEED_GROUP, TIME_HEADING, by_group, heading, is_phase, phase
from ranks.watch.report.figures import INK, line, panels, save

COLUMNS, MOST_PANELS = 3, 24
OTHER_PICTURES = ("ranks", "scale", "time", "speed", "forecast")
"""Files of a report that hold something else than a group of metrics."""


def draw(rows: Sequence[JsonRow], folder: Path) -> list[tuple[str, Path]]:
    """(heading, picture) of each group of metrics and of the time. `rows`: of metrics.jsonl, with iterations."""
    names = list(dict.fromkeys(name for row in rows for name in row if number(row, name) is not None))
    groups = by_group(names)
    speeds = groups.pop(SPEED_GROUP, [])
    found: list[tuple[str, Path]] = []
    for group, members in groups.items():
        name = f"{group}-metrics" if group in OTHER_PICTURES else group
        for begin in range(0, len(members), MOST_PANELS):
            page = f" {1 + begin // MOST_PANELS}" if len(members) > MOST_PANELS else ""
            found.append((f"{heading(group)}{page}", folder / f"{name}{page.replace(' ', '-')}.png"))
            _grid(rows, members[begin : begin + MOST_PANELS], found[-1][1])
    phases = [name for name in names if is_phase(name)]
    if phases:
        found.append((TIME_HEADING, folder / "time.png"))
        _stack(rows, phases, folder / "time.png")
    if speeds:
        found.append((heading(SPEED_GROUP), folder / "speed.png"))
        _grid(rows, speeds, folder / "speed.png")
    return found


def series(rows: Sequence[JsonRow], name: str) -> tuple[list[float], list[float]]:
    """(iterations, values) of the rows that have a finite number under a name."""
    pairs = [(float(row["iteration"]), value) for row in rows if (value := number(row, name)) is not None]
    return [at for at, _ in pairs], [value for _, value in pairs]


def _grid(rows: Sequence[JsonRow], names: Sequence[str], path: Path) -> None:
    """A small panel for each metric."""
    figure, axes = panels(-(-len(names) // COLUMNS), COLUMNS)
    for panel, name in zip(axes, names, strict=False):
        iterations, values = series(rows, name)
        line(panel, iterations, values, color=INK)
        panel.set_title(name, fontsize=8)
    for panel in axes[len(names) :]:
        panel.set_axis_off()
    save(figure, path)


def _stack(rows: Sequence[JsonRow], phases: Sequence[str], path: Path) -> None:
    """Seconds of each phase, one above the other."""
    iterations = [float(row["iteration"]) for row in rows]
    seconds = np.array([[number(row, name) or 0.0 for row in rows] for name in phases])
    used = seconds.sum(1) > 0.005 * seconds.sum()
    figure, (panel,) = panels(1, 1)
    labels = [phase(name) for name, is_used in zip(phases, used, strict=True) if is_used]
    panel.stackplot(iterations, seconds[used], labels=labels, step="mid")
    panel.set_ylabel("seconds")
    panel.set_xlabel("iteration")
    panel.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))
    save(figure, path)

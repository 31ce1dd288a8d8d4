"""The pictures of a report: each metric over the iterations, and where the time went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ranks.watch.report.figures import INK, line, panels, save
from ranks.watch.report.run_facts import RunFacts

COLUMNS, MOST_PANELS = 3, 24
HEADINGS: Mapping[str, str] = {
    "train": "Training",
    "val": "Evaluation",
    "match": "Matches",
    "rollout": "Rollouts and games",
    "selfplay": "Self-play",
    "spikes": "Spikes",
}
"""The groups of metrics that have a picture, in this order; other groups follow."""
SPEED, PHASE_SUFFIX, NO_PHASES = "_per_second", "_s", ("time/iteration_s",)


def draw_metrics(facts: RunFacts, folder: Path) -> list[tuple[str, Path]]:
    """(heading, picture) of each group of metrics."""
    groups = facts.metrics()
    order = [*HEADINGS, *(name for name in groups if name not in HEADINGS and name not in ("time", "memory"))]
    found: list[tuple[str, Path]] = []
    for group in order:
        if group in groups:
            path = folder / f"{group}.png"
            _grid(facts, groups[group][:MOST_PANELS], path)
            found.append((HEADINGS.get(group, group), path))
    return found


def draw_time(facts: RunFacts, folder: Path) -> list[tuple[str, Path]]:
    """Where the time of each iteration went, speeds and memory."""
    times = facts.metrics().get("time", [])
    phases = [name for name in times if name.endswith(PHASE_SUFFIX) and name not in NO_PHASES]
    found: list[tuple[str, Path]] = []
    if phases:
        found.append(("Time of an iteration", folder / "time.png"))
        _stack(facts, phases, folder / "time.png")
    speeds = [name for name in times if name.endswith(SPEED)] + facts.metrics().get("memory", [])
    if speeds:
        found.append(("Speed and memory", folder / "speed.png"))
        _grid(facts, speeds, folder / "speed.png")
    return found


def _grid(facts: RunFacts, names: Sequence[str], path: Path) -> None:
    """A small panel for each metric."""
    figure, axes = panels(-(-len(names) // COLUMNS), COLUMNS)
    for panel, name in zip(axes, names, strict=False):
        iterations, values = facts.series(name)
        line(panel, iterations, values, color=INK)
        panel.set_title(name, fontsize=8)
    for panel in axes[len(names) :]:
        panel.set_axis_off()
    save(figure, path)


def _stack(facts: RunFacts, phases: Sequence[str], path: Path) -> None:
    """Seconds of each phase, one above the other."""
    iterations = [float(row["iteration"]) for row in facts.rows]
    seconds = np.array([[float(row.get(name) or 0.0) for row in facts.rows] for name in phases])
    used = seconds.sum(1) > 0.005 * seconds.sum()
    figure, (panel,) = panels(1, 1)
    labels = [
        name.removeprefix("time/").removesuffix(PHASE_SUFFIX)
        for name, is_used in zip(phases, used, strict=True)
        if is_used
    ]
    panel.stackplot(iterations, seconds[used], labels=labels, step="mid")
    panel.set_ylabel("seconds")
    panel.set_xlabel("iteration")
    panel.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))
    save(figure, path)

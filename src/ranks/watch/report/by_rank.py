"""The picture of what the ranks used: a panel for each metric, a line for each rank."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ranks.engine.files.jsonl import number
from ranks.watch.lines import JsonRow
from ranks.watch.metric_groups import BY_RANK, of_ranks, of_ranks_use
from ranks.watch.report.figures import line, panels, save

COLUMNS, MOST_LEGEND = 3, 8
"""More ranks have no legend."""


def draw_by_rank(rows: Sequence[JsonRow], folder: Path) -> list[tuple[str, Path]]:
    """(heading, picture), or nothing where nothing was sampled. `rows`: of telemetry.jsonl, over the time since the
    first one."""
    timed = [(at, row) for row in rows if (at := number(row, "time")) is not None]
    titles = of_ranks(dict.fromkeys(name for _, row in timed for name in row if of_ranks_use(name)))
    if not titles:
        return []
    start_s, path = timed[0][0], folder / "ranks.png"
    figure, axes = panels(-(-len(titles) // COLUMNS), COLUMNS)
    for panel, (title, members) in zip(axes, titles.items(), strict=False):
        for rank, name in members:
            points = [((at - start_s) / 60, value) for at, row in timed if (value := number(row, name)) is not None]
            line(panel, [x for x, _ in points], [y for _, y in points], label=f"rank {rank}")
        panel.set_title(title, fontsize=8)
        panel.set_xlabel("minutes", fontsize=8)
        if len(members) <= MOST_LEGEND:
            panel.legend(fontsize=6)
    for panel in axes[len(titles) :]:
        panel.set_axis_off()
    save(figure, path)
    return [(BY_RANK, path)]

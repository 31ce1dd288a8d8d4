"""The plot of a ladder: each player's rating with its 95 % interval."""

from __future__ import annotations

import textwrap
from pathlib import Path

from ranks.chess.match.standings import Standings, scale_text

LABEL_CHARACTERS = 60
"""Width of a line below the plot; a longer one would be cut off."""


def plot_ladder(standings: Standings, title: str, path: Path) -> None:
    """Write the plot as a PNG. Needs matplotlib (in the chess extra)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rows = standings.rows[::-1]
    figure = Figure(figsize=(9, 1.8 + 0.42 * len(rows)), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    heights = range(len(rows))
    elo = [row.elo.value for row in rows]
    reach = [[row.elo.value - row.elo.low for row in rows], [row.elo.high - row.elo.value for row in rows]]
    axes.errorbar(elo, heights, xerr=reach, fmt="o", color="#1f4e79", ecolor="#1f4e79", capsize=4, markersize=5)
    for height, row in zip(heights, rows, strict=True):
        text = f"{row.elo.value:.0f}" + (" (anchor)" if row.given else "")
        axes.annotate(text, (row.elo.value, height), (0, 7), textcoords="offset points", ha="center")
    axes.set_yticks(list(heights), [row.player for row in rows])
    axes.set_ylim(-0.6, len(rows) - 0.3)
    axes.set_xlabel(textwrap.fill(f"{scale_text(standings.ratings)}; bars: 95 %", LABEL_CHARACTERS))
    axes.set_title(title, loc="left", fontsize="medium")
    axes.grid(axis="x", color="#dddddd")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path)

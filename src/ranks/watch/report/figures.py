"""Pictures of curves with matplotlib, without a window. Imported only where a report is drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

INK, GRID = "#1f4e79", "#dddddd"
MARKED_POINTS = 60
"""Lines with fewer points have markers."""


def panels(rows: int, columns: int, inches: tuple[float, float] | None = None, **options: Any) -> tuple[Any, list[Any]]:
    """An empty figure and its panels, row by row."""
    figure = Figure(figsize=inches or (9, 0.4 + 2.7 * rows), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    grid: Any = figure.subplots(rows, columns, squeeze=False, **options)
    axes = list(grid.flat)
    for panel in axes:
        panel.grid(color=GRID)
        panel.set_axisbelow(True)
        panel.spines[["top", "right"]].set_visible(False)
        panel.tick_params(labelsize=8)
        panel.xaxis.get_major_locator().set_params(integer=columns < 3)
    return figure, axes


def line(panel: Any, x: Any, y: Any, **options: Any) -> None:
    """A line, with markers where there are few points."""
    panel.plot(x, y, "o-" if len(x) <= MARKED_POINTS else "-", markersize=3, linewidth=1.3, **options)


def percent(panel: Any, label: str) -> None:
    """Shares from 0 to 1 on the vertical axis."""
    panel.set_ylim(-0.03, 1.03)
    panel.yaxis.set_major_formatter("{x:.0%}")
    panel.set_ylabel(label)


def percent_below(panel: Any, label: str) -> None:
    """Shares from 0 to 1 on the horizontal axis."""
    panel.xaxis.get_major_locator().set_params(integer=False)
    panel.set_xlim(-0.03, 1.03)
    panel.xaxis.set_major_formatter("{x:.0%}")
    panel.set_xlabel(label)


def save(figure: Any, path: Path) -> None:
    """Write the picture."""
    figure.savefig(path)

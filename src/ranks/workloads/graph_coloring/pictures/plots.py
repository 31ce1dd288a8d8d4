"""Plots of results: each function takes arrays and writes a PNG or SVG.

Legend: G graphs, S tries, T rounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ranks.workloads.graph_coloring.pictures.canvas import GRID, INK, new_figure, save, text_colour

SHADES = ("#2f6f8f", "#7fb2c8", "#f3d38c", "#ee9c54", "#c8553d")
"""The colours of the gaps 0, 1, 2, 3, and 4 or more."""
NONE_FOUND = "#8a8f98"
"""The colour of graphs without a proper colouring."""
TRY, MEDIAN, SOLVED = "#7fb2c8", "#2f6f8f", "#3a9d5d"


def plot_gaps(path: Path, gaps_by_family: Mapping[str, npt.ArrayLike], title: str) -> None:
    """A stacked bar for each family: the share of its graphs with each gap.

    The gap of a graph is the number of colours used minus the best known number. `gaps_by_family`:
    numbers [G]; NaN if no proper colouring was found; a gap below 0 counts as 0. Raises UserError.
    """
    largest = len(SHADES) - 1
    names = ["none above", *(f"{gap} above" for gap in range(1, largest)), f"{largest} or more", "none found"]
    figure = new_figure(f"the plot {path}", (8.5, 1.7 + 0.36 * len(gaps_by_family)))
    axes = figure.add_subplot()
    labels: list[str] = []
    for height, (family, gaps) in enumerate(gaps_by_family.items()):
        gaps_G = np.asarray(gaps, dtype=np.float64)
        class_G = np.where(np.isnan(gaps_G), largest + 1, np.clip(np.nan_to_num(gaps_G), 0, largest)).astype(np.int64)
        shares = np.bincount(class_G, minlength=len(names)) / max(1, len(gaps_G))
        starts = np.cumsum(shares) - shares
        for start, share, colour in zip(starts, shares, (*SHADES, NONE_FOUND), strict=True):
            axes.barh(height, share, left=start, height=0.72, color=colour)
            if share >= 0.06:
                style = {"ha": "center", "va": "center", "fontsize": 8}
                axes.text(start + share / 2, height, f"{share:.0%}", color=text_colour(colour), **style)
        labels.append(f"{family} ({len(gaps_G)})")
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.4, -0.6)  # the first family is at the top
    axes.set_xlim(0, 1)
    axes.set_xticks(np.linspace(0, 1, 6), [f"{share:.0%}" for share in np.linspace(0, 1, 6)])
    axes.set_xlabel("share of the graphs (number of graphs in parentheses)", color=INK)
    _plain(axes, title)
    marks = [axes.barh(0, 0, color=colour) for colour in (*SHADES, NONE_FOUND)]
    figure.legend(marks, names, loc="outside lower center", ncols=len(names), frameon=False, fontsize=8)
    save(figure, path, f"the plot {path}")


def plot_conflicts(path: Path, conflicts_ST: npt.ArrayLike, title: str) -> None:
    """Conflicting edges after each round: a thin line for each try, a thick line for the median.

    A dot marks the first round without conflicts. `conflicts_ST`: a try that ended early has NaN or
    a negative number in the rounds that it did not run. Raises UserError.
    """
    conflicts = np.atleast_2d(np.asarray(conflicts_ST, dtype=np.float64))
    conflicts = np.where(conflicts < 0, np.nan, conflicts)
    rounds = np.arange(1, conflicts.shape[1] + 1)
    figure = new_figure(f"the plot {path}", (8.5, 4.6))
    axes = figure.add_subplot()
    for number, try_T in enumerate(conflicts):
        axes.plot(rounds, try_T, color=TRY, linewidth=0.9, alpha=0.7, label="" if number else "a try")
    ran_ST = ~np.isnan(conflicts)
    last_ST = np.maximum.accumulate(np.where(ran_ST, rounds - 1, 0), axis=1)
    filled_ST = np.take_along_axis(conflicts, last_ST, axis=1)  # a try that ended early keeps its last value
    axes.plot(rounds, np.median(filled_ST, axis=0), color=MEDIAN, linewidth=2.4, label=f"median of {len(conflicts)}")
    solved = conflicts == 0
    first = solved.argmax(1)[solved.any(1)]
    label = f"no conflict left ({len(first)} of {len(conflicts)} tries)"
    axes.plot(rounds[first], np.zeros(len(first)), "o", color=SOLVED, markersize=6, clip_on=False, label=label)
    axes.set_yscale("symlog", linthresh=1, linscale=0.5)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_xlim(1, max(2, len(rounds)))
    axes.set_xlabel("round", color=INK)
    axes.set_ylabel("conflicting edges", color=INK)
    axes.grid(color=GRID, linewidth=0.6)
    _plain(axes, title)
    axes.legend(frameon=False, fontsize=9)
    save(figure, path, f"the plot {path}")


def _plain(axes: Any, title: str) -> None:
    axes.set_title(title, loc="left", fontsize=12, color=INK)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=9, colors=INK)

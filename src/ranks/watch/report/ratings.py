"""Plots of ratings and scores from matches. Each function writes one picture, or returns why it draws none."""

from __future__ import annotations

from pathlib import Path

from ranks.watch.report.figures import INK, line, panels, percent, save
from ranks.watch.report.metric_rows import MetricRows

RATING = ("match/rating", "match/rating_low", "match/rating_high")
SCORES = "match/score_"


def draw_rating(rows: MetricRows, path: Path, iterations: str = "iterations") -> str | None:
    """The rating with its interval over games, iterations and hours. `iterations`: how they are called."""
    found = rows.series(*RATING)
    if not len(found):
        return f"no row has {', '.join(RATING)}"
    figure, axes = panels(1, 3, sharey=True)
    rating, low, high = found.values.T
    for panel, name, x in zip(
        axes, ("games", iterations, "hours"), (found.games, found.iterations, found.hours), strict=True
    ):
        panel.fill_between(x, low, high, color=INK, alpha=0.15, linewidth=0)
        panel.errorbar(x, rating, [rating - low, high - rating], fmt="none", color=INK, elinewidth=0.6, capsize=2)
        line(panel, x, rating, color=INK)
        panel.set_xlabel(name)
        panel.xaxis.set_major_formatter("{x:,.4g}")
        panel.xaxis.get_major_locator().set_params(integer=name != "hours")
    axes[0].set_ylabel("rating (Elo) with its 95 % interval")
    return save(figure, path)


def draw_scores(rows: MetricRows, path: Path) -> str | None:
    """The scores against each opponent over games."""
    names = rows.names(SCORES)
    if not names:
        return f"no row has {SCORES}..."
    figure, (panel,) = panels(1, 1)
    for name in names:
        series = rows.series(name)
        line(panel, series.games, series.values[:, 0], label=f"against {name.removeprefix(SCORES)}")
    panel.axhline(0.5, color="grey", linewidth=0.6)
    percent(panel, "score")
    panel.set_xlabel("games")
    panel.legend(fontsize=7)
    return save(figure, path)

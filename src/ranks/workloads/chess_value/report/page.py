"""The page of a report, in Markdown, and its pictures."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from ranks.engine.runs.folder import RunFolder
from ranks.watch.report.metric_rows import MetricRows
from ranks.watch.report.ratings import draw_rating, draw_scores
from ranks.watch.report.workload_page import Draw, newest_values, pictures
from ranks.workloads.chess_value.cycle_report import strength_lines
from ranks.workloads.chess_value.report.calibration import draw_calibration
from ranks.workloads.chess_value.report.plots import draw_labels, draw_losses

NEWEST = {
    "match/rating": "rating",
    "match/rating_low": "low end of its interval",
    "match/rating_high": "high end of its interval",
    "match/best_cycle": "cycle of the best weights",
    "train/loss": "loss of the training",
    "val/loss": "loss of the validation",
    "val/error": "mean error of the win probability",
    "cycle/positions": "positions of a cycle",
    "cycle/labels_per_second": "labels/s",
    "cycle/cached_share": "share of cached labels",
    "cycle/positions_per_hour": "positions/hour",
    "cycle/updates_per_minute": "updates/min",
    "cycle/cost_per_million_positions": "cost of a million positions",
}
"""The table of newest values."""


def page(run: RunFolder, settings: Mapping[str, Any], rows: MetricRows, place: Path) -> str:
    """The text of the page; writes the pictures into the folder `place`. A picture for which the run has no rows is
    removed there, and the page says so."""
    drawn: dict[str, tuple[str, Draw]] = {
        "rating": ("Rating", partial(draw_rating, iterations="cycles")),
        "scores": ("Scores", draw_scores),
        "losses": ("Losses", draw_losses),
        "calibration": ("Calibration", partial(draw_calibration, run, settings)),
        "labels": ("Labels", draw_labels),
    }
    parts = [f"# {run.path.name}: chess-value", facts(settings, rows), newest_values(rows, NEWEST)]
    return "\n\n".join([*parts, *pictures(drawn, rows, place)]) + "\n"


def facts(settings: Mapping[str, Any], rows: MetricRows) -> str:
    """How far the run is, its net and its labels, and how fast it became stronger."""
    config: Mapping[str, Any] = settings["config"]
    net, label = config.get("net", {}), config.get("label", {})
    labels = config.get("labels")
    limit = "" if labels == "outcome" else f", {label.get('limit')}"
    lines = [
        f"cycles: {rows.rows[-1]['iteration']:,}, games: {rows.games:,}, hours: {rows.hours:.2f}",
        f"net: {net.get('kind')}, labels: {labels}{limit}",
        f"seed {settings['engine'].get('seed')}, {'exact' if settings['engine'].get('exact') else 'fast'} mode",
        *strength_lines(rows.rows),
    ]
    return "\n".join(f"- {line}" for line in lines)

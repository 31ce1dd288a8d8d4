"""The plots of a report. Each function writes one picture, or returns why it draws none."""

from __future__ import annotations

from pathlib import Path

from ranks.watch.report.figures import INK, line, panels, percent, save
from ranks.watch.report.metric_rows import MetricRows

LOSSES = {"train/loss": "training", "val/loss": "validation"}
BY_SOURCE = "val/loss_"
WAITING = {"cycle/cached_share": "labels from the cache", "cycle/label_wait_share": "time that waits for labels",
           "cycle/match_share": "time of matches"}  # fmt: skip


def draw_losses(rows: MetricRows, path: Path) -> str | None:
    """The loss over cycles and hours, and that of the validation by source."""
    found = {label: rows.series(name) for name, label in LOSSES.items()}
    if not any(map(len, found.values())):
        return f"no row has {' or '.join(LOSSES)}"
    figure, (cycles, hours, sources) = panels(1, 3)
    for label, series in found.items():
        if len(series):
            line(cycles, series.iterations, series.values[:, 0], label=label)
            line(hours, series.hours, series.values[:, 0], label=label)
    for name in rows.names(BY_SOURCE):
        series = rows.series(name)
        if len(series):
            line(sources, series.iterations, series.values[:, 0], label=name.removeprefix(BY_SOURCE))
    for panel, axis in ((cycles, "cycles"), (hours, "hours"), (sources, "cycles")):
        panel.set_xlabel(axis)
        panel.xaxis.get_major_locator().set_params(integer=axis == "cycles")
        if panel.get_legend_handles_labels()[1]:
            panel.legend(fontsize=7)
    cycles.set_ylabel("squared error of the win probability")
    sources.set_title("validation by source", fontsize=9)
    return save(figure, path)


def draw_labels(rows: MetricRows, path: Path) -> str | None:
    """Labels a second, positions an hour, and what the time and the labels are shared between."""
    speed, amount = rows.series("cycle/labels_per_second"), rows.series("cycle/positions_per_hour")
    if not len(speed) and not len(amount):
        return "no row has cycle/labels_per_second or cycle/positions_per_hour"
    figure, (labels, positions, parts) = panels(1, 3)
    for panel, series, title in ((labels, speed, "labels/s"), (positions, amount, "positions/hour")):
        if len(series):
            line(panel, series.iterations, series.values[:, 0], color=INK)
            panel.set_ylim(bottom=0)
        panel.set_title(title, fontsize=9)
        panel.yaxis.set_major_formatter("{x:,.0f}")
    for name, label in WAITING.items():
        series = rows.series(name)
        if len(series):
            line(parts, series.iterations, series.values[:, 0], label=label)
    percent(parts, "")
    parts.set_title("shares of a cycle", fontsize=9)
    if parts.get_legend_handles_labels()[1]:
        parts.legend(fontsize=7)
    for panel in (labels, positions, parts):
        panel.set_xlabel("cycles")
        panel.xaxis.get_major_locator().set_params(integer=True)
    return save(figure, path)

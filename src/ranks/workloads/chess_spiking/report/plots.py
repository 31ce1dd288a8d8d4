"""The plots of a report. Each function writes one picture, or returns why it draws none."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import numpy as np

from ranks.engine.files.jsonl import number
from ranks.watch.report.figures import INK, line, panels, percent, save
from ranks.watch.report.metric_rows import MetricRows

TITLE_CHARACTERS = 60
RESULTS = {
    "rollout/first_player_won": "white won",
    "rollout/drawn": "drawn",
    "rollout/second_player_won": "black won",
    "rollout/resigned": "resigned",
}
DRAWN, TRUNCATED = "rollout/drawn/", "rollout/truncated"
SPIKES, DEAD = "spikes/spike_rate/", "spikes/dead/"


def draw_games(rows: MetricRows, path: Path) -> str | None:
    """Length, results, draws by kind and opening variety of each iteration."""
    lengths = rows.series("rollout/mean_length")
    if not len(lengths):
        return "no row has rollout/mean_length"
    figure, (length, results, by_kind, openings) = panels(2, 2)
    line(length, lengths.iterations, lengths.values[:, 0], color=INK)
    length.set_ylim(0, 1.1 * lengths.values.max())
    length.set_title("mean length in plies", fontsize=9)
    shares(results, rows, RESULTS, "results: share of games")
    kinds = {name: name.removeprefix(DRAWN).replace("_", " ") for name in rows.names(DRAWN)}
    shares(by_kind, rows, {**kinds, TRUNCATED: "most plies"}, "draws by kind: share of games")
    distinct = rows.series("rollout/distinct_openings", "rollout/games")
    openings.set_title("distinct openings of 8 plies", fontsize=9)
    if len(distinct):
        openings.plot(distinct.iterations, distinct.values[:, 1], color="#c8c8c8", linewidth=6, label="games")
        line(openings, distinct.iterations, distinct.values[:, 0], color=INK, label="distinct openings")
        openings.set_ylim(0, 1.1 * distinct.values.max())
        openings.legend(fontsize=7)
    else:
        openings.text(0.5, 0.5, "no row has rollout/distinct_openings", ha="center", transform=openings.transAxes)
    for panel in (length, results, by_kind, openings):
        panel.set_xlabel("iteration")
    return save(figure, path)


def draw_learning(rows: MetricRows, path: Path) -> str | None:
    """Losses, and what the searches found."""
    found = {
        name: rows.series(name)
        for name in ("train/policy_loss", "train/value_loss", "selfplay/target_entropy", "selfplay/policy_kl")
    }
    if not any(map(len, found.values())):
        return f"no row has {', '.join(found)}"
    figure, axes = panels(2, 2)
    titles = ("policy loss (nats)", "value loss", "entropy of the policy targets (nats)", "KL(target || net), nats")
    for panel, title, (name, series) in zip(axes, titles, found.items(), strict=True):
        panel.set_title(title, fontsize=9)
        panel.set_xlabel("iteration")
        if len(series):
            line(panel, series.iterations, series.values[:, 0], color=INK)
        else:
            panel.text(0.5, 0.5, f"no row has {name}", ha="center", transform=panel.transAxes)
    return save(figure, path)


def draw_spikes(rows: MetricRows, path: Path) -> str | None:
    """Spike rates and dead neurons of each layer."""
    layers = [name.removeprefix(SPIKES) for name in rows.names(SPIKES)]
    if not layers:
        return f"no row has {SPIKES}..., as of a net without spikes"
    figure, axes = panels(2, 1, inches=(9, 2.2 + 0.42 * len(layers)))
    for panel, prefix, title in zip(
        axes, (SPIKES, DEAD), ("spikes for each neuron, position and step", "share of dead neurons"), strict=True
    ):
        names = [prefix + layer for layer in layers]
        found = [row for row in rows.rows if any(name in row for name in names)]
        table = np.array([[number(row, name) for row in found] for name in names], np.float64)
        first, last = float(found[0]["iteration"]), float(found[-1]["iteration"])
        image = panel.imshow(
            table,
            aspect="auto",
            interpolation="nearest",
            extent=(first - 0.5, last + 0.5, len(layers) - 0.5, -0.5),
            cmap="viridis",
            vmin=0,
            vmax=max(float(np.nan_to_num(table).max()), 0.01),
        )
        panel.set_yticks(range(len(layers)), layers, fontsize=7)
        panel.set_title(title, fontsize=9)
        panel.set_xlabel("iteration")
        panel.grid(False)
        figure.colorbar(image, ax=panel)
    return save(figure, path)


def shares(panel: Any, rows: MetricRows, names: dict[str, str], title: str) -> None:
    """Lines of the shares that are ever above zero; the others are named in the title."""
    never: list[str] = []
    for name, label in names.items():
        series = rows.series(name)
        if len(series) and series.values.any():
            line(panel, series.iterations, series.values[:, 0], label=label)
        elif len(series):
            never.append(label)
    absent = textwrap.wrap(f"never: {', '.join(never)}", TITLE_CHARACTERS) if never else []
    panel.set_title("\n".join([title, *absent]), fontsize=9)
    percent(panel, "")
    if panel.get_legend_handles_labels()[1]:
        panel.legend(fontsize=7)

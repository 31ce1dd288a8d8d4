"""What one iteration of self-play did, as one line of the console view."""

from __future__ import annotations

from collections.abc import Iterable

from ranks.engine.files.jsonl import number
from ranks.errors import clean
from ranks.watch.lines import JsonRow, iterations_done

DRAWN = "rollout/drawn/"
RESULTS = {
    "first": "rollout/first_player_won",
    "second": "rollout/second_player_won",
    "drawn": "rollout/drawn",
    "resigned": "rollout/resigned",
}
SPEEDS = ("plies", "simulations", "evaluations")
TIMES = ("net", "trees", "planes", "records", "waiting_device", "waiting_ranks", "gather")
"""Shares of the time of play, as in `ranks.selfplay.times`."""


def self_play_line(row: JsonRow) -> str | None:
    """Games, results, speeds, what the searches found, and shares of the time; None for a row without self-play."""
    games, length = number(row, "rollout/games"), number(row, "rollout/mean_length")
    speeds = [(name, number(row, f"selfplay/{name}_per_second")) for name in SPEEDS]
    if games is None or all(value is None for _, value in speeds):
        return None
    shares = {name: number(row, metric) for name, metric in RESULTS.items()}
    kinds = {name.removeprefix(DRAWN): number(row, name) for name in row if name.startswith(DRAWN)}
    kinds["most plies"] = number(row, "rollout/truncated")
    drawn = ", ".join(_percent(name.replace("_", " "), share) for name, share in kinds.items() if share)
    results = [_percent(name, share) for name, share in shares.items() if share or (share == 0 and name != "resigned")]
    results = [f"{text} ({drawn})" if drawn and text.startswith("drawn") else text for text in results]
    entropy, kl = number(row, "selfplay/target_entropy"), number(row, "selfplay/policy_kl")
    times = {name: number(row, f"selfplay/{name}_share") for name in TIMES}
    parts = (
        [f"{games:,.0f} games" + (f" of {length:.1f} plies" if length is not None else "")],
        results,
        [f"{value:,.0f} {name}/s" for name, value in speeds if value is not None],
        [
            f"target entropy {entropy:.3g}" if entropy is not None else "",
            f"policy KL {kl:.3g}" if kl is not None else "",
        ],
        [_percent(name.replace("_", " "), share) for name, share in times.items() if share is not None],
    )
    return clean(f"iteration {iterations_done(row) or 0:,}: {'; '.join(filter(None, map(_joined, parts)))}")


def _percent(name: str, share: float | None) -> str:
    return f"{name} {share:.0%}" if share is not None else ""


def _joined(parts: Iterable[str]) -> str:
    return ", ".join(part for part in parts if part)

"""The table at the head of docs/on-policy.md, from the committed learning curves."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.pages.results import machine, newest

KIND = "gymnasium_curves"
COMMAND = "python -m benchmarks.on_policy.gymnasium_curves --peer PYTHON"


def on_policy(_proofs: Path, benchmarks: Path) -> Iterator[str]:
    """Reward and CPU seconds of both sides on each environment, over the seeds."""
    result = newest(benchmarks).get(KIND)
    if result is None:
        yield f"No result of `{COMMAND}` is committed yet."
        return
    yield "| Environment | Reward of the last 100 episodes: ranks | Stable-Baselines3 | CPU seconds of a run |"
    yield "|---|---|---|---|"
    for name, game in result["games"].items():
        of = {s: [t for t in result["trainings"] if (t["game"], t["side"]) == (name, s)] for s in ("ours", "sb3")}
        ours, theirs = (statistics.median(one["cpu_s"] for one in of[side]) for side in ("ours", "sb3"))
        label = name.replace(", velocities hidden", " without velocities")
        kind = "recurrent PPO" if game["recurrent"] else "PPO"
        seconds = f"{ours:.0f}, theirs {theirs:.0f}: {ours / theirs:.2f}x"
        yield f"| {label} ({kind}) | {finals(of['ours'])} | {finals(of['sb3'])} | {seconds} |"
    seeds = len({one["seed"] for one in result["trainings"]})
    yield ""
    yield f"Ranges over {seeds} seeds, medians of CPU seconds, with equal samples, updates and settings."
    yield f"`{COMMAND}`, {machine(result)}."


def finals(trainings: Sequence[dict[str, Any]]) -> str:
    """'482 to 500'."""
    values = [round(one["final"]) for one in trainings]
    return f"{min(values)} to {max(values)}" if min(values) < max(values) else str(values[0])

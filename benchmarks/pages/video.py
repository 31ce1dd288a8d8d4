"""The tables of docs/video-behavior.md: the net on rendered animals, its baselines, and the leak."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.pages.results import machine, newest

TABLE = "table_video-behavior"


def video(proofs: Path, benchmarks: Path) -> Iterator[str]:
    """`ranks prove table video-behavior`: mean and range over the seeds, and the bars."""
    result: dict[str, Any] | None = newest(proofs).get(TABLE)
    if result is None:
        yield "No result of `ranks prove table video-behavior` is committed yet."
        return
    seeds = result["raw"]["facts"]["seeds"]
    heading = "One seed" if seeds == 1 else f"Mean of {seeds} seeds (lowest to highest)"
    for title, rows in result["raw"]["tables"].items():
        yield f"| {title} | {heading} | Bar |"
        yield "|---|---|---|"
        for row in rows:
            met = "" if row["passed"] is None else ": met" if row["passed"] else ": **not met**"
            found = f"{row['mean']:.3f}".removesuffix(".000") if seeds == 1 else row["found"]
            yield f"| {row['what']} | {found} | {row['bar']}{met} |"
        yield ""
    yield from (f"- {name}: {value}" for name, value in result["raw"]["facts"].items())
    yield ""
    yield f"`{result['command']}`, {machine(result)}."

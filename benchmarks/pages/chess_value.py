"""The tables of docs/chess-value.md: the shipped net against the same search, on the clock, and how it was trained."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.pages.results import machine, newest, origin

TABLE, STRENGTH, TRAINING = "table_chess-value", "chess_value_strength", "chess_value_training"


def chess_value(proofs: Path, benchmarks: Path) -> Iterator[str]:
    """All tables, each with the command that made it."""
    yield from table(newest(proofs).get(TABLE))
    yield ""
    yield from strength(newest(benchmarks).get(STRENGTH))
    yield ""
    yield from training(newest(benchmarks).get(TRAINING))


def table(result: dict[str, Any] | None) -> Iterator[str]:
    """`ranks prove table chess-value`."""
    if result is None:
        yield "No result of `ranks prove table chess-value` is committed yet."
        return
    heads = ["The net against the same search with", "Nodes a move: its, the other's", "Won, drawn, lost"]
    yield f"| {' | '.join(heads)} | Elo (95 %) | Bar |"
    yield "|---|---|---|---|---|"
    for rows in result["raw"]["tables"].values():
        for row in rows:
            what, nodes = f"{row['against']}, {row['kind']}", f"{row['nodes']:,}, {row['its nodes']:,}"
            met = "" if row["passed"] is None else ": met" if row["passed"] else ": **not met**"
            games = f"{row['won']}, {row['drawn']}, {row['lost']}"
            yield f"| {what} | {nodes} | {games} | {row['Elo']} | {row['bar']}{met} |"
    rating = result["raw"]["facts"]["rating"]
    yield ""
    if rating["value"] is not None:
        interval = f"{rating['value']:.0f} ({rating['low']:.0f} to {rating['high']:.0f})"
        yield f"With {rating['nodes']:,} nodes a move it has {interval} on the ladder, from {rating['games']} games."
    yield f"`{origin(result)['command']}`, {machine(result)}."


def strength(result: dict[str, Any] | None) -> Iterator[str]:
    """`benchmarks/chess_value/strength.py`: every match that was played."""
    if result is None:
        yield "No result of `python -m benchmarks.chess_value.strength` is committed yet."
        return
    yield "| Limit of the net | Against | Won, drawn, lost | Score | Elo difference (95 %) |"
    yield "|---|---|---|---|---|"
    for name, match in result.items():
        for row in match["rows"]:
            if "against" in row:
                games = f"{row['won']}, {row['drawn']}, {row['lost']}"
                yield f"| {name} | `{row['against']}` | {games} | {row['score']:.1%} | {_elo(row)} |"
            elif "rating" in row:
                rating = f"rated {row['rating']:.0f} ({row['low']:.0f} to {row['high']:.0f})"
                yield f"| {name} | **the ladder** | {row['games']} games | | {rating} |"
    yield ""
    yield from dict.fromkeys(f"`{match['origin']['command']}`, {machine(match)}." for match in result.values())


def _elo(row: dict[str, Any]) -> str:
    """'+120 (+95 to +146)'; a side without a bound is open."""
    low, middle, high = (f"{row[name]:+.0f}" if row[name] is not None else "open" for name in ("low", "elo", "high"))
    return f"{middle} ({low} to {high})"


def training(result: dict[str, Any] | None) -> Iterator[str]:
    """The cycles of the run that made the shipped net."""
    if result is None:
        yield "The training of the shipped net is not recorded yet."
        return
    heads = ["Cycle", "Hours", "Positions so far", "Validation loss", "Labels/s", "Rating in training (95 %)"]
    yield f"| {' | '.join(heads)} | Best weights of cycle |"
    yield "|---|---|---|---|---|---|---|"
    positions = 0
    for row in result["cycles"]:
        positions += int(row["cycle/positions"])
        rating = "no match"
        if "match/rating" in row:
            rating = f"{row['match/rating']:.0f} ({row['match/rating_low']:.0f} to {row['match/rating_high']:.0f})"
        best = f"{row['match/best_cycle']:.0f}" if "match/best_cycle" in row else ""
        cells = [row["iteration"], f"{row['time_s'] / 3600:.2f}", f"{positions:,}", f"{row['val/loss']:.5f}"]
        cells += [f"{row.get('cycle/labels_per_second', 0.0):,.0f}", rating, best]
        yield f"| {' | '.join(map(str, cells))} |"
    yield ""
    yield f"`{result['run_command']}`, {machine(result)}. {result['remark']}"

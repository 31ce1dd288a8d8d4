"""The tables of docs/chess-value.md: the shipped net against the same search, on the clock, and how it was trained."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.pages.results import machine, newest, origin
from ranks.workloads.chess_value.cycle_report import strength_lines

TABLE, STRENGTH, TRAINING = "table_chess-value", "chess_value_strength", "chess_value_training"
CURVE, LABELS = "chess_value_curve-", "chess_labels"
LABELS_GOAL = 0.95
SAME_SEARCH, SAME_SEARCH_LIMIT = "the same search", "100 ms a move for both"


def chess_value(proofs: Path, benchmarks: Path) -> Iterator[str]:
    """All tables, each with the command that made it."""
    yield from table(newest(proofs).get(TABLE))
    yield ""
    yield from strength(newest(benchmarks).get(STRENGTH))
    yield ""
    recorded, rated = newest(benchmarks).get(TRAINING), curves(benchmarks)
    shipped = "" if recorded is None else recorded.get("run_name", "")
    yield from training(recorded, rated.pop(shipped, None))
    yield ""
    yield from other_runs(rated)
    yield ""
    yield from labels(newest(benchmarks).get(LABELS))


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
    for match_name, match in result.items():
        name = f"{match_name}, {SAME_SEARCH_LIMIT}" if match_name == SAME_SEARCH else match_name
        for row in match["rows"]:
            if "against" in row:
                games = f"{row['won']}, {row['drawn']}, {row['lost']}"
                yield f"| {name} | `{row['against']}` | {games} | {row['score']:.1%} | {_elo(row)}{_judged(row)} |"
            elif "rating" in row:
                rating = f"rated {row['rating']:.0f} ({row['low']:.0f} to {row['high']:.0f})"
                yield f"| {name} | **the ladder** | {row['games']} games | | {rating} |"
    yield ""
    yield from dict.fromkeys(f"`{match['origin']['command']}`, {machine(match)}." for match in result.values())


def _elo(row: dict[str, Any]) -> str:
    """'+120 (+95 to +146)'; a side without a bound is open."""
    low, middle, high = (f"{row[name]:+.0f}" if row[name] is not None else "open" for name in ("low", "elo", "high"))
    return f"{middle} ({low} to {high})"


def _judged(row: dict[str, Any]) -> str:
    """'; goal +120: met', where the row has a goal: its Elo has to reach it, and its interval half of it."""
    if "bar" not in row:
        return ""
    elo = math.inf if row["score"] == 1 else row["elo"]  # of all games won it is open
    met = elo >= row["bar"] and row["low"] is not None and row["low"] >= row["bar"] / 2
    return f"; goal {row['bar']:+.0f}: {'met' if met else '**not met**'}"


def training(result: dict[str, Any] | None, curve: dict[str, Any] | None) -> Iterator[str]:
    """The cycles of the run that made the shipped net, and the rating of the nets that it kept."""
    if result is None:
        yield "The training of the shipped net is not recorded yet."
        return
    if curve is not None and not is_of_run(curve, result):
        curve = None
    kept = {row["cycle"]: row for row in curve["nets"]} if curve is not None else {}
    heads = ["Cycle", "Hours", "Positions so far", "Validation loss", "Labels/s", "Rating in training (95 %)"]
    yield f"| {' | '.join(heads)} | Rating afterwards (95 %) | Best weights of cycle |"
    yield "|---|---|---|---|---|---|---|---|"
    positions = 0
    for row in result["cycles"]:
        positions += int(row["cycle/positions"])
        during = {name: row.get(f"match/rating{name}") for name in ("", "_low", "_high")}
        rating = _rating(during[""], during["_low"], during["_high"]) or "no match"
        after = kept.get(row["iteration"], {})
        best = f"{row['match/best_cycle']:.0f}" if "match/best_cycle" in row else ""
        cells = [row["iteration"], f"{row['time_s'] / 3600:.2f}", f"{positions:,}", f"{row['val/loss']:.5f}"]
        cells += [f"{row.get('cycle/labels_per_second', 0.0):,.0f}", rating]
        cells += [_rating(after.get("value"), after.get("low"), after.get("high")), best]
        yield f"| {' | '.join(map(str, cells))} |"
    yield ""
    yield f"`{result['run_command']}`, {machine(result)}. {result['remark']}"
    yield f"In training: {'; '.join(strength_lines(with_seconds(result['cycles'])))}."
    if curve is not None:
        first = curve["nets"][0]
        yield f"Afterwards: {first['games']} games with {first['nodes']:,} nodes a move, `{origin(curve)['command']}`."


def curves(benchmarks: Path) -> dict[str, dict[str, Any]]:
    """The newest result of `benchmarks/chess_value/curve.py` for each run, by the run's name."""
    return {kind[len(CURVE) :]: found for kind, found in newest(benchmarks).items() if kind.startswith(CURVE)}


def other_runs(rated: dict[str, dict[str, Any]]) -> Iterator[str]:
    """The ratings of runs next to the one that made the shipped net, such as with other labels."""
    if not rated:
        yield "No other run has been rated over its hours."
        return
    yield "| Run | Cycle | Hours | Rating afterwards (95 %) |"
    yield "|---|---|---|---|"
    for run, found in rated.items():
        for row in found["nets"]:
            rating = _rating(row["value"], row["low"], row["high"]) or "open"
            yield f"| {run} | {row['cycle']} | {row['hours']:.2f} | {rating} |"
    yield ""
    for found in rated.values():
        rated_by, made_by, _ = origin(found)["command"].partition(" --made-by ")
        again = f"{rated_by}{made_by}COMMAND" if made_by else rated_by
        yield f"COMMAND is `{found['run_command']}`; rated by `{again}`, {machine(found)}."


def with_seconds(cycles: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The cycles with the seconds that each took."""
    began_s = [0.0, *(row["time_s"] for row in cycles)]
    return [{**row, "time/iteration_s": row["time_s"] - began} for row, began in zip(cycles, began_s, strict=False)]


def labels(result: dict[str, Any] | None) -> Iterator[str]:
    """`benchmarks/chess_value/labels.py`: one engine of the pool next to a short script with the same commands."""
    if result is None:
        yield "No result of `python -m benchmarks.chess_value.labels` is committed yet."
        return
    yield "| `--label.limit` | Labels/s: pool, script | Pool / script | Goal | A second time: cache / pool |"
    yield "|---|---|---|---|---|"
    for limit, row in result["limits"].items():
        speeds = ", ".join(f"{row['labels_per_second'][side]['median']:,.0f}" for side in ("pool", "script"))
        ratio = row["pool_over_script"]["median"]
        goal = f"{LABELS_GOAL}: {'met' if ratio >= LABELS_GOAL else '**not met**'}"
        yield f"| `{limit}` | {speeds} | {ratio:.3f} | {goal} | {row['cache_over_pool']['median']:,.0f} |"
    yield ""
    rounds = next(iter(result["limits"].values()))["pool_over_script"]["n"]
    yield f"One engine each, in turns, medians of {rounds} rounds."
    yield f"`{origin(result)['command']}`, {machine(result)}."


def is_of_run(curve: dict[str, Any], result: dict[str, Any]) -> bool:
    """Whether a curve is of the run that was recorded: name, and hours of each cycle."""
    hours = {row["iteration"]: row["time_s"] / 3600 for row in result["cycles"]}
    same = all(abs(row["hours"] - hours.get(row["cycle"], -1.0)) < 0.001 for row in curve["nets"])
    return same and curve["run"] == result.get("run_name")


def _rating(value: float | None, low: float | None, high: float | None) -> str:
    """'1818 (1659 to 1976)', or nothing."""
    return "" if value is None else f"{value:.0f} ({low:.0f} to {high:.0f})"

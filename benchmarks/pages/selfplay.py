"""The tables of docs/self-play.md and docs/chess-spiking.md, from the committed measurements."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.pages.results import machine, newest

SPEED, STRENGTH, CONNECT_FOUR = "selfplay_cpu", "chess_spiking_strength", "connect_four"


def self_play(_proofs: Path, benchmarks: Path) -> Iterator[str]:
    """Speed against the peers, the cost of the loop and of the window, Connect Four."""
    found = newest(benchmarks)
    yield from speed(found.get(SPEED))
    yield ""
    yield from connect_four(found.get(CONNECT_FOUR))


def speed(result: dict[str, Any] | None) -> Iterator[str]:
    """Each side of each comparison, and the bars."""
    if result is None:
        yield "No result of `python -m benchmarks.selfplay.against_peers` is committed yet."
        return
    yield "`tiny`, `6x64` and `constant` are the nets, `32` and `100` the simulations of a search. Rows of ranks"
    yield "against ranks compare one rank with two. `origin` is the net of chess-snn-rl without search, `default`"
    yield "that of chess-spiking. In the goals, b is the cost of the loop and c that of the replay window."
    yield ""
    yield "| Comparison | Side | Plies/s | Evaluations/s | ranks by this, plies |"
    yield "|---|---|---|---|---|"
    for name, comparison in result["comparisons"].items():
        for side in comparison.get("sides", []):
            if "plies_per_s" not in side:
                yield f"| {name[2:]} | {side['side']} | not measured | | |"
                continue
            plies, evaluations = side["plies_per_s"]["median"], side["evaluations_per_s"]["median"]
            ratio = f"{side['first_by_this']['median']:.2f}x" if "first_by_this" in side else ""
            yield f"| {name[2:]} | {side['side']} | {plies:,.0f} | {evaluations:,.0f} | {ratio} |"
    yield ""
    yield "| Goal | Found | Bar |"
    yield "|---|---|---|"
    for bar in result["bars"]:
        yield f"| {bar['bar']} | {bar['found']:.3g} | {bar['goal']}: {'met' if bar['held'] else 'not met'} |"
    yield ""
    whole = "" if result["complete"] else " (not complete)"
    yield f"`{result['origin']['command']}`{whole}, {machine(result)}."
    yield from ["", *many_parts(result), *weaknesses(result)]


def many_parts(result: dict[str, Any]) -> Iterator[str]:
    """What a window of many small parts costs, and one of a single part."""
    few, many = (result["comparisons"].get(f"c gather {parts}") for parts in (1, 1000))
    if few is None or many is None:
        return
    yield f"A window of {few['positions']:,} positions costs more in many parts, as small iterations write them:"
    yield ""
    yield "| Parts | Opening an iteration | A save | Bytes of a save | Gathering a batch of 256 |"
    yield "|---|---|---|---|---|"
    for parts, found in ((1, few), (1000, many)):
        opening, save, gather = (f"{1000 * found[name]:.2f} ms" for name in ("open_s", "save_s", "gather_s"))
        yield f"| {parts:,} | {opening} | {save} | {found['save_bytes']:,.0f} | {gather} |"
    yield ""


def weaknesses(result: dict[str, Any]) -> Iterator[str]:
    """What a reader should know about these figures, from the rounds that were measured."""
    comparisons = result["comparisons"]
    if "b overhead tiny" in comparisons:
        overhead = comparisons["b overhead tiny"]["overhead"]
        low, high = (f"{overhead[name]:.1%}" for name in ("p25", "p75"))
        yield f"Rounds are few: the cost of the loop with `tiny` has quartiles of {low} and {high}."
    mctx = [found for name, found in comparisons.items() if name.startswith("a mctx")]
    sides = [side for found in mctx for side in found["sides"][1:] if side.get("rounds")]
    if sides:
        plies = min(one["plies"] for side in sides for one in side["rounds"])
        games = min(int(side["side"].split()[-2]) for side in sides)
        yield f"A round of mctx + pgx has as few as {plies:.0f} plies, and no batch was smaller than {games} games."


def connect_four(result: dict[str, Any] | None) -> Iterator[str]:
    """Shares of optimal moves, by seed."""
    if result is None:
        yield "No result of `python -m benchmarks.selfplay.connect_four` is committed yet."
        return
    shares = "Optimal, policy alone (untrained) | Optimal, search (untrained)"
    yield f"| Connect Four, seed | Positions | {shares} | Games | Minutes: CPU of all ranks, clock |"
    yield "|---|---|---|---|---|---|"
    for run in result["runs"]:
        shares = [f"{run['trained'][how]:.1%} ({run['untrained'][how]:.1%})" for how in ("policy", "search")]
        minutes = f"{run['cpu_s'] / 60:.1f}, {run['wall_s'] / 60:.1f}"
        yield f"| {run['seed']} | {run['positions']} | {shares[0]} | {shares[1]} | {run['games']:,.0f} | {minutes} |"
    yield ""
    yield from (f"Seed {run['seed']}: {run['remark']}" for run in result["runs"] if "remark" in run)
    yield f"`{result['origin']['command']}`, {machine(result)}."


def spiking(_proofs: Path, benchmarks: Path) -> Iterator[str]:
    """Scores of trained nets, the control, the untrained net and exact material."""
    result = newest(benchmarks).get(STRENGTH)
    if result is None:
        yield "No result of `python -m benchmarks.chess_spiking.strength` is committed yet."
        return
    yield f"| Player | Against | Score of {result['games'] // 4} games (95 %) | Drawn, of these by repetition |"
    yield "|---|---|---|---|"
    for row in result["rows"]:
        who = row["player"]
        if training := row.get("training"):
            trained = f"{training['games']:,.0f} games in {60 * training['hours']:.0f} min on {training['ranks']} cores"
            who = f"{row['weights']} ({row['neuron']}; {trained})"
        interval = f"{row['score']:.1%} ({row['low']:.1%} to {row['high']:.1%})"
        yield f"| {who} | {row['against']} | {interval} | {row['drawn']}, {row['by_repetition']} |"
    yield ""
    yield f"{result['simulations']} simulations of each move. `{result['origin']['command']}`, {machine(result)}."

"""The tables of docs/self-play.md and docs/chess-spiking.md, from the committed measurements."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import mean, median
from typing import Any

from benchmarks.pages.results import command, machine, newest
from benchmarks.selfplay.bars import ORIGIN_GAMES, ORIGIN_PLIES
from ranks.workloads.chess_spiking.strength_table import SIMULATIONS

WAITS = ("waiting_s", "gather_s")
ORIGIN = (
    f"The documents of chess-snn-rl name {ORIGIN_GAMES} on one GPU; by their lengths of a game this is {ORIGIN_PLIES}."
)
SPEED, STRENGTH, CONNECT_FOUR = "selfplay_cpu", "chess_spiking_strength", "connect_four"
SHIPPED = "table_chess-spiking"
NAMES = {"chess-spiking": "`chess-spiking`, the shipped net, lif"}
TWO_RANKS, UNEQUAL_RANKS = "selfplay_two-ranks", "unequal_ranks"
SPIKES = "chess_spiking_spikes"


def self_play(_proofs: Path, benchmarks: Path) -> Iterator[str]:
    """Speed against the peers, the cost of the loop and of the window, Connect Four."""
    found = newest(benchmarks)
    yield from speed(found.get(SPEED))
    yield ""
    yield from two_ranks(found.get(TWO_RANKS))
    yield from unequal_ranks(found.get(UNEQUAL_RANKS))
    yield from connect_four(found.get(CONNECT_FOUR))


def speed(result: dict[str, Any] | None) -> Iterator[str]:
    """Each side of each comparison, and the bars."""
    if result is None:
        yield "No result of `python -m benchmarks.selfplay.against_peers` is committed yet."
        return
    yield "The nets: `tiny` has two 3x3 convolutions of 32 channels, `6x64` one of 64 channels and six residual"
    yield "blocks, both a 1x1 convolution for the policy and a linear value. `constant` is no net: equal logits,"
    yield "value 0. `origin` is that of chess-snn-rl without search, `default` that of chess-spiking. `32` and `100`"
    yield "are the simulations of a search. Rows of ranks against ranks compare one rank with two. The goals are"
    yield "about: a, the peers; b, the cost of the loop over search and net alone; c, the replay window; d, two"
    yield "ranks; e, the origin's net."
    yield ""
    heads = "Comparison | Side | Plies/s | Evaluations/s | ranks by this, plies | Games/hour"
    yield f"| {heads} | Waiting, gathering of a rank, s a round |"
    yield "|---|---|---|---|---|---|---|"
    for name, comparison in result["comparisons"].items():
        for side in comparison.get("sides", []):
            if "plies_per_s" not in side:
                yield f"| {name[2:]} | {side['side']} | not measured | | | | |"
                continue
            plies, evaluations = side["plies_per_s"]["median"], side["evaluations_per_s"]["median"]
            ratio = f"{side['first_by_this']['median']:.2f}x" if "first_by_this" in side else ""
            games = f"{3600 * plies / side['mean_plies_of_a_game']:,.0f}" if side.get("mean_plies_of_a_game") else ""
            waits = waits_of_a_rank(side) if WAITS[0] in side["rounds"][0] else []
            cells = [name[2:], side["side"], f"{plies:,.0f}", f"{evaluations:,.0f}", ratio, games]
            yield f"| {' | '.join([*cells, ', '.join(f'{seconds:.2f}' for seconds in waits)])} |"
    yield ""
    yield "| Goal | Found | Bar |"
    yield "|---|---|---|"
    for bar in result["bars"]:
        yield f"| {bar['bar']} | {bar['found']:.3g} | {bar['goal']}: {'met' if bar['held'] else 'not met'} |"
    yield ""
    whole = "" if result["complete"] else " (not complete)"
    yield f"`{result['origin']['command']}`{whole}, {machine(result)}."
    yield f"Games/hour are plies by the mean length of the few games that ended. {ORIGIN}"
    yield from ["", *many_parts(result), *weaknesses(result)]


def two_ranks(result: dict[str, Any] | None) -> Iterator[str]:
    """Two ranks next to one, and next to two runs that share nothing: what two cores can give at all."""
    if result is None:
        return
    ranks, one, runs = result["comparisons"]["d ranks tiny"]["sides"]
    limit = [
        two["plies_per_s"] / alone["plies_per_s"] for two, alone in zip(runs["rounds"], one["rounds"], strict=True)
    ]
    by_one, by_runs = (side["first_by_this"] for side in (one, runs))
    yield f"Two ranks alone, {by_one['n']} rounds: {by_one['median']:.2f}x of one rank ({by_one['p25']:.2f} to"
    yield f"{by_one['p75']:.2f}). Two runs that share nothing make {median(limit):.2f}x of one on these cores"
    yield f"({min(limit):.2f} to {max(limit):.2f}, least and most), and two ranks {by_runs['median']:.2f}x of these"
    waits, seconds = waits_of_a_rank(ranks), mean(one["seconds"] for one in ranks["rounds"])
    yield f"({by_runs['p25']:.2f} to {by_runs['p75']:.2f}). A rank waits {waits[0]:.2f} s and gathers {waits[1]:.2f} s"
    yield f"of a round of {seconds:.1f} s."
    yield f"`{result['origin']['command']}`, {machine(result)}."
    yield ""


def waits_of_a_rank(side: dict[str, Any]) -> list[float]:
    """Seconds a round that a rank waits for others and gathers; rounds have the sum over the ranks."""
    return [mean(one[part] for one in side["rounds"]) / side["processes"] for part in WAITS]


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
    mctx = [(name, found) for name, found in comparisons.items() if name.startswith("a mctx")]
    sides = [side for _, found in mctx for side in found["sides"][1:] if side.get("rounds")]
    if sides:
        plies = min(one["plies"] for side in sides for one in side["rounds"])
        games = min(map(_games_of, sides))
        yield f"A round of mctx + pgx has as few as {plies:.0f} plies, and no batch was smaller than {games} games."
        yield f"Its largest batches: {', '.join(largest_batch(name[7:], found['sides'][1:]) for name, found in mctx)}."
        ratios = (f"{name[7:].replace(' ', ' at ')}: {_least_ratio(found['sides']):.1f}x" for name, found in mctx)
        yield "Only the batch that was fastest in the first round has more rounds. By mctx's highest median, whatever"
        yield f"its rounds, ranks makes {', '.join(ratios)}."


def largest_batch(name: str, sides: list[dict[str, Any]]) -> str:
    """The most games of a batch that the peer was given, and whether it was the fastest: more could be better."""
    measured = [side for side in sides if side.get("rounds")]
    largest, fastest = max(measured, key=_games_of), max(measured, key=_median_plies_per_s)
    return f"{name.replace(' ', ' at ')}: {_games_of(largest)} games{' (its fastest)' if largest is fastest else ''}"


def _least_ratio(sides: list[dict[str, Any]]) -> float:
    ours, *theirs = map(_median_plies_per_s, (side for side in sides if side.get("rounds")))
    return ours / max(theirs)


def _median_plies_per_s(side: dict[str, Any]) -> float:
    return side["plies_per_s"]["median"]


def _games_of(side: dict[str, Any]) -> int:
    """'mctx + pgx, 64 games'"""
    return int(side["side"].split()[-2])


def unequal_ranks(result: dict[str, Any] | None) -> Iterator[str]:
    """What ranks wait for a slower one, with equal and with measured shares."""
    if result is None:
        yield "No result of `python -m benchmarks.selfplay.unequal_ranks` is committed yet."
        return
    equal, by_speed = result["equal_shards"], result["measured_shares"]
    waits, goal, slower = by_speed["others_wait"], result["goal"], f"{result['slower_by']:g} times as long"
    shares = ",".join(map(str, by_speed["shares"]))
    times = by_speed["iterations_per_second"] / equal["iterations_per_second"]
    yield f"Of {result['ranks']} ranks one has a device that takes {slower} (emulated). With equal shards"
    each = by_speed["waiting_of_ranks"][: result["ranks"] - 1]
    yield f"the others wait {equal['others_wait']:.1%} of the time, with the measured `--shares {shares}` {waits:.1%}"
    yield f"on the mean, {min(each):.1%} to {max(each):.1%} (goal {goal:.0%}: {'met' if waits <= goal else 'not met'}"
    yield f"by the mean), and an iteration is {times:.2f}x as fast."
    yield f"`{result['origin']['command']}`, {machine(result)}."
    yield ""


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
    yield "The net of the template after ten minutes of two cores, in positions that no training game had, nor their"
    yield "mirror images, and in which a legal move is not optimal. An optimal move keeps the best outcome under"
    yield "perfect play. The search has 64 simulations; training had 32. Where the CPU had fewer minutes, other work"
    yield "ran on the cores."
    yield ""
    yield f"`{result['origin']['command']}`, {machine(result)}."


def spiking(proofs: Path, benchmarks: Path) -> Iterator[str]:
    """Strength, and spikes."""
    found = newest(benchmarks)
    how = {"simulations": SIMULATIONS}
    shipped = [result | result["raw"] | how for kind, result in newest(proofs).items() if kind == SHIPPED]
    yield from spiking_strength([*shipped, *(found[kind] for kind in found if kind.startswith(STRENGTH))])
    yield ""
    yield from spikes(found.get(SPIKES))


def spiking_strength(results: list[dict[str, Any]]) -> Iterator[str]:
    """Scores of trained nets, the control, the untrained net and exact material, a line each."""
    if not results:
        yield "No result of `python -m benchmarks.chess_spiking.strength` is committed yet."
        return
    for number, how in enumerate(dict.fromkeys(map(_how, results))):
        yield from [""] * (number > 0)
        yield from _strength_table(how, [result for result in results if _how(result) == how])


def _how(result: dict[str, Any]) -> str:
    """How the games were played: '64 simulations of each move. Scores of 200 games'"""
    simulations = result["simulations"]
    moves = f"{simulations} simulations of each move" if simulations else "Without search: the likeliest move"
    return f"{moves}. Scores of {result['rows'][0]['games']} games"


def _strength_table(how: str, results: list[dict[str, Any]]) -> Iterator[str]:
    opponents = [*dict.fromkeys(row["against"] for row in results[0]["rows"])]
    yield f"| Player | Trained | {' | '.join(opponents)} | Rated |"
    yield f"|---|---|{'---|' * len(opponents)}---|"
    for result in results:
        for player in dict.fromkeys(row["player"] for row in result["rows"]):
            rows = {row["against"]: row for row in result["rows"] if row["player"] == player}
            scores = [_score(rows[against]) for against in opponents]
            first = rows[opponents[0]]
            name = f"{first.get('weights', player)}, {first['neuron']}" if first["neuron"] else player
            name = NAMES.get(player, name)
            if first.get("considered"):  # only in files from 2026-11-29 on
                name += f", {first['considered']} moves considered"
            rating = "{value:.0f} ({low:.0f} to {high:.0f})".format_map(first["rating"])
            yield f"| {name} | {_trained(first.get('training'))} | {' | '.join(scores)} | {rating} |"
    yield ""
    yield f"{how} with 95 % intervals; then how many were drawn, and by repetition."
    yield ""
    for result in results:
        yield f"- `{command(result)}`, {machine(result)}"


def _score(row: dict[str, Any]) -> str:
    """'89.2% (86.2% to 91.7%); 43, 4'"""
    return f"{row['score']:.1%} ({row['low']:.1%} to {row['high']:.1%}); {row['drawn']}, {row['by_repetition']}"


def _trained(training: dict[str, Any] | None) -> str:
    """'8,009 games, 53 min, 2 ranks'"""
    if training is None:
        return ""
    ranks = str(training["ranks"])
    ranks += " rank" if ranks.split()[-1] == "1" else " ranks"
    before = f", after the weights {training['began_with'][:8]}" if "began_with" in training else ""
    return f"{training['games']:,.0f} games, {60 * training['hours']:.0f} min, {ranks}{before}"


def spikes(result: dict[str, Any] | None) -> Iterator[str]:
    """Spike rates by layer, and operations of an evaluation next to those of the control."""
    if result is None:
        yield "No result of `python -m benchmarks.chess_spiking.spikes` is committed yet."
        return
    rows = result["rows"]
    yield f"| Of one evaluation | {' | '.join(row['net'] for row in rows)} |"
    yield f"|---|{'---|' * len(rows)}"
    for name, key in (
        ("Synaptic operations of spikes", "synaptic_operations"),
        ("Multiply-accumulates of real numbers", "multiply_accumulates"),
        ("Multiply-accumulates of the same net with ReLUs", "control_multiply_accumulates"),
    ):
        yield f"| {name} | {' | '.join(f'{row[key]:,.0f}' for row in rows)} |"
    for key in (key for key in rows[0] if key.startswith("spike_rate/")):
        layer = key.removeprefix("spike_rate/")
        rates = [f"{row[key]:.1%}, {row[f'dead/{layer}']:.1%}" if key in row else "" for row in rows]
        yield f"| `{layer}`: spikes a neuron and step, dead neurons | {' | '.join(rates)} |"
    yield ""
    yield f"{result['positions']:,} positions of {result['of']}. `{result['origin']['command']}`, {machine(result)}."

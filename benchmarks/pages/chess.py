"""The tables of docs/chess-core.md, from the result files of the chess benchmarks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def chess(proofs: Path, results: Path) -> Iterator[str]:
    """All tables, each with the command that made it."""
    for kind, lines in KINDS.items():
        path = max(results.glob(f"{kind}_*.json"), default=None)
        if path is None:
            yield f"No result of `{kind}.py` is committed yet."
        else:
            yield from lines(json.loads(path.read_text(encoding="utf-8")))
            yield ""


def where(found: dict[str, Any]) -> str:
    """The command, date, hardware and versions of a result."""
    origin = found.get("origin", found)
    hardware, versions = origin["hardware"], origin["versions"]
    text = ", ".join(f"{name} {versions[name]}" for name in ("python", "numba", "numpy") if name in versions)
    machine = f"{hardware['cores']} cores of {hardware.get('cpu') or hardware.get('processor')}"
    return f"`{origin['command']}`, {origin['date'][:10]}, {machine}, {text}."


def core(found: dict[str, Any]) -> Iterator[str]:
    """The comparison with each library, and how the time of a search is spent."""
    yield f"**Speed compared with other libraries.** {where(found)} Medians with quartiles; the sides run in turns."
    yield ""
    yield "| work | threads | library | per second | ratio ours / theirs | goal |"
    yield "|---|---|---|---|---|---|"
    for comparison in found["comparisons"]:
        for side in comparison["sides"]:
            head = f"| {comparison['name']} ({comparison['unit'].removesuffix('/s')}) | {comparison['threads']} "
            name = f"{side['side']} {side.get('version', '')}".strip()
            if "rate" not in side:
                yield f"{head}| {name} | not measured: {side['missing']} | | |"
                continue
            ratio = side.get("ours_by_theirs")
            text = f"{ratio['median']:.1f}x ({ratio['p25']:.1f} to {ratio['p75']:.1f})" if ratio else ""
            goal = f"{side['goal']:.0f}x" if ratio and side.get("goal") else ""
            lacks = f" (lacks {side['lacks']})" if side.get("lacks") else ""
            yield f"{head}| {name}{lacks} | {side['rate']['median']:,.0f} | {text} | {goal} |"
    yield ""
    for differs in dict.fromkeys(comparison["differs"] for comparison in found["comparisons"]):
        yield f"- {differs}"
    yield ""
    if "two_by_one" not in found["split"]:
        return
    yield "**Time of a search of 256 games x 100 simulations with the tiny net, by part.**"
    yield ""
    yield "| threads | simulations/s | trees and rules | planes and priors | net |"
    yield "|---|---|---|---|---|"
    for threads in ("1", "2"):
        part = found["split"][threads]
        shares = " | ".join(f"{part[name]['median']:.1%}" for name in ("tree_and_rules", "planes_and_priors", "net"))
        yield f"| {threads} | {part['simulations_per_s']['median']:,.0f} | {shares} |"
    yield ""
    yield (
        f"Goal for trees and rules on two threads: {found['split']['goal_tree_share']:.0%}. "
        f"Two threads by one: {found['split']['two_by_one']['median']:.2f}x."
    )


def rules(found: dict[str, Any]) -> Iterator[str]:
    """The counts, positions and games that were checked."""
    perft, positions, trip = found["perft"], found["random_positions"], found["round_trip"]
    yield f"**Correctness of the rules.** {where(found)}"
    yield ""
    yield f"- {perft['counts']} perft counts, {perft['nodes']:,} nodes: {len(perft['wrong'])} wrong."
    yield (
        f"- {positions['positions']:,} random positions compared with python-chess {positions['python_chess']}: "
        f"{0 if positions['wrong'] is None else 1} wrong."
    )
    yield (
        f"- {trip['games']:,} own games ({trip['plies']:,} plies) written, read and written again: "
        f"{len(trip['damaged'])} damaged, {trip['unequal']} unequal; {trip['sample']} read by python-chess: "
        f"{trip['sample_unequal']} unequal."
    )


def uci(found: dict[str, Any]) -> Iterator[str]:
    """Random scripts of commands, and games against itself on a clock."""
    yield "**The UCI engine.**"
    yield ""
    for part in found.values():
        about = f"{where(part)}{' Cut short.' if part['cut_short'] else ''}"
        if "scripts" in part:
            yield (
                f"- {part['scripts']} scripts, {part['searches']:,} searches, faults: {len(part['faults'])}. From the "
                f"start of a process to `uciok` {part['start_to_uciok_s']['median']:.2f} s, to `readyok` "
                f"{part['start_to_readyok_s']['median']:.2f} s (medians, kernels already compiled). {about}"
            )
            continue
        faults, least_s = sum(part["faults"].values()), part["least_time_left_s"]["least"]
        yield (
            f"- {part['games']:,} games of `{part['player']}` against itself at {part['time_control']}: {faults} "
            f"lost on time or by another fault; the least time on a clock after a move: {least_s:.2f} s. {about}"
        )


def engine(found: dict[str, Any]) -> Iterator[str]:
    """Speed, depth, tactics, threads and games of the engine: the parts that were measured."""
    for name, lines in ENGINE_PARTS.items():
        if name not in found:
            yield f"**The engine: {name}.** Not measured: `python -m benchmarks.chess.engine --only {name}`."
            yield ""
            continue
        load = found[name]["origin"]["load_average"][0]
        yield f"**The engine: {name}.** {where(found[name])} Load of the machine at the start: {load:.1f}."
        yield ""
        yield from lines(found[name])
        yield ""


def engine_speed(found: dict[str, Any]) -> Iterator[str]:
    """Nodes a second."""
    yield "| evaluation | nodes a CPU second, one thread | goal |"
    yield "|---|---|---|"
    for row in found["rows"]:
        rate, goal = row["nodes_per_cpu_s"], row["goal"]
        yield f"| {row['evaluation']} | {rate['median']:,.0f} | {f'{goal:,.0f}' if goal else ''} |"


def engine_depth(found: dict[str, Any]) -> Iterator[str]:
    """Depth next to Stockfish."""
    for side in found["sides"]:
        name = found["stockfish"].partition(" by ")[0] if side["player"] == "stockfish" else side["player"]
        positions = len(side["depths"])
        yield f"- {name}: depth {side['median']:g} after {side['seconds']:g} s (median of {positions} positions)."


def engine_suite(found: dict[str, Any]) -> Iterator[str]:
    """Positions solved."""
    for row in found["players"]:
        yield (
            f"- `{row['player']}` solves {row['solved']} of the {found['positions']} positions of {found['name']} "
            f"(sha256 {found['sha256'][:16]}) in {found['seconds']:g} s each, one thread; goal {found['goal']}. "
            f"{row['mean_nodes']:,} nodes on average."
        )
    if found["name"] == "wac":
        yield "- wac is Win at Chess (Reinfeld 1945). Nobody has stated a licence for the file, so it is not here."


def engine_threads(found: dict[str, Any]) -> Iterator[str]:
    """Two threads against one."""
    ratio = found["ratio"]["median"]
    yield (
        f"- Two threads reach depth {found['depth']} {ratio:.2f} times as fast as one ({found['positions']} positions, "
        f"{found['ratio']['n']} rounds); goal {found['goal']}."
    )


def engine_thread_games(found: dict[str, Any]) -> Iterator[str]:
    """Games of two threads against one."""
    yield (
        f"- Two threads against one, {1000 * found['movetime_s']:g} ms a move: {found['won']} won, "
        f"{found['lost']} lost, {found['drawn']} drawn, {found['elo']:+.0f} Elo "
        f"({found['low']:+.0f} to {found['high']:+.0f}); goal {found['goal']:+d}."
    )


def engine_games(found: dict[str, Any]) -> Iterator[str]:
    """Games against alphabeta:5."""
    yield (
        f"- Against alphabeta:5, each with about {found['nodes']:,} nodes a move: {found['won']} won, "
        f"{found['lost']} lost, {found['drawn']} drawn."
    )


def engine_bench(found: dict[str, Any]) -> Iterator[str]:
    """The signature of the search."""
    yield f"- `ranks chess bench` counts {found['depth 10']:,} nodes."


ENGINE_PARTS = {
    "bench": engine_bench,
    "speed": engine_speed,
    "depth": engine_depth,
    "suite": engine_suite,
    "threads": engine_threads,
    "thread-games": engine_thread_games,
    "games": engine_games,
}
"""The parts of `benchmarks/chess/engine.py`."""


def ladder(found: dict[str, Any]) -> Iterator[str]:
    """The ratings of the pool."""
    yield f"**The ladder.** {where(found)} {found['games']:,} games; scale: {found['scale']}."
    yield ""
    yield "| player | Elo | 95 % | games | Elo above the next | 95 % | games with the next | separated |"
    yield "|---|---|---|---|---|---|---|---|"
    for row in found["standings"]:
        elo, low, high = row["elo"]
        above = row["above_next"]
        beyond = f"{above[0]:.0f} | {above[1]:.0f} to {above[2]:.0f} | {row['games_with_next']}" if above else " | | "
        separated = ("yes" if row["separated"] else "no") if above else ""
        yield f"| {row['player']} | {elo:.0f} | {low:.0f} to {high:.0f} | {row['games']} | {beyond} | {separated} |"


def coverage(found: dict[str, Any]) -> Iterator[str]:
    """How often the intervals contain the true value, in simulated pools."""
    yield f"**Coverage of the 95 % intervals** in simulated pools of seven players. {where(found)}"
    yield ""
    yield "| simulated world | pairs in each pairing | pools | ratings | differences of neighbours |"
    yield "|---|---|---|---|---|"
    for world in found["worlds"]:
        covered = world["covered"]
        shares = f"{covered['rating']:.1%} | {covered['neighbours']:.1%}"
        yield f"| {world['name']} | {world['pairs']} | {world['pools']:,} | {shares} |"


def compilation(found: dict[str, Any]) -> Iterator[str]:
    """First and later starts."""
    yield f"**Start times** with and without compilation. {where(found)}"
    yield ""
    yield "| part | first start | later |"
    yield "|---|---|---|"
    for name, start in found["starts"].items():
        yield f"| {name} | {start['first_s']:.1f} s | {start['later_s']:.2f} s |"


KINDS = {
    "chess_core": core,
    "chess_rules": rules,
    "chess_uci": uci,
    "chess_engine": engine,
    "chess_ladder": ladder,
    "rating_coverage": coverage,
    "chess_compile": compilation,
}
"""Result files by the beginning of their names."""

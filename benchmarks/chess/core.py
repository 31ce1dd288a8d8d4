"""Speed of the chess core compared with other libraries: random games, tree search, search with a
net.

    python -m benchmarks.chess.core --peers PYTHON [PYTHON ...]     about 9 minutes on 2 cores; nothing else should run

PYTHON is the interpreter of an environment that holds the peers (the other libraries). Each peer is
run by the first interpreter that has it:

    python3.11 -m venv peers && peers/bin/pip install -U pip && peers/bin/pip install --group bench-peers
    python3.13 -m venv peers313 && peers313/bin/pip install bulletchess==0.4.0

The project never imports the peers, because some are under the GPL. Each side is a process that
prepares once (compiles, fills its caches; not counted) and then measures in turns: ours, A, B, ...,
ours, A, B, ... The figures are medians over the rounds. The ratios are medians, with quartiles, of
ours by theirs within a round. With two threads, ours is one process with two threads, and a library
that runs on one thread is two processes, one on each core.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from typing import Any

from benchmarks.chess.plan import SPLIT, SPLIT_GOAL, Comparison, comparisons
from benchmarks.chess.side_process import SideProcess
from benchmarks.measure import origin, ratios, spread, write_result


def compare(comparison: Comparison, peers: Sequence[str], rounds: int) -> dict[str, Any]:
    """Measure the sides in turn; one row for each, with its ratio to ours."""
    pythons = [[sys.executable], *[peers] * (len(comparison.sides) - 1)]
    sides = [
        SideProcess(side, comparison.threads, found) for side, found in zip(comparison.sides, pythons, strict=True)
    ]
    try:
        for _ in range(rounds):
            for side in sides:
                if side.ready:
                    side.measure(comparison.slice_s)
        ours = sides[0]
        rows = [row(side, ours, comparison) for side in sides]
    finally:
        for side in sides:
            side.close()
    return {
        "name": comparison.name,
        "unit": comparison.unit,
        "threads": comparison.threads,
        "differs": comparison.differs,
        "sides": rows,
    }


def row(side: SideProcess, ours: SideProcess, comparison: Comparison) -> dict[str, Any]:
    """What was found of one side; one that is missing or fell silent has no figures but says
    why."""
    found: dict[str, Any] = {"side": side.side.name, "goal": side.side.goal, **side.info}
    if side.ready:
        sums = {name: round(sum(answer[name] for answer in side.answers), 3) for name in side.answers[0]}
        found |= {"rate": spread(side.rates, 1), "rates": [round(rate, 1) for rate in side.rates], "sums": sums}
    if side.ready and ours.ready and side is not ours:
        found["ours_by_theirs"] = ratios(ours.rates, side.rates)
    return found


def split(rounds: int) -> dict[str, Any]:
    """Where the time of a 256 x 100 search goes, on one thread and on two, in turns."""
    sides = {threads: SideProcess(SPLIT, threads, [sys.executable]) for threads in (1, 2)}
    try:
        for _ in range(rounds):
            for side in sides.values():
                if side.ready:
                    side.measure(0.0)
        if not all(side.ready for side in sides.values()):
            return {str(threads): side.info for threads, side in sides.items()}
        found = {str(threads): shares(side.answers) for threads, side in sides.items()}
        return {**found, "two_by_one": ratios(sides[2].rates, sides[1].rates), "goal_tree_share": SPLIT_GOAL}
    finally:
        for side in sides.values():
            side.close()


def shares(answers: Sequence[dict[str, float]]) -> dict[str, Any]:
    """Shares of the search's wall time. Trees and rules: all that is not the evaluator; it does not
    run meanwhile."""

    def of(name: str) -> list[float]:
        return [answer[name] for answer in answers]

    in_net = [net / (net + rest) for net, rest in zip(of("net_thread_s"), of("encoding_thread_s"), strict=True)]
    evaluation = [part / wall for part, wall in zip(of("evaluation_s"), of("search_s"), strict=True)]
    return {
        "simulations_per_s": spread([a["done"] / a["seconds"] for a in answers], 1),
        "tree_and_rules": spread([1 - share for share in evaluation]),
        "planes_and_priors": spread([share * (1 - net) for share, net in zip(evaluation, in_net, strict=True)]),
        "net": spread([share * net for share, net in zip(evaluation, in_net, strict=True)]),
        "rows_with_a_leaf": spread([a["leaves"] / a["rows"] for a in answers]),
    }


def show(found: dict[str, Any]) -> None:
    """A table of one comparison."""
    print(f"\n{found['name']}, {found['threads']} thread{'s'[: found['threads'] - 1]} ({found['unit']})")
    for side in found["sides"]:
        if "rate" not in side:
            print(f"  {side['side']:28} not measured: {side['missing']}")
            continue
        rate, ratio = side["rate"], side.get("ours_by_theirs")
        line = f"  {side['side']:28} {rate['median']:12,.0f} ({rate['p25']:,.0f} to {rate['p75']:,.0f})"
        if ratio:
            line += f"   ours is {ratio['median']:.1f}x ({ratio['p25']:.1f} to {ratio['p75']:.1f})"
            line += f", goal {side['goal']:.0f}x" if side["goal"] else ""
        print(line + (f"; lacks {side['lacks']}" if side.get("lacks") else ""), flush=True)


def show_split(found: dict[str, Any]) -> None:
    """Where the time went, as percentages."""
    print("\n256 games x 100 simulations with the tiny net")
    for threads in ("1", "2"):
        parts = found[threads]
        if "missing" in parts:
            print(f"  {threads} thread(s): not measured: {parts['missing']}")
            continue
        names = ("tree_and_rules", "planes_and_priors", "net")
        text = ", ".join(f"{name.replace('_', ' ')} {parts[name]['median']:.1%}" for name in names)
        print(f"  {threads} thread(s): {parts['simulations_per_s']['median']:,.0f} simulations/s: {text}")
    if "two_by_one" in found:
        print(
            f"  2 threads by 1: {found['two_by_one']['median']:.2f}x; goal for trees and rules on 2: {SPLIT_GOAL:.0%}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", nargs="*", default=[], metavar="PYTHON", help="interpreters that have the peers")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="only comparisons whose name has this in it")
    asked = parser.parse_args()
    started_s = time.perf_counter()
    found = {"origin": origin(), "rounds": asked.rounds, "comparisons": []}
    for comparison in comparisons():
        if asked.only in comparison.name:
            found["comparisons"].append(compare(comparison, asked.peers, asked.rounds))
            show(found["comparisons"][-1])
    if asked.only in "split":
        found["split"] = split(asked.rounds)
        show_split(found["split"])
    found["seconds"] = round(time.perf_counter() - started_s, 1)
    if asked.only:
        print("\nnot saved, since only a part was measured")
        return
    path = write_result(f"chess_core_{found['origin']['date'][:10]}", found)
    print(f"\n{found['seconds']:.0f} s; written to {path.name} in {path.parent.name}")


if __name__ == "__main__":
    main()

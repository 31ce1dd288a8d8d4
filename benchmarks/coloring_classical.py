"""Moves per second of TabuCol: ours beside a plain NumPy one and that of gcol.

    python benchmarks/coloring_classical.py [--peer PYTHON] [--quick]      about 3 minutes; nothing else should run

PYTHON is the interpreter of an environment that holds gcol, which is never imported by the project:

    python3 -m venv peers && peers/bin/pip install gcol==2.2

The ways take turns: ours, NumPy, gcol, ours, ...; the first round is thrown away. In each round a way makes as many
moves as take it about --slice-s, from another seed, with too few colours to succeed; later in the round it makes none,
and that time, of its first colouring and its tables, is taken off. gcol starts from DSATUR's colours, the others from
random ones; where all moves are tabu, gcol makes a random one, the others none, which counts as a move.

Writes benchmarks/results/coloring_classical_DATE.json.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from coloring_peers import numpy_tabucol
from measure import alternate, environment, origin, ratios, shown, spread, write_result

from ranks.workloads.graph_coloring.classical.tabucol import tabucol
from ranks.workloads.graph_coloring.graphs.graph import Graph

WORKER = Path(__file__).resolve().parent / "coloring_peers" / "gcol_worker.py"


@dataclass(frozen=True)
class Case:
    """A graph, and fewer colours than anybody can colour it with."""

    name: str
    graph: Graph
    k: int


def random_graph(n: int, degree: float, k: int) -> Case:
    present_NN = np.random.default_rng(n).random((n, n)) < degree / (n - 1)
    return Case(f"random, {n} nodes, average degree {degree:g}", Graph.of(n, np.argwhere(np.triu(present_NN, 1))), k)


def queen(board: int, k: int) -> Case:
    squares = enumerate(itertools.product(range(board), repeat=2))
    attacks = [
        (i, j)
        for (i, (a, b)), (j, (c, d)) in itertools.combinations(squares, 2)
        if a == c or b == d or abs(a - c) == abs(b - d)
    ]
    return Case(f"queen {board} x {board}", Graph.of(board * board, attacks), k)


CASES = (random_graph(125, 62.0, 15), random_graph(500, 249.5, 44), queen(10, 10), random_graph(300, 5.5, 3))
"""The first two are drawn as DSJC125.5 and DSJC500.5 are; their numbers of colours lie below all that are known."""


class Gcol:
    """gcol's process. `facts`: its version, or why there is none."""

    def __init__(self, python: str | None) -> None:
        self.process: subprocess.Popen[str] | None = None
        self.facts: dict[str, str] = {"missing": "no Python given for it (--peer)"}
        self.known: set[str] = set()
        if python is not None:
            command, pipe = [python, str(WORKER)], subprocess.PIPE
            self.process = subprocess.Popen(command, env=environment(), stdin=pipe, stdout=pipe, text=True)
            self.facts = self.answer()

    def answer(self) -> dict[str, Any]:
        assert self.process is not None
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"missing": f"ended with exit code {self.process.wait()}"}

    def tabucol(self, case: Case, seed: int, moves: int) -> int:
        """Conflicts of the best colouring."""
        assert self.process is not None
        assert self.process.stdin is not None
        asked: dict[str, Any] = {"graph": case.name, "k": case.k, "moves": moves, "seed": seed}
        if case.name not in self.known:
            asked |= {"n": case.graph.n, "edges": case.graph.edges_E2.tolist()}
            self.known.add(case.name)
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        return self.answer()["conflicts"]

    def close(self) -> None:
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.close()
            self.process.wait()


Way = Callable[[int, int], int]
"""(seed, moves) -> conflicts of the best colouring."""


def before(name: str) -> str:
    """What a way does up to its first move, as a block of its own."""
    return f"before {name}"


def seconds_of(way: Way, moves: int) -> float:
    start = time.perf_counter()
    way(0, moves)
    return time.perf_counter() - start


def moves_in(slice_s: float, way: Way) -> int:
    """How many moves take a way about so long, after what it needs before the first."""
    before_s, moves = seconds_of(way, 0), 50
    while (spent_s := seconds_of(way, moves) - before_s) < slice_s / 4:
        moves *= 4
    return round(moves * slice_s / spent_s)


def compare(case: Case, gcol: Gcol, rounds: int, slice_s: float) -> dict[str, Any]:
    """The ways in turns on one graph."""
    ways: dict[str, Way] = {
        "ours": lambda seed, moves: tabucol(case.graph, case.k, seed, max_moves=moves).conflicts,
        "NumPy": lambda seed, moves: numpy_tabucol.tabucol(case.graph, case.k, seed, moves)[0],
    }
    if "missing" not in gcol.facts:
        ways["gcol"] = lambda seed, moves: gcol.tabucol(case, seed, moves)
    moves = {name: moves_in(slice_s, way) for name, way in ways.items()}
    blocks = {**{name: (name, moves[name]) for name in ways}, **{before(name): (name, 0) for name in ways}}
    conflicts: dict[str, list[int]] = {block: [] for block in blocks}

    def turn(block: str) -> Callable[[int], None]:
        name, num_moves = blocks[block]
        return lambda _: conflicts[block].append(ways[name](1 + len(conflicts[block]), num_moves))

    seconds = alternate({block: turn(block) for block in blocks}, rounds=rounds, steps=1, clock=time.perf_counter)
    if any(0 in found for found in conflicts.values()):
        raise RuntimeError(f"{case.name} has a colouring with {case.k} colours: moves were not all made")
    rates = {
        name: [
            moves[name] / (whole_s - before_s)
            for whole_s, before_s in zip(seconds[name], seconds[before(name)], strict=True)
        ]
        for name in ways
    }
    return {
        "graph": case.name,
        "nodes": case.graph.n,
        "edges": case.graph.num_edges,
        "colours": case.k,
        "ways": {
            name: {
                "moves_per_second": spread(rates[name], 1),
                "moves_each_round": moves[name],
                "seconds_before_the_first": spread(seconds[before(name)]),
                "fewest_conflicts": spread([float(value) for value in conflicts[name][1:]], 1),
            }
            for name in ways
        },
        "ours_by_theirs": {name: ratios(rates["ours"], rates[name]) for name in ways if name != "ours"},
    }


def main() -> None:
    """Print a line for each graph and write the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", metavar="PYTHON", help="interpreter of an environment with gcol")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--slice-s", type=float, default=1.0, help="seconds of a way in a round")
    parser.add_argument("--quick", action="store_true", help="one short round; writes nothing")
    asked = parser.parse_args()
    rounds, slice_s = (1, 0.1) if asked.quick else (asked.rounds, asked.slice_s)
    gcol = Gcol(asked.peer)
    if "missing" in gcol.facts:
        print(f"gcol: absent, {gcol.facts['missing']}", file=sys.stderr)
    rows = []
    try:
        for case in CASES:
            rows.append(compare(case, gcol, rounds, slice_s))
            rates = {name: way["moves_per_second"]["median"] for name, way in rows[-1]["ways"].items()}
            told = ", ".join(f"{name} {rate:,.0f} moves/s" for name, rate in rates.items())
            more = "; ".join(f"{shown(by, 1)} x {name}" for name, by in rows[-1]["ours_by_theirs"].items())
            print(f"{case.name}, {case.k} colours: {told}; ours is {more}", flush=True)
    finally:
        gcol.close()
    if not asked.quick:
        result = {**origin(), "gcol": gcol.facts, "rounds": rounds, "slice_s": slice_s, "graphs": rows}
        result["versions"] |= {"numba": version("numba")}
        print(write_result(f"coloring_classical_{result['date'][:10]}", result))


if __name__ == "__main__":
    main()

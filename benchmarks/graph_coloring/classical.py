"""Moves per second of TabuCol: ours, a plain NumPy implementation, and that of gcol.

    python -m benchmarks.graph_coloring.classical [--peer PYTHON] [--quick]  about 3 minutes; nothing else should run

PYTHON is the interpreter of an environment with gcol. The project itself never imports gcol:

    python3 -m venv peers && peers/bin/pip install gcol==2.2

The implementations take turns: ours, NumPy, gcol, ours, ...; the first round is discarded. In each
round an implementation makes as many moves as take about --slice-s seconds, with another seed, and
with too few colours to succeed. Later in the round it makes no move; that time, for the first
colouring and its tables, is subtracted. gcol starts from DSATUR's colouring, the others from random
colours. If all moves are tabu, gcol makes a random move, the others none, which counts as a move.

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

from benchmarks.graph_coloring.peers import numpy_tabucol
from benchmarks.measure import alternate, environment, origin, ratios, shown, spread, write_result
from ranks.workloads.graph_coloring.classical.tabucol import tabucol
from ranks.workloads.graph_coloring.graphs.graph import Graph

WORKER = Path(__file__).resolve().parent / "peers" / "gcol_worker.py"


@dataclass(frozen=True)
class Case:
    """A graph, and a number of colours that is too low for it."""

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
"""The first two have the distribution of DSJC125.5 and DSJC500.5; k is below the best known numbers
of colours."""


class Gcol:
    """The process with gcol. `facts`: its version, or why it is missing."""

    def __init__(self, python: str | None) -> None:
        self.process: subprocess.Popen[str] | None = None
        self.facts: dict[str, str] = {"missing": "no Python given for it (--peer)"}
        self.known: set[str] = set()
        if python is not None:
            command, pipe = [python, str(WORKER)], subprocess.PIPE
            self.process = subprocess.Popen(command, env=environment(), stdin=pipe, stdout=pipe, text=True)
            self.facts = self.response()

    def response(self) -> dict[str, Any]:
        assert self.process is not None
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"missing": f"ended with exit code {self.process.wait()}"}

    def tabucol(self, case: Case, seed: int, moves: int) -> int:
        """The conflicts of the best colouring."""
        assert self.process is not None
        assert self.process.stdin is not None
        request: dict[str, Any] = {"graph": case.name, "k": case.k, "moves": moves, "seed": seed}
        if case.name not in self.known:
            request |= {"n": case.graph.n, "edges": case.graph.edges_E2.tolist()}
            self.known.add(case.name)
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return self.response()["conflicts"]

    def close(self) -> None:
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.close()
            self.process.wait()


Search = Callable[[int, int], int]
"""(seed, moves) -> conflicts of the best colouring."""


def before(name: str) -> str:
    """The name of the block that makes no move."""
    return f"before {name}"


def seconds_of(search: Search, moves: int) -> float:
    start = time.perf_counter()
    search(0, moves)
    return time.perf_counter() - start


def moves_in(slice_s: float, search: Search) -> int:
    """How many moves take about `slice_s` seconds, without the time before the first move."""
    before_s, moves = seconds_of(search, 0), 50
    while (spent_s := seconds_of(search, moves) - before_s) < slice_s / 4:
        moves *= 4
    return round(moves * slice_s / spent_s)


def compare(case: Case, gcol: Gcol, rounds: int, slice_s: float) -> dict[str, Any]:
    """All implementations in turns on one graph."""
    searches: dict[str, Search] = {
        "ours": lambda seed, moves: tabucol(case.graph, case.k, seed, max_moves=moves).conflicts,
        "NumPy": lambda seed, moves: numpy_tabucol.tabucol(case.graph, case.k, seed, moves)[0],
    }
    if "missing" not in gcol.facts:
        searches["gcol"] = lambda seed, moves: gcol.tabucol(case, seed, moves)
    moves = {name: moves_in(slice_s, search) for name, search in searches.items()}
    blocks = {**{name: (name, moves[name]) for name in searches}, **{before(name): (name, 0) for name in searches}}
    conflicts: dict[str, list[int]] = {block: [] for block in blocks}

    def turn(block: str) -> Callable[[int], None]:
        name, num_moves = blocks[block]
        return lambda _: conflicts[block].append(searches[name](1 + len(conflicts[block]), num_moves))

    seconds = alternate({block: turn(block) for block in blocks}, rounds=rounds, steps=1, clock=time.perf_counter)
    if any(0 in found for found in conflicts.values()):
        raise RuntimeError(f"{case.name} has a colouring with {case.k} colours: moves were not all made")
    rates = {
        name: [
            moves[name] / (whole_s - before_s)
            for whole_s, before_s in zip(seconds[name], seconds[before(name)], strict=True)
        ]
        for name in searches
    }
    return {
        "graph": case.name,
        "nodes": case.graph.n,
        "edges": case.graph.num_edges,
        "colours": case.k,
        "implementations": {
            name: {
                "moves_per_second": spread(rates[name], 1),
                "moves_each_round": moves[name],
                "seconds_before_the_first": spread(seconds[before(name)]),
                "fewest_conflicts": spread([float(value) for value in conflicts[name][1:]], 1),
            }
            for name in searches
        },
        "ours_by_theirs": {name: ratios(rates["ours"], rates[name]) for name in searches if name != "ours"},
    }


def main() -> None:
    """Print a line for each graph and write the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", metavar="PYTHON", help="interpreter of an environment with gcol")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--slice-s", type=float, default=1.0, help="seconds of an implementation in a round")
    parser.add_argument("--quick", action="store_true", help="one short round; writes nothing")
    asked = parser.parse_args()
    rounds, slice_s = (1, 0.1) if asked.quick else (asked.rounds, asked.slice_s)
    gcol = Gcol(asked.peer)
    if "missing" in gcol.facts:
        print(f"gcol: missing, {gcol.facts['missing']}", file=sys.stderr)
    rows = []
    try:
        for case in CASES:
            rows.append(compare(case, gcol, rounds, slice_s))
            rates = {name: found["moves_per_second"]["median"] for name, found in rows[-1]["implementations"].items()}
            line = ", ".join(f"{name} {rate:,.0f} moves/s" for name, rate in rates.items())
            more = "; ".join(f"{shown(by, 1)} x {name}" for name, by in rows[-1]["ours_by_theirs"].items())
            print(f"{case.name}, {case.k} colours: {line}; ours is {more}", flush=True)
    finally:
        gcol.close()
    if not asked.quick:
        result = {**origin(), "gcol": gcol.facts, "rounds": rounds, "slice_s": slice_s, "graphs": rows}
        result["versions"] |= {"numba": version("numba")}
        print(write_result(f"coloring_classical_{result['date'][:10]}", result))


if __name__ == "__main__":
    main()

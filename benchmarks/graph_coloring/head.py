"""HEAD and TabuCol on hard public instances: CPU seconds on one core until a proper colouring.

    python -m benchmarks.graph_coloring.head FOLDER [FOLDER ...] [--seeds 20] [--quick]     about half an hour

FOLDER holds graph files of the DIMACS and COLOR02-04 sets (docs/graph-coloring.md says where they
are). Each case is an instance, a number of colours and a limit of CPU seconds. HEAD gets each seed
once; TabuCol gets the first seeds and the same seconds, from random colours. A row also has the
colours that DSATUR needs. The first line is the
moves per second of TabuCol on DSJC500.5 with 48 colours.

Writes benchmarks/results/coloring_head_DATE.json, also after each case.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.measure import origin, spread, write_result
from ranks.workloads.graph_coloring.classical.greedy import dsatur, num_colours
from ranks.workloads.graph_coloring.classical.head import head
from ranks.workloads.graph_coloring.classical.tabucol import tabucol
from ranks.workloads.graph_coloring.graphs.checker import problems
from ranks.workloads.graph_coloring.graphs.graph import Graph
from ranks.workloads.graph_coloring.graphs.read import read_graph


@dataclass(frozen=True)
class Case:
    """`bar`: how many of 20 seeds HEAD must solve within `limit_s` CPU seconds."""

    instance: str
    k: int
    limit_s: float
    bar: int


CASES = (
    Case("DSJC500.5", 49, 10.0, 18),
    Case("DSJC500.5", 48, 90.0, 18),
    Case("le450_15c", 15, 10.0, 19),
    Case("flat300_28_0", 31, 10.0, 19),
    Case("DSJC250.5", 28, 10.0, 19),
    Case("DSJC500.1", 12, 10.0, 19),
    Case("DSJC1000.5", 85, 300.0, 15),
)
SPEED_CASE, SPEED_MOVES, SPEED_ROUNDS, SPEED_BAR = Case("DSJC500.5", 48, 0.0, 0), 300_000, 11, 750_000
Search = Callable[[Graph, int, int, float], Any]
"""(graph, k, seed, CPU seconds) -> a result with colours_N, conflicts, moves and seconds."""


def by_head(graph: Graph, k: int, seed: int, limit_s: float) -> Any:
    return head(graph, k, seed, max_s=limit_s, clock=time.process_time)


def by_tabucol(graph: Graph, k: int, seed: int, limit_s: float) -> Any:
    return tabucol(graph, k, seed, max_s=limit_s, clock=time.process_time)


def read(folders: list[Path], instance: str) -> Graph:
    """The graph of an instance, from the first folder that has it."""
    for folder in folders:
        for path in (folder / f"{instance}.col", folder / f"{instance}.col.gz"):
            if path.exists():
                return read_graph(path, drop_self_loops=True)
    sys.exit(f"asked: {instance}; found: no such file in {', '.join(map(str, folders))}; do: name its folder")


def runs(graph: Graph, case: Case, search: Search, seeds: int) -> list[dict[str, Any]]:
    """One row for each seed; a colouring counts only if the independent checker finds it proper."""
    rows: list[dict[str, Any]] = []
    for seed in range(seeds):
        found = search(graph, case.k, seed, case.limit_s)
        proper = not problems(graph.n, graph.edges_E2.tolist(), found.colours_N.tolist(), case.k)
        assert proper == (found.conflicts == 0), "the checker refutes a result"
        rows.append(
            {"seed": seed, "solved": proper, "conflicts": found.conflicts, "cpu_s": round(found.seconds, 2)}
            | {"moves": found.moves}
        )
    return rows


def measured(graph: Graph, case: Case, seeds: int, tabucol_seeds: int) -> dict[str, Any]:
    """HEAD and TabuCol on one case, and the colours of DSATUR."""
    row: dict[str, Any] = asdict(case) | {"dsatur_colours": num_colours(dsatur(graph))}
    for name, search, count in (("HEAD", by_head, seeds), ("TabuCol", by_tabucol, tabucol_seeds)):
        found = runs(graph, case, search, count)
        row[name] = {"solved": sum(one["solved"] for one in found), "seeds": count, "runs": found}
        row[name]["median_s"] = statistics.median(one["cpu_s"] for one in found) if found else None
    row["passed"] = row["HEAD"]["solved"] * 20 >= case.bar * seeds
    return row


def speed(graph: Graph, rounds: int) -> dict[str, Any]:
    """Moves per CPU second of TabuCol; the first round is discarded."""
    rates: list[float] = []
    for seed in range(rounds + 1):
        found = tabucol(graph, SPEED_CASE.k, seed, max_moves=SPEED_MOVES, clock=time.process_time)
        rates.append(found.moves / found.seconds)
    return spread(rates[1:], 0) | {"bar": SPEED_BAR}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--tabucol-seeds", type=int, default=2, help="TabuCol mostly takes all its seconds")
    parser.add_argument("--quick", action="store_true", help="one seed of the two fastest cases; writes nothing")
    asked = parser.parse_args()
    cases, seeds, rounds = (CASES[3:5], 1, 1) if asked.quick else (CASES, asked.seeds, SPEED_ROUNDS)
    graphs = {case.instance: read(asked.folders, case.instance) for case in (*cases, SPEED_CASE)}
    for search in (by_head, by_tabucol):  # no case pays for loading compiled code
        search(Graph.of(3, [(0, 1), (1, 2)]), 2, 0, 0.1)
    content: dict[str, Any] = {"origin": origin(), "seeds": seeds, "rows": []}
    content["moves_per_second"] = speed(graphs[SPEED_CASE.instance], rounds)
    print(f"TabuCol on {SPEED_CASE.instance}, k = {SPEED_CASE.k}: {content['moves_per_second']} moves/s", flush=True)
    for case in cases:
        row = measured(graphs[case.instance], case, seeds, min(seeds, asked.tabucol_seeds))
        content["rows"].append(row)
        found = ", ".join(
            f"{name} {row[name]['solved']} of {row[name]['seeds']} (median {row[name]['median_s']} s)"
            for name in ("HEAD", "TabuCol")
        )
        verdict = "PASS" if row["passed"] else "FAIL"
        print(f"{case.instance}, k = {case.k}, {case.limit_s:g} s: {found}; {verdict}", flush=True)
        if not asked.quick:
            path = write_result(f"coloring_head_{time.strftime('%Y-%m-%d')}", content)
    if not asked.quick:
        print(f"written: {path}")
    return 0 if all(row["passed"] for row in content["rows"]) else 1


if __name__ == "__main__":
    sys.exit(main())

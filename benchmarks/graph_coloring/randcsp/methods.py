"""The methods of benchmarks/graph_coloring/randcsp on some graphs of one cell.

First each graph is decided: a short TabuCol finds a colouring; or SAT solvers find one, or prove
that there is none (CaDiCaL, then MiniSat). Their limits count moves and conflicts, so the answer is
the same on any machine. Graphs without a colouring are solved by no method and given to none.

All methods run on the other graphs, on one thread. The CPU seconds of the raw network on these
graphs, divided by their number, are the limit of TabuCol and HEAD for each of them. A graph counts
as solved only if the independent checker finds its colouring proper.
"""

from __future__ import annotations

import hashlib
import itertools
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch

from benchmarks.graph_coloring.randcsp.instances import PER_CELL, PUBLISHED, Cell, Part, TestGraph, graphs_of, sha256_of
from ranks.engine.sharding import rng
from ranks.workloads.graph_coloring.classical.head import head
from ranks.workloads.graph_coloring.classical.repair import repair
from ranks.workloads.graph_coloring.classical.tabucol import tabucol
from ranks.workloads.graph_coloring.graphs.checker import problems
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints
from ranks.workloads.graph_coloring.net.decode import raw_search
from ranks.workloads.graph_coloring.net.model import ColouringNet
from ranks.workloads.graph_coloring.solving.budget import MoveClock
from ranks.workloads.graph_coloring.solving.proof import sat
from ranks.workloads.graph_coloring.solving.search.restarts import random_starts, repair_until_proper

VERSION = 1
"""Of everything in this file; results of different versions are not mixed. Add one with a change."""
SEED, TRIES, NODES_AT_ONCE = 2028, 12, 1_600
DECIDE_MOVES_PER_NODE, DECIDE_CONFLICTS = 2_000, 50_000
"""Limits of the decision: moves of TabuCol, then conflicts of both SAT solvers."""
CPU = torch.device("cpu")
Decision = Literal["colourable", "impossible", "unknown"]
Method = Callable[[Sequence[TestGraph]], list[Ints]]


def decide(test: TestGraph, k: int) -> Decision:
    """Whether a graph has a proper colouring with k colours."""
    found = tabucol(test.graph, k, seed_of("decide", test), max_moves=DECIDE_MOVES_PER_NODE * test.graph.n)
    if is_proper(test, found.colours_N, k):
        return "colourable"
    try:
        colours_N = sat.decide(test.graph, k, DECIDE_CONFLICTS * sat.MOVES_PER_CONFLICT, MoveClock())
    except sat.Impossible:
        return "impossible"
    if colours_N is None:
        return "unknown"
    assert is_proper(test, colours_N, k), "the checker refutes the colouring of a SAT solver"
    return "colourable"


def of_part(net: ColouringNet, part: Part, published: dict[tuple[int, int, int], dict[str, int]]) -> dict[str, Any]:
    """The row of some graphs of a cell: what they are, and how many of them each method solves."""
    cell, k = part.cell, part.cell.colours
    tests = graphs_of(cell, part.first + part.count)[part.first :]
    start_s = time.process_time()
    decisions = [decide(test, k) for test in tests]
    row: dict[str, Any] = {**vars(cell), "edges": cell.edges, "graphs": part.count, "graphs_sha256": sha256_of(tests)}
    row |= {kind: Counter(decisions)[kind] for kind in ("colourable", "impossible", "unknown")}
    row["decide_cpu_s"] = round(time.process_time() - start_s, 3)
    row["contradictions"] = sum(
        published[test.key][name] == 0
        for test, decision in zip(tests, decisions, strict=True)
        for name in PUBLISHED
        if decision == "impossible"
    )
    left = [test for test, decision in zip(tests, decisions, strict=True) if decision != "impossible"]
    row |= by_all_methods(net, left, k)
    row["published"] = {name: sum(published[test.key][name] == 0 for test in tests) for name in PUBLISHED}
    return row


def merged(rows: Sequence[dict[str, Any]], cell: Cell) -> dict[str, Any]:
    """The row of a cell from those of all its parts, in their order. `limits_s`: of the parts."""
    graphs = sum(row["graphs"] for row in rows)
    row = {**vars(cell), "edges": cell.edges, "graphs": graphs, "graphs_sha256": sha256_of(graphs_of(cell, graphs))}
    row |= {kind: sum(one[kind] for one in rows) for kind in ("colourable", "impossible", "unknown")}
    row |= {name: round(sum(one[name] for one in rows), 3) for name in ("decide_cpu_s", "contradictions")}
    limits_s = [one["limit_s"] for one in rows]
    row |= {"limit_s": round(sum(limits_s) / len(limits_s), 6), "limits_s": limits_s}
    for name in ("solved", "cpu_s", "published"):
        row[name] = {method: round(sum(one[name][method] for one in rows), 4) for method in rows[0][name]}
    return row


def by_all_methods(net: ColouringNet, tests: Sequence[TestGraph], k: int) -> dict[str, Any]:
    """`solved` graphs and `cpu_s` in all of each method, and `limit_s` of a search for a graph."""
    raw, of_net = measured(tests, k, lambda tests: by_net(net, tests, k))
    limit_s = raw["cpu_s"] / max(1, len(tests))

    def repaired(tests: Sequence[TestGraph]) -> list[Ints]:
        pairs = zip(tests, of_net, strict=True)
        return [repair(test.graph, k, colours_N, seed_of("repair", test)).colours_N for test, colours_N in pairs]

    def searched(search: Any) -> Method:
        return each(
            lambda test: (
                search(test.graph, k, seed_of("search", test), max_s=limit_s, clock=time.process_time).colours_N
            )
        )

    methods: dict[str, Method] = {
        "net + repair": repaired,
        "random + repair": each(by_repair(k, 1)),
        f"random + repair, {TRIES} tries": each(by_repair(k, TRIES)),
        "TabuCol": searched(tabucol),
        "HEAD": searched(head),
    }
    found = {"net": raw} | {name: measured(tests, k, method)[0] for name, method in methods.items()}
    return {
        "limit_s": round(limit_s, 6),
        "solved": {name: one["solved"] for name, one in found.items()},
        "cpu_s": {name: round(one["cpu_s"], 4) for name, one in found.items()},
    }


def measured(tests: Sequence[TestGraph], k: int, method: Method) -> tuple[dict[str, Any], list[Ints]]:
    """(graphs solved and CPU seconds in all, the colourings)."""
    start_s = time.process_time()
    colourings = method(tests)
    cpu_s = time.process_time() - start_s
    solved = sum(is_proper(test, colours_N, k) for test, colours_N in zip(tests, colourings, strict=True))
    return {"solved": solved, "cpu_s": cpu_s}, colourings


def by_net(net: ColouringNet, tests: Sequence[TestGraph], k: int) -> list[Ints]:
    """The best raw colouring of each graph in TRIES tries of 2n rounds; a proper one ends its tries."""
    best: dict[int, Ints] = {}
    left = list(range(len(tests)))
    for attempt in range(TRIES if tests else 0):
        if not left:
            break
        for i, colours_N in zip(left, one_try(net, [tests[i] for i in left], k, attempt), strict=True):
            graph = tests[i].graph
            if i not in best or graph.conflicts(colours_N) < graph.conflicts(best[i]):
                best[i] = colours_N
        left = [i for i in left if tests[i].graph.conflicts(best[i])]
    return [best[i] for i in range(len(tests))]


def one_try(net: ColouringNet, tests: Sequence[TestGraph], k: int, attempt: int) -> list[Ints]:
    """The raw colouring of each graph in one try, in batches of at most NODES_AT_ONCE nodes."""
    n, found = tests[0].graph.n, list[Ints]()
    for first in range(0, len(tests), size := max(1, NODES_AT_ONCE // n)):
        part = tests[first : first + size]
        answers = raw_search(
            net,
            [test.graph for test in part],
            k,
            seed=SEED,
            purpose=f"randcsp/{k}/{n}/{attempt}",
            tries=1,
            rounds=2 * n,
            device=CPU,
            items=[test.key[1] * (PER_CELL + 1) + test.key[2] for test in part],
        )
        found += [answer.colours_N for answer in answers]
    return found


def by_repair(k: int, tries: int) -> Callable[[TestGraph], Ints]:
    """The repair of the network (at most 2n moves), from random colours."""

    def colour(test: TestGraph) -> Ints:
        starts = itertools.islice(random_starts(test.graph.n, k, seed_of("random", test)), tries)
        return repair_until_proper(test.graph, k, seed_of("repair", test), starts).colours_N

    return colour


def each(colour: Callable[[TestGraph], Ints]) -> Method:
    return lambda tests: [colour(test) for test in tests]


def is_proper(test: TestGraph, colours_N: Ints, k: int) -> bool:
    return not problems(test.graph.n, test.graph.edges_E2.tolist(), colours_N.tolist(), k)


def seed_of(purpose: str, test: TestGraph) -> int:
    return rng.key(SEED, f"{purpose}/{test.key}", 0) & (2**63 - 1)


def warm_up(net: ColouringNet) -> None:
    """Loads compiled code, which no cell should pay for."""
    square = TestGraph((4, 4, 0), Graph.of(4, [(0, 1), (1, 2), (2, 3), (0, 3)]))
    by_all_methods(net, [square], 2)


def searches_sha256() -> str:
    """The hash of the answers of the searches on a hard graph, with fixed moves: of their behaviour."""
    test, k = graphs_of(Cell(256, 3, 4.58), 1)[0], 3
    start_N = next(random_starts(test.graph.n, k, 0))
    answers = [
        repair(test.graph, k, start_N, 0).colours_N,
        tabucol(test.graph, k, 0, max_moves=20_000, start_N=start_N).colours_N,
        head(test.graph, k, 0, max_moves=20_000).colours_N,
    ]
    return hashlib.sha256(b"".join(colours_N.astype("<i8").tobytes() for colours_N in answers)).hexdigest()

"""The proof table: hard 3-colourable graphs, the raw net beside everything a reader would hold against it.

Graphs are made afresh from a seed and purpose that training and validation never use. A graph counts as solved only
where the independent checker finds the colouring proper, with three colours.

Two budgets stand side by side, since they tell different things. The same tries: 12 for everything that starts from
something random, each with 64 rounds (nets) or with a repair of at most 2n moves; a try of the net takes about a
hundred times as long as one from random colours. The same time: for each graph at most as many CPU seconds, on one
thread, as the raw net took on average for a graph of this size.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch

from ranks.engine.export.export import arguments_of
from ranks.engine.sharding import rng
from ranks.workloads.graph_coloring.classical.greedy import dsatur
from ranks.workloads.graph_coloring.classical.tabucol import tabucol
from ranks.workloads.graph_coloring.data.hard_instances import hard_three_colourable
from ranks.workloads.graph_coloring.graphs.checker import problems
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints
from ranks.workloads.graph_coloring.net.decode import RawColouring, raw_search
from ranks.workloads.graph_coloring.net.model import ColouringNet
from ranks.workloads.graph_coloring.net.search import GraphSearch
from ranks.workloads.graph_coloring.solving.restarts import random_starts, repair_until_proper, until_deadline

SEED, PURPOSE, COLOURS = 2026, "table", 3
TRIES, ROUNDS = 12, 64
SIZES = (50, 100)
NUM_GRAPHS, NUM_GRAPHS_QUICK = 300, 40
RAW_BAR = {50: 0.95, 100: 0.50}
HARDNESS_BAR = {50: 0.55, 100: 0.10}
LEAD_BAR = 0.30
"""Trained beats untrained by at least this share of the graphs."""


@dataclass(frozen=True)
class Row:
    """One way on one size. `cpu_s`: CPU seconds for each graph. `bar`: what was asked of it, none where nothing was."""

    nodes: int
    way: str
    solved: int
    graphs: int
    share: float
    cpu_s: float
    bar: str | None = None
    passed: bool | None = None


Colourings = Sequence[Ints]


def hard_rows(trained: ColouringNet, quick: bool) -> list[Row]:
    """All ways on fresh graphs of each size, on one thread. `quick`: fewer graphs, the same comparison."""
    torch.manual_seed(SEED)
    untrained = ColouringNet(**arguments_of(trained)).to(torch.get_default_dtype())
    num_graphs = NUM_GRAPHS_QUICK if quick else NUM_GRAPHS
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return [row for n in SIZES for row in _size(n, num_graphs, trained, untrained)]
    finally:
        torch.set_num_threads(threads)


FACTS = {
    "seed": SEED,
    "tries": TRIES,
    "rounds": ROUNDS,
    "same tries": f"{TRIES} random starts",
    "same time": "CPU seconds of the process on one thread, for each graph as many as the raw net took on average",
    "checker": "every colouring counted as solved was found proper by checker.problems",
}


def _size(n: int, num_graphs: int, trained: ColouringNet, untrained: ColouringNet) -> list[Row]:
    graphs = [hard_three_colourable(SEED, PURPOSE, n, item) for item in range(num_graphs)]

    def row(way: str, run: Callable[[], Colourings]) -> Row:
        start = time.process_time()
        answers = run()
        cpu_s = (time.process_time() - start) / num_graphs
        solved = sum(
            not problems(g.n, g.edges_E2.tolist(), a.tolist(), COLOURS) for g, a in zip(graphs, answers, strict=True)
        )
        return Row(n, way, solved, num_graphs, solved / num_graphs, cpu_s)

    raw = row(f"trained net, raw, {TRIES} tries x {ROUNDS} rounds", lambda: _colours(_raw(trained, graphs)))
    start = row("untrained net, raw, the same tries and rounds", lambda: _colours(_raw(untrained, graphs)))
    budget_s = raw.cpu_s
    same = f"at most {budget_s:.3f} s of CPU a graph"
    each = list(enumerate(graphs))
    rows = [
        _judged(raw, f">= {RAW_BAR[n]:.0%}", raw.share >= RAW_BAR[n]),
        _judged(start, f"<= trained - {LEAD_BAR:.0%}", start.share <= raw.share - LEAD_BAR),
        row("trained net, repaired, the same tries", lambda: [_repaired(trained, g, i) for i, g in each]),
        row("random start, the same repair, the same tries", lambda: [_random(g, i, _so_many) for i, g in each]),
        row(
            f"random start, the same repair, {same}",
            lambda: [
                _random(g, i, lambda starts: until_deadline(budget_s, starts, time.process_time)) for i, g in each
            ],
        ),
    ]
    classical = row("DSATUR", lambda: [dsatur(g) for g in graphs])
    rows.append(_judged(classical, f"<= {HARDNESS_BAR[n]:.0%} (hardness)", classical.share <= HARDNESS_BAR[n]))
    moves = TRIES * ROUNDS
    rows.append(row(f"TabuCol, {moves} moves", lambda: [_tabu(g, i, moves=moves) for i, g in each]))
    rows.append(row(f"TabuCol, {same}", lambda: [_tabu(g, i, cpu_s=budget_s) for i, g in each]))
    return rows


def _judged(row: Row, bar: str, passed: bool) -> Row:
    return replace(row, bar=bar, passed=passed)


def _raw(model: ColouringNet, graphs: Sequence[Graph]) -> list[RawColouring]:
    cpu = torch.device("cpu")
    return raw_search(model, graphs, COLOURS, seed=SEED, purpose=PURPOSE, tries=TRIES, rounds=ROUNDS, device=cpu)


def _colours(answers: Sequence[RawColouring]) -> Colourings:
    return [a.colours_N for a in answers]


def _repaired(model: ColouringNet, graph: Graph, item: int) -> Ints:
    """Tries until one is proper after its repair; else the best one."""
    search = GraphSearch(model, graph, torch.device("cpu"))
    key = rng.key(SEED, PURPOSE, item)
    starts = (search.run(COLOURS, key, range(number, number + 1), ROUNDS).colours_SN[0] for number in range(TRIES))
    return repair_until_proper(graph, COLOURS, _seed("repair", item), starts).colours_N


def _random(graph: Graph, item: int, limited: Callable[[Iterator[Ints]], Iterator[Ints]]) -> Ints:
    """The same from random colours, as many as `limited` lets pass."""
    starts = limited(random_starts(graph.n, COLOURS, _seed("random", item)))
    return repair_until_proper(graph, COLOURS, _seed("random repair", item), starts).colours_N


def _so_many(starts: Iterator[Ints]) -> Iterator[Ints]:
    return itertools.islice(starts, TRIES)


def _tabu(graph: Graph, item: int, moves: int | None = None, cpu_s: float | None = None) -> Ints:
    seed = _seed("tabucol", item)
    return tabucol(graph, COLOURS, seed, max_moves=moves, max_s=cpu_s, clock=time.process_time).colours_N


def _seed(purpose: str, item: int) -> int:
    return rng.key(SEED, f"{PURPOSE}/{purpose}", item) & (2**63 - 1)

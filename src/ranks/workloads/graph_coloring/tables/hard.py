"""Hard 3-colourable graphs: the network without repair compared with other methods.

The graphs are generated with a seed and a purpose that training and validation never use. A graph
counts as solved only if the independent checker confirms a proper colouring with three colours.

There are two budgets, because they answer different questions. The same tries: every method with
random starts has 12 tries, each with 64 rounds (networks) or with a repair of at most 2n moves. A
try of the network takes about a hundred times as long as a try from random colours. The same time:
for each graph, at most the CPU seconds that the raw network needs on average for a graph of this
size, on one thread.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch

from ranks.engine.distributed.precision import one_thread
from ranks.engine.export.export import arguments_of
from ranks.engine.sharding import rng
from ranks.workloads.graph_coloring.classical.greedy import dsatur
from ranks.workloads.graph_coloring.classical.head import HeadResult, head
from ranks.workloads.graph_coloring.classical.tabucol import TabuResult, tabucol
from ranks.workloads.graph_coloring.data.families.hard_instances import hard_three_colourable
from ranks.workloads.graph_coloring.graphs.checker import problems
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints
from ranks.workloads.graph_coloring.net.decode import RawColouring, raw_search
from ranks.workloads.graph_coloring.net.model import ColouringNet
from ranks.workloads.graph_coloring.net.search import GraphSearch
from ranks.workloads.graph_coloring.solving.search.restarts import random_starts, repair_until_proper, until_deadline

SEED, PURPOSE, COLOURS = 2026, "table", 3
TRIES, ROUNDS = 12, 64
SIZES = (50, 100)
RAW_BAR = {50: 0.95, 100: 0.50}
HARDNESS_BAR = {50: 0.55, 100: 0.10}
LEAD_BAR = 0.30
"""The trained network solves at least this much more of the graphs than the untrained one."""


@dataclass(frozen=True)
class HardRow:
    """The result of one method on the graphs of one size."""

    nodes: int
    method: str
    solved: int
    graphs: int
    share: float
    """solved / graphs"""
    cpu_s: float
    """CPU seconds per graph."""
    bar: str | None = None
    """The requirement; None for a method without one."""
    passed: bool | None = None


Colourings = Sequence[Ints]


def hard_rows(trained: ColouringNet, num_graphs: int, sizes: Sequence[int] = SIZES) -> list[HardRow]:
    """The results of all methods on `num_graphs` graphs of each size, on one thread."""
    torch.manual_seed(SEED)
    untrained = ColouringNet(**arguments_of(trained)).to(torch.get_default_dtype())
    with one_thread():
        return [row for n in sizes for row in _rows_of_size(n, num_graphs, trained, untrained)]


SETTINGS = {
    "seed": SEED,
    "tries": TRIES,
    "rounds": ROUNDS,
    "same tries": f"{TRIES} random starts",
    "same time": "CPU seconds of the process on one thread, for each graph as many as the raw net took on average",
    "checker": "every colouring counted as solved was found proper by checker.problems",
}
"""The facts of the result file that describe these rows."""


def measure(method: str, graphs: Sequence[Graph], run: Callable[[], Colourings]) -> HardRow:
    """Run a method on graphs of one size; count the colourings that the checker confirms."""
    start_s = time.process_time()
    colourings = run()
    cpu_s = (time.process_time() - start_s) / len(graphs)
    solved = sum(
        not problems(g.n, g.edges_E2.tolist(), colours_N.tolist(), COLOURS)
        for g, colours_N in zip(graphs, colourings, strict=True)
    )
    return HardRow(graphs[0].n, method, solved, len(graphs), solved / len(graphs), cpu_s)


def _rows_of_size(n: int, num_graphs: int, trained: ColouringNet, untrained: ColouringNet) -> list[HardRow]:
    graphs = [hard_three_colourable(SEED, PURPOSE, n, item) for item in range(num_graphs)]

    def row(method: str, run: Callable[[], Colourings]) -> HardRow:
        return measure(method, graphs, run)

    raw = row(f"trained net, raw, {TRIES} tries x {ROUNDS} rounds", lambda: _colours(_raw(trained, graphs)))
    untrained_raw = row("untrained net, raw, the same tries and rounds", lambda: _colours(_raw(untrained, graphs)))
    budget_s = raw.cpu_s
    same_time = f"at most {budget_s:.3f} s of CPU a graph"
    each = list(enumerate(graphs))

    def first_tries(starts: Iterator[Ints]) -> Iterator[Ints]:
        return itertools.islice(starts, TRIES)

    def until_budget(starts: Iterator[Ints]) -> Iterator[Ints]:
        return until_deadline(budget_s, starts, time.process_time)

    rows = [
        _with_bar(raw, f">= {RAW_BAR[n]:.0%}", raw.share >= RAW_BAR[n]),
        _with_bar(untrained_raw, f"<= trained - {LEAD_BAR:.0%}", untrained_raw.share <= raw.share - LEAD_BAR),
        row("trained net, repaired, the same tries", lambda: [_net_repaired(trained, g, i) for i, g in each]),
        row(
            "random start, the same repair, the same tries",
            lambda: [_random_repaired(g, i, first_tries) for i, g in each],
        ),
        row(
            f"random start, the same repair, {same_time}",
            lambda: [_random_repaired(g, i, until_budget) for i, g in each],
        ),
    ]
    classical = row("DSATUR", lambda: [dsatur(g) for g in graphs])
    rows.append(_with_bar(classical, f"<= {HARDNESS_BAR[n]:.0%} (hardness)", classical.share <= HARDNESS_BAR[n]))
    moves = TRIES * ROUNDS
    rows.append(row(f"TabuCol, {moves} moves", lambda: [tabucol_colours(g, i, max_moves=moves) for i, g in each]))
    rows.append(row(f"TabuCol, {same_time}", lambda: [tabucol_colours(g, i, max_cpu_s=budget_s) for i, g in each]))
    rows.append(
        row(f"HEAD, {same_time}", lambda: [tabucol_colours(g, i, max_cpu_s=budget_s, search=head) for i, g in each])
    )
    return rows


def _with_bar(row: HardRow, bar: str, passed: bool) -> HardRow:
    return replace(row, bar=bar, passed=passed)


def _raw(model: ColouringNet, graphs: Sequence[Graph]) -> list[RawColouring]:
    cpu = torch.device("cpu")
    return raw_search(model, graphs, COLOURS, seed=SEED, purpose=PURPOSE, tries=TRIES, rounds=ROUNDS, device=cpu)


def _colours(found: Sequence[RawColouring]) -> Colourings:
    return [colouring.colours_N for colouring in found]


def _net_repaired(model: ColouringNet, graph: Graph, item: int) -> Ints:
    """The first try that is proper after its repair; else the best one."""
    search = GraphSearch(model, graph, torch.device("cpu"))
    key = rng.key(SEED, PURPOSE, item)
    starts = (search.run(COLOURS, key, range(number, number + 1), ROUNDS).colours_SN[0] for number in range(TRIES))
    return repair_until_proper(graph, COLOURS, _seed("repair", item), starts).colours_N


def _random_repaired(graph: Graph, item: int, limited: Callable[[Iterator[Ints]], Iterator[Ints]]) -> Ints:
    """The same from random colourings, as many as `limited` lets through."""
    starts = limited(random_starts(graph.n, COLOURS, _seed("random", item)))
    return repair_until_proper(graph, COLOURS, _seed("random repair", item), starts).colours_N


def tabucol_colours(
    graph: Graph,
    item: int,
    *,
    max_moves: int | None = None,
    max_cpu_s: float | None = None,
    search: Callable[..., TabuResult | HeadResult] = tabucol,
) -> Ints:
    """The colouring of TabuCol, or of HEAD, from random colours, within moves or CPU seconds."""
    seed = _seed("tabucol", item)
    return search(graph, COLOURS, seed, max_moves=max_moves, max_s=max_cpu_s, clock=time.process_time).colours_N


def _seed(purpose: str, item: int) -> int:
    return rng.key(SEED, f"{PURPOSE}/{purpose}", item) & (2**63 - 1)

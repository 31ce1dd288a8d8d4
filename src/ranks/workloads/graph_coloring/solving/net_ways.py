"""The net's ways to colour a graph: raw, repaired, and as the start of TabuCol. None starts from a classical colouring.

All share `ways.descend` with the classical ways: the same reduction, the same clique bound, the same clock.

Legend: N nodes, C nodes of a reduced graph.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import torch

from ranks.workloads.graph_coloring.classical.greedy import num_colours
from ranks.workloads.graph_coloring.classical.repair import repair
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints
from ranks.workloads.graph_coloring.net.model import ColouringNet
from ranks.workloads.graph_coloring.net.search import GraphSearch
from ranks.workloads.graph_coloring.solving.estimate import bounded_estimate
from ranks.workloads.graph_coloring.solving.other_k import with_more_colours
from ranks.workloads.graph_coloring.solving.ways import (
    OPENED,
    REDUCED,
    Answer,
    Way,
    descend,
    first_repaired,
    restarted_tabucol,
)

ROUNDS, MOST_ROUNDS = 64, 512
"""Rounds of a search's first tries, as in the tables; each further batch of tries gets twice as many, up to a limit."""
START_ROUNDS, START_SHARE = 16, 0.2
"""A start for TabuCol takes so many rounds, and at most this share of the attempt's time."""


@dataclass
class Told:
    """What a way did on its last graph. `found_by`: the part that made the last proper colouring."""

    chromatic: float = float("nan")
    """The reader's estimate of the chromatic number, where it is possible: see `bounded_estimate`."""
    found_by: str = "nothing"
    tries: int = 0
    moves: int = 0


@dataclass
class NetWays:
    """The ways of one net. `told` tells of the last call."""

    model: ColouringNet
    device: torch.device = torch.device("cpu")
    told: Told = field(default_factory=Told)

    def table(self) -> dict[str, Way]:
        """By the names they bear in tables. Only the last one takes away nodes that can be coloured last: where none is
        left, that alone would be a greedy colouring, and none of the net."""
        return {"net raw": self.raw, "net + repair": self.repaired, "net + TabuCol": self.pipeline}

    def raw(self, graph: Graph, budget_s: float, seed: int) -> Answer:
        """The fewest colours with which a try is proper as the net gave it."""
        return self._search(
            graph, budget_s, lambda left_s, k: descend(graph, left_s, seed, self._raw, first_k=k, reduces=False)
        )

    def repaired(self, graph: Graph, budget_s: float, seed: int, k: int | None = None) -> Answer:
        """The fewest colours after repair; what is left in conflict gets new colours. Or one search with `k`."""

        def search(left_s: float, first_k: int) -> Answer:
            return descend(
                graph, left_s, seed, self._repaired, first_k=first_k, only_k=k, reduces=False, opens=k is None
            )

        return self._search(graph, budget_s, search)

    def pipeline(self, graph: Graph, budget_s: float, seed: int, k: int | None = None) -> Answer:
        """Net and repair for a part of the time, then TabuCol from there downwards; or one search with `k`."""

        def search(left_s: float, first_k: int) -> Answer:
            if k is not None:
                return descend(graph, left_s, seed, self._tabucol, only_k=k)
            begin = time.perf_counter()
            first = descend(graph, START_SHARE * left_s, seed, self._repaired, first_k=first_k, opens=True)
            spent_s = time.perf_counter() - begin
            if first.optimal:
                return first
            start_N = with_more_colours(graph, first.colours_N)  # as it is, where it is proper
            rest = descend(graph, left_s - spent_s, seed, self._tabucol, start=lambda _: start_N)
            both = replace(rest, seconds=rest.seconds + spent_s, cpu_s=rest.cpu_s + first.cpu_s)
            if rest.num_colours == num_colours(start_N):
                return replace(both, found_s=first.found_s, note=first.note)
            return replace(both, found_s=(rest.found_s or 0.0) + spent_s)

        return self._search(graph, budget_s, search)

    def _search(self, graph: Graph, budget_s: float, search: Callable[[float, int], Answer]) -> Answer:
        """A search that begins at the reader's estimate; its time counts."""
        begin, begin_cpu = time.perf_counter(), time.process_time()
        estimate = GraphSearch(self.model, graph, self.device).chromatic
        self.told = Told(chromatic=bounded_estimate(graph, estimate))
        read_s, read_cpu_s = time.perf_counter() - begin, time.process_time() - begin_cpu
        answer = search(budget_s - read_s, round(self.told.chromatic))
        if answer.note and answer.conflicts == 0:
            self.told.found_by = {REDUCED: "reduction", OPENED: f"net + repair, {OPENED}"}[answer.note]
        return replace(
            answer,
            moves=self.told.moves,
            seconds=answer.seconds + read_s,
            cpu_s=answer.cpu_s + read_cpu_s,
            found_s=None if answer.found_s is None else answer.found_s + read_s,
        )

    def _raw(self, core: Graph, k: int, seconds: float, seed: int, known_C: Ints | None) -> tuple[Ints, int]:
        """Tries until one is proper as the net gave it."""
        del known_C
        return self._tries(core, k, seconds, seed, max_moves=0)

    def _repaired(self, core: Graph, k: int, seconds: float, seed: int, known_C: Ints | None) -> tuple[Ints, int]:
        """Tries until one is proper after its repair."""
        del known_C
        return self._tries(core, k, seconds, seed, max_moves=None)

    def _tries(self, core: Graph, k: int, seconds: float, seed: int, max_moves: int | None) -> tuple[Ints, int]:
        found = first_repaired(core, k, seed, self._long_tries(core, k, seconds, seed), max_moves)
        if found.conflicts == 0:
            self.told.found_by = "net + repair" if found.changes else "net"
        return found.colours_N, found.conflicts

    def _long_tries(self, core: Graph, k: int, seconds: float, seed: int) -> Iterator[Ints]:
        """What the net's tries leave, batch by batch until the time is over; of each batch the best ones first."""
        deadline = time.perf_counter() + seconds
        search = GraphSearch(self.model, core, self.device)
        rounds = ROUNDS
        for first in itertools.count(step=search.tries_at_once(k)):
            numbers = range(first, first + search.tries_at_once(k))
            found = search.run(k, seed, numbers, rounds, stop=lambda: time.perf_counter() > deadline)
            self.told.tries += len(numbers)
            yield from found.colours_SN[found.conflicts_S.argsort(kind="stable")]
            if time.perf_counter() >= deadline:
                return
            rounds = min(2 * rounds, MOST_ROUNDS)

    def _tabucol(self, core: Graph, k: int, seconds: float, seed: int, known_C: Ints | None) -> tuple[Ints, int]:
        """TabuCol from the known colouring, then from new tries of the net."""
        starts = self._short_tries(core, k, START_SHARE * seconds, seed)
        found, made = restarted_tabucol(core, k, seconds, seed, known_C, starts)
        self.told.moves += made
        if found.conflicts == 0:
            self.told.found_by = "net + TabuCol" if found.moves else "net + repair"
        return found.colours_N, found.conflicts

    def _short_tries(self, core: Graph, k: int, seconds: float, seed: int) -> Iterator[Ints]:
        """Again and again the best of some short tries, repaired; `seconds`: for each of these."""
        search = GraphSearch(self.model, core, self.device)
        for first in itertools.count(step=search.tries_at_once(k)):
            until = time.perf_counter() + seconds
            numbers = range(first, first + search.tries_at_once(k))
            found = search.run(k, seed, numbers, START_ROUNDS, stop=lambda at=until: time.perf_counter() > at)
            self.told.tries += len(numbers)
            yield repair(core, k, found.colours_SN[found.conflicts_S.argmin()], seed ^ first).colours_N

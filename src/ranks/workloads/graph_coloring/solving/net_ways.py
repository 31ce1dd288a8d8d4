"""The net's ways to colour a graph: raw, repaired, and as the start of TabuCol. None starts from a classical colouring.

All share `ways.descend` with the classical ways: the same reduction, the same clique bound, the same clock.

Legend: N nodes, C nodes of a reduced graph.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch

from ranks.workloads.graph_coloring.classical.greedy import num_colours
from ranks.workloads.graph_coloring.classical.repair import repair
from ranks.workloads.graph_coloring.classical.tabucol import tabucol
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints
from ranks.workloads.graph_coloring.net.model import ColouringNet
from ranks.workloads.graph_coloring.net.search import GraphSearch
from ranks.workloads.graph_coloring.solving.other_k import with_fewer_colours, with_more_colours
from ranks.workloads.graph_coloring.solving.ways import OPENED, REDUCED, Answer, Way, descend

ROUNDS, MOST_ROUNDS = 64, 512
"""Rounds of a search's first tries, as in the tables; each further batch of tries gets twice as many, up to the most."""
START_ROUNDS, START_SHARE = 16, 0.2
"""A start for TabuCol takes so many rounds, and at most this share of the attempt's time."""
FIRST_MOVES_PER_NODE = 2_000
"""TabuCol's moves from the first start; each further start gets twice as many as the one before."""

Mend = Callable[[Ints, int], tuple[Ints, int]]
"""(raw colours, number of the try) -> (colours, conflicts)."""


@dataclass
class Told:
    """What a way did on its last graph. `found_by`: the part that made the last proper colouring."""

    chromatic: float = float("nan")
    """The reader's estimate of the chromatic number."""
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

    def repaired(self, graph: Graph, budget_s: float, seed: int) -> Answer:
        """The fewest colours after repair; what is left in conflict gets new colours."""

        def search(left_s: float, k: int) -> Answer:
            return descend(graph, left_s, seed, self._repaired, first_k=k, reduces=False, opens=True)

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
        self.told = Told(chromatic=GraphSearch(self.model, graph, self.device).chromatic)
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
        return self._tries(core, k, seconds, seed, lambda colours_C, _: (colours_C, core.conflicts(colours_C)), "net")

    def _repaired(self, core: Graph, k: int, seconds: float, seed: int, known_C: Ints | None) -> tuple[Ints, int]:
        """Tries until one is proper after its repair."""
        del known_C

        def mend(colours_C: Ints, number: int) -> tuple[Ints, int]:
            fixed = repair(core, k, colours_C, seed ^ number)
            return fixed.colours_N, fixed.conflicts

        return self._tries(core, k, seconds, seed, mend, "net + repair")

    def _tries(self, core: Graph, k: int, seconds: float, seed: int, mend: Mend, name: str) -> tuple[Ints, int]:
        deadline = time.perf_counter() + seconds
        search = GraphSearch(self.model, core, self.device)
        best: tuple[Ints, int] | None = None
        first, rounds = 0, ROUNDS
        while best is None or (best[1] and time.perf_counter() < deadline):
            numbers = range(first, first + search.tries_at_once(k))
            found = search.run(k, seed, numbers, rounds, stop=lambda: time.perf_counter() > deadline)
            for place in found.conflicts_S.argsort(kind="stable").tolist():
                raw_C, raw = found.colours_SN[place], int(found.conflicts_S[place])
                colours_C, conflicts = mend(raw_C, numbers[place]) if raw else (raw_C, 0)
                if best is None or conflicts < best[1]:
                    best = colours_C, conflicts
                if conflicts == 0:
                    self.told.found_by = name if raw else "net"
                    break
            first, rounds = first + len(numbers), min(2 * rounds, MOST_ROUNDS)
        self.told.tries += first
        return best

    def _tabucol(self, core: Graph, k: int, seconds: float, seed: int, known_C: Ints | None) -> tuple[Ints, int]:
        """TabuCol from the known colouring with its smallest classes dissolved, or without one from the best of a few
        short tries, repaired; then from new tries, each time with twice the moves."""
        begin = time.perf_counter()
        best: tuple[Ints, int] | None = None
        moves, first = FIRST_MOVES_PER_NODE * core.n, 0
        search: GraphSearch | None = None
        while best is None or (best[1] and time.perf_counter() - begin < seconds):
            if best is None and known_C is not None:
                start_C = with_fewer_colours(core, known_C, k)
            else:
                search = search or GraphSearch(self.model, core, self.device)
                start_C = self._start(search, k, seed, first, START_SHARE * seconds)
                first += search.tries_at_once(k)
            left_s = max(seconds - (time.perf_counter() - begin), 0.0)
            result = tabucol(core, k, seed ^ first, max_moves=moves, max_s=left_s, start_N=start_C)
            self.told.moves += result.moves
            if best is None or result.conflicts < best[1]:
                best = result.colours_N, result.conflicts
            if result.conflicts == 0:
                self.told.found_by = "net + TabuCol" if result.moves else "net + repair"
            moves *= 2
        self.told.tries += first
        return best

    def _start(self, search: GraphSearch, k: int, seed: int, first: int, seconds: float) -> Ints:
        """The best of some short tries, repaired."""
        until = time.perf_counter() + seconds
        numbers = range(first, first + search.tries_at_once(k))
        found = search.run(k, seed, numbers, START_ROUNDS, stop=lambda: time.perf_counter() > until)
        return repair(search.graph, k, found.colours_SN[found.conflicts_S.argmin()], seed ^ first).colours_N

"""The net's ways to colour a graph: raw, repaired, and as the start of TabuCol. None starts from a classical colouring.

All share `ways.descend` with the classical ways: the same reduction, the same clique bound, the same clock.

Legend: N nodes, C nodes of a reduced graph.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import torch

from ranks.workloads.graph_coloring.classical.repair import repair
from ranks.workloads.graph_coloring.classical.tabucol import tabucol
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints
from ranks.workloads.graph_coloring.net.model import ColouringNet
from ranks.workloads.graph_coloring.net.search import GraphSearch
from ranks.workloads.graph_coloring.solving.ways import Answer, Attempt, Way, descend

ROUNDS = 64
"""Rounds of one try, as in the tables."""
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
        return {
            "net raw": partial(self._descend, attempt=self.raw, reduces=False),
            "net + repair": partial(self._descend, attempt=self.repaired, reduces=False),
            "net + TabuCol": partial(self._descend, attempt=self.tabucol),
        }

    def pipeline(self, graph: Graph, budget_s: float, seed: int, k: int | None) -> Answer:
        """Net, repair, TabuCol: the fewest colours, or one search with `k`."""
        return self._descend(graph, budget_s, seed, attempt=self.tabucol, only_k=k)

    def _descend(
        self,
        graph: Graph,
        budget_s: float,
        seed: int,
        *,
        attempt: Attempt,
        only_k: int | None = None,
        reduces: bool = True,
    ) -> Answer:
        """The descending search with this attempt from the reader's estimate on, or a search with one k."""
        begin = time.perf_counter()
        self.told = Told(chromatic=GraphSearch(self.model, graph, self.device).chromatic)
        read_s = time.perf_counter() - begin
        first_k = round(self.told.chromatic)
        answer = descend(graph, budget_s - read_s, seed, attempt, first_k=first_k, only_k=only_k, reduces=reduces)
        if answer.note and answer.conflicts == 0:
            self.told.found_by = "reduction"
        found_s = None if answer.found_s is None else answer.found_s + read_s
        return replace(answer, moves=self.told.moves, seconds=answer.seconds + read_s, found_s=found_s)

    def raw(self, core: Graph, k: int, seconds: float, seed: int) -> tuple[Ints, int]:
        """Tries until one is proper as the net gave it."""
        return self._tries(core, k, seconds, seed, lambda colours_C, _: (colours_C, core.conflicts(colours_C)), "net")

    def repaired(self, core: Graph, k: int, seconds: float, seed: int) -> tuple[Ints, int]:
        """Tries until one is proper after its repair."""

        def mend(colours_C: Ints, number: int) -> tuple[Ints, int]:
            fixed = repair(core, k, colours_C, seed ^ number)
            return fixed.colours_N, fixed.conflicts

        return self._tries(core, k, seconds, seed, mend, "net + repair")

    def _tries(self, core: Graph, k: int, seconds: float, seed: int, mend: Mend, name: str) -> tuple[Ints, int]:
        deadline = time.perf_counter() + seconds
        search = GraphSearch(self.model, core, self.device)
        best: tuple[Ints, int] | None = None
        first = 0
        while best is None or (best[1] and time.perf_counter() < deadline):
            numbers = range(first, first + search.tries_at_once(k))
            found = search.run(k, seed, numbers, ROUNDS, stop=lambda: time.perf_counter() > deadline)
            for place in found.conflicts_S.argsort(kind="stable").tolist():
                raw_C, raw = found.colours_SN[place], int(found.conflicts_S[place])
                colours_C, conflicts = mend(raw_C, numbers[place]) if raw else (raw_C, 0)
                if best is None or conflicts < best[1]:
                    best = colours_C, conflicts
                if conflicts == 0:
                    self.told.found_by = name if raw else "net"
                    break
            first += len(numbers)
        self.told.tries += first
        return best

    def tabucol(self, core: Graph, k: int, seconds: float, seed: int) -> tuple[Ints, int]:
        """The best of a few short tries, repaired, then TabuCol from there; again, each time with twice the moves."""
        begin = time.perf_counter()
        search = GraphSearch(self.model, core, self.device)
        best: tuple[Ints, int] | None = None
        moves, first = FIRST_MOVES_PER_NODE * core.n, 0
        while best is None or (best[1] and time.perf_counter() - begin < seconds):
            numbers = range(first, first + search.tries_at_once(k))
            until = time.perf_counter() + START_SHARE * seconds
            found = search.run(k, seed, numbers, START_ROUNDS, stop=lambda until=until: time.perf_counter() > until)
            place = int(found.conflicts_S.argmin())
            colours_C, conflicts, by = found.colours_SN[place], int(found.conflicts_S[place]), "net"
            if conflicts:
                fixed, by = repair(core, k, colours_C, seed ^ first), "net + repair"
                colours_C, conflicts = fixed.colours_N, fixed.conflicts
            if conflicts:
                left_s = max(seconds - (time.perf_counter() - begin), 0.0)
                result = tabucol(core, k, seed ^ first, max_moves=moves, max_s=left_s, start_N=colours_C)
                colours_C, conflicts, by = result.colours_N, result.conflicts, "net + TabuCol"
                self.told.moves += result.moves
            if best is None or conflicts < best[1]:
                best = colours_C, conflicts
            if conflicts == 0:
                self.told.found_by = by
            first += len(numbers)
            moves *= 2
        self.told.tries += first
        return best

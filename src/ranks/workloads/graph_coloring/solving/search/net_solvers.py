"""The solvers that use the net: raw, with repair, and as the start of TabuCol.

None starts from a classical colouring.

They share `decrease_colours` with the classical solvers: the same clique bound and the same clock.

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
from ranks.workloads.graph_coloring.solving.budget import WALL, SearchClock
from ranks.workloads.graph_coloring.solving.search.change_colours import with_more_colours
from ranks.workloads.graph_coloring.solving.search.decrease_colours import (
    BY_REDUCTION,
    WITH_MORE_COLOURS,
    Attempt,
    SolverResult,
    decrease_colours,
)
from ranks.workloads.graph_coloring.solving.search.estimate import bounded_estimate
from ranks.workloads.graph_coloring.solving.search.head_attempts import HeadAttempts
from ranks.workloads.graph_coloring.solving.search.restarts import repair_until_proper, restarted_tabucol
from ranks.workloads.graph_coloring.solving.search.solvers import Solver

ROUNDS, MAX_ROUNDS = 64, 512
"""Rounds of the first batch of tries; each further batch gets twice as many, up to MAX_ROUNDS."""
WORK_PER_MOVE = 10_000
"""Multiplications of the net that take about as long as a move of TabuCol."""
START_ROUNDS, START_SHARE = 16, 0.2
"""A start for TabuCol takes this many rounds, and at most this share of the time of the attempt."""


@dataclass
class NetReport:
    """What a solver did on its last graph.

    `found_by`: the component that found the last proper colouring.
    """

    chromatic: float = float("nan")
    """The net's estimate of the chromatic number, within bounds; see `bounded_estimate`."""
    found_by: str = "nothing"
    tries: int = 0
    moves: int = 0
    generations: int = 0


@dataclass
class NetSolvers:
    """The solvers of one net. `report` describes the last call."""

    model: ColouringNet
    device: torch.device = torch.device("cpu")
    clock: SearchClock = WALL
    report: NetReport = field(default_factory=NetReport)

    def by_name(self) -> dict[str, Solver]:
        """The solvers by their names in tables.

        Only the last two reduce the graph to its k-core: if the core is empty, that alone is a
        greedy colouring, which says nothing about the net.
        """
        return {
            "net raw": self.raw,
            "net + repair": self.repaired,
            "net + TabuCol": self.with_tabucol,
            "net + HEAD": self.with_head,
        }

    def raw(self, graph: Graph, budget_s: float, seed: int) -> SolverResult:
        """The fewest colours with which the net's own output is proper, without repair."""
        return self._search(
            graph,
            budget_s,
            lambda left_s, k: decrease_colours(
                graph, left_s, seed, self.raw_attempt, first_k=k, reduces=False, clock=self.clock
            ),
        )

    def repaired(self, graph: Graph, budget_s: float, seed: int, k: int | None = None) -> SolverResult:
        """The fewest colours after repair; nodes still in conflict get additional colours.

        With `k`: one search with k colours.
        """

        def search(left_s: float, first_k: int) -> SolverResult:
            return decrease_colours(
                graph,
                left_s,
                seed,
                self.repaired_attempt,
                first_k=first_k,
                only_k=k,
                reduces=False,
                adds_colours=k is None,
                clock=self.clock,
            )

        return self._search(graph, budget_s, search)

    def with_tabucol(self, graph: Graph, budget_s: float, seed: int) -> SolverResult:
        """Net and repair for START_SHARE of the time, then TabuCol with fewer and fewer colours."""
        return self.pipeline(graph, budget_s, seed, self.tabucol_attempt)

    def with_head(self, graph: Graph, budget_s: float, seed: int) -> SolverResult:
        """The same with HEAD after the first failure of TabuCol."""
        return self.pipeline(graph, budget_s, seed, self.head_attempts())

    def head_attempts(self) -> HeadAttempts:
        """Attempts of TabuCol from a try of the net, then of HEAD."""

        def start(core: Graph, k: int, seconds: float, seed: int) -> Ints:
            return next(self._short_tries(core, k, START_SHARE * seconds, seed))

        return HeadAttempts(self.clock, start)

    def pipeline(
        self,
        graph: Graph,
        budget_s: float,
        seed: int,
        attempt: Attempt,
        k: int | None = None,
        given_N: Ints | None = None,
    ) -> SolverResult:
        """Net and repair for START_SHARE of the time, then attempts with fewer and fewer colours.

        With `k`: only attempts with k colours. `given_N`: a proper colouring, which is the start of
        the attempts if the net finds none with fewer colours, or with `k`.
        """

        def search(left_s: float, first_k: int) -> SolverResult:
            if k is not None:
                return decrease_colours(graph, left_s, seed, attempt, only_k=k, hint_N=given_N, clock=self.clock)
            start_s = self.clock()
            first_result = decrease_colours(
                graph,
                START_SHARE * left_s,
                seed,
                self.repaired_attempt,
                first_k=first_k,
                adds_colours=True,
                clock=self.clock,
            )
            spent_s = self.clock() - start_s
            if first_result.optimal:
                return first_result
            start_N = with_more_colours(graph, first_result.colours_N)  # unchanged if it is proper
            given_is_better = given_N is not None and num_colours(given_N) < num_colours(start_N)
            start_N = given_N if given_N is not None and given_is_better else start_N
            rest = decrease_colours(graph, left_s - spent_s, seed, attempt, start=lambda _: start_N, clock=self.clock)
            both = replace(rest, seconds=rest.seconds + spent_s, cpu_s=rest.cpu_s + first_result.cpu_s)
            if rest.num_colours == num_colours(start_N) and not given_is_better:
                return replace(both, found_s=first_result.found_s, note=first_result.note)
            return replace(both, found_s=(rest.found_s or 0.0) + spent_s)

        result = self._search(graph, budget_s, search)
        if isinstance(attempt, HeadAttempts):
            self.report.moves, self.report.generations = attempt.moves, attempt.generations
            if attempt.found_by != "nothing":
                self.report.found_by = (
                    f"net + {attempt.found_by}" if attempt.found_by == "TabuCol" else attempt.found_by
                )
        return replace(result, moves=self.report.moves)

    def _search(self, graph: Graph, budget_s: float, search: Callable[[float, int], SolverResult]) -> SolverResult:
        """Runs a search from the net's estimate of the chromatic number; its time counts."""
        start_s, start_cpu_s = self.clock(), time.process_time()
        estimate = GraphSearch(self.model, graph, self.device).chromatic
        self.clock.charge(graph.n + 2 * graph.num_edges)
        self.report = NetReport(chromatic=bounded_estimate(graph, estimate))
        encode_s, encode_cpu_s = self.clock() - start_s, time.process_time() - start_cpu_s
        result = search(budget_s - encode_s, round(self.report.chromatic))
        if result.note and result.conflicts == 0:
            found_by = {BY_REDUCTION: "reduction", WITH_MORE_COLOURS: f"net + repair, {WITH_MORE_COLOURS}"}
            self.report.found_by = found_by[result.note]
        return replace(
            result,
            moves=self.report.moves,
            seconds=result.seconds + encode_s,
            cpu_s=result.cpu_s + encode_cpu_s,
            found_s=None if result.found_s is None else result.found_s + encode_s,
        )

    def raw_attempt(self, core: Graph, k: int, seconds: float, seed: int, known_C: Ints | None) -> tuple[Ints, int]:
        """Tries until the net's own output is proper."""
        del known_C
        return self._tries(core, k, seconds, seed, max_moves=0)

    def repaired_attempt(
        self, core: Graph, k: int, seconds: float, seed: int, known_C: Ints | None
    ) -> tuple[Ints, int]:
        """Tries until one is proper after repair."""
        del known_C
        return self._tries(core, k, seconds, seed, max_moves=None)

    def _tries(self, core: Graph, k: int, seconds: float, seed: int, max_moves: int | None) -> tuple[Ints, int]:
        found = repair_until_proper(core, k, seed, self._long_tries(core, k, seconds, seed), max_moves, self.clock)
        if found.conflicts == 0:
            self.report.found_by = "net + repair" if found.changes else "net"
        return found.colours_N, found.conflicts

    def _long_tries(self, core: Graph, k: int, seconds: float, seed: int) -> Iterator[Ints]:
        """The net's colourings until the time is over, in batches; the best of each batch first."""
        deadline = self.clock() + seconds
        search = GraphSearch(self.model, core, self.device)
        rounds = ROUNDS
        for first in itertools.count(step=search.tries_at_once(k)):
            numbers = range(first, first + search.tries_at_once(k))
            found = search.run(k, seed, numbers, rounds, self._stop(search, k, len(numbers), deadline))
            self.report.tries += len(numbers)
            yield from found.colours_SN[found.conflicts_S.argsort(kind="stable")]
            if self.clock() >= deadline:
                return
            rounds = min(2 * rounds, MAX_ROUNDS)

    def tabucol_attempt(self, core: Graph, k: int, seconds: float, seed: int, known_C: Ints | None) -> tuple[Ints, int]:
        """TabuCol from the known colouring, then from new tries of the net."""
        starts = self._short_tries(core, k, START_SHARE * seconds, seed)
        found, moves = restarted_tabucol(core, k, seconds, seed, known_C, starts, self.clock)
        self.report.moves += moves
        if found.conflicts == 0:
            self.report.found_by = "net + TabuCol" if found.moves else "net + repair"
        return found.colours_N, found.conflicts

    def _short_tries(self, core: Graph, k: int, seconds: float, seed: int) -> Iterator[Ints]:
        """An endless sequence of starts: the best of a few short tries, repaired.

        `seconds`: the limit of each.
        """
        search = GraphSearch(self.model, core, self.device)
        for first in itertools.count(step=search.tries_at_once(k)):
            deadline = self.clock() + seconds
            numbers = range(first, first + search.tries_at_once(k))
            found = search.run(k, seed, numbers, START_ROUNDS, self._stop(search, k, len(numbers), deadline))
            self.report.tries += len(numbers)
            self.clock.charge(2 * core.n)
            yield repair(core, k, found.colours_SN[found.conflicts_S.argmin()], seed ^ first).colours_N

    def _stop(self, search: GraphSearch, k: int, tries: int, deadline: float) -> Callable[[], bool]:
        """Whether the time is over; called after each few rounds of the net, it charges them."""
        width, rounds = self.model.width, search.rounds_at_once(k, tries)
        work = tries * k * width * (5 * width * search.graph.n + 2 * search.graph.num_edges)

        def stop() -> bool:
            self.clock.charge(rounds * work // WORK_PER_MOVE + 1)
            return self.clock() > deadline

        return stop

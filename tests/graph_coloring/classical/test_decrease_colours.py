"""The loop of the solvers: k decreases below each proper colouring, and increases until there is
one."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from ranks.workloads.graph_coloring.classical.exact import k_colour
from ranks.workloads.graph_coloring.classical.greedy import dsatur
from ranks.workloads.graph_coloring.graphs.graph import Graph, Ints
from ranks.workloads.graph_coloring.solving.search.change_colours import with_more_colours
from ranks.workloads.graph_coloring.solving.search.decrease_colours import INCREASE_SHARE, decrease_colours
from tests.graph_coloring.example_graphs import is_proper, queen, random_graph
from tests.graph_coloring.fake_clock import FakeClock

LONG_S = 1000.0
"""A budget that no test here uses up."""


class ExactAttempt:
    """An attempt that finds a proper colouring whenever there is one, and records its arguments."""

    def __init__(self, fails_below: int = 0) -> None:
        self.asked: list[tuple[int, int, float, int]] = []
        self.fails_below = fails_below

    def __call__(self, core: Graph, k: int, allowed_s: float, seed: int, known_C: Ints | None) -> tuple[Ints, int]:
        self.asked.append((core.n, k, allowed_s, seed))
        colours = k_colour(core, k) if k >= self.fails_below else None
        if colours is None:
            worst = np.zeros(core.n, dtype=np.int64)
            return worst, core.conflicts(worst)
        return np.asarray(colours), 0


def test_k_is_one_below_the_last_colouring_until_a_clique_ends_it() -> None:
    graph = queen(5, 5)
    attempt = ExactAttempt()
    result = decrease_colours(graph, LONG_S, 0, attempt, start=lambda graph: np.arange(graph.n))
    asked = [k for _, k, _, _ in attempt.asked]
    assert asked == sorted(set(asked), reverse=True)
    assert 5 <= asked[-1] <= asked[0] < 24  # with 24 colours the core is empty
    assert result.num_colours == 5
    assert result.optimal
    assert is_proper(graph, result.colours_N)
    assert result.conflicts == 0
    assert 0 <= (result.found_s or 0) <= result.seconds


def test_a_clique_ends_it_before_any_attempt() -> None:
    attempt = ExactAttempt()
    complete = Graph.of(5, list(itertools.combinations(range(5), 2)))
    result = decrease_colours(complete, LONG_S, 0, attempt, start=dsatur)
    assert (attempt.asked, result.num_colours, result.optimal) == ([], 5, True)


def test_the_start_is_the_result_if_nothing_better_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = queen(6, 6)
    first = dsatur(graph)
    attempt = ExactAttempt(fails_below=99)
    FakeClock(tick_s=0.001).use(monkeypatch)
    result = decrease_colours(graph, 0.02, 0, attempt, start=dsatur)
    assert attempt.asked
    assert result.colours_N.tolist() == first.tolist()
    assert (result.conflicts, result.optimal) == (0, False)


def test_k_increases_in_short_attempts_then_decreases_with_different_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = random_graph(np.random.default_rng(1), 30, 0.5)
    attempt = ExactAttempt(fails_below=7)
    FakeClock(tick_s=0.005).use(monkeypatch)
    result = decrease_colours(graph, 0.5, 0, attempt, first_k=2)
    tried = [k for _, k, _, _ in attempt.asked]
    first = next(place for place, k in enumerate(tried) if k >= 7)
    assert tried[: first + 1] == sorted(tried[: first + 1])
    assert all(allowed <= 0.5 * INCREASE_SHARE for _, _, allowed, _ in attempt.asked[: first + 1])
    assert result.num_colours == 7
    again = [seed for _, k, _, seed in attempt.asked[first + 1 :] if k == 6]
    assert len(again) > 1
    assert len(set(again)) == len(again)


def test_a_fixed_number_of_colours() -> None:
    graph = queen(5, 5)
    attempt = ExactAttempt()
    result = decrease_colours(graph, LONG_S, 0, attempt, first_k=3, only_k=8)
    assert [k for _, k, _, _ in attempt.asked] == [8]
    assert (result.conflicts, result.num_colours <= 8) == (0, True)
    impossible = decrease_colours(graph, LONG_S, 0, attempt, only_k=4)
    assert len(attempt.asked) == 1
    assert impossible.conflicts == graph.num_edges


def test_attempts_get_the_core_only(monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = [(0, v) for v in range(1, 6)] + [(v, v % 5 + 1) for v in range(1, 6)]
    tail = [(1, 6), (6, 7), (7, 8), (8, 6)]
    graph = Graph.of(9, wheel + tail)
    attempt = ExactAttempt()
    FakeClock(tick_s=0.001).use(monkeypatch)
    result = decrease_colours(graph, 0.02, 0, attempt, first_k=3)
    assert {(nodes, k) for nodes, k, _, _ in attempt.asked} == {(6, 3)}
    assert result.num_colours == 4
    assert result.note == "by the reduction to the k-core alone"
    assert is_proper(graph, result.colours_N)


def test_the_best_attempt_is_the_result_if_none_is_proper(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = queen(5, 5)

    def attempt(core: Graph, k: int, allowed_s: float, seed: int, known_C: Ints | None) -> tuple[Ints, int]:
        colours = np.arange(core.n) % min(k, 4)
        return colours, core.conflicts(colours)

    FakeClock(tick_s=0.001).use(monkeypatch)
    result = decrease_colours(graph, 0.02, 0, attempt, first_k=2, only_k=5)
    assert result.conflicts == graph.conflicts(result.colours_N) > 0


def test_with_additional_colours_k_is_halved_towards_the_largest_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """An attempt that succeeds from 7 colours on: the ks that are asked for, and the result."""
    graph, asked = queen(6, 6), list[int]()
    best_N = with_more_colours(graph, np.array([(2 * (v % 6) + v // 6) % 7 for v in range(36)]))
    assert graph.conflicts(best_N) == 0
    needs = len(set(best_N.tolist()))

    def attempt(core: Graph, k: int, seconds: float, seed: int, known_C: Ints | None) -> tuple[Ints, int]:
        asked.append(k)
        assert known_C is None or len(set(known_C.tolist())) > k
        if k >= needs:
            return best_N, 0
        return np.arange(36) % 2, graph.conflicts(np.arange(36) % 2)

    FakeClock(tick_s=0.001).use(monkeypatch)
    result = decrease_colours(graph, 0.05, 0, attempt, first_k=6, reduces=False, adds_colours=True)
    assert (result.conflicts, result.num_colours) == (0, needs)
    assert asked[0] == 6
    assert all(k >= 6 for k in asked)
    assert len(set(asked)) < 12

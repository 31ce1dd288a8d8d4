"""HEAD and its crossover."""

from __future__ import annotations

import numpy as np
import pytest

from ranks.workloads.graph_coloring.classical.crossover import greedy_partition_crossover
from ranks.workloads.graph_coloring.classical.greedy import dsatur
from ranks.workloads.graph_coloring.classical.head import head, same_partition
from ranks.workloads.graph_coloring.graphs.graph import Graph
from ranks.workloads.graph_coloring.solving.budget import MoveClock
from ranks.workloads.graph_coloring.solving.search import head_attempts
from ranks.workloads.graph_coloring.solving.search.decrease_colours import decrease_colours
from ranks.workloads.graph_coloring.solving.search.solvers import head_solver
from tests.graph_coloring.classical.reference_search import randint
from tests.graph_coloring.example_graphs import LARGE, is_proper, queen, random_graph


def reference_crossover(first: list[int], second: list[int], k: int, seed: int) -> list[int]:
    child = [-1] * len(first)
    for colour in range(k):
        parent = second if colour % 2 else first
        left = [{v for v in range(len(child)) if child[v] < 0 and parent[v] == c} for c in range(k)]
        most = max(map(len, left))
        largest = [nodes for nodes in left if len(nodes) == most]
        for v in largest[randint(seed, colour, len(largest))]:
            child[v] = colour
    return [randint(seed, k + v, k) if c < 0 else c for v, c in enumerate(child)]


@pytest.mark.parametrize("seed", range(8))
def test_crossover_equals_the_reference(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(1, 60)), int(rng.integers(1, 9))
    first, second = rng.integers(0, k, n), rng.integers(0, k, n)
    child = greedy_partition_crossover(first, second, k, seed)
    assert child.tolist() == reference_crossover(first.tolist(), second.tolist(), k, seed)


def test_equal_parents_have_an_equal_child() -> None:
    parent = np.random.default_rng(0).integers(0, 5, 40)
    renamed = (parent + 2) % 5
    assert same_partition(greedy_partition_crossover(parent, renamed, 5, 3), parent)
    assert not same_partition(parent, np.where(np.arange(40) == 0, (parent + 1) % 5, parent))
    assert not same_partition(parent, parent // 2)


def test_head_colours_what_it_can_and_reports_the_rest() -> None:
    board = queen(7, 7)
    found = head(board, 7, 0, max_moves=500_000)
    assert found.conflicts == 0
    assert is_proper(board, found.colours_N, 7)
    stuck = head(board, 6, 0, max_moves=30_000, moves_per_child=100)
    assert stuck.moves == 30_000
    assert stuck.conflicts == board.conflicts(stuck.colours_N) > 0
    assert stuck.generations > stuck.restarts > 0, "this search becomes uniform, and starts again"
    again = head(board, 6, 0, max_moves=30_000, moves_per_child=100)
    assert (again.colours_N == stuck.colours_N).all()
    assert (again.generations, again.restarts) == (stuck.generations, stuck.restarts)
    assert head(board, 7, 1, max_moves=5, start_N=found.colours_N).moves == 0


def test_head_needs_its_local_search() -> None:
    """As many crossovers, each with one move of TabuCol, are far from a colouring."""
    graph = random_graph(np.random.default_rng(5), 100, 0.5)
    assert head(graph, 15, 0, max_moves=600_000).conflicts == 0
    assert head(graph, 15, 0, max_moves=6_000, moves_per_child=1).conflicts > 20


def test_head_rejects_bad_arguments() -> None:
    with pytest.raises(ValueError, match="max_moves or max_s"):
        head(queen(5, 5), 5, 0)
    with pytest.raises(ValueError, match="no colouring has 0 colours"):
        head(queen(5, 5), 0, 0, max_moves=9)
    assert head(Graph.of(0, []), 2, 0, max_moves=9).conflicts == 0
    assert head(queen(5, 5), 1, 0, max_moves=9).conflicts == 160
    assert head(queen(5, 5), 3, 0, max_s=0.0).moves == 0


def test_the_solver_uses_head_after_the_first_failure_of_tabucol(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, clock, asked = LARGE, MoveClock(), list[tuple[str, int]]()
    tabucol, search = head_attempts.tabucol, head_attempts.head

    def note(name, function):
        def noted(core, k, seed, **options):
            found = function(core, k, seed, **options)
            asked.append((name, found.conflicts))
            return found

        return noted

    monkeypatch.setattr(head_attempts, "tabucol", note("TabuCol", tabucol))
    monkeypatch.setattr(head_attempts, "head", note("HEAD", search))
    attempts = head_attempts.HeadAttempts(clock)
    found = decrease_colours(graph, 1_500_000, 0, attempts, start=dsatur, clock=clock)
    assert found.num_colours <= 29
    names = [name for name, _ in asked]
    first_head = names.index("HEAD")
    assert set(names[:first_head]) == {"TabuCol"}
    assert set(names[first_head:]) == {"HEAD"}
    assert [conflicts > 0 for _, conflicts in asked[:first_head]] == [False] * (first_head - 1) + [True]
    assert head_solver(queen(5, 5), 5.0, 0).optimal

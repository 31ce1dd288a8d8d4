"""Graphs, exact colouring and hard instances: against brute force and known chromatic numbers."""

from __future__ import annotations

import hashlib
import itertools
from typing import Any

import networkx as nx
import numpy as np
import pytest

from ranks.workloads.graph_coloring.classical import exact
from ranks.workloads.graph_coloring.classical.exact import (
    NodeLimit,
    chromatic_bounds,
    chromatic_number,
    k_colour,
    search_upwards,
)
from ranks.workloads.graph_coloring.data.families.hard_instances import hard_three_colourable
from ranks.workloads.graph_coloring.graphs.graph import Graph
from tests.graph_coloring.example_graphs import brute_force, is_proper, of_networkx, partitions, queen, random_graph


def test_graph_normalises_pairs() -> None:
    graph = Graph.of(4, [(2, 1), (1, 2), (0, 3)])
    assert graph.edges_E2.tolist() == [[0, 3], [1, 2]]
    assert [a.tolist() for a in graph.neighbours()] == [[3], [2], [1], [0]]
    assert graph.directed()[1].tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="itself"):
        Graph.of(2, [(1, 1)])
    with pytest.raises(ValueError, match="outside"):
        Graph.of(2, [(0, 2)])
    assert Graph.of(0, []).neighbours() == []


def test_csr_holds_the_neighbours() -> None:
    graph = random_graph(np.random.default_rng(0), 30, 0.2)
    starts, neighbours = graph.csr()
    assert starts.dtype == neighbours.dtype == np.int32
    assert [neighbours[a:b].tolist() for a, b in itertools.pairwise(starts)] == [a.tolist() for a in graph.neighbours()]
    assert [a.tolist() for a in Graph.of(0, []).csr()] == [[0], []]


def test_exact_equals_brute_force_on_all_1253_small_graphs() -> None:
    all_partitions = [partitions(n) for n in range(8)]
    for source in nx.graph_atlas_g():
        graph = of_networkx(source)
        chi = brute_force(graph, all_partitions[graph.n])
        bounds = chromatic_bounds(graph, 10_000)
        assert (bounds.low, bounds.high) == (chi, chi)
        assert is_proper(graph, bounds.colours_N, chi)
        assert chi == 0 or k_colour(graph, chi - 1) is None


@pytest.mark.parametrize(
    ("source", "chi"),
    [
        (nx.mycielski_graph(5), 5),
        (nx.mycielski_graph(6), 6),
        (nx.kneser_graph(7, 2), 5),
        (nx.kneser_graph(7, 3), 3),
        (nx.turan_graph(20, 6), 6),
        (nx.sudoku_graph(2), 4),
        (nx.sudoku_graph(3), 9),
        (nx.wheel_graph(8), 4),
        (nx.windmill_graph(5, 4), 4),
        (nx.paley_graph(13).to_undirected(), 5),
        (nx.complete_bipartite_graph(5, 9), 2),
        (nx.complete_graph(70), 70),
        (nx.empty_graph(4), 1),
        (nx.null_graph(), 0),
        (nx.petersen_graph(), 3),
    ],
)
def test_exact_on_graphs_of_known_chromatic_number(source: nx.Graph, chi: int) -> None:
    graph = of_networkx(source)
    assert chromatic_number(graph) == chi
    colours_N = k_colour(graph, chi)
    assert colours_N is not None
    assert colours_N.dtype == np.int64
    assert is_proper(graph, colours_N, chi)
    assert chi == 0 or k_colour(graph, chi - 1) is None


@pytest.mark.parametrize(("board", "chi"), [(5, 5), (6, 7), (7, 7), (8, 9)])
def test_exact_on_queens(board: int, chi: int) -> None:
    assert chromatic_number(queen(board, board)) == chi


def test_copies_of_all_nodes_do_not_change_chi() -> None:
    """Each node three times: the chromatic number is the same, and the bitsets have two words
    instead of one."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        graph = random_graph(rng, 30, rng.uniform(0.2, 0.9))
        pairs = [(u + 30 * i, v + 30 * j) for u, v in graph.edges_E2.tolist() for i in range(3) for j in range(3)]
        assert chromatic_number(Graph.of(90, pairs)) == chromatic_number(graph)


def test_adding_an_edge_never_lowers_chi_and_a_union_takes_the_larger() -> None:
    rng = np.random.default_rng(0)
    for _ in range(40):
        a, b = random_graph(rng, 30, rng.uniform(0.1, 0.9)), random_graph(rng, 28, rng.uniform(0.1, 0.9))
        u, v = rng.choice(30, 2, replace=False)
        more = Graph.of(30, [*a.edges_E2.tolist(), (u, v)])
        assert chromatic_number(a) <= chromatic_number(more) <= chromatic_number(a) + 1
        union = Graph.of(58, [*a.edges_E2.tolist(), *(b.edges_E2 + 30).tolist()])
        assert chromatic_number(union) == max(chromatic_number(a), chromatic_number(b))


def test_relabelling_does_not_change_chi() -> None:
    rng = np.random.default_rng(2)
    for _ in range(20):
        graph = random_graph(rng, 45, 0.5)
        renamed = Graph.of(45, rng.permutation(45)[graph.edges_E2])
        assert chromatic_number(graph) == chromatic_number(renamed)


@pytest.fixture
def branches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of branches of each kernel call of a search."""
    counts: list[int] = []
    compiled = exact.continue_search

    def counted(*arguments: Any) -> tuple[int, int]:
        state, more = compiled(*arguments)
        counts.append(more)
        return state, more

    monkeypatch.setattr(exact, "continue_search", counted)
    return counts


def test_exact_search_stops_at_its_limit(branches: list[int]) -> None:
    graph = of_networkx(nx.mycielski_graph(6))
    with pytest.raises(NodeLimit):
        chromatic_number(graph, max_nodes=50)
    with pytest.raises(NodeLimit):
        k_colour(graph, 5, max_nodes=50)
    with pytest.raises(NodeLimit):
        k_colour(graph, 6, max_nodes=0)
    widths = []
    for max_nodes in (0, 10, 100, 1_000, 10_000, 10_000_000):
        branches.clear()
        bounds = chromatic_bounds(graph, max_nodes)
        assert sum(branches) <= max_nodes
        assert bounds.low <= 6 <= bounds.high
        assert is_proper(graph, bounds.colours_N, bounds.high)
        widths.append(bounds.high - bounds.low)
    assert widths == sorted(widths, reverse=True)
    assert widths[0] > widths[-1] == 0


def test_search_upwards_returns_a_colouring_or_a_proof_or_stops(branches: list[int]) -> None:
    board = queen(6, 6)
    low, colours_N = search_upwards(board, 6, 9, lambda: False)
    assert low == 7
    assert colours_N is not None
    assert is_proper(board, colours_N, 7)
    assert search_upwards(board, 6, 7, lambda: False) == (7, None)
    assert search_upwards(board, 9, 9, lambda: False) == (9, None)
    branches.clear()
    assert search_upwards(queen(9, 9), 9, 12, lambda: True) == (9, None)
    assert 0 < sum(branches) <= exact.TIMED_BRANCHES_PER_CALL, "it stops after one call"


def test_the_search_tree_is_not_larger_than_before(branches: list[int]) -> None:
    """With ties broken by degree instead of PASS it takes 1.3 to 2.2 times as many branches."""
    random = random_graph(np.random.default_rng(1), 60, 0.7)
    cases = ((queen(8, 8), 9, 710_370), (of_networkx(nx.mycielski_graph(6)), 6, 222_663), (random, 15, 134_741))
    for graph, chi, most in cases:
        branches.clear()
        assert chromatic_number(graph) == chi
        assert 0 < sum(branches) <= most


def test_pausing_the_search_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = random_graph(np.random.default_rng(3), 40, 0.5)
    chi = chromatic_number(graph)
    whole = k_colour(graph, chi)
    monkeypatch.setattr(exact, "BRANCHES_PER_CALL", 7)
    in_parts = k_colour(graph, chi)
    assert whole is not None
    assert in_parts is not None
    assert (whole == in_parts).all()
    assert k_colour(graph, chi - 1) is None


def test_hard_graphs_are_three_colourable_and_one_more_edge_is_too_many() -> None:
    for item in range(10):
        graph = hard_three_colourable(3, "test", 30, item)
        colours_N = k_colour(graph, 3)
        assert colours_N is not None
        assert is_proper(graph, colours_N, 3)
        non_edges = set(itertools.combinations(range(30), 2)) - {tuple(e) for e in graph.edges_E2.tolist()}
        assert any(k_colour(Graph.of(30, [*graph.edges_E2.tolist(), e]), 3) is None for e in non_edges)
    assert graph.edges_E2.tolist() == hard_three_colourable(3, "test", 30, 9).edges_E2.tolist()
    assert graph.edges_E2.tolist() != hard_three_colourable(4, "test", 30, 9).edges_E2.tolist()
    assert hard_three_colourable(0, "test", 4, 0).num_edges == 5


@pytest.mark.parametrize(
    ("n", "sha256"),
    [(4, "f1bb6407f0811d04"), (5, "ec3d655ade9c2858"), (30, "b1a5c793e8050490"), (100, "f4bb4c0d03680ca6")],
)
def test_hard_graphs_stay_the_same(n: int, sha256: str) -> None:
    """They are identified by their seeds alone, so a change of the exact search must not change
    them."""
    digest = hashlib.sha256()
    for item in range(20):
        digest.update(hard_three_colourable(3, "test", n, item).edges_E2.astype("<i8").tobytes())
    assert digest.hexdigest()[:16] == sha256

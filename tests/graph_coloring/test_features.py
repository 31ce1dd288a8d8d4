"""What the net is told of each node: against networkx, slow twins, and what NumPy alone makes of it."""

from __future__ import annotations

import time

import networkx as nx
import numpy as np
import pytest

from ranks.workloads.graph_coloring.data.families import FAMILIES
from ranks.workloads.graph_coloring.data.generators import random_graph
from ranks.workloads.graph_coloring.data.unseen import UNSEEN
from ranks.workloads.graph_coloring.graphs import compiled_features
from ranks.workloads.graph_coloring.graphs.features import FEATURES, OutOfTime, node_features, plain_features
from ranks.workloads.graph_coloring.graphs.graph import Graph
from tests.graph_coloring.known import of_networkx, to_networkx

ALL_FAMILIES = {**FAMILIES, **UNSEEN}


def random_graphs(count: int) -> list[Graph]:
    rng = np.random.default_rng(0)
    sizes = rng.integers(2, 40, count).tolist()
    return [random_graph(rng, n, int(rng.integers(0, n * (n - 1) // 2 + 1))) for n in sizes]


def test_features_equal_networkx() -> None:
    for graph in random_graphs(40):
        twin, features_NF = to_networkx(graph), node_features(graph)
        expected = [dict(twin.degree), nx.core_number(twin), nx.triangles(twin)]
        for column, values in enumerate(expected):
            assert features_NF[:, column].tolist() == [values[v] for v in range(graph.n)], FEATURES[column]


def greedy_twin(graph: Graph, v: int) -> int:
    near = [set(a.tolist()) for a in graph.neighbours()]
    walks = [1] * graph.n
    for _ in range(4):
        walks = [sum(walks[u] for u in near[w]) for w in range(graph.n)]
    candidates, size = set(near[v]), 1
    while candidates:
        u = max(candidates, key=lambda u: (len(near[u] & candidates), walks[u], -u))
        candidates &= near[u]
        size += 1
    return size


def test_the_clique_of_a_node_is_one_and_follows_its_rule() -> None:
    for graph in random_graphs(25):
        clique_N = node_features(graph)[:, 3].tolist()
        assert clique_N == [greedy_twin(graph, v) for v in range(graph.n)]
        largest = {v: 1 for v in range(graph.n)}
        for clique in nx.find_cliques(to_networkx(graph)):
            largest.update({v: max(largest[v], len(clique)) for v in clique})
        assert all(clique_N[v] <= largest[v] for v in range(graph.n))
    assert node_features(of_networkx(nx.sudoku_graph(3)))[:, 3].tolist() == [9] * 81
    assert node_features(of_networkx(nx.complete_graph(6)))[:, 3].tolist() == [6] * 6


@pytest.mark.parametrize("by_words", [True, False], ids=["words", "lists"])
@pytest.mark.parametrize("looks", [1, compiled_features.LOOKS_AT_ONCE], ids=["paused", "at once"])
def test_compiled_features_are_those_of_numpy(by_words: bool, looks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_features, "SHARED_WORK", 0 if by_words else 10**9)
    monkeypatch.setattr(compiled_features, "LOOKS_AT_ONCE", looks)
    rng = np.random.default_rng(7)
    graphs = random_graphs(30) + [family.make(rng, min(family.most, 90)).graph for family in ALL_FAMILIES.values()]
    graphs += [of_networkx(nx.complete_graph(70)), of_networkx(nx.star_graph(130)), Graph.of(0, []), Graph.of(70, [])]
    for graph in graphs:
        assert node_features(graph).tolist() == plain_features(graph).tolist()


def test_large_and_dense_graphs_take_no_seconds() -> None:
    """By NumPy alone, a row of nodes takes 6 s and the dense graph 20 s."""
    dense = Graph.of(1000, np.argwhere(np.triu(np.random.default_rng(0).random((1000, 1000)) < 0.9, 1)))
    for graph in (of_networkx(nx.path_graph(100_000)), dense):
        graph.csr()
        begin = time.process_time()
        assert node_features(graph)[:, 3].min() >= 2
        assert time.process_time() - begin < 2


def test_a_clock_ends_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_features, "LOOKS_AT_ONCE", 1)
    asked: list[int] = []

    def stop() -> bool:
        asked.append(0)
        return len(asked) == 3

    with pytest.raises(OutOfTime):
        node_features(of_networkx(nx.path_graph(50)), stop)
    assert len(asked) == 3


def test_features_follow_a_relabelling() -> None:
    rng = np.random.default_rng(1)
    for name, family in ALL_FAMILIES.items():
        made = family.make(rng, min(family.most, 40))
        new_N = rng.permutation(made.graph.n)
        other = Graph.of(made.graph.n, new_N[made.graph.edges_E2])
        assert (node_features(other)[new_N] == node_features(made.graph)).all(), name


def test_features_without_edges_and_beside_a_hub() -> None:
    assert node_features(Graph.of(3, [])).tolist() == [[0, 0, 0, 1]] * 3
    assert node_features(Graph.of(0, [])).shape == (0, 4)
    star = node_features(of_networkx(nx.star_graph(2000)))
    assert star[0].tolist() == [2000, 1, 0, 2]
    assert star[1:].tolist() == [[1, 1, 0, 2]] * 2000

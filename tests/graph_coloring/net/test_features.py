"""The node features: against networkx, a reference implementation, and the NumPy version."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
import pytest

from ranks.workloads.graph_coloring.data.families.generators import random_graph
from ranks.workloads.graph_coloring.data.families.training import FAMILIES
from ranks.workloads.graph_coloring.data.families.unseen import UNSEEN
from ranks.workloads.graph_coloring.graphs import compiled_features
from ranks.workloads.graph_coloring.graphs.features import FEATURES, node_features, numpy_features
from ranks.workloads.graph_coloring.graphs.graph import Graph
from tests.graph_coloring.example_graphs import of_networkx, to_networkx

ALL_FAMILIES = {**FAMILIES, **UNSEEN}


def random_graphs(count: int) -> list[Graph]:
    rng = np.random.default_rng(0)
    sizes = rng.integers(2, 40, count).tolist()
    return [random_graph(rng, n, int(rng.integers(0, n * (n - 1) // 2 + 1))) for n in sizes]


def test_features_equal_networkx() -> None:
    for graph in random_graphs(40):
        source, features_NF = to_networkx(graph), node_features(graph)
        expected = [dict(source.degree), nx.core_number(source), nx.triangles(source)]
        for column, values in enumerate(expected):
            assert features_NF[:, column].tolist() == [values[v] for v in range(graph.n)], FEATURES[column]


def reference_clique(graph: Graph, v: int) -> int:
    """The size of the greedy clique of a node, by the rule in `node_features`."""
    neighbours = [set(a.tolist()) for a in graph.neighbours()]
    walks = [1] * graph.n
    for _ in range(4):
        walks = [sum(walks[u] for u in neighbours[w]) for w in range(graph.n)]
    candidates, size = set(neighbours[v]), 1
    while candidates:
        u = max(candidates, key=lambda u: (len(neighbours[u] & candidates), walks[u], -u))
        candidates &= neighbours[u]
        size += 1
    return size


def test_the_clique_of_a_node_is_a_clique_and_follows_its_rule() -> None:
    for graph in random_graphs(25):
        clique_N = node_features(graph)[:, 3].tolist()
        assert clique_N == [reference_clique(graph, v) for v in range(graph.n)]
        largest = {v: 1 for v in range(graph.n)}
        for clique in nx.find_cliques(to_networkx(graph)):
            largest.update({v: max(largest[v], len(clique)) for v in clique})
        assert all(clique_N[v] <= largest[v] for v in range(graph.n))
    assert node_features(of_networkx(nx.sudoku_graph(3)))[:, 3].tolist() == [9] * 81
    assert node_features(of_networkx(nx.complete_graph(6)))[:, 3].tolist() == [6] * 6


@pytest.mark.parametrize("use_bitsets", [True, False], ids=["bitsets", "lists"])
@pytest.mark.parametrize("steps", [1, compiled_features.STEPS_PER_CALL], ids=["paused", "one call"])
def test_compiled_features_equal_those_of_numpy(use_bitsets: bool, steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_features, "WORDS_PER_NEIGHBOUR", 0 if use_bitsets else 10**9)
    monkeypatch.setattr(compiled_features, "STEPS_PER_CALL", steps)
    rng = np.random.default_rng(7)
    graphs = random_graphs(30) + [
        family.generate(rng, min(family.max_nodes, 90)).graph for family in ALL_FAMILIES.values()
    ]
    graphs += [of_networkx(nx.complete_graph(70)), of_networkx(nx.star_graph(130)), Graph.of(0, []), Graph.of(70, [])]
    for graph in graphs:
        assert node_features(graph).tolist() == numpy_features(graph).tolist()


def test_large_and_dense_graphs_take_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted in kernel calls of STEPS_PER_CALL. By NumPy alone the path takes 6 s, the dense graph
    20 s."""
    dense = Graph.of(1000, np.argwhere(np.triu(np.random.default_rng(0).random((1000, 1000)) < 0.9, 1)))
    calls: list[str] = []
    for name in ("count_with_bitsets", "count_with_lists"):
        monkeypatch.setattr(compiled_features, name, counted(getattr(compiled_features, name), name, calls))
    for graph, name, max_calls in (
        (of_networkx(nx.path_graph(100_000)), "count_with_lists", 1),
        (dense, "count_with_bitsets", 25),
    ):
        calls.clear()
        assert node_features(graph)[:, 3].min() >= 2
        assert set(calls) == {name}
        assert len(calls) <= max_calls


def counted(kernel: Callable[..., int], name: str, calls: list[str]) -> Callable[..., int]:
    """A kernel that adds its name to `calls`."""

    def call(*args: Any) -> int:
        calls.append(name)
        return kernel(*args)

    return call


def test_features_follow_a_relabelling() -> None:
    rng = np.random.default_rng(1)
    for name, family in ALL_FAMILIES.items():
        generated = family.generate(rng, min(family.max_nodes, 40))
        new_N = rng.permutation(generated.graph.n)
        other = Graph.of(generated.graph.n, new_N[generated.graph.edges_E2])
        assert (node_features(other)[new_N] == node_features(generated.graph)).all(), name


def test_features_without_edges_and_next_to_a_hub() -> None:
    assert node_features(Graph.of(3, [])).tolist() == [[0, 0, 0, 1]] * 3
    assert node_features(Graph.of(0, [])).shape == (0, 4)
    star = node_features(of_networkx(nx.star_graph(2000)))
    assert star[0].tolist() == [2000, 1, 0, 2]
    assert star[1:].tolist() == [[1, 1, 0, 2]] * 2000

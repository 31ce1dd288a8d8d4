"""`solve_many`: many graphs at once."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from ranks.errors import UserError
from ranks.workloads.graph_coloring import solve_many
from ranks.workloads.graph_coloring.classical.batch import rows_of_edges, tabucol_of_rows
from ranks.workloads.graph_coloring.classical.exact import chromatic_number
from ranks.workloads.graph_coloring.classical.greedy import dsatur
from ranks.workloads.graph_coloring.classical.tabucol import PROGRESS, tabucol
from ranks.workloads.graph_coloring.graphs.graph import Graph
from tests.graph_coloring.example_graphs import is_proper, queen, random_graph

RNG = np.random.default_rng(0)
GRAPHS = [random_graph(RNG, int(n), RNG.uniform(0, 0.9)) for n in RNG.integers(1, 30, 60)]
LONG_S = 1000.0


def test_every_graph_gets_a_proper_colouring_and_nearly_all_the_best() -> None:
    found = solve_many(GRAPHS, passes=3, budget_s=LONG_S)
    assert found.found_B.all()
    for graph, colours_N, used, clique in zip(GRAPHS, found.colours, found.num_colours_B, found.clique_B, strict=True):
        assert is_proper(graph, colours_N, used)
        assert clique <= chromatic_number(graph) <= used
    right = [chromatic_number(g) == used for g, used in zip(GRAPHS, found.num_colours_B, strict=True)]
    assert sum(right) >= 58
    again = solve_many(GRAPHS, passes=3, budget_s=LONG_S)
    assert all((a == b).all() for a, b in zip(found.colours, again.colours, strict=True))


def test_without_time_or_passes_the_colourings_are_those_of_dsatur() -> None:
    for found in (solve_many(GRAPHS, passes=0, budget_s=LONG_S), solve_many(GRAPHS, budget_s=1e-9)):
        assert found.passes == 0
        for graph, colours_N in zip(GRAPHS, found.colours, strict=True):
            assert colours_N.tolist() == dsatur(graph).tolist()


def test_a_number_of_colours_ends_the_search_of_a_graph() -> None:
    graphs = [queen(5, 5), queen(6, 6), nx.complete_graph(8), nx.empty_graph(3)]
    found = solve_many(graphs, k=7, passes=6, budget_s=LONG_S)
    assert found.found_B.tolist() == [True, True, False, True]
    assert found.num_colours_B.tolist()[2:] == [8, 1]
    assert found.clique_B[2] == 8
    nothing = solve_many([])
    assert (nothing.colours, nothing.passes) == ([], 0)


def test_the_batch_makes_the_moves_of_tabucol() -> None:
    graph, found_N = queen(6, 6), np.zeros(36, np.int64)
    starts, neighbours = rows_of_edges(graph.n, graph.edges_E2)
    assert [a.tolist() for a in (starts, neighbours)] == [a.tolist() for a in graph.csr()]
    for k, seed in ((6, 0), (7, 1), (1, 2)):
        expected = tabucol(graph, k, seed, max_moves=500)
        conflicts = tabucol_of_rows(starts, neighbours, k, seed, 500, found_N, np.zeros(1, PROGRESS))
        assert (conflicts, found_N.tolist()) == (expected.conflicts, expected.colours_N.tolist())


def test_bad_arguments_are_rejected() -> None:
    with pytest.raises(UserError, match="at least one colour"):
        solve_many([Graph.of(1, [])], k=0)
    with pytest.raises(UserError, match="a self-loop"):
        solve_many([nx.Graph([(0, 0)])])
    with pytest.raises(UserError, match="found: a float"):
        solve_many([], k=2.5)  # type: ignore[arg-type]

"""Graphs, exact colouring, generators, local search: against slow and obvious twins."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest

from ranks.engine.draws import numpy_generator
from ranks.workloads.graph_coloring.checker import problems
from ranks.workloads.graph_coloring.classical import dsatur, num_colours
from ranks.workloads.graph_coloring.config import DataConfig
from ranks.workloads.graph_coloring.exact import NodeLimit, chromatic_number, greedy_clique, k_colour
from ranks.workloads.graph_coloring.generators import example, greedy_bound, planted_graph, random_graph
from ranks.workloads.graph_coloring.graphs import Graph
from ranks.workloads.graph_coloring.hard_instances import hard_three_colourable
from ranks.workloads.graph_coloring.local_search import Colouring, repair
from ranks.workloads.graph_coloring.tabucol import tabucol


def of_networkx(source: nx.Graph) -> Graph:
    named = nx.convert_node_labels_to_integers(source)
    return Graph.of(named.number_of_nodes(), np.array(list(named.edges), dtype=np.int64).reshape(-1, 2))


def brute_force(graph: Graph) -> int:
    for k in range(1, graph.n + 1):
        if any(graph.conflicts(np.array(c)) == 0 for c in itertools.product(range(k), repeat=graph.n)):
            return k
    return 0


def is_proper(graph: Graph, colours: np.ndarray, k: int | None = None) -> bool:
    return not problems(graph.n, graph.edges_E2.tolist(), colours.tolist(), k)


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


def test_exact_equals_brute_force_on_all_small_graphs() -> None:
    for source in nx.graph_atlas_g():
        if 1 <= source.number_of_nodes() <= 5:
            graph = of_networkx(source)
            assert chromatic_number(graph) == brute_force(graph)


@pytest.mark.parametrize(
    ("source", "chi"),
    [
        (nx.mycielski_graph(5), 5),
        (nx.kneser_graph(7, 2), 5),
        (nx.turan_graph(20, 6), 6),
        (nx.sudoku_graph(2), 4),
        (nx.wheel_graph(8), 4),
        (nx.complete_bipartite_graph(5, 9), 2),
        (nx.empty_graph(4), 1),
        (nx.petersen_graph(), 3),
    ],
)
def test_exact_on_graphs_of_known_chromatic_number(source: nx.Graph, chi: int) -> None:
    graph = of_networkx(source)
    assert chromatic_number(graph) == chi
    assert len(greedy_clique(graph.bitsets())) <= chi <= num_colours(dsatur(graph))
    colours = k_colour(graph.bitsets(), chi)
    assert colours is not None
    assert is_proper(graph, np.array(colours), chi)


def test_exact_gives_up_at_its_limit() -> None:
    with pytest.raises(NodeLimit):
        chromatic_number(of_networkx(nx.mycielski_graph(6)), max_nodes=50)


def test_adding_an_edge_never_lowers_chi_and_a_union_takes_the_larger() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        a, b = random_graph(rng, 9, int(rng.integers(5, 30))), random_graph(rng, 8, int(rng.integers(4, 20)))
        u, v = rng.choice(9, 2, replace=False)
        more = Graph.of(9, [*a.edges_E2.tolist(), (u, v)])
        assert chromatic_number(a) <= chromatic_number(more) <= chromatic_number(a) + 1
        union = Graph.of(17, [*a.edges_E2.tolist(), *(b.edges_E2 + 9).tolist()])
        assert chromatic_number(union) == max(chromatic_number(a), chromatic_number(b))


def test_hard_graphs_are_three_colourable_and_one_more_edge_is_too_many() -> None:
    for item in range(10):
        graph = hard_three_colourable(3, "test", 30, item)
        assert k_colour(graph.bitsets(), 3) is not None
        non_edges = set(itertools.combinations(range(30), 2)) - {tuple(e) for e in graph.edges_E2.tolist()}
        fatal = [e for e in non_edges if k_colour(Graph.of(30, [*graph.edges_E2.tolist(), e]).bitsets(), 3) is None]
        assert fatal
    assert graph.edges_E2.tolist() == hard_three_colourable(3, "test", 30, 9).edges_E2.tolist()
    assert graph.edges_E2.tolist() != hard_three_colourable(4, "test", 30, 9).edges_E2.tolist()
    assert hard_three_colourable(0, "test", 4, 0).num_edges == 5


def test_examples_are_pure_functions_of_their_key() -> None:
    data = DataConfig(min_nodes=10, max_nodes=20, planted_share=0.4, small_share=0.3, small_nodes=9)
    for item in range(30):
        one, two = example(data, 5, "train", item), example(data, 5, "train", item)
        assert one.graph.edges_E2.tolist() == two.graph.edges_E2.tolist()
        assert (one.noise_NK == two.noise_NK).all()
        chi = chromatic_number(one.graph)
        assert one.chromatic_low <= chi <= one.chromatic_high
        other = example(data, 5, "validate", item)
        assert other.noise_NK.shape != one.noise_NK.shape or (other.noise_NK != one.noise_NK).any()


def test_random_graphs_have_their_edges_and_all_pairs_occur() -> None:
    rng = np.random.default_rng(1)
    seen = np.zeros((6, 6))
    for _ in range(400):
        graph = random_graph(rng, 6, 5)
        assert graph.num_edges == 5
        seen[tuple(graph.edges_E2.T)] += 1
    upper = seen[np.triu_indices(6, 1)]
    assert upper.sum() == seen.sum() == 2000
    assert upper.min() > 90
    assert random_graph(rng, 5, 99).num_edges == 10
    assert k_colour(planted_graph(rng, 30, 90, 3).bitsets(), 3) is not None


def test_degeneracy_bound() -> None:
    for source in (nx.petersen_graph(), nx.complete_graph(6), nx.gnp_random_graph(30, 0.2, seed=1), nx.empty_graph(3)):
        assert greedy_bound(of_networkx(source)) == max(nx.core_number(source).values()) + 1


def test_recolouring_keeps_the_counts() -> None:
    rng = np.random.default_rng(2)
    graph = random_graph(rng, 25, 80)
    state = Colouring(graph, 4, rng.integers(0, 4, 25))
    for _ in range(200):
        state.recolour(int(rng.integers(25)), int(rng.integers(4)))
    fresh = Colouring(graph, 4, state.colours_N)
    assert (state.gamma_NK == fresh.gamma_NK).all()
    assert (state.own_N == fresh.own_N).all()
    assert state.conflicts == fresh.conflicts == graph.conflicts(state.colours_N)


def test_repair_stays_within_its_bounds() -> None:
    for item in range(20):
        rng = numpy_generator(0, "test/repair", 0, item)
        graph = random_graph(rng, 40, 85)
        start = rng.integers(0, 3, 40)
        fixed = repair(graph, 3, start, rng)
        assert fixed.conflicts == graph.conflicts(fixed.colours_N) <= graph.conflicts(start)
        assert int((fixed.colours_N != start).sum()) <= fixed.changes <= 2 * graph.n
        assert fixed.colours_N.max() < 3
        proper = dsatur(graph)
        again = repair(graph, num_colours(proper), proper, rng)
        assert again.changes == 0
        assert (again.colours_N == proper).all()
    hopeless = of_networkx(nx.complete_graph(8))
    assert repair(hopeless, 3, np.zeros(8, dtype=np.int64), rng).conflicts > 0
    assert repair(hopeless, 1, np.zeros(8, dtype=np.int64), rng).changes == 0


def test_repair_leaves_nodes_without_conflict_alone() -> None:
    graph = Graph.of(6, [(0, 1), (2, 3), (4, 5)])
    fixed = repair(graph, 3, np.array([0, 0, 1, 2, 0, 2]), np.random.default_rng(0))
    assert fixed.changes == 1
    assert fixed.colours_N[2:].tolist() == [1, 2, 0, 2]


@pytest.mark.parametrize("board", [5, 6])
def test_tabucol_colours_queens(board: int) -> None:
    cells = list(itertools.product(range(board), repeat=2))
    attacks = [
        (i, j)
        for (i, a), (j, b) in itertools.combinations(enumerate(cells), 2)
        if a[0] == b[0] or a[1] == b[1] or abs(a[0] - b[0]) == abs(a[1] - b[1])
    ]
    graph, best = Graph.of(board * board, attacks), {5: 5, 6: 7}[board]
    result = tabucol(graph, best, np.random.default_rng(0), max_moves=20_000)
    assert result.conflicts == 0
    assert is_proper(graph, result.colours_N, best)
    assert num_colours(dsatur(graph)) >= best
    stuck = tabucol(graph, best - 1, np.random.default_rng(0), max_moves=100)
    assert (stuck.conflicts, stuck.moves) == (graph.conflicts(stuck.colours_N), 100)
    assert stuck.conflicts > 0
    with pytest.raises(ValueError, match="max_moves or max_cpu_s"):
        tabucol(graph, 3, np.random.default_rng(0))

"""The compiled classical algorithms: against reference implementations, networkx, and known values."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from ranks.workloads.graph_coloring.classical import tabucol as tabucol_module
from ranks.workloads.graph_coloring.classical.cliques import greedy_clique
from ranks.workloads.graph_coloring.classical.colouring_state import random_colours
from ranks.workloads.graph_coloring.classical.greedy import dsatur, largest_first, num_colours
from ranks.workloads.graph_coloring.classical.reduction import connected_components, reduce_to_core
from ranks.workloads.graph_coloring.classical.repair import repair
from ranks.workloads.graph_coloring.classical.tabucol import tabucol
from ranks.workloads.graph_coloring.graphs.graph import Graph
from tests.graph_coloring.classical.reference_search import ReferenceSearch, randint
from tests.graph_coloring.example_graphs import QUEENS, is_proper, of_networkx, queen, random_graph
from tests.graph_coloring.fake_clock import FakeClock

RNG = np.random.default_rng(0)
CASES = [
    (random_graph(RNG, 30, 0.3), 4, 0),
    (random_graph(RNG, 25, 0.7), 7, 1),
    (random_graph(RNG, 60, 0.08), 2, 2**63 - 1),
    (queen(6, 6), 6, 3),
    (of_networkx(nx.mycielski_graph(5)), 4, 4),
    (of_networkx(nx.complete_graph(9)), 3, 5),
    (
        random_graph(np.random.default_rng(19), 8, 0.7),
        4,
        19,
    ),  # its repair succeeds after all conflicting nodes were tabu
    (random_graph(np.random.default_rng(32), 12, 0.5), 4, 32),  # so does this
]


def random_start(graph: Graph, k: int, seed: int) -> list[int]:
    return [randint(seed, v, k) for v in range(graph.n)]


@pytest.mark.parametrize("small", [True, False], ids=["int16", "int32"])
@pytest.mark.parametrize(("graph", "k", "seed"), CASES)
def test_tabucol_makes_the_moves_of_the_reference(
    graph: Graph, k: int, seed: int, small: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compares after each of 200 moves: the colours, gamma, the list of conflicting nodes, and the
    best colouring."""
    reference = ReferenceSearch(graph, k, seed, random_start(graph, k, seed))
    compiled, seen = (tabucol_module.search_small if small else tabucol_module.search), 0

    def check(state, tabu, delta_N, best_N, progress, seed, flag, *rest) -> None:
        nonlocal seen
        compiled(state, tabu, delta_N, best_N, progress, seed, flag, *rest)
        reference.tabucol_move()
        assert state.colours_N.tolist() == reference.colours
        assert (state.gamma_NK[:, :k] & (flag - 1)).tolist() == [
            [reference.gamma(v, c) for c in range(k)] for v in range(graph.n)
        ]
        assert state.conflicting_N[: progress["num_conflicting"][0]].tolist() == reference.conflicting
        assert progress["conflicts"][0] == reference.conflicts
        seen += 1

    monkeypatch.setattr(tabucol_module, "search_small" if small else "search", check)
    monkeypatch.setattr(tabucol_module, "LARGEST_SMALL_DEGREE", 2**14 - 1 if small else -1)
    monkeypatch.setattr(tabucol_module, "EVALUATIONS_PER_CALL", 1)
    found = tabucol(graph, k, seed, max_moves=200)
    assert (found.colours_N.tolist(), found.conflicts, found.moves) == (
        reference.best_colours,
        reference.best,
        reference.move,
    )
    assert found.conflicts == graph.conflicts(found.colours_N)
    assert seen == found.moves
    assert seen == 200 or found.conflicts == 0
    monkeypatch.undo()
    at_once = tabucol(graph, k, seed, max_moves=200)
    assert (at_once.colours_N == found.colours_N).all()


@pytest.mark.parametrize(("graph", "k", "seed"), CASES)
@pytest.mark.parametrize("max_moves", [None, 0, 7])
def test_repair_makes_the_moves_of_the_reference(graph: Graph, k: int, seed: int, max_moves: int | None) -> None:
    """The reference raises an error if a node without conflict is moved."""
    start = random_start(graph, k, seed)
    reference = ReferenceSearch(graph, k, seed, list(start))
    while reference.conflicts and reference.move < (2 * graph.n if max_moves is None else max_moves):
        reference.repair_move()
    repaired = repair(graph, k, start, seed, max_moves)
    assert (repaired.colours_N.tolist(), repaired.conflicts, repaired.changes) == (
        reference.best_colours,
        reference.best,
        reference.best_move,
    )


def test_repair_stays_within_its_bounds() -> None:
    for seed in range(20):
        graph = random_graph(np.random.default_rng(seed), 40, 0.11)
        start = np.array(random_start(graph, 3, seed))
        repaired = repair(graph, 3, start, seed, max_moves=15)
        assert repaired.conflicts == graph.conflicts(repaired.colours_N) <= graph.conflicts(start)
        assert int((repaired.colours_N != start).sum()) <= repaired.changes <= 15
        proper = dsatur(graph)
        again = repair(graph, num_colours(proper), proper, seed)
        assert again.changes == 0
        assert (again.colours_N == proper).all()
    hopeless = of_networkx(nx.complete_graph(8))
    assert repair(hopeless, 3, [0] * 8, 0).conflicts == 7
    assert repair(hopeless, 1, [0] * 8, 0).changes == 0
    assert repair(Graph.of(0, []), 3, [], 0).conflicts == 0


def test_repair_does_not_change_nodes_without_conflict() -> None:
    graph = Graph.of(6, [(0, 1), (2, 3), (4, 5)])
    repaired = repair(graph, 3, [0, 0, 1, 2, 0, 2], 0)
    assert repaired.changes == 1
    assert repaired.colours_N[2:].tolist() == [1, 2, 0, 2]


@pytest.mark.parametrize(("board", "best"), [(5, 5), (6, 7), (7, 7)])
def test_tabucol_colours_queens(board: int, best: int) -> None:
    graph = queen(board, board)
    result = tabucol(graph, best, 0, max_moves=200_000)
    assert result.conflicts == 0
    assert is_proper(graph, result.colours_N, best)
    stuck = tabucol(graph, best - 1, 0, max_moves=100)
    assert (stuck.conflicts, stuck.moves) == (graph.conflicts(stuck.colours_N), 100)
    assert stuck.conflicts > 0
    again = tabucol(graph, best, 1, start_N=result.colours_N, max_moves=100)
    assert (again.moves, again.colours_N.tolist()) == (0, result.colours_N.tolist())


def test_tabucol_stops_at_its_limits_and_rejects_bad_arguments() -> None:
    hopeless = of_networkx(nx.complete_graph(30))
    clock = FakeClock(tick_s=0.005)
    assert tabucol(hopeless, 3, 0, max_s=0.02, clock=clock).moves > 0
    assert clock.readings == 6, "start, three calls within 0.02 s, the end, the seconds of the result"
    assert tabucol(hopeless, 3, 0, max_s=0.0, clock=FakeClock()).moves == 0
    assert tabucol(hopeless, 1, 0, max_moves=9).conflicts == 435
    assert tabucol(Graph.of(0, []), 2, 0, max_moves=9).moves == 0
    with pytest.raises(ValueError, match="max_moves or max_s"):
        tabucol(hopeless, 3, 0)
    with pytest.raises(ValueError, match="no colouring has 0 colours"):
        tabucol(hopeless, 0, 0, max_moves=1)
    for start_N in ([3] * 30, [-1] * 30, [0] * 29):
        with pytest.raises(ValueError, match=r"one colour in 0\.\.2 for each of 30 nodes"):
            tabucol(hopeless, 3, 0, max_moves=1, start_N=start_N)


def test_random_colours_are_uniform() -> None:
    counts = np.bincount(random_colours(30_000, 7, 1), minlength=7)
    assert len(counts) == 7
    assert abs(counts - 30_000 / 7).max() < 250
    assert (random_colours(100, 7, 1) != random_colours(100, 7, 2)).mean() > 0.7


def slow_dsatur(graph: Graph) -> list[int]:
    neighbours = [row.tolist() for row in graph.neighbours()]
    colours: dict[int, int] = {}

    def rank(v: int) -> tuple[int, int, int]:
        seen = {colours[u] for u in neighbours[v] if u in colours}
        return len(seen), sum(u not in colours for u in neighbours[v]), -v

    while len(colours) < graph.n:
        v = max((v for v in range(graph.n) if v not in colours), key=rank)
        seen = {colours[u] for u in neighbours[v] if u in colours}
        colours[v] = min(set(range(graph.n)) - seen)
    return [colours[v] for v in range(graph.n)]


def test_greedy_colourings_equal_networkx_and_a_slow_dsatur() -> None:
    rng = np.random.default_rng(4)
    for _ in range(60):
        n = int(rng.integers(1, 40))
        graph = random_graph(rng, n, rng.random())
        assert dsatur(graph).tolist() == slow_dsatur(graph)
        source = nx.empty_graph(n)
        source.add_edges_from(graph.edges_E2.tolist())
        expected = nx.greedy_color(source, "largest_first")
        assert largest_first(graph).tolist() == [expected[v] for v in range(n)]
    assert dsatur(Graph.of(0, [])).tolist() == largest_first(Graph.of(0, [])).tolist() == []
    many = of_networkx(nx.complete_graph(130))
    assert num_colours(dsatur(many)) == num_colours(largest_first(many)) == 130


def test_greedy_colourings_of_queens_and_mycielski_graphs() -> None:
    """Largest-first has the published values. DSATUR breaks ties differently from networkx, but is
    not worse in sum."""
    graphs = [queen(*board) for board in QUEENS]
    assert [num_colours(largest_first(graph)) for graph in graphs] == [7, 9, 12, 13, 15, 15, 17, 17]
    ours = [num_colours(dsatur(graph)) for graph in graphs]
    assert ours == [5, 9, 10, 13, 12, 14, 14, 14]
    expected = []
    for graph in graphs:
        assert is_proper(graph, dsatur(graph))
        source = nx.empty_graph(graph.n)
        source.add_edges_from(graph.edges_E2.tolist())
        expected.append(len(set(nx.greedy_color(source, "DSATUR").values())))
    assert sum(ours) <= sum(expected)
    for k in range(2, 9):
        graph = of_networkx(nx.mycielski_graph(k))
        assert num_colours(largest_first(graph)) == num_colours(dsatur(graph)) == k


def test_cliques_are_the_largest_of_small_graphs() -> None:
    rng = np.random.default_rng(5)
    sources = [source for source in nx.graph_atlas_g() if source]
    sources += [nx.gnp_random_graph(40, p, seed=int(rng.integers(99))) for p in (0.1, 0.3, 0.5, 0.7) for _ in range(5)]
    for source in sources:
        clique = greedy_clique(of_networkx(source)).tolist()
        assert clique == sorted(set(clique))
        assert source.subgraph(clique).number_of_edges() == len(clique) * (len(clique) - 1) // 2
        assert len(clique) == max(map(len, nx.find_cliques(source)))
    assert greedy_clique(Graph.of(0, [])).tolist() == []


def test_the_core_equals_networkx_and_its_colouring_extends_to_the_graph() -> None:
    rng = np.random.default_rng(6)
    for _ in range(60):
        graph = random_graph(rng, 40, rng.uniform(0.02, 0.3))
        source = nx.empty_graph(graph.n)
        source.add_edges_from(graph.edges_E2.tolist())
        k = int(rng.integers(1, 7))
        reduced = reduce_to_core(graph, k)
        core = nx.k_core(source, k)
        assert reduced.nodes_C.tolist() == sorted(core)
        assert reduced.core.num_edges == core.number_of_edges()
        assert {tuple(e) for e in reduced.nodes_C[reduced.core.edges_E2].tolist()} <= set(map(tuple, source.edges))
        core_colours_C = rng.integers(0, k, reduced.core.n)
        colours_N = reduced.extend(core_colours_C)
        assert (colours_N[reduced.nodes_C] == core_colours_C).all()
        assert graph.conflicts(colours_N) == reduced.core.conflicts(core_colours_C)
        assert set(colours_N.tolist()) <= set(range(k))


def test_a_core_may_be_empty_or_the_whole_graph() -> None:
    tree = of_networkx(nx.balanced_tree(2, 4))
    nothing = reduce_to_core(tree, 2)
    assert (nothing.core.n, nothing.core.num_edges) == (0, 0)
    assert is_proper(tree, nothing.extend([]), 2)
    board = queen(5, 5)
    everything = reduce_to_core(board, 5)
    assert everything.core.edges_E2.tolist() == board.edges_E2.tolist()
    assert everything.nodes_C.tolist() == list(range(25))
    assert everything.extend(dsatur(board)).tolist() == dsatur(board).tolist()
    for wrong in ([0] * 24, [5] * 25, [-1] * 25):
        with pytest.raises(ValueError, match=r"25 nodes with one colour in 0\.\.4"):
            everything.extend(wrong)


def test_components_equal_networkx() -> None:
    rng = np.random.default_rng(7)
    for _ in range(30):
        source = nx.gnp_random_graph(40, rng.uniform(0, 0.08), seed=int(rng.integers(999)))
        ours = [part.tolist() for part in connected_components(of_networkx(source))]
        assert ours == sorted(sorted(part) for part in nx.connected_components(source))
    assert connected_components(Graph.of(0, [])) == []

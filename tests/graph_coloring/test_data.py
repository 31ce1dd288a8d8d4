"""The data: duplicates, families, draws, labels."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Sequence

import networkx as nx
import numpy as np
import pytest

from ranks.workloads.graph_coloring.classical.exact import chromatic_number
from ranks.workloads.graph_coloring.classical.tabucol import tabucol
from ranks.workloads.graph_coloring.config import DataConfig
from ranks.workloads.graph_coloring.data.weisfeiler_lehman import weisfeiler_lehman_hash
from ranks.workloads.graph_coloring.data.families import FAMILIES, biregular
from ranks.workloads.graph_coloring.data.items import SIZE_MIX, draw, draw_size
from ranks.workloads.graph_coloring.data.labels import MEASURE_MOVES, bound_labels, full_labels, smallest_last
from ranks.workloads.graph_coloring.data.generators import MAX_EDGES, Made, random_graph, relabelled, unproven
from ranks.workloads.graph_coloring.data.structured import mycielskian
from ranks.workloads.graph_coloring.data.unseen import UNSEEN
from ranks.workloads.graph_coloring.graphs.features import node_features
from ranks.workloads.graph_coloring.graphs.graph import Graph
from tests.graph_coloring.known import is_proper, of_networkx, to_networkx

SMALL = DataConfig(max_nodes=30)
ALL_FAMILIES = {**FAMILIES, **UNSEEN}


def random_graphs(count: int) -> list[Graph]:
    rng = np.random.default_rng(0)
    sizes = rng.integers(2, 40, count).tolist()
    return [random_graph(rng, n, int(rng.integers(0, n * (n - 1) // 2 + 1))) for n in sizes]


def test_the_hash_is_that_of_networkx_or_finer_on_all_small_graphs() -> None:
    rng = np.random.default_rng(2)
    coarser: dict[int, str] = {}
    for source in nx.graph_atlas_g():
        if source.number_of_nodes():
            graph = of_networkx(source)
            key = weisfeiler_lehman_hash(graph)
            assert key == weisfeiler_lehman_hash(relabelled(rng, unproven(graph)).graph)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # networkx warns that its hashes changed in 3.5
                theirs = nx.weisfeiler_lehman_graph_hash(source)
            assert coarser.setdefault(key, theirs) == theirs
    assert len(coarser) > 1200


def test_the_hash_looks_far_along_a_path() -> None:
    """Two caterpillars that differ only in where, far from the ends, a leaf hangs."""
    path = [(i, i + 1) for i in range(40)]
    assert weisfeiler_lehman_hash(Graph.of(42, [*path, (20, 41)])) != weisfeiler_lehman_hash(
        Graph.of(42, [*path, (19, 41)])
    )


@pytest.mark.parametrize("name", ALL_FAMILIES)
def test_what_a_construction_proves_is_true(name: str) -> None:
    family = ALL_FAMILIES[name]
    for seed, n in enumerate((family.least, family.least + 1, 23, 30, min(300, family.most), family.most)):
        if family.least <= n:
            rng = np.random.default_rng(seed)
            made = relabelled(rng, family.make(rng, n))
            assert 0 < made.graph.n <= n
            assert made.graph.num_edges <= 1.2 * MAX_EDGES
            assert (made.high == made.graph.n) or made.colours_N is not None
            if made.colours_N is not None:
                assert is_proper(made.graph, made.colours_N, made.high)
            if n <= 30:
                assert made.low <= chromatic_number(made.graph) <= made.high


def made_by(name: str, n: int, seeds: int = 1) -> list[Made]:
    return [ALL_FAMILIES[name].make(np.random.default_rng(seed), n) for seed in range(seeds)]


def hashes_of(sources: Sequence[nx.Graph]) -> set[int]:
    return {weisfeiler_lehman_hash(of_networkx(source)) for source in sources}


def test_families_are_what_their_names_say() -> None:
    def hashes(name: str, n: int, seeds: int = 1) -> set[int]:
        return {weisfeiler_lehman_hash(made.graph) for made in made_by(name, n, seeds)}

    assert hashes("wheel", 12) == hashes_of([nx.wheel_graph(12)])
    assert hashes("sudoku", 100, 9) == hashes_of([nx.sudoku_graph(2), nx.sudoku_graph(3)])
    assert hashes("paley", 18, 9) == hashes_of([nx.paley_graph(13).to_undirected(), nx.paley_graph(17).to_undirected()])
    assert hashes("windmill", 10, 20) == hashes_of([nx.windmill_graph(b, k) for b, k in ((4, 3), (3, 4), (2, 5))])
    assert hashes_of([nx.petersen_graph()]) < hashes("kneser", 10, 30)
    assert all(nx.is_chordal(to_networkx(made.graph)) for made in made_by("k-tree", 40, 3))
    assert all(nx.is_chordal(to_networkx(made.graph)) for made in made_by("interval", 40, 3))
    assert all(nx.is_bipartite(to_networkx(made.graph)) for made in made_by("bipartite", 40, 3))
    for made in made_by("triangulation", 30, 5):
        assert nx.check_planarity(to_networkx(made.graph))[0]
        assert made.graph.num_edges == 3 * 30 - 6
    made = Made(Graph.of(2, [(0, 1)]), 2, 2, np.array([0, 1]))
    for k in (3, 4, 5, 6):
        made = mycielskian(made)
        assert (made.low, made.high) == (k, k)
        assert {weisfeiler_lehman_hash(made.graph)} == hashes_of([nx.mycielski_graph(k)])


def test_queens_meet_on_rows_columns_and_diagonals() -> None:
    made = next(m for m in made_by("queen", 25, 50) if m.graph.num_edges == 160)  # no square of 5 x 5 is taken away
    assert chromatic_number(made.graph) == 5


def test_flat_graphs_spread_their_edges_evenly() -> None:
    for made in made_by("flat", 90, 5):
        assert made.colours_N is not None
        source, target = made.graph.directed()
        counts_NK = np.zeros((90, made.high), dtype=np.int64)
        np.add.at(counts_NK, (target, made.colours_N[source]), 1)
        for c, other in itertools.permutations(range(made.high), 2):
            assert np.ptp(counts_NK[made.colours_N == c, other]) <= 1


@pytest.mark.parametrize(("left", "right", "num_edges"), [(6, 6, 36), (6, 6, 17), (6, 4, 20), (5, 4, 20), (6, 9, 31)])
def test_biregular_pairs_are_different_and_even(left: int, right: int, num_edges: int) -> None:
    pairs = biregular(np.random.default_rng(6), np.arange(left), np.arange(right), num_edges)
    assert len({tuple(pair) for pair in pairs.tolist()}) == num_edges
    assert np.ptp(np.bincount(pairs[:, 0], minlength=left)) <= 1
    assert np.ptp(np.bincount(pairs[:, 1], minlength=right)) <= 1


def test_threshold_graphs_are_one_edge_from_three_colours() -> None:
    graphs = made_by("threshold", 24, 24)
    proven = [made for made in graphs if made.low == made.high]
    assert {made.low for made in proven} == {3, 4}
    assert 4 < len(graphs) - len(proven) < 16, "about a third are only near the threshold"
    for made in proven:
        assert chromatic_number(made.graph) == made.low


def test_an_item_is_a_pure_function_of_its_key() -> None:
    for item in range(8):
        (name, one), (_, two) = draw(SMALL, "train", item, 0), draw(SMALL, "train", item, 0)
        assert one.graph.edges_E2.tolist() == two.graph.edges_E2.tolist()
        assert draw(SMALL, "train", item, 1)[0] == name
        for other in (draw(SMALL, "train", item, 1), draw(SMALL, "validation", item, 0)):
            assert weisfeiler_lehman_hash(other[1].graph) != weisfeiler_lehman_hash(one.graph)


def test_sizes_are_mixed_as_promised() -> None:
    rng = np.random.default_rng(3)
    sizes = np.array([draw_size(rng, 10, 1000) for _ in range(4000)])
    for share, least, most in SIZE_MIX:
        assert abs(((sizes >= least) & (sizes < most)).mean() - share) < 0.03
    cut = np.array([draw_size(rng, 40, 120) for _ in range(2000)])
    assert (cut.min(), cut.max()) == (40, 120)
    assert abs((cut < 50).mean() - 3 / 7) < 0.04
    assert {draw_size(rng, 10, 50) == 50 for _ in range(200)} == {True, False}
    assert [draw_size(rng, 200, 200) for _ in range(3)] == [200] * 3


def test_the_threshold_family_has_its_share() -> None:
    for share in (0.0, 1.0):
        data = DataConfig(threshold_share=share, max_nodes=30)
        assert {draw(data, "train", item, 0)[0] == "threshold" for item in range(20)} == {share == 1.0}


def test_labels_hold_and_small_graphs_are_proven() -> None:
    for item in range(25):
        made = draw(SMALL, "train", item, 0)[1]
        features_NF = node_features(made.graph)
        full, bounds = full_labels(made), bound_labels(made, features_NF)
        assert full.low == full.high == chromatic_number(made.graph)
        assert features_NF[:, 3].max() <= bounds.low <= full.low <= full.high <= bounds.high
        for labels in (full, bounds):
            assert is_proper(made.graph, labels.colours_N, labels.high)
            assert set(labels.colours_N.tolist()) == set(range(labels.high))
        assert math.isnan(bounds.difficulty)
        moves = sorted(tabucol(made.graph, full.high, 2 + i, max_moves=MEASURE_MOVES).moves for i in range(3))
        assert full.difficulty == math.log10(1 + moves[1])


def test_open_graphs_get_an_interval() -> None:
    made = unproven(random_graph(np.random.default_rng(4), 125, 3891))
    labels = full_labels(made)
    assert 10 <= labels.low < 17 <= labels.high <= 19
    assert is_proper(made.graph, labels.colours_N, labels.high)


def test_huge_graphs_get_greedy_bounds() -> None:
    labels = full_labels(unproven(of_networkx(nx.wheel_graph(6000))))
    assert (labels.low, labels.high) == (3, 4)
    assert math.isnan(labels.difficulty)


def test_smallest_last_keeps_to_the_degeneracy() -> None:
    for graph in random_graphs(30):
        colours_N = smallest_last(graph)
        assert is_proper(graph, colours_N, max(nx.core_number(to_networkx(graph)).values()) + 1)

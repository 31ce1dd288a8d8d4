"""The training graphs: hash, families, items, labels."""

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
from ranks.workloads.graph_coloring.data.families.generators import (
    MAX_EDGES,
    GeneratedGraph,
    random_graph,
    relabelled,
    without_bounds,
)
from ranks.workloads.graph_coloring.data.families.items import SIZE_MIX, generate_item, random_size
from ranks.workloads.graph_coloring.data.families.structured import mycielskian
from ranks.workloads.graph_coloring.data.families.training import FAMILIES, biregular
from ranks.workloads.graph_coloring.data.families.unseen import UNSEEN
from ranks.workloads.graph_coloring.data.labels import MEASURE_MOVES, bound_labels, full_labels, smallest_last
from ranks.workloads.graph_coloring.data.weisfeiler_lehman import weisfeiler_lehman_hash
from ranks.workloads.graph_coloring.graphs.features import node_features
from ranks.workloads.graph_coloring.graphs.graph import Graph
from tests.graph_coloring.example_graphs import is_proper, of_networkx, to_networkx

SMALL = DataConfig(max_nodes=30)
ALL_FAMILIES = {**FAMILIES, **UNSEEN}


def random_graphs(count: int) -> list[Graph]:
    rng = np.random.default_rng(0)
    sizes = rng.integers(2, 40, count).tolist()
    return [random_graph(rng, n, int(rng.integers(0, n * (n - 1) // 2 + 1))) for n in sizes]


def test_the_hash_is_at_least_as_fine_as_that_of_networkx_on_all_small_graphs() -> None:
    rng = np.random.default_rng(2)
    coarser: dict[int, str] = {}
    for source in nx.graph_atlas_g():
        if source.number_of_nodes():
            graph = of_networkx(source)
            key = weisfeiler_lehman_hash(graph)
            assert key == weisfeiler_lehman_hash(relabelled(rng, without_bounds(graph)).graph)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # networkx warns that its hashes changed in 3.5
                theirs = nx.weisfeiler_lehman_graph_hash(source)
            assert coarser.setdefault(key, theirs) == theirs
    assert len(coarser) > 1200


def test_the_hash_distinguishes_graphs_that_differ_far_from_their_ends() -> None:
    """Two caterpillars that differ only in where, far from the ends, a leaf hangs."""
    path = [(i, i + 1) for i in range(40)]
    assert weisfeiler_lehman_hash(Graph.of(42, [*path, (20, 41)])) != weisfeiler_lehman_hash(
        Graph.of(42, [*path, (19, 41)])
    )


@pytest.mark.parametrize("name", ALL_FAMILIES)
def test_the_bounds_of_a_construction_are_correct(name: str) -> None:
    family = ALL_FAMILIES[name]
    for seed, n in enumerate(
        (family.min_nodes, family.min_nodes + 1, 23, 30, min(300, family.max_nodes), family.max_nodes)
    ):
        if family.min_nodes <= n:
            rng = np.random.default_rng(seed)
            generated = relabelled(rng, family.generate(rng, n))
            assert 0 < generated.graph.n <= n
            assert generated.graph.num_edges <= 1.2 * MAX_EDGES
            assert (generated.high == generated.graph.n) or generated.colours_N is not None
            if generated.colours_N is not None:
                assert is_proper(generated.graph, generated.colours_N, generated.high)
            if n <= 30:
                assert generated.low <= chromatic_number(generated.graph) <= generated.high


def generated_by(name: str, n: int, seeds: int = 1) -> list[GeneratedGraph]:
    return [ALL_FAMILIES[name].generate(np.random.default_rng(seed), n) for seed in range(seeds)]


def hashes_of(sources: Sequence[nx.Graph]) -> set[int]:
    return {weisfeiler_lehman_hash(of_networkx(source)) for source in sources}


def test_families_match_their_names() -> None:
    def hashes(name: str, n: int, seeds: int = 1) -> set[int]:
        return {weisfeiler_lehman_hash(generated.graph) for generated in generated_by(name, n, seeds)}

    assert hashes("wheel", 12) == hashes_of([nx.wheel_graph(12)])
    assert hashes("sudoku", 100, 9) == hashes_of([nx.sudoku_graph(2), nx.sudoku_graph(3)])
    assert hashes("paley", 18, 9) == hashes_of([nx.paley_graph(13).to_undirected(), nx.paley_graph(17).to_undirected()])
    assert hashes("windmill", 10, 20) == hashes_of([nx.windmill_graph(b, k) for b, k in ((4, 3), (3, 4), (2, 5))])
    assert hashes_of([nx.petersen_graph()]) < hashes("kneser", 10, 30)
    assert all(nx.is_chordal(to_networkx(generated.graph)) for generated in generated_by("k-tree", 40, 3))
    assert all(nx.is_chordal(to_networkx(generated.graph)) for generated in generated_by("interval", 40, 3))
    assert all(nx.is_bipartite(to_networkx(generated.graph)) for generated in generated_by("bipartite", 40, 3))
    for generated in generated_by("triangulation", 30, 5):
        assert nx.check_planarity(to_networkx(generated.graph))[0]
        assert generated.graph.num_edges == 3 * 30 - 6
    generated = GeneratedGraph(Graph.of(2, [(0, 1)]), 2, 2, np.array([0, 1]))
    for k in (3, 4, 5, 6):
        generated = mycielskian(generated)
        assert (generated.low, generated.high) == (k, k)
        assert {weisfeiler_lehman_hash(generated.graph)} == hashes_of([nx.mycielski_graph(k)])


def test_queens_meet_on_rows_columns_and_diagonals() -> None:
    generated = next(
        m for m in generated_by("queen", 25, 50) if m.graph.num_edges == 160
    )  # no square of 5 x 5 is removed
    assert chromatic_number(generated.graph) == 5


def test_flat_graphs_spread_their_edges_evenly() -> None:
    for generated in generated_by("flat", 90, 5):
        assert generated.colours_N is not None
        source, target = generated.graph.directed()
        counts_NK = np.zeros((90, generated.high), dtype=np.int64)
        np.add.at(counts_NK, (target, generated.colours_N[source]), 1)
        for c, other in itertools.permutations(range(generated.high), 2):
            assert np.ptp(counts_NK[generated.colours_N == c, other]) <= 1


@pytest.mark.parametrize(("left", "right", "num_edges"), [(6, 6, 36), (6, 6, 17), (6, 4, 20), (5, 4, 20), (6, 9, 31)])
def test_biregular_pairs_are_different_and_even(left: int, right: int, num_edges: int) -> None:
    pairs = biregular(np.random.default_rng(6), np.arange(left), np.arange(right), num_edges)
    assert len({tuple(pair) for pair in pairs.tolist()}) == num_edges
    assert np.ptp(np.bincount(pairs[:, 0], minlength=left)) <= 1
    assert np.ptp(np.bincount(pairs[:, 1], minlength=right)) <= 1


def test_threshold_graphs_are_one_edge_from_three_colours() -> None:
    graphs = generated_by("threshold", 24, 24)
    proven = [generated for generated in graphs if generated.low == generated.high]
    assert {generated.low for generated in proven} == {3, 4}
    assert 4 < len(graphs) - len(proven) < 16, "about a third are only near the threshold"
    for generated in proven:
        assert chromatic_number(generated.graph) == generated.low


def test_an_item_depends_on_its_key_only() -> None:
    for item in range(8):
        (name, one), (_, two) = generate_item(SMALL, "train", item, 0), generate_item(SMALL, "train", item, 0)
        assert one.graph.edges_E2.tolist() == two.graph.edges_E2.tolist()
        assert generate_item(SMALL, "train", item, 1)[0] == name
        for other in (generate_item(SMALL, "train", item, 1), generate_item(SMALL, "validation", item, 0)):
            assert weisfeiler_lehman_hash(other[1].graph) != weisfeiler_lehman_hash(one.graph)


def test_sizes_follow_their_distribution() -> None:
    rng = np.random.default_rng(3)
    sizes = np.array([random_size(rng, 10, 1000) for _ in range(4000)])
    for share, least, most in SIZE_MIX:
        assert abs(((sizes >= least) & (sizes < most)).mean() - share) < 0.03
    cut = np.array([random_size(rng, 40, 120) for _ in range(2000)])
    assert (cut.min(), cut.max()) == (40, 120)
    assert abs((cut < 50).mean() - 3 / 7) < 0.04
    assert {random_size(rng, 10, 50) == 50 for _ in range(200)} == {True, False}
    assert [random_size(rng, 200, 200) for _ in range(3)] == [200] * 3


def test_the_threshold_family_has_its_share() -> None:
    for share in (0.0, 1.0):
        data = DataConfig(threshold_share=share, max_nodes=30)
        assert {generate_item(data, "train", item, 0)[0] == "threshold" for item in range(20)} == {share == 1.0}


def test_labels_hold_and_small_graphs_are_proven() -> None:
    for item in range(25):
        generated = generate_item(SMALL, "train", item, 0)[1]
        features_NF = node_features(generated.graph)
        full, bounds = full_labels(generated), bound_labels(generated, features_NF)
        assert full.low == full.high == chromatic_number(generated.graph)
        assert features_NF[:, 3].max() <= bounds.low <= full.low <= full.high <= bounds.high
        for labels in (full, bounds):
            assert is_proper(generated.graph, labels.colours_N, labels.high)
            assert set(labels.colours_N.tolist()) == set(range(labels.high))
        assert math.isnan(bounds.difficulty)
        moves = sorted(tabucol(generated.graph, full.high, 2 + i, max_moves=MEASURE_MOVES).moves for i in range(3))
        assert full.difficulty == math.log10(1 + moves[1])


def test_unproven_graphs_get_an_interval() -> None:
    generated = without_bounds(random_graph(np.random.default_rng(4), 125, 3891))
    labels = full_labels(generated)
    assert 10 <= labels.low < 17 <= labels.high <= 19
    assert is_proper(generated.graph, labels.colours_N, labels.high)


def test_huge_graphs_get_greedy_bounds() -> None:
    labels = full_labels(without_bounds(of_networkx(nx.wheel_graph(6000))))
    assert (labels.low, labels.high) == (3, 4)
    assert math.isnan(labels.difficulty)


def test_smallest_last_uses_at_most_degeneracy_plus_one_colours() -> None:
    for graph in random_graphs(30):
        colours_N = smallest_last(graph)
        assert is_proper(graph, colours_N, max(nx.core_number(to_networkx(graph)).values()) + 1)

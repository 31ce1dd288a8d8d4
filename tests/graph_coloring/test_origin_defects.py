"""Regression tests for the defects of the program that this workload follows: labels and data, the
loss, and files.

Each docstring names the defect of that program, "the origin". The defects of its training loop are
in test_origin_defects_of_training.py.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import networkx as nx
import numpy as np
import onnx
import pytest
import torch

from ranks.errors import UserError
from ranks.workloads import graph_coloring as workload
from ranks.workloads.graph_coloring import training
from ranks.workloads.graph_coloring.classical.greedy import largest_first, num_colours
from ranks.workloads.graph_coloring.config import DataConfig
from ranks.workloads.graph_coloring.data.build import tasks
from ranks.workloads.graph_coloring.data.build.build import prepare
from ranks.workloads.graph_coloring.data.dataset import LabelledGraph, pack
from ranks.workloads.graph_coloring.data.dataset_folder import load
from ranks.workloads.graph_coloring.data.families.generators import GeneratedGraph, random_graph, without_bounds
from ranks.workloads.graph_coloring.data.families.items import generate_item
from ranks.workloads.graph_coloring.data.families.training import FAMILIES
from ranks.workloads.graph_coloring.data.labels import Labels, full_labels
from ranks.workloads.graph_coloring.data.weisfeiler_lehman import weisfeiler_lehman_hash
from ranks.workloads.graph_coloring.graphs.features import node_features
from ranks.workloads.graph_coloring.graphs.graph import Graph
from ranks.workloads.graph_coloring.graphs.networkx_graphs import from_networkx
from ranks.workloads.graph_coloring.graphs.read import read_graph
from ranks.workloads.graph_coloring.net import batch as batches
from ranks.workloads.graph_coloring.net.losses import (
    colour_probabilities,
    conflict_nll,
    reference_cross_entropy,
    round_weights,
)
from ranks.workloads.graph_coloring.net.rows import rows_of
from tests.graph_coloring.batches import batch_of, graphs_of
from tests.graph_coloring.small_config import SMALL

pytestmark = pytest.mark.usefixtures("data_cache")


def test_no_label_is_among_the_features(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The origin: features 8-15 were the type, which the network had to predict; its accuracy was
    100 %.

    A data set with other labels and other family numbers has the same features."""
    stored = load(prepare(SMALL.data, "train", 1))
    graph_N = np.repeat(np.arange(len(stored)), stored.node_counts_G)
    labels = [v[graph_N] for v in (stored.family_G, stored.low_G, stored.high_G, stored.difficulty_G)]
    for column_N in stored.features_NF.T:
        assert not any((column_N == label_N).all() for label_N in [*labels, stored.colours_N])

    def others(generated: GeneratedGraph) -> Labels:
        return Labels(1, generated.graph.n, np.arange(generated.graph.n), 9.0)

    monkeypatch.setattr(tasks, "full_labels", others)
    monkeypatch.setattr(tasks.BuildJob, "families", property(lambda job: list(FAMILIES)[::-1]))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "with other labels"))
    other = load(prepare(SMALL.data, "train", 1))
    assert other.edges_E2.tobytes() == stored.edges_E2.tobytes()
    assert other.features_NF.tobytes() == stored.features_NF.tobytes()
    for name in ("family_G", "low_G", "high_G", "difficulty_G", "colours_N"):
        assert (getattr(other, name) != getattr(stored, name)).any(), name


def test_chromatic_numbers_are_not_greedy_counts() -> None:
    """The origin: largest-first counts as chromatic numbers, 34 for 14 and 23 for 17.

    The graph is a worst case of largest-first: 8 colours for a chromatic number of 2."""
    crown = Graph.of(16, [(2 * u, 2 * v + 1) for u in range(8) for v in range(8) if u != v])
    labels = full_labels(without_bounds(crown))
    assert num_colours(largest_first(crown)) == 8
    assert (labels.low, labels.high) == (2, 2)


def test_difficulty_is_measured() -> None:
    """The origin: a formula of nodes, density, colours and type.

    Graphs that agree in all of these have different difficulties."""
    labels = [full_labels(without_bounds(random_graph(np.random.default_rng(seed), 40, 220))) for seed in range(8)]
    most = max((label.high for label in labels), key=[label.high for label in labels].count)
    measured = {label.difficulty for label in labels if label.high == most}
    assert len(measured) > 2


def test_training_and_validation_have_no_isomorphic_graphs() -> None:
    """The origin: 1,000 Mycielski graphs were five graphs, and training and validation shared them.

    The first attempts of the two sets overlap, so the test shows that duplicates are replaced."""
    data = DataConfig(train_graphs=300, validation_graphs=150, max_nodes=10, labels="bounds")
    train, validation = (load(prepare(data, purpose, 1)) for purpose in ("train", "validation"))
    first_attempts = [
        weisfeiler_lehman_hash(generate_item(data, "validation", item, 0)[1].graph) for item in range(150)
    ]
    assert set(first_attempts) & set(train.hash_G.tolist())
    every = [*train.hash_G.tolist(), *validation.hash_G.tolist()]
    assert len(set(every)) == 450
    made = [FAMILIES["mycielski"].generate(np.random.default_rng(seed), 47).graph for seed in range(40)]
    assert len({weisfeiler_lehman_hash(graph) for graph in made}) > 20


def test_no_two_features_are_equal() -> None:
    """The origin: feature 7 was a copy of feature 0."""
    stored = load(prepare(SMALL.data, "train", 1))
    columns = stored.features_NF.T
    for i, column_N in enumerate(columns):
        assert all((column_N != other_N).any() for other_N in columns[:i])
        assert len(set(column_N.tolist())) > 2


def test_graphs_without_edges_have_finite_losses_and_gradients() -> None:
    """The origin: a division by 0."""
    for sizes in ([(1, 0)], [(5, 0), (1, 0)], [(9, 14), (4, 0)]):
        graphs = graphs_of(sizes)
        assert all(np.isfinite(node_features(graph)).all() for graph in graphs)
        net = workload.build(SMALL).double()
        loss = training.coloring_loss(net, labelled(graphs), settings=SMALL.loss_settings, seed=0, iteration=0)
        loss.sum.backward()
        assert math.isfinite(loss.sum.item())
        assert all(p.grad is None or p.grad.isfinite().all() for p in net.parameters())


def labelled(graphs: list[Graph]) -> batches.GraphBatch:
    """A batch with 3 colours per graph and arbitrary labels."""
    batch = batch_of(graphs, 3)
    one_B = torch.ones(len(graphs), dtype=torch.float64)
    reference_N = torch.zeros(len(batch.features_NF), dtype=torch.int64)
    labels = batches.BatchLabels(reference_N, one_B, 3 * one_B, torch.zeros(len(graphs), dtype=torch.int64), one_B)
    return replace(batch, labels=labels)


def test_a_graph_without_edges_has_no_self_loop(tmp_path: Path) -> None:
    """The origin: a file without edges was read as an edge from node 0 to itself.

    A graph without nodes is a user error."""
    path = tmp_path / "g.col"
    path.write_text("p edge 3 0\n")
    assert read_graph(path).num_edges == 0
    assert from_networkx(nx.empty_graph(3))[0].edges_E2.tolist() == []
    path.write_text("p edge 0 0\n")
    with pytest.raises(UserError, match="without vertices"):
        read_graph(path)
    with pytest.raises(UserError, match="without nodes"):
        from_networkx(nx.Graph())


def test_the_loss_does_not_depend_on_the_names_of_the_colours() -> None:
    """The origin: a cross-entropy against one arbitrary colouring; conflicts were never counted.

    A permutation of the colours leaves our loss unchanged, and a conflict increases it. The loss of
    the ablation is that of the origin, so it changes."""
    batch = batch_of(graphs_of([(9, 14)]), 3)
    rows = rows_of(batch)
    prob_RT = colour_probabilities(torch.randn(2, 27, dtype=torch.float64), rows)
    renamed = prob_RT.view(9, 3, 2)[:, [1, 2, 0]].reshape(27, 2)
    assert torch.allclose(conflict_nll(prob_RT, batch, rows), conflict_nll(renamed, batch, rows))
    reference_N = torch.randint(0, 3, (9,))
    one, other = (reference_cross_entropy(p, reference_N, batch, rows, 0.9).item() for p in (prob_RT, renamed))
    assert abs(one - other) > 1e-3
    nats_TN = -prob_RT.view(9, 3, 2)[torch.arange(9), reference_N].log().T
    assert one == pytest.approx(float((round_weights(2, 0.9, nats_TN) * nats_TN.mean(1)).sum()))

    pair = batch_of([Graph.of(2, [(0, 1)])], 3)
    sure = torch.eye(3, dtype=torch.float64) * 9
    equal, unequal = (torch.cat([sure[0], sure[c]])[None] for c in (0, 1))
    conflicting, proper = (
        conflict_nll(colour_probabilities(x, rows_of(pair)), pair, rows_of(pair)) for x in (equal, unequal)
    )
    assert conflicting.item() > 5 > 0.01 > proper.item() >= 0


def test_a_sparse_graph_is_stored_in_a_few_bytes_per_edge() -> None:
    """The origin: an n x n adjacency matrix as JSON text for each graph."""
    graph = random_graph(np.random.default_rng(0), 1000, 2000)
    labels = Labels(1, 1000, np.arange(1000), 0.0)
    size = len(pack([LabelledGraph(graph, node_features(graph), labels, 0, 0)]))
    assert size < 4 * 2000 + 20 * 1000 + 2000 < 1000 * 1000 / 30


def test_the_onnx_file_has_the_documented_inputs_and_outputs(shipped: Path) -> None:
    """The origin: one input, a library's batch object; no dynamic sizes; not the outputs that its
    consumer read. test_onnx.py runs the file on graphs of many sizes."""
    model = onnx.load(shipped / "model.onnx")
    onnx.checker.check_model(model)
    sizes = {
        value.name: [size.dim_param or size.dim_value for size in value.type.tensor_type.shape.dim]
        for value in (*model.graph.input, *model.graph.output)
    }
    assert sizes == {
        "node_features": ["N", "4 + K"],
        "edge_index": [2, "D"],
        "batch": ["N"],
        "color_logits": ["N", "K"],
        "chromatic": ["B"],
        "graph_type_logits": ["B", len(FAMILIES)],
        "difficulty": ["B"],
    }

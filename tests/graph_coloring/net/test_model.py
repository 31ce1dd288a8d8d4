"""The network: invariances, gradients, the forms of its input, losses and raw colourings."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from ranks.workloads.graph_coloring.graphs.graph import Graph
from ranks.workloads.graph_coloring.net.batch import GraphBatch, collate
from ranks.workloads.graph_coloring.net.decode import argmax_colours, conflicts_by_round, raw_search
from ranks.workloads.graph_coloring.net.losses import (
    chromatic_loss,
    colour_probabilities,
    conflict_nll,
    difficulty_loss,
    edge_nll,
    round_weights,
    soft_conflict,
    type_cross_entropy,
)
from ranks.workloads.graph_coloring.net.model import ColouringNet, GraphEncoding
from ranks.workloads.graph_coloring.net.rows import colour_noise, encode, row_noise, rows_of, unroll
from ranks.workloads.graph_coloring.net.search import GraphSearch
from ranks.workloads.graph_coloring.net.sums import group_sums, neighbour_sums, sum_rows
from tests.graph_coloring.batches import batch_of, graphs_of
from tests.graph_coloring.example_graphs import union

CPU = torch.device("cpu")


@pytest.fixture
def net() -> ColouringNet:
    torch.manual_seed(0)
    return ColouringNet(width=8, rounds=5, encoder_width=12, encoder_rounds=3, num_types=4).double().eval()


def run(net: ColouringNet, batch: GraphBatch, noise_R: Tensor | None = None) -> tuple[Tensor, GraphEncoding]:
    with torch.no_grad():
        rows, encoding = rows_of(batch), encode(net, batch)
        noise_R = row_noise(7, batch, rows) if noise_R is None else noise_R
        return unroll(net, encoding, noise_R, rows, net.rounds), encoding


def heads(encoding: GraphEncoding) -> Tensor:
    return torch.cat([encoding.chromatic_B[:, None], encoding.type_logits_BT, encoding.difficulty_B[:, None]], 1)


def test_a_batch_gives_the_same_output_as_its_graphs_one_by_one(net: ColouringNet) -> None:
    graphs, k = graphs_of([(9, 14), (1, 0), (20, 45), (5, 0), (7, 12)]), [4, 2, 3, 0, 6]
    batch = batch_of(graphs, k)
    together, encoding = run(net, batch)
    noise = row_noise(7, batch, rows_of(batch)).split([g.n * c for g, c in zip(graphs, k, strict=True)])
    alone = [run(net, batch_of([g], c), x) for g, c, x in zip(graphs, k, noise, strict=True)]
    assert torch.allclose(together, torch.cat([a[0] for a in alone], 1), atol=1e-10)
    assert torch.allclose(heads(encoding), torch.cat([heads(a[1]) for a in alone]), atol=1e-10)


def test_the_noise_of_a_graph_does_not_depend_on_its_batch() -> None:
    graphs = graphs_of([(9, 14), (6, 5)])
    batch = batch_of(graphs, [3, 4])
    alone = replace(batch_of([graphs[1]], 4), item_B=torch.tensor([1]))
    assert torch.equal(row_noise(5, batch, rows_of(batch))[27:], row_noise(5, alone, rows_of(alone)))
    fixed = colour_noise(5, alone, rows_of(alone)).view(6, 4)
    assert torch.equal(fixed, fixed[:1].expand(6, 4))


def test_the_output_is_equivariant_to_permutations_of_colours(net: ColouringNet) -> None:
    batch = batch_of(graphs_of([(12, 20), (7, 9)]), 5)
    order = torch.tensor([3, 0, 4, 1, 2])
    noise_R = row_noise(7, batch, rows_of(batch))
    logits, encoding = run(net, batch)
    permuted, same = run(net, batch, noise_R.view(-1, 5)[:, order].reshape(-1))
    assert torch.allclose(permuted.view(5, -1, 5), logits.view(5, -1, 5)[:, :, order], atol=1e-12)
    assert torch.equal(heads(same), heads(encoding))


def test_the_output_is_equivariant_to_permutations_of_nodes(net: ColouringNet) -> None:
    graph = graphs_of([(15, 30)])[0]
    batch = batch_of([graph], 3)
    noise = row_noise(7, batch, rows_of(batch)).view(15, 3)
    new = torch.from_numpy(np.random.default_rng(0).permutation(15))
    moved = torch.empty_like(noise)
    moved[new] = noise
    logits, encoding = run(net, batch)
    other, same = run(net, batch_of([Graph.of(15, new.numpy()[graph.edges_E2])], 3), moved.view(-1))
    assert torch.allclose(other.view(-1, 15, 3)[:, new], logits.view(-1, 15, 3), atol=1e-12)
    assert torch.allclose(heads(same), heads(encoding), atol=1e-12)
    assert not torch.allclose(other, logits, atol=1e-3)


def test_the_exported_form_agrees_in_any_edge_order(net: ColouringNet) -> None:
    batch = batch_of(graphs_of([(9, 14), (1, 0), (20, 45)]), 3)
    logits, encoding = run(net, batch)
    shuffled = batch.edge_index_2D[:, torch.randperm(batch.edge_index_2D.shape[1])]
    noise_NK = row_noise(7, batch, rows_of(batch)).view(-1, 3)
    with torch.no_grad():
        other, *rest = net(torch.cat([batch.features_NF, noise_NK], 1), shuffled, batch.node_graph_N)
    assert torch.allclose(other, logits[-1].view(-1, 3), atol=1e-12)
    assert torch.allclose(torch.cat([rest[0][:, None], rest[1], rest[2][:, None]], 1), heads(encoding), atol=1e-12)


@pytest.mark.parametrize("size", [(24, 130), (120, 150)], ids=["dense", "sparse"])
def test_the_search_of_one_graph_agrees_with_the_batch(net: ColouringNet, size: tuple[int, int]) -> None:
    graph = graphs_of([size])[0]
    search = GraphSearch(net.float(), graph, CPU)
    found = search.run(3, 5, range(4), 10)
    again = search.run(3, 5, range(2, 3), 10)
    assert np.array_equal(found.by_round_TS[: len(again.by_round_TS), 2], again.by_round_TS[:, 0])
    assert [graph.conflicts(c) for c in found.colours_SN] == found.conflicts_S.tolist()
    assert found.by_round_TS.min(0).tolist() == found.conflicts_S.tolist()
    batch = collate([graph], [0], [0])
    with torch.no_grad():
        assert search.chromatic == pytest.approx(float(encode(net, batch).chromatic_B[0]), rel=1e-5)


def test_damping_applies_only_in_evaluation_and_the_burn_in_has_no_gradient(net: ColouringNet) -> None:
    batch = batch_of(graphs_of([(9, 14)]), 3)
    damped, _ = run(net, batch)
    net.damping = 1.0
    full, _ = run(net, batch)
    assert not torch.allclose(damped, full, atol=1e-6)
    net.train()
    assert torch.equal(run(net, batch)[0], full)
    rows = rows_of(batch)
    later = unroll(net, encode(net, batch), row_noise(7, batch, rows), rows, rounds=2, burn_in=3)
    assert torch.allclose(later.detach(), full[3:])
    later.sum().backward()
    assert net.embed.weight.grad is None
    assert net.colour_head.weight.grad is not None


def test_rounds_use_several_layers_in_turn() -> None:
    torch.manual_seed(1)
    net = ColouringNet(width=4, encoder_width=4, encoder_rounds=1, layers=3).double().eval()
    batch = batch_of(graphs_of([(9, 14)]), 3)
    rows, encoding = rows_of(batch), encode(net, batch)
    noise_R = row_noise(1, batch, rows)
    with torch.no_grad():
        whole = unroll(net, encoding, noise_R, rows, 5)
        assert torch.equal(unroll(net, encoding, noise_R, rows, 3, burn_in=2), whole[2:])
        net.colour_layers[1] = net.colour_layers[0]
        assert not torch.allclose(unroll(net, encoding, noise_R, rows, 5)[1], whole[1])


def test_sums_of_rows_have_the_right_gradient() -> None:
    batch = batch_of(graphs_of([(6, 8), (3, 0)]), 2)
    x = torch.randn(9, 4, dtype=torch.float64, requires_grad=True)
    neighbours, graph = neighbour_sums(batch.edge_index_2D, 9), group_sums(batch.node_graph_N, batch.ptr)
    adjacency = torch.zeros(9, 9, dtype=torch.float64)
    adjacency[batch.edge_index_2D[1], batch.edge_index_2D[0]] = 1
    assert torch.allclose(sum_rows(x, neighbours), adjacency @ x)
    assert torch.autograd.gradcheck(lambda v: sum_rows(v, neighbours), (x,))
    assert torch.autograd.gradcheck(lambda v: sum_rows(v, graph), (x,))
    y = torch.randn(2, 4, dtype=torch.float64, requires_grad=True)
    assert torch.equal(sum_rows(y, graph.transposed), y[batch.node_graph_N])
    assert torch.autograd.gradcheck(lambda v: sum_rows(v, graph.transposed), (y,))


def test_the_neighbours_of_rows_are_those_of_the_same_colour() -> None:
    graphs, k = graphs_of([(6, 8), (4, 3), (3, 2)]), [2, 0, 3]
    batch = batch_of(graphs, k)
    rows = rows_of(batch)
    x = torch.randn(batch.num_rows, 2, dtype=torch.float64)
    got = sum_rows(x, rows.neighbours)
    first = 0
    for graph, colours in zip(graphs, k, strict=True):
        part = x[first : first + graph.n * colours].view(graph.n, colours, 2)
        want = torch.stack([part[torch.from_numpy(nodes)].sum(0) for nodes in graph.neighbours()])
        assert torch.allclose(got[first : first + graph.n * colours].view(part.shape), want)
        first += graph.n * colours


def test_the_colour_loss_of_each_graph_is_as_computed_by_hand() -> None:
    graphs = [Graph.of(3, [(0, 1), (1, 2)]), Graph.of(2, [(0, 1)]), Graph.of(2, [])]
    batch = batch_of(graphs, [3, 2, 3])
    rows = rows_of(batch)
    sure = [[9, 0, 0], [9, 0, 0], [0, 9, 0], [9, 0], [0, 9], [9, 0, 0], [9, 0, 0]]
    logits_TR = torch.tensor([[5.0 * v for row in sure for v in row]], dtype=torch.float64)
    prob_RT = colour_probabilities(logits_TR, rows)
    assert torch.allclose(sum_rows(prob_RT, rows.by_node), torch.ones(7, 1, dtype=torch.float64))
    assert conflict_nll(prob_RT, batch, rows)[0].tolist() == pytest.approx([-math.log(1e-6), 0, 0], abs=1e-5)
    even = colour_probabilities(torch.zeros(2, batch.num_rows, dtype=torch.float64), rows)
    assert conflict_nll(even, batch, rows)[1].tolist() == pytest.approx(
        [-2 * math.log(2 / 3), -math.log(1 / 2), 0], rel=1e-4
    )
    assert edge_nll(torch.tensor(0.25)).item() == pytest.approx(-math.log(0.75), rel=1e-5)
    loss = soft_conflict(torch.tensor([[0.0, 8.0], [0.0, 3.0]]), discount=0.5, softening=1.0)
    assert loss.tolist() == pytest.approx([0, (math.log(9) + 2 * math.log(4)) / 3])
    weights = round_weights(4, 0.5, loss)
    assert weights.sum().item() == pytest.approx(1)
    assert (weights[1:] / weights[:-1]).tolist() == pytest.approx([2, 2, 2])


def test_chromatic_loss_is_zero_inside_the_known_interval() -> None:
    estimate = torch.tensor([2.0, 3.5, 7.0, 2.5])
    loss = chromatic_loss(estimate, torch.tensor([3.0, 3.0, 3.0, 3.0]), torch.tensor([3.0, 4.0, 4.0, 9.0]))
    assert loss.tolist() == pytest.approx([0.5, 0.0, 2.5, 0.125])


def test_type_and_difficulty_losses() -> None:
    logits = torch.tensor([[0.0, 0.0], [3.0, 0.0]])
    expected = [math.log(2), math.log(1 + math.exp(-3))]
    assert type_cross_entropy(logits, torch.tensor([1, 0])).tolist() == pytest.approx(expected)
    assert type_cross_entropy(logits, torch.tensor([1, -1])).tolist() == pytest.approx([math.log(2), 0.0])
    loss = difficulty_loss(torch.tensor([1.0, 4.0, 2.0]), torch.tensor([1.5, 1.0, math.nan]))
    assert loss.tolist() == pytest.approx([0.125, 2.5, 0.0])


def test_conflicts_by_round_equal_the_conflicts_of_each_graph() -> None:
    graphs = graphs_of([(9, 14), (4, 0), (12, 30)])
    batch = batch_of(graphs, 3)
    colours = torch.randint(0, 3, (4, 25))
    counted = conflicts_by_round(colours, batch)
    starts = batch.ptr.tolist()
    for t in range(4):
        for b, graph in enumerate(graphs):
            assert counted[t, b] == graph.conflicts(colours[t, starts[b] : starts[b + 1]].numpy())


def test_argmax_colours_have_the_largest_logits() -> None:
    batch = batch_of(graphs_of([(3, 2), (2, 1), (2, 1)]), [4, 2, 0])
    rows = rows_of(batch)
    logits_TR = torch.randn(3, 16, dtype=torch.float64)
    got = argmax_colours(logits_TR, rows)
    assert torch.equal(got[:, :3], logits_TR[:, :12].view(3, 3, 4).argmax(-1))
    assert torch.equal(got[:, 3:5], logits_TR[:, 12:].view(3, 2, 2).argmax(-1))
    assert got[:, 5:].eq(0).all()


def test_raw_search_reports_the_conflicts_of_its_colourings(net: ColouringNet) -> None:
    graphs = graphs_of([(9, 12), (1, 0), (16, 70)])
    answers = raw_search(net.float(), graphs, 3, seed=0, purpose="test", tries=3, rounds=8, device=CPU)
    for graph, answer in zip(graphs, answers, strict=True):
        assert answer.conflicts == graph.conflicts(answer.colours_N)
    assert (answers[1].conflicts, answers[1].tries) == (0, 1)
    assert (answers[2].conflicts > 0, answers[2].tries) == (True, 3)


def test_conflicts_add_up_over_components_and_edges(net: ColouringNet) -> None:
    """The conflicts of a disjoint union are the sum of its parts, and another edge never lowers
    them."""
    graphs = graphs_of([(20, 70), (14, 50), (9, 30)])
    search = GraphSearch(net.float(), union(*graphs), CPU)
    found = search.run(3, 1, range(6), 8)
    starts = np.cumsum([graph.n for graph in graphs])[:-1]
    assert found.conflicts_S.min() > 0
    for colours_N, conflicts in zip(found.colours_SN, found.conflicts_S, strict=True):
        parts = np.split(colours_N, starts)
        assert sum(graph.conflicts(part) for graph, part in zip(graphs, parts, strict=True)) == conflicts
    for answer, graph in zip(
        raw_search(net, graphs, 3, seed=0, purpose="test", tries=2, rounds=8, device=CPU), graphs, strict=True
    ):
        missing = [(u, v) for u in range(graph.n) for v in range(u) if [v, u] not in graph.edges_E2.tolist()]
        for edge in missing:
            more = Graph.of(graph.n, [*graph.edges_E2.tolist(), edge]).conflicts(answer.colours_N)
            same = answer.colours_N[edge[0]] == answer.colours_N[edge[1]]
            assert more == answer.conflicts + same

"""The net: its invariances, its gradient, its two forms, its losses, decoding and training."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from ranks.engine.config import RunConfig
from ranks.engine.world import World
from ranks.workloads import graph_coloring as workload
from ranks.workloads.graph_coloring.config import Config, DataConfig, ModelConfig
from ranks.workloads.graph_coloring.decode import conflicts_by_round, raw_search
from ranks.workloads.graph_coloring.generators import GeneratedGraphs, fresh_noise, random_graph
from ranks.workloads.graph_coloring.graphs import Graph, GraphBatch, collate
from ranks.workloads.graph_coloring.losses import (
    censored_chromatic,
    conflict_surprise,
    edge_conflicts,
    round_weights,
    soft_conflict,
)
from ranks.workloads.graph_coloring.model import ColouringNet, group_sums, neighbour_sums, sum_rows

CPU = torch.device("cpu")
SMALL = Config(
    data=DataConfig(num_graphs=64, min_nodes=8, max_nodes=12, min_degree=2.0, max_degree=3.0, small_nodes=6),
    model=ModelConfig(width=8, rounds=4),
    rounds=3,
    lead_in=2,
    global_batch=8,
    iterations=4,
    eval_every=2,
    eval_graphs=6,
    eval_nodes=10,
    eval_tries=2,
    eval_rounds=6,
)


@pytest.fixture
def net() -> ColouringNet:
    torch.manual_seed(0)
    return ColouringNet(width=8, rounds=5).double().eval()


def graphs_of(sizes: list[tuple[int, int]]) -> list[Graph]:
    return [random_graph(np.random.default_rng(i), n, m) for i, (n, m) in enumerate(sizes)]


def batch_of(graphs: list[Graph], k: int, noise: list[np.ndarray] | None = None) -> GraphBatch:
    noise = noise or [fresh_noise(0, "test", 0, i, g.n, k) for i, g in enumerate(graphs)]
    batch = collate(graphs, noise)
    return GraphBatch(**{n: v.double() if v.is_floating_point() else v for n, v in vars(batch).items()})


def run(net: ColouringNet, batch: GraphBatch, noise: torch.Tensor | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    with torch.no_grad():
        x = batch.noise_NK if noise is None else noise
        return net.unroll(x, batch.edge_index_2D, batch.node_graph_N, len(batch), net.rounds)


def test_a_batch_equals_its_graphs_one_by_one(net: ColouringNet) -> None:
    graphs = graphs_of([(9, 14), (1, 0), (20, 45), (5, 0)])
    noise = [np.random.default_rng(9 + i).standard_normal((g.n, 4)) for i, g in enumerate(graphs)]
    together, chromatic = run(net, batch_of(graphs, 4, noise))
    alone = [run(net, batch_of([g], 4, [x])) for g, x in zip(graphs, noise, strict=True)]
    assert torch.allclose(together, torch.cat([a[0] for a in alone], 1), atol=1e-5)
    assert torch.allclose(chromatic, torch.cat([a[1] for a in alone]), atol=1e-5)


def test_renaming_colours_renames_the_answer(net: ColouringNet) -> None:
    batch = batch_of(graphs_of([(12, 20), (7, 9)]), 5)
    order = torch.tensor([3, 0, 4, 1, 2])
    logits, chromatic = run(net, batch)
    renamed, same = run(net, batch, batch.noise_NK[:, order])
    assert torch.allclose(renamed, logits[:, :, order], atol=1e-12)
    assert torch.allclose(same, chromatic, atol=1e-12)


def test_renumbering_nodes_renumbers_the_answer(net: ColouringNet) -> None:
    graph = graphs_of([(15, 30)])[0]
    noise = fresh_noise(0, "test", 0, 0, 15, 3)
    new = np.random.default_rng(0).permutation(15)
    moved = np.empty_like(noise)
    moved[new] = noise
    logits, chromatic = run(net, batch_of([graph], 3, [noise]))
    other, same = run(net, batch_of([Graph.of(15, new[graph.edges_E2])], 3, [moved]))
    assert torch.allclose(other[:, new], logits, atol=1e-12)
    assert torch.allclose(same, chromatic, atol=1e-12)
    assert not torch.allclose(other, logits, atol=1e-3)


def test_both_forms_agree_in_any_edge_order(net: ColouringNet) -> None:
    batch = batch_of(graphs_of([(9, 14), (1, 0), (20, 45)]), 3)
    logits, chromatic = run(net, batch)
    shuffled = batch.edge_index_2D[:, torch.randperm(batch.edge_index_2D.shape[1])]
    with torch.no_grad():
        other, same = net(batch.noise_NK, shuffled, batch.node_graph_N)
    assert torch.allclose(other, logits[-1], atol=1e-12)
    assert torch.allclose(same, chromatic, atol=1e-12)


def test_damping_holds_in_evaluation_only_and_the_lead_in_has_no_gradient(net: ColouringNet) -> None:
    batch = batch_of(graphs_of([(9, 14)]), 3)
    damped, _ = run(net, batch)
    net.damping = 1.0
    full, _ = run(net, batch)
    assert not torch.allclose(damped, full, atol=1e-6)
    assert torch.equal(run(net.train(), batch)[0], full)
    arguments = (batch.noise_NK, batch.edge_index_2D, batch.node_graph_N, 1)
    later, _ = net.unroll(*arguments, rounds=2, lead_in=3)
    assert torch.allclose(later.detach(), full[3:])
    later.sum().backward()
    assert net.start.weight.grad is None
    assert net.message.weight.grad is not None


def test_sums_of_rows_have_the_right_gradient() -> None:
    batch = batch_of(graphs_of([(6, 8), (3, 0)]), 2)
    x = torch.randn(9, 4, dtype=torch.float64, requires_grad=True)
    near, graph = neighbour_sums(batch.edge_index_2D, 9), group_sums(batch.node_graph_N, 2)
    adjacency = torch.zeros(9, 9, dtype=torch.float64)
    adjacency[batch.edge_index_2D[1], batch.edge_index_2D[0]] = 1
    assert torch.allclose(sum_rows(x, near), adjacency @ x)
    assert torch.autograd.gradcheck(lambda v: sum_rows(v, near), (x,))
    assert torch.autograd.gradcheck(lambda v: sum_rows(v, graph), (x,))


def test_loss_is_by_graph_and_needs_no_reference() -> None:
    graphs = [Graph.of(3, [(0, 1), (1, 2)]), Graph.of(2, [(0, 1)]), Graph.of(2, [])]
    batch = batch_of(graphs, 3)
    sure = torch.full((1, 7, 3), -50.0, dtype=torch.float64)
    colours = [0, 0, 1, 2, 1, 0, 0]
    sure[0, range(7), colours] = 50.0
    surprise = conflict_surprise(sure, batch.edge_index_2D, batch.node_graph_N, 3)
    assert surprise[0].tolist() == pytest.approx([-math.log(1e-6), 0, 0], abs=1e-5)
    loss = soft_conflict(torch.tensor([[0.0, 8.0], [0.0, 3.0]]), discount=0.5, forgiven=1.0)
    assert loss.tolist() == pytest.approx([0, (math.log(9) + 2 * math.log(4)) / 3])
    even = edge_conflicts(torch.full((2, 7, 3), 1 / 3, dtype=torch.float64), batch.edge_index_2D)
    assert even.shape == (2, 6)
    assert even[0, 0].item() == pytest.approx(-math.log(2 / 3), rel=1e-5)
    weights = round_weights(4, 0.5, loss)
    assert weights.sum().item() == pytest.approx(1)
    assert (weights[1:] / weights[:-1]).tolist() == pytest.approx([2, 2, 2])


def test_chromatic_loss_is_zero_inside_the_known_interval() -> None:
    guess = torch.tensor([2.0, 3.5, 7.0, 2.5])
    loss = censored_chromatic(guess, torch.tensor([3.0, 3.0, 3.0, 3.0]), torch.tensor([3.0, 4.0, 4.0, 9.0]))
    assert loss.tolist() == pytest.approx([0.5, 0.0, 2.5, 0.125])


def test_conflicts_are_counted_as_by_hand(net: ColouringNet) -> None:
    graphs = graphs_of([(9, 14), (4, 0), (12, 30)])
    batch = batch_of(graphs, 3)
    colours = torch.randint(0, 3, (4, 25))
    counted = conflicts_by_round(colours, batch)
    starts = batch.ptr.tolist()
    for t in range(4):
        for b, graph in enumerate(graphs):
            assert counted[t, b] == graph.conflicts(colours[t, starts[b] : starts[b + 1]].numpy())


def test_raw_search_reports_the_conflicts_it_left(net: ColouringNet) -> None:
    net = net.float()
    graphs = graphs_of([(9, 12), (1, 0), (16, 70)])
    answers = raw_search(
        net, graphs, lambda t, i: fresh_noise(0, "test", t, i, graphs[i].n, 3), tries=3, rounds=8, device=CPU
    )
    for graph, answer in zip(graphs, answers, strict=True):
        assert answer.conflicts == graph.conflicts(answer.colours_N)
    assert (answers[1].conflicts, answers[1].tries) == (0, 1)
    assert (answers[2].conflicts > 0, answers[2].tries) == (True, 3)


def test_data_does_not_depend_on_who_asks() -> None:
    data = GeneratedGraphs(SMALL.data, 1, "train")
    together = data.gather(torch.arange(16))
    assert sum(len(b) for b in together) == 16
    assert [b.num_colours for b in together] == sorted({b.num_colours for b in together})
    parts = [b for ids in (torch.arange(7), torch.arange(7, 16)) for b in data.gather(ids) if b.num_colours == 3]
    three = next(b for b in together if b.num_colours == 3)
    assert torch.equal(three.noise_NK, torch.cat([b.noise_NK for b in parts]))
    assert len(data) == 64
    assert data.sha256 != GeneratedGraphs(SMALL.data, 2, "train").sha256


def test_trains_evaluates_and_exports(tmp_path: Path) -> None:
    world = World.join(RunConfig(runs_dir=tmp_path, name="gc", threads=1), device="cpu")
    world.workload = "graph-coloring"
    try:
        summary = workload.train(SMALL, world)
        again = workload.evaluate(workload.build(SMALL), SMALL, world)
    finally:
        world.leave()
    assert (summary.iteration, summary.complete) == (4, True)
    rows = [json.loads(line) for line in (tmp_path / "gc" / "metrics.jsonl").read_text().splitlines()]
    assert [row["iteration"] for row in rows] == [0, 1, 2, 3]
    assert all(math.isfinite(row["train/conflict"]) for row in rows)
    assert 0 <= rows[-1]["val/solved"] <= 1
    assert set(again) == {"loss", "solved", "conflicts", "colours_estimated"}
    assert json.loads((tmp_path / "gc" / "export" / "config.json").read_text())["arguments"] == {
        "width": 8,
        "rounds": 4,
        "damping": Config().model.damping,
    }

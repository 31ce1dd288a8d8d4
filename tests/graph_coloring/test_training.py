"""Training on stored graphs, evaluation, export, and the batches of `DeviceGraphs`."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from ranks.data.stream import balanced
from ranks.engine.config import RunConfig
from ranks.engine.distributed.world import World
from ranks.errors import UserError
from ranks.workloads import graph_coloring as workload
from ranks.workloads.graph_coloring.config import PRESETS, Config, DataConfig, ModelConfig, TaskWeights
from ranks.workloads.graph_coloring.data.build.build import prepare
from ranks.workloads.graph_coloring.data.dataset import GraphDataset, LabelledGraph, pack, unpack
from ranks.workloads.graph_coloring.data.dataset_folder import load
from ranks.workloads.graph_coloring.data.families.generators import random_graph
from ranks.workloads.graph_coloring.data.families.training import FAMILIES
from ranks.workloads.graph_coloring.data.labels import Labels
from ranks.workloads.graph_coloring.net.batch import collate
from ranks.workloads.graph_coloring.net.cost import UpdateCost
from ranks.workloads.graph_coloring.net.device_graphs import DeviceGraphs
from ranks.workloads.graph_coloring.net.losses import encoder_losses, weighted_sum
from ranks.workloads.graph_coloring.net.model import ColouringNet
from ranks.workloads.graph_coloring.net.rows import encode
from ranks.workloads.graph_coloring.training import NO_BURN_IN_BEFORE, burn_in_rounds, coloring_loss, report_uncoloured

CPU = torch.device("cpu")
SMALL = Config(
    data=DataConfig(train_graphs=24, validation_graphs=8, unseen_graphs=6, max_nodes=16),
    model=ModelConfig(width=8, rounds=4, encoder_width=8, encoder_rounds=2),
    rounds=3,
    burn_in=2,
    global_batch=8,
    iterations=4,
    eval_every=2,
    eval_graphs=6,
    eval_rounds=6,
)


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield patch


def test_a_gathered_batch_equals_the_collated_graphs() -> None:
    stored = load(prepare(SMALL.data, "train"))
    data = DeviceGraphs(stored, 4, CPU)
    ids = torch.tensor([5, 0, 17])
    batch = data.gather(ids)
    colours = [0 if stored.high_G[g] > 4 else max(2, int(stored.high_G[g])) for g in ids.tolist()]
    made = collate([stored.graph(g) for g in ids.tolist()], colours, ids.tolist())
    for name, value in vars(made).items():
        if name != "labels":
            got = getattr(batch, name)
            assert torch.equal(got, value) if isinstance(value, torch.Tensor) else got == value, name
    labels = batch.labels
    assert labels is not None
    for b, g in enumerate(ids.tolist()):
        expected = stored.labels(g)
        nodes = slice(int(batch.ptr[b]), int(batch.ptr[b + 1]))
        assert labels.colours_N[nodes].tolist() == expected.colours_N.tolist()
        assert (labels.low_B[b], labels.high_B[b]) == (expected.low, expected.high)


def test_graphs_with_too_many_colours_are_reported_and_rejected_if_all_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world = World.join(RunConfig(runs_dir=tmp_path, threads=1), device="cpu")
    try:
        for purpose in ("train", "validation"):
            high_G = load(prepare(SMALL.data, purpose)).high_G
            report_uncoloured(purpose, SMALL.data, 3, world)
            line = f"{(high_G > 3).sum()} of {len(high_G)} {purpose} graphs train only the encoder: "
            assert f"{line}they need more than 3 colours" in capsys.readouterr().err
            report_uncoloured(purpose, SMALL.data, int(high_G.max()), world)
            assert capsys.readouterr().err == ""
        with pytest.raises(UserError, match=r"--max-colours 1\n.*all 24 train graphs need more colours, 2 or more"):
            workload.train(replace(SMALL, max_colours=1), world)
    finally:
        world.leave()
    assert list(tmp_path.iterdir()) == []


def test_a_task_with_weight_zero_does_not_change_the_loss() -> None:
    data = DeviceGraphs(load(prepare(SMALL.data, "train")), 8, CPU)
    batch = data.gather(torch.arange(6))
    assert batch.labels is not None
    losses = encoder_losses(encode(workload.build(SMALL), batch), batch.labels)
    colours_B = torch.rand(6)
    alone = weighted_sum(colours_B, losses, TaskWeights(chromatic=0, type=0, difficulty=0))
    assert torch.equal(alone, colours_B)
    both = weighted_sum(colours_B, losses, TaskWeights(chromatic=2, type=0, difficulty=0))
    assert torch.allclose(both, colours_B + 2 * losses["chromatic"])


def test_the_loss_in_bfloat16_is_close_to_float32() -> None:
    data = DeviceGraphs(load(prepare(SMALL.data, "train")), 8, CPU)
    net, batch = workload.build(SMALL), data.gather(torch.arange(8))
    settings = SMALL.loss_settings
    full = coloring_loss(net, batch, settings=settings, seed=0, iteration=0).sum
    with torch.autocast("cpu", torch.bfloat16):
        narrow = coloring_loss(net, batch, settings=settings, seed=0, iteration=0).sum
    narrow.backward()
    assert narrow.dtype == torch.float32
    assert narrow.item() == pytest.approx(full.item(), rel=0.02)
    assert narrow.item() != full.item()


@pytest.mark.parametrize("ablation", [{}, {"colour_loss": "one-colouring"}, {"node_ids": False}])
def test_a_run_trains_evaluates_and_exports(tmp_path: Path, ablation: dict[str, object]) -> None:
    cfg = Config(**{**vars(SMALL), **ablation})
    world = World.join(RunConfig(runs_dir=tmp_path, name="gc", threads=1), device="cpu")
    world.workload = "graph-coloring"
    try:
        summary = workload.train(cfg, world)
        metrics = workload.evaluate(workload.build(cfg), cfg, world)
    finally:
        world.leave()
    assert (summary.iteration, summary.complete) == (4, True)
    rows = [json.loads(line) for line in (tmp_path / "gc" / "metrics.jsonl").read_text().splitlines()]
    assert [row["iteration"] for row in rows] == [1, 2, 3, 4]
    names = ("loss", "conflict", "conflict_nll", "chromatic", "type", "difficulty")
    assert all(math.isfinite(row[f"train/{name}"]) for row in rows for name in names)
    assert 0 <= rows[-1]["val/solved"] <= 1
    scores = {"loss", "solved", "conflicts", "chromatic_error", "chromatic_exact", "type_right", "difficulty_error"}
    unseen = {f"unseen/{name}" for name in ("solved", "conflicts", "chromatic_error", "chromatic_exact")}
    assert set(metrics) == scores | unseen
    assert all(math.isfinite(metrics[name]) for name in unseen)
    assert not [name for row in rows for name in row if "unseen" in name], "unseen families must not influence training"
    arguments = json.loads((tmp_path / "gc" / "export" / "config.json").read_text())["arguments"]
    assert (arguments["width"], arguments["encoder_width"], arguments["num_types"]) == (8, 8, 9)


def test_a_burn_in_starts_after_the_first_updates() -> None:
    assert {burn_in_rounds(48, 0, iteration) for iteration in range(NO_BURN_IN_BEFORE)} == {0}
    later = [burn_in_rounds(48, 0, iteration) for iteration in range(NO_BURN_IN_BEFORE, 1000)]
    assert (min(later), max(later)) == (0, 48)


def test_presets_have_the_documented_sizes() -> None:
    sizes = {name: sum(p.numel() for p in workload.build(make()).parameters()) for name, make in PRESETS.items()}
    assert sizes["full"] == pytest.approx(2.5e6, rel=0.03)
    assert sizes["small"] < 60_000
    full = PRESETS["full"]().data
    assert (full.train_graphs, full.validation_graphs, full.max_nodes) == (12_000, 3_000, 1_000)


def kept_bytes(net: torch.nn.Module, data: DeviceGraphs, ids: torch.Tensor, cfg: Config) -> int:
    """The bytes that autograd keeps for the backward pass of a micro-batch."""
    kept: dict[int, int] = {}
    weights = {p.untyped_storage().data_ptr() for p in net.parameters()}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    assert isinstance(net, ColouringNet)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        loss = coloring_loss(net, data.gather(ids), settings=cfg.loss_settings, seed=0, iteration=0)
    assert loss.sum.requires_grad
    return sum(size for storage, size in kept.items() if storage not in weights)


def test_eight_ranks_need_about_the_same_memory() -> None:
    """Nodes + edges, the cost before, is wrong for graphs with many colours."""
    cfg = replace(SMALL, model=replace(SMALL.model, width=16, encoder_width=16), burn_in=8)
    sizes = [(8 + 4 * (i % 9), 1 + i % 4) for i in range(64)]
    graphs = [random_graph(np.random.default_rng(i), n, n * degree) for i, (n, degree) in enumerate(sizes)]
    labels = [Labels(1, 2 + i * 5 % 11, np.zeros(graph.n, np.int64), 0.0) for i, graph in enumerate(graphs)]
    part = [LabelledGraph(g, np.ones((g.n, 4)), some, 0, 0) for g, some in zip(graphs, labels, strict=True)]
    stored = GraphDataset(**vars(unpack(pack(part))), families=tuple(FAMILIES), sha256="")
    data, net = DeviceGraphs(stored, 10, CPU, UpdateCost.of(cfg)), workload.build(cfg)

    def imbalance(cost_G: torch.Tensor) -> float:
        order = torch.tensor(balanced(cost_G.tolist(), 8))
        kept = [kept_bytes(net, data, ids, cfg) for ids in order.split(8)]
        return 8 * max(kept) / sum(kept) - 1

    assert data.cost is not None
    assert imbalance(data.cost) < 0.06
    assert imbalance((data.nodes_G + data.edges_G).double()) > 0.12

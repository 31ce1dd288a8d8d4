"""Validation on hard 3-colourable graphs that training never sees; the same figures on any number of ranks."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ranks.engine.evaluate import evaluate_by_shard
from ranks.engine.loss import Loss
from ranks.engine.world import World
from ranks.workloads.graph_coloring.config import Config
from ranks.workloads.graph_coloring.decode import raw_search
from ranks.workloads.graph_coloring.generators import fresh_noise
from ranks.workloads.graph_coloring.hard_instances import hard_three_colourable
from ranks.workloads.graph_coloring.model import ColouringNet

PURPOSE = "validate"


def evaluate(model: nn.Module, cfg: Config, world: World) -> dict[str, float]:
    """`solved`: share of graphs with a proper raw colouring; `conflicts`: edges left; `loss`: conflicts per edge.

    Graphs and starts are keyed by (seed, graph), so every validation of a run sees the same ones.
    """
    assert isinstance(model, ColouringNet)

    def of_shard(ids: Tensor) -> Loss:
        items: list[int] = ids.tolist()
        graphs = [hard_three_colourable(world.seed, PURPOSE, cfg.eval_nodes, item) for item in items]
        answers = raw_search(
            model,
            graphs,
            lambda attempt, i: fresh_noise(world.seed, PURPOSE, attempt, items[i], graphs[i].n, 3),
            tries=cfg.eval_tries,
            rounds=cfg.eval_rounds,
            device=world.device,
        )
        conflicts_B = torch.tensor([float(a.conflicts) for a in answers], dtype=torch.float64)
        edges_B = torch.tensor([float(max(g.num_edges, 1)) for g in graphs], dtype=torch.float64)
        return Loss(
            sum=(conflicts_B / edges_B).sum(),
            count=len(items),
            solved=(conflicts_B == 0).to(torch.float64),
            conflicts=conflicts_B,
            colours_estimated=torch.tensor([a.chromatic for a in answers], dtype=torch.float64),
        )

    return evaluate_by_shard(world, cfg.eval_graphs, of_shard)

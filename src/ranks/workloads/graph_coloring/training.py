"""Training: graphs near the 3-colouring threshold, unsupervised.

Legend: T rounds, N nodes, K colours, B graphs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from ranks.engine import draws
from ranks.engine.learner import Learner
from ranks.engine.loss import Loss
from ranks.engine.run import Run, Summary
from ranks.engine.world import World
from ranks.experience import dataset
from ranks.workloads.graph_coloring.config import Config
from ranks.workloads.graph_coloring.generators import GeneratedGraphs
from ranks.workloads.graph_coloring.graphs import GraphBatch
from ranks.workloads.graph_coloring.losses import censored_chromatic, conflict_surprise, soft_conflict
from ranks.workloads.graph_coloring.model import ColouringNet
from ranks.workloads.graph_coloring.validation import evaluate

FIRST_WITHOUT_LEAD_IN = 50


def build(cfg: Config) -> ColouringNet:
    """The net, untrained."""
    return ColouringNet(cfg.model.width, cfg.model.rounds, cfg.model.damping)


def coloring_loss(model: ColouringNet, batches: Sequence[GraphBatch], *, cfg: Config, lead_in: int) -> Loss:
    """Conflicts after every round, and the chromatic number as far as it is known; one item a graph."""
    conflicts: list[Tensor] = []
    surprises: list[Tensor] = []
    chromatics: list[Tensor] = []
    for graphs in batches:
        logits_TNK, chromatic_B = model.unroll(
            graphs.noise_NK, graphs.edge_index_2D, graphs.node_graph_N, len(graphs), cfg.rounds, lead_in
        )
        surprise_TB = conflict_surprise(logits_TNK, graphs.edge_index_2D, graphs.node_graph_N, len(graphs))
        conflicts.append(soft_conflict(surprise_TB, cfg.discount, cfg.forgiven))
        surprises.append(surprise_TB[-1])
        chromatics.append(censored_chromatic(chromatic_B, graphs.chromatic_low_B, graphs.chromatic_high_B))
    conflict_B, chromatic_B = torch.cat(conflicts), torch.cat(chromatics)
    total = (conflict_B + cfg.chromatic_weight * chromatic_B).sum()
    surprise_B = torch.cat(surprises)
    return Loss(sum=total, count=len(conflict_B), conflict=conflict_B, surprise=surprise_B, chromatic=chromatic_B)


def lead_in(cfg: Config, seed: int, iteration: int) -> int:
    """Rounds without gradients before those of this update: none at first, then any number up to the config's.

    So the net also learns from where its own search has got stuck, as with a pool of old states (Mordvintsev et al.
    2020, "Growing neural cellular automata").
    """
    if iteration < FIRST_WITHOUT_LEAD_IN:
        return 0
    key = draws.key(seed, "lead-in", iteration)
    return int(draws.integers(key, torch.zeros(1, dtype=torch.int64), 1, cfg.lead_in + 1))


def train(cfg: Config, world: World) -> Summary:
    """The loop."""
    graphs = GeneratedGraphs(cfg.data, world.seed, "train", world.device)
    stream = dataset.stream(graphs, cfg.global_batch, world)
    learner = Learner(build(cfg), cfg.optim.resolve(global_batch=cfg.global_batch, updates=cfg.iterations), world)
    with Run.open(cfg, world, keep=dict(learner=learner), data=graphs.sha256) as run:
        usual = partial(coloring_loss, cfg=cfg, lead_in=cfg.lead_in // 2)
        step_s = learner.rehearse(usual, stream.at(run.iteration))
        run.plan(global_batch=cfg.global_batch, iterations=cfg.iterations, iteration_s=step_s)
        for iteration in run.iterations(cfg.iterations):
            loss = partial(coloring_loss, cfg=cfg, lead_in=lead_in(cfg, world.seed, iteration))
            run.log(learner.step(loss, stream.at(iteration)))
            if run.every(cfg.eval_every):
                scores = evaluate(learner.model, cfg, world)
                run.log(scores, prefix="val")
                run.save(score=1 - scores["solved"])
    return run.finish(export=learner.model)

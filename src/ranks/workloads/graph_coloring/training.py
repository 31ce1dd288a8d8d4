"""Training: graphs of many families, coloured without a reference, read for what is known of them.

Legend: T rounds, R rows, N nodes, B graphs.
"""

from __future__ import annotations

from functools import partial

import torch

from ranks.data.stream import stream
from ranks.engine.distributed.world import World
from ranks.engine.runs.run import Run
from ranks.engine.runs.summary import Summary
from ranks.engine.sharding import rng
from ranks.engine.update.learner import Learner
from ranks.engine.update.loss import Loss
from ranks.errors import UserError
from ranks.workloads.graph_coloring.config import Config
from ranks.workloads.graph_coloring.data.build import prepare
from ranks.workloads.graph_coloring.data.families import FAMILIES
from ranks.workloads.graph_coloring.data.items import Purpose
from ranks.workloads.graph_coloring.data.parts import load
from ranks.workloads.graph_coloring.data.progress import say
from ranks.workloads.graph_coloring.net.batch import GraphBatch
from ranks.workloads.graph_coloring.net.losses import (
    colour_probabilities,
    conflict_surprise,
    one_colouring,
    reader_losses,
    soft_conflict,
    weighted,
)
from ranks.workloads.graph_coloring.net.model import ColouringNet
from ranks.workloads.graph_coloring.net.rows import colour_noise, read, row_noise, rows_of, unroll
from ranks.workloads.graph_coloring.net.stored import StoredGraphs
from ranks.workloads.graph_coloring.validation import validate

FIRST_WITHOUT_LEAD_IN = 50


def build(cfg: Config) -> ColouringNet:
    """The net, untrained."""
    m = cfg.model
    return ColouringNet(m.width, m.rounds, m.damping, m.reader_width, m.reader_rounds, len(FAMILIES), m.cells)


def coloring_loss(model: ColouringNet, graphs: GraphBatch, *, cfg: Config, seed: int, iteration: int) -> Loss:
    """All tasks of one update; one item a graph, each normalised by itself."""
    labels = graphs.labels
    assert labels is not None
    rows, reading = rows_of(graphs), read(model, graphs)
    noise = row_noise if cfg.node_ids else colour_noise
    noise_R = noise(rng.key(seed, "train/noise", iteration if cfg.node_ids else 0), graphs, rows)
    logits_TR = unroll(model, reading, noise_R, rows, cfg.rounds, lead_in(cfg, seed, iteration))
    prob_RT = colour_probabilities(logits_TR, rows)
    surprise_TB = conflict_surprise(prob_RT, graphs, rows)
    conflict_B = soft_conflict(surprise_TB, cfg.discount, cfg.forgiven)
    if cfg.colour_loss == "one-colouring":
        conflict_B = one_colouring(prob_RT, labels.colours_N, graphs, rows, cfg.discount)
    others = reader_losses(reading, labels)
    total_B = weighted(conflict_B, others, cfg.weights)
    return Loss(sum=total_B.sum(), count=len(graphs), conflict=conflict_B, surprise=surprise_TB[-1], **others)


def lead_in(cfg: Config, seed: int, iteration: int) -> int:
    """Rounds without gradients before those of this update: none at first, then any number up to the config's.

    So the net also learns from where its own search has got stuck, as with a pool of old states (Mordvintsev et al.
    2020, "Growing neural cellular automata").
    """
    if iteration < FIRST_WITHOUT_LEAD_IN:
        return 0
    key = rng.key(seed, "lead-in", iteration)
    return int(rng.integers(key, torch.zeros(1, dtype=torch.int64), 1, cfg.lead_in + 1))


def say_what_is_coloured(purpose: Purpose, cfg: Config, world: World) -> None:
    """One line where some graphs need more than `max_colours` and so are only read. Raises UserError where all do."""
    high_G = load(prepare(cfg.data, purpose)).high_G
    num_read = int((high_G > cfg.max_colours).sum())
    if num_read == len(high_G):
        found = (
            f"all {len(high_G):,} {purpose} graphs need more colours, {high_G.min()} or more: none could be coloured"
        )
        do = f"give --max-colours {high_G.min()} or more (time and memory grow with it)"
        raise UserError(f"--max-colours {cfg.max_colours}", found, do)
    if num_read and world.rank == 0:
        more = f"they need more than {cfg.max_colours} colours (--max-colours)"
        say(f"{num_read:,} of {len(high_G):,} {purpose} graphs are only read: {more}")


def train(cfg: Config, world: World) -> Summary:
    """The loop."""
    say_what_is_coloured("train", cfg, world)
    say_what_is_coloured("validation", cfg, world)
    graphs = StoredGraphs(load(prepare(cfg.data, "train")), cfg.max_colours, world.device)
    batches = stream(graphs, cfg.global_batch, world)
    learner = Learner(build(cfg), cfg.optim, world, global_batch=cfg.global_batch, updates=cfg.iterations)
    with Run.open(cfg, world, keep=dict(learner=learner), data=graphs.sha256) as run:
        for iteration in run.iterations(cfg.iterations):
            loss = partial(coloring_loss, cfg=cfg, seed=world.seed, iteration=iteration)
            run.log(learner.step(loss, batches.at(iteration)))
            if run.every(cfg.eval_every):
                scores = validate(learner.model, cfg, world)
                run.log(scores, prefix="val")
                run.save(score=scores["loss"])
    return run.finish(export=learner.model)

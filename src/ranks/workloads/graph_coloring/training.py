"""Training: colour graphs of many families without reference colourings, and predict the chromatic
number, the family and the difficulty of each graph.

Legend: T rounds, R rows (one for each node and colour), N nodes, B graphs.
"""

from __future__ import annotations

from functools import partial

import torch

from ranks.data.prepared.say import say
from ranks.data.stream import stream
from ranks.engine.distributed.world import World
from ranks.engine.runs.run import Run
from ranks.engine.runs.summary import Summary
from ranks.engine.sharding import rng
from ranks.engine.update.learner import Learner
from ranks.engine.update.loss import Loss
from ranks.errors import UserError
from ranks.workloads.graph_coloring.config import Config, DataConfig, LossSettings
from ranks.workloads.graph_coloring.data.build.build import prepare
from ranks.workloads.graph_coloring.data.dataset_folder import load
from ranks.workloads.graph_coloring.data.families.items import Purpose
from ranks.workloads.graph_coloring.data.families.training import FAMILIES
from ranks.workloads.graph_coloring.net.batch import GraphBatch
from ranks.workloads.graph_coloring.net.cost import UpdateCost
from ranks.workloads.graph_coloring.net.device_graphs import DeviceGraphs
from ranks.workloads.graph_coloring.net.losses import (
    colour_probabilities,
    conflict_nll,
    encoder_losses,
    reference_cross_entropy,
    soft_conflict,
    weighted_sum,
)
from ranks.workloads.graph_coloring.net.model import ColouringNet
from ranks.workloads.graph_coloring.net.rows import colour_noise, encode, row_noise, rows_of, unroll
from ranks.workloads.graph_coloring.validation import graphs_on_device, validate

NO_BURN_IN_BEFORE = 50
"""The iteration of the first update with a burn-in."""


def build(cfg: Config) -> ColouringNet:
    """The untrained network."""
    m = cfg.model
    return ColouringNet(m.width, m.rounds, m.damping, m.encoder_width, m.encoder_rounds, len(FAMILIES), m.layers)


def coloring_loss(
    model: ColouringNet, graphs: GraphBatch, *, settings: LossSettings, seed: int, iteration: int, burn_in: int = 0
) -> Loss:
    """The task losses, summed over graphs. Large and small graphs have the same weight.

    `burn_in`: the rounds without gradients before the rounds of the loss; see `burn_in_rounds`.
    """
    labels = graphs.labels
    assert labels is not None
    rows, encoding = rows_of(graphs), encode(model, graphs)
    noise = row_noise if settings.node_ids else colour_noise
    noise_R = noise(rng.key(seed, "train/noise", iteration if settings.node_ids else 0), graphs, rows)
    logits_TR = unroll(model, encoding, noise_R, rows, settings.rounds, burn_in)
    prob_RT = colour_probabilities(logits_TR, rows)
    nll_TB = conflict_nll(prob_RT, graphs, rows)
    conflict_B = soft_conflict(nll_TB, settings.discount, settings.softening)
    if settings.colour_loss == "one-colouring":
        conflict_B = reference_cross_entropy(prob_RT, labels.colours_N, graphs, rows, settings.discount)
    others = encoder_losses(encoding, labels)
    total_B = weighted_sum(conflict_B, others, settings.weights)
    return Loss(sum=total_B.sum(), count=len(graphs), conflict=conflict_B, conflict_nll=nll_TB[-1], **others)


def burn_in_rounds(max_rounds: int, seed: int, iteration: int) -> int:
    """The number of rounds without gradients in this update: 0 in the first updates, then a random
    number from 0 to `max_rounds`.

    The burn-in gives the network states in which its own search is stuck, so it learns to continue
    from them. A pool of old states has the same purpose in Mordvintsev et al. 2020, "Growing neural
    cellular automata".
    """
    if iteration < NO_BURN_IN_BEFORE:
        return 0
    # The purpose "lead-in" selects the random numbers. Another name would change every training.
    key = rng.key(seed, "lead-in", iteration)
    return int(rng.integers(key, torch.zeros(1, dtype=torch.int64), 1, max_rounds + 1))


def report_uncoloured(purpose: Purpose, data: DataConfig, max_colours: int, world: World) -> None:
    """Print a line if some graphs need more than `max_colours` colours. Raises UserError if all do.

    Rank 0 prints it.
    """
    high_G = load(prepare(data, purpose)).high_G
    num_above = int((high_G > max_colours).sum())
    if num_above == len(high_G):
        found = f"all {len(high_G):,} {purpose} graphs need more colours, {high_G.min()} or more"
        do = f"give --max-colours {high_G.min()} or more (time and memory grow with it)"
        raise UserError(f"--max-colours {max_colours}", found, do)
    if num_above and world.rank == 0:
        reason = f"they need more than {max_colours} colours (--max-colours)"
        say(f"{num_above:,} of {len(high_G):,} {purpose} graphs train only the encoder: {reason}")


def train(cfg: Config, world: World) -> Summary:
    """Train a network on generated graphs, or on your own."""
    report_uncoloured("train", cfg.data, cfg.max_colours, world)
    report_uncoloured("validation", cfg.data, cfg.max_colours, world)
    stored = load(prepare(cfg.data, "train"))
    graphs = DeviceGraphs(stored, cfg.max_colours, world.device, UpdateCost.of(cfg))
    batches = stream(graphs, cfg.global_batch, world)
    validation = graphs_on_device(cfg.data, "validation", cfg.max_colours, world.device)
    settings = cfg.loss_settings
    learner = Learner(build(cfg), cfg.optim, world, global_batch=cfg.global_batch, updates=cfg.iterations)
    with Run.open(cfg, world, keep=dict(learner=learner), data=graphs.sha256) as run:
        for iteration in run.iterations(cfg.iterations):
            burn_in = burn_in_rounds(cfg.burn_in, world.seed, iteration)
            loss = partial(coloring_loss, settings=settings, seed=world.seed, iteration=iteration, burn_in=burn_in)
            run.log(learner.step(loss, batches.at(iteration)))
            if run.every(cfg.eval_every):
                scores = validate(learner.model, validation, settings, world, cfg.eval_graphs, cfg.eval_rounds)
                run.log(scores, prefix="val")
                run.save(score=scores["loss"])
    return run.finish(export=learner.model)

"""Validation on held-out graphs of the training families.

The metrics do not depend on the number of ranks. `ranks evaluate` also reports graphs of families
and sizes that are not in training; no checkpoint or setting is chosen by them.

Legend: T rounds, R rows (one for each node and colour), B graphs.
"""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor, nn

from ranks.engine.distributed.world import World
from ranks.engine.sharding import rng
from ranks.engine.update.evaluate import eval_mode, evaluate_by_shard
from ranks.engine.update.loss import Loss
from ranks.workloads.graph_coloring.config import Config, DataConfig, LossSettings
from ranks.workloads.graph_coloring.data.build.build import prepare
from ranks.workloads.graph_coloring.data.dataset_folder import load
from ranks.workloads.graph_coloring.data.families.items import Purpose
from ranks.workloads.graph_coloring.net.decode import argmax_colours, conflicts_by_round
from ranks.workloads.graph_coloring.net.device_graphs import DeviceGraphs
from ranks.workloads.graph_coloring.net.losses import (
    colour_probabilities,
    conflict_nll,
    encoder_losses,
    soft_conflict,
    weighted_sum,
)
from ranks.workloads.graph_coloring.net.model import ColouringNet
from ranks.workloads.graph_coloring.net.rows import colour_noise, encode, row_noise, rows_of, unroll

LAST_ROUNDS = 16
"""The colour loss is computed over this many last rounds."""
UNSEEN = ("solved", "conflicts", "chromatic_error", "chromatic_exact")
"""The metrics reported for families that are not in training."""


@lru_cache(maxsize=2)
def graphs_on_device(data: DataConfig, purpose: Purpose, max_colours: int, device: torch.device) -> DeviceGraphs:
    """The graphs of one purpose, loaded once per process. `purpose`: train, validation or
    unseen."""
    return DeviceGraphs(load(prepare(data, purpose)), max_colours, device)


def evaluate(model: nn.Module, cfg: Config, world: World) -> dict[str, float]:
    """The metrics of `validate`, and some of them as `unseen/...` for families and sizes that are
    not in training.

    A user's own graphs (`cfg.data.folder`) have no unseen part, because their families are unknown.
    """

    def metrics(purpose: Purpose) -> dict[str, float]:
        graphs = graphs_on_device(cfg.data, purpose, cfg.max_colours, world.device)
        return validate(model, graphs, cfg.loss_settings, world, cfg.eval_graphs, cfg.eval_rounds)

    found = metrics("validation")
    if cfg.data.folder is None:
        unseen = metrics("unseen")
        found |= {f"unseen/{name}": unseen[name] for name in UNSEEN}
    return found


def validate(
    model: nn.Module, graphs: DeviceGraphs, settings: LossSettings, world: World, max_graphs: int, rounds: int
) -> dict[str, float]:
    """The validation metrics on the first `max_graphs` graphs, each coloured once in `rounds`
    rounds.

    `loss`: the training loss over the last rounds. `solved`: the share of graphs that are coloured
    properly, without repair, with as many colours as the best known colouring. `conflicts`: edges
    in conflict per graph. `chromatic_error`: mean absolute error of the estimate, where the
    chromatic number is known. `chromatic_exact`: the share of rounded estimates that are right.
    `type_right`: the share of families that are right. `difficulty_error`: mean absolute error of
    log10(1 + moves).

    Random starts are keyed by (seed, graph), so every validation of a run uses the same ones.
    """
    assert isinstance(model, ColouringNet)
    noise = row_noise if settings.node_ids else colour_noise
    key = rng.key(world.seed, "validate/noise" if settings.node_ids else "train/noise", 0)

    def metrics_of_shard(ids: Tensor) -> Loss:
        batch = graphs.gather(ids)
        labels = batch.labels
        assert labels is not None
        with eval_mode(model, world):
            rows, encoding = rows_of(batch), encode(model, batch)
            logits_TR = unroll(model, encoding, noise(key, batch, rows), rows, rounds)
            fewest_B = conflicts_by_round(argmax_colours(logits_TR, rows), batch).amin(0).double()
            nll_TB = conflict_nll(colour_probabilities(logits_TR[-LAST_ROUNDS:], rows), batch, rows)
        conflict_B = soft_conflict(nll_TB, settings.discount, settings.softening)
        total_B = weighted_sum(conflict_B, encoder_losses(encoding, labels), settings.weights)
        coloured_B = batch.num_colours_B > 0
        known_B, measured_B = labels.low_B == labels.high_B, ~labels.difficulty_B.isnan()
        error_B = (encoding.chromatic_B - labels.low_B).abs()
        right_B = encoding.chromatic_B.round() == labels.low_B
        off_B = (encoding.difficulty_B - labels.difficulty_B.nan_to_num()).abs()

        def mean_over(values_B: Tensor, chosen_B: Tensor) -> tuple[Tensor, Tensor]:
            """(sum, count) over the chosen graphs."""
            return (values_B.double() * chosen_B).sum(), chosen_B.double().sum()

        return Loss(
            sum=total_B.double().sum(),
            count=len(ids),
            solved=mean_over(fewest_B == 0, coloured_B),
            conflicts=mean_over(fewest_B, coloured_B),
            chromatic_error=mean_over(error_B, known_B),
            chromatic_exact=mean_over(right_B, known_B),
            type_right=mean_over(encoding.type_logits_BT.argmax(-1) == labels.type_B, labels.type_B >= 0),
            difficulty_error=mean_over(off_B, measured_B),
        )

    return evaluate_by_shard(world, min(max_graphs, len(graphs)), metrics_of_shard)

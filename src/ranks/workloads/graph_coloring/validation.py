"""Validation on held-out graphs of the training families; equal figures on any number of ranks.

`ranks evaluate` adds graphs of families and sizes that are not in training. Nothing is selected by them.
"""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor, nn

from ranks.engine.distributed.world import World
from ranks.engine.sharding import rng
from ranks.engine.update.evaluate import eval_mode, evaluate_by_shard
from ranks.engine.update.loss import Loss
from ranks.workloads.graph_coloring.config import Config, DataConfig
from ranks.workloads.graph_coloring.data.build import prepare
from ranks.workloads.graph_coloring.data.dataset_folder import load
from ranks.workloads.graph_coloring.data.items import Purpose
from ranks.workloads.graph_coloring.net.decode import conflicts_by_round, likeliest_colours
from ranks.workloads.graph_coloring.net.losses import (
    colour_probabilities,
    conflict_nll,
    encoder_losses,
    soft_conflict,
    weighted,
)
from ranks.workloads.graph_coloring.net.model import ColouringNet
from ranks.workloads.graph_coloring.net.rows import colour_noise, encode, row_noise, rows_of, unroll
from ranks.workloads.graph_coloring.net.stored import StoredGraphs

LAST_ROUNDS = 16
"""The colour loss is computed over this many last rounds."""
UNSEEN = ("solved", "conflicts", "chromatic_error", "chromatic_exact")
"""The metrics reported for families that are not in training."""


@lru_cache(maxsize=2)
def stored_graphs(data: DataConfig, purpose: Purpose, max_colours: int, device: torch.device) -> StoredGraphs:
    """The graphs of one purpose, loaded once per process."""
    return StoredGraphs(load(prepare(data, purpose)), max_colours, device)


def evaluate(model: nn.Module, cfg: Config, world: World) -> dict[str, float]:
    """The metrics of `validate`, and as `unseen/...` a part of them for families and sizes that are not in training.

    With a user's own graphs (`cfg.data.folder`) there is no unseen part: their families are not known.
    """
    found = validate(model, cfg, world)
    if cfg.data.folder is None:
        unseen = validate(model, cfg, world, "unseen")
        found |= {f"unseen/{name}": unseen[name] for name in UNSEEN}
    return found


def validate(model: nn.Module, cfg: Config, world: World, purpose: Purpose = "validation") -> dict[str, float]:
    """The validation metrics.

    `loss`: as in training, over the last rounds of one try. `solved`: share of graphs that one try of `eval_rounds`
    rounds colours properly, without repair, with as many colours as the best known colouring. `conflicts`: conflicting
    edges. `chromatic_error`, `chromatic_exact`: of the estimate, where the chromatic number is known. `type_right`:
    share of families that are right. `difficulty_error`: in decades.

    Graphs and random starts are keyed by (seed, graph), so every validation of a run sees the same ones.
    """
    assert isinstance(model, ColouringNet)
    graphs = stored_graphs(cfg.data, purpose, cfg.max_colours, world.device)
    noise = row_noise if cfg.node_ids else colour_noise
    key = rng.key(world.seed, "validate/noise" if cfg.node_ids else "train/noise", 0)

    def of_shard(ids: Tensor) -> Loss:
        batch = graphs.gather(ids)
        labels = batch.labels
        assert labels is not None
        with eval_mode(model, world):
            rows, encoding = rows_of(batch), encode(model, batch)
            logits_TR = unroll(model, encoding, noise(key, batch, rows), rows, cfg.eval_rounds)
            fewest_B = conflicts_by_round(likeliest_colours(logits_TR, rows), batch).amin(0).double()
            nll_TB = conflict_nll(colour_probabilities(logits_TR[-LAST_ROUNDS:], rows), batch, rows)
        conflict_B = soft_conflict(nll_TB, cfg.discount, cfg.softening)
        total_B = weighted(conflict_B, encoder_losses(encoding, labels), cfg.weights)
        coloured_B = batch.num_colours_B > 0
        proven_B, measured_B = labels.low_B == labels.high_B, ~labels.difficulty_B.isnan()
        error_B = (encoding.chromatic_B - labels.low_B).abs()
        right_B = encoding.chromatic_B.round() == labels.low_B
        off_B = (encoding.difficulty_B - labels.difficulty_B.nan_to_num()).abs()

        def over(values_B: Tensor, chosen_B: Tensor) -> tuple[Tensor, Tensor]:
            return (values_B.double() * chosen_B).sum(), chosen_B.double().sum()

        return Loss(
            sum=total_B.double().sum(),
            count=len(ids),
            solved=over(fewest_B == 0, coloured_B),
            conflicts=over(fewest_B, coloured_B),
            chromatic_error=over(error_B, proven_B),
            chromatic_exact=over(right_B, proven_B),
            type_right=over(encoding.type_logits_BT.argmax(-1) == labels.type_B, labels.type_B >= 0),
            difficulty_error=over(off_B, measured_B),
        )

    return evaluate_by_shard(world, min(cfg.eval_graphs, len(graphs)), of_shard)

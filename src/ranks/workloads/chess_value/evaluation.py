"""How good a net's values are on positions that it has not learned from, and how well it plays.

Legend: B positions of a batch, N of the sample, C bins of the calibration.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ranks.chess.match.net_rating import LADDER, NET, rate_nets
from ranks.data.loading.device_copy import to_device
from ranks.engine.distributed.world import World
from ranks.engine.runs.folder import RunFolder
from ranks.engine.update.evaluate import eval_mode, evaluate_by_shard
from ranks.engine.update.loss import Loss
from ranks.workloads.chess_value.batches import batch_of
from ranks.workloads.chess_value.config import Config
from ranks.workloads.chess_value.labels.label import SOURCES, Labelled
from ranks.workloads.chess_value.matches.matches import EVALUATION_SEED, rating_metrics, rung_plans
from ranks.workloads.chess_value.matches.pairs import Opponents, PlayedPair, play_all
from ranks.workloads.chess_value.matches.rungs import has_stockfish, nearest_rungs, rung_players
from ranks.workloads.chess_value.net.losses import ValueBatch, target, win_probability_of
from ranks.workloads.chess_value.parts import saved_parts
from ranks.workloads.chess_value.players.net_player import kind_of, open_net, plays_in_processes
from ranks.workloads.chess_value.tasks.pool import TaskPool

VALIDATION = "validation"
"""The folder of kept files with the positions that only validate."""
MOST_POSITIONS = 20_000
"""Of one validation."""
ROWS = 1024
"""Positions of one forward pass there."""
CALIBRATION_BINS = 10
SEARCH_SEED = 22
"""Of the openings of the first quarter of the games, which finds opponents near the net."""


class HasPositions(Protocol):
    """Labelled positions by index."""

    def __len__(self) -> int: ...
    def read(self, ids_B: NDArray[np.int64]) -> Labelled: ...


def validate(model: nn.Module, positions: HasPositions, mix: float, world: World, *, bins: int = 0) -> dict[str, float]:
    """The loss and the mean absolute error of the win probability, of all positions and by source.

    `bins`: also the calibration, see `calibration_error`. At most MOST_POSITIONS, evenly spread over those that there
    are; none: no metrics. Every rank calls it."""
    count = min(len(positions), MOST_POSITIONS)
    if not count:
        return {}
    index_N = torch.linspace(0, len(positions) - 1, count, dtype=torch.float64).long()

    def loss(ids_B: Tensor) -> Loss:
        labelled = positions.read(index_N[ids_B].numpy())
        return validation_loss(model, labelled, mix, bins, world.device)

    with eval_mode(model, world):
        found = evaluate_by_shard(world, count, loss, max_items=ROWS)
    metrics = {name: value for name, value in found.items() if value == value and not name.startswith("bin_")}
    if bins:
        metrics["calibration_error"] = calibration_error(found, bins)
    return metrics | {"positions": float(count)}


def validation_loss(model: nn.Module, labelled: Labelled, mix: float, bins: int, device: torch.device) -> Loss:
    """The loss of `value_loss` with a metric for each source, and for each of `bins` equal ranges of the win
    probability the sum of its errors and the number of labelled positions."""
    kind = kind_of(model)
    batch: ValueBatch = to_device(batch_of(labelled, kind), device)
    probability_B = win_probability_of(model, batch, kind)
    target_B, weight_B = target(batch, mix)
    error_B = (probability_B - target_B) * weight_B
    metrics: dict[str, Tensor | tuple[Tensor, int]] = {"error": error_B.abs()}
    for number, source in enumerate(SOURCES):
        is_source_B = labelled.source_N == number
        on_device_B: Tensor = to_device(torch.from_numpy(is_source_B), device)
        metrics[f"loss_{source}"] = (error_B.square() * on_device_B).sum(), int(is_source_B.sum())
    bin_B = (probability_B * bins).long().clamp(max=bins - 1)
    for number in range(bins):
        mine_B = (bin_B == number).to(error_B.dtype)
        metrics[f"bin_{number}_error"] = (error_B * mine_B).sum(), 1
        metrics[f"bin_{number}_count"] = (mine_B * weight_B).sum(), 1
    return Loss(error_B.square().sum(), len(error_B), **metrics)


def calibration_error(found: Mapping[str, float], bins: int) -> float:
    """How far the mean of the predicted win probability is from the mean target in its range, as a mean over
    positions (Naeini et al. 2015: expected calibration error)."""
    wrong = sum(abs(found[f"bin_{number}_error"]) for number in range(bins))
    return wrong / max(1.0, sum(found[f"bin_{number}_count"] for number in range(bins)))


def evaluate(model: nn.Module, cfg: Config, world: World) -> dict[str, float]:
    """A rating from games with fixed opponents, with other openings than in training; and the loss and calibration on
    the positions that the run has kept for validation. Every rank calls it."""
    open_rungs = rung_players(with_stockfish=all(world.comm.gather_objects(has_stockfish())))
    rating: float | None = None
    rated: list[PlayedPair] = []
    with world.session.timed("evaluation"), closing(TaskPool(world)) as pool:
        for games, seed in (
            (cfg.eval_games // 4, SEARCH_SEED),
            (cfg.eval_games - cfg.eval_games // 4, EVALUATION_SEED),
        ):
            words = nearest_rungs(rating, open_rungs)
            players = {NET: open_net(model, NET, cfg.rating.nodes), **{word: open_rungs[word] for word in words}}
            plans = rung_plans(words, max(games, 2), seed)
            rated = play_all(plans, Opponents(players, cfg.rating.max_plies, plays_in_processes(model)), pool)
            ratings = rate_nets([played.pair for played in rated], [], LADDER)
            rating = ratings.rating(NET).value if ratings is not None else rating
    metrics = {f"match/{name}": value for name, value in rating_metrics(rated, ratings).items()}
    kept = saved_parts(RunFolder.of(world.config.runs_dir, world.run_name).path, VALIDATION)
    found = validate(model, kept, cfg.result_mix, world, bins=CALIBRATION_BINS)
    return metrics | {f"val/{name}": value for name, value in found.items()}

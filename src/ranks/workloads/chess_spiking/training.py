"""Training: the net plays against itself on all ranks, and all ranks learn from the games."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import nn

from ranks.chess.core.rules import CHESS
from ranks.engine.distributed.world import World
from ranks.engine.runs.run import Run
from ranks.engine.runs.summary import Summary
from ranks.engine.update.evaluate import eval_mode
from ranks.engine.update.learner import Learner
from ranks.selfplay import (
    Encoding,
    ReplayWindow,
    SelfPlay,
    Snapshots,
    alphazero_loss,
    reinforce_loss,
)
from ranks.selfplay.net.encoding import dtype_of
from ranks.workloads.chess_spiking.building import Net, build
from ranks.workloads.chess_spiking.config import Config
from ranks.workloads.chess_spiking.encoding import encoding_of
from ranks.workloads.chess_spiking.matches.matches import Matches, evaluate_by_matches
from ranks.workloads.chess_spiking.matches.plan import MatchConfig
from ranks.workloads.chess_spiking.net.fused import use_fused_kernels
from ranks.workloads.chess_spiking.net.measures import measure


def loss_of(cfg: Config, encoding: Encoding) -> Any:
    """The loss of a batch: AlphaZero's with search, REINFORCE without."""
    if cfg.selfplay.search == "none":
        weights = {"vf_coef": cfg.vf_coef, "ent_coef": cfg.ent_coef}
        return partial(reinforce_loss, encoding=encoding, **weights)
    return partial(alphazero_loss, encoding=encoding, vf_coef=cfg.vf_coef)


def match_config(cfg: Config) -> MatchConfig:
    """How its matches are played."""
    return MatchConfig.of(cfg.eval_games, cfg.eval_simulations, cfg.eval_max_plies, cfg.selfplay)


def train(cfg: Config, world: World) -> Summary:
    """Train a net by self-play."""
    net, best, encoding = build(cfg), build(cfg), encoding_of(cfg.net, world.seed)
    learner = Learner(net, cfg.optim, world, global_batch=cfg.global_batch)
    for each in (net, best):
        use_fused_kernels(each, world)
    loss = loss_of(cfg, encoding)
    selfplay = SelfPlay(CHESS, encoding, cfg.slots, cfg.games_per_iteration, cfg.selfplay, world)
    window = ReplayWindow(CHESS, cfg.replay, world)
    snapshots = Snapshots(net, cfg.snapshot_every, world)
    matches = Matches(net, best, encoding, match_config(cfg), world)
    keep = dict(learner=learner, selfplay=selfplay, window=window, snapshots=snapshots, matches=matches)
    with Run.open(cfg, world, keep=keep) as run:
        for iteration in run.iterations(cfg.iterations, long=True):
            games = selfplay.play(net, iteration)
            window.add(games)
            for batch in window.batches(cfg.global_batch):
                run.log(learner.step(loss, batch))
            snapshots.take(iteration)
            run.log(games.results(), prefix="rollout")
            run.log(selfplay.statistics(), prefix="selfplay")
            run.log(spikes(net, encoding, window, cfg.measure_positions, world), prefix="spikes")
            if run.every(cfg.eval_every):
                run.log(matches.play(iteration), prefix="match")
                run.save(score=matches.checkpoint_score)
    return run.finish(export=net)


def spikes(net: Net, encoding: Encoding, window: ReplayWindow, positions: int, world: World) -> dict[str, float]:
    """Spike rates, dead neurons and operations of an evaluation, over positions of the newest games."""
    if not len(window):
        return {}
    with eval_mode(net, world):
        batch = window.gather(window.spread(positions))
        found = measure(net, encoding.planes(batch.positions).to(dtype_of(net)))
    values = torch.stack([value.double() for value in found.values()]).tolist()
    return dict(zip(found, values, strict=True))


def evaluate(model: nn.Module, cfg: Config, world: World) -> dict[str, float]:
    """A rating from games with search against fixed players."""
    encoding = encoding_of(cfg.net, world.seed)
    return evaluate_by_matches(model, encoding, match_config(cfg), world)

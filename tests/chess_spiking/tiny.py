"""A chess-spiking run of seconds."""

from __future__ import annotations

from pathlib import Path

import torch

from ranks import RunConfig, Summary, World
from ranks.selfplay import SelfPlayConfig
from ranks.workloads import chess_spiking
from ranks.workloads.chess_spiking import Config
from ranks.workloads.chess_spiking.config import NetConfig

TINY_NET = NetConfig(blocks=1, width=8, value_channels=8, value_hidden=8)
CONFIG = Config(
    iterations=3,
    games_per_iteration=2,
    slots=2,
    global_batch=8,
    eval_every=2,
    eval_games=6,
    eval_simulations=2,
    eval_max_plies=10,
    snapshot_every=1,
    measure_positions=4,
    net=TINY_NET,
    selfplay=SelfPlayConfig(simulations=2, max_plies=10),
)


def train(folder: Path, name: str = "tiny", cfg: Config = CONFIG) -> Summary:
    """In this process. Weights that had the same loss would be the same player, so each run is from one seed."""
    torch.manual_seed(0)
    config = RunConfig(name=name, runs_dir=folder / "runs", exact=True, shards=2, threads=1)
    world = World.join(config, device="cpu", workload="chess-spiking")
    try:
        return chess_spiking.train(cfg, world)
    finally:
        world.leave()

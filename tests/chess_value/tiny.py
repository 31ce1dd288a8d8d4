"""A chess-value run of seconds, without Stockfish."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch

from ranks import RunConfig, Summary, World
from ranks.workloads import chess_value
from ranks.workloads.chess_value import Config
from ranks.workloads.chess_value.config import LabelConfig, PlayConfig, RatingConfig, ValueNetConfig

CONFIG = Config(
    iterations=2,
    games=6,
    stockfish_games=0,
    labels="search",
    global_batch=30,
    reuse=1.0,
    parts=2,
    validation_share=0.3,
    net=ValueNetConfig(width=16),
    play=PlayConfig(nodes=60, max_plies=30),
    label=LabelConfig(limit="nodes:60"),
    rating=RatingConfig(games=4, rung_games=4, nodes=60, max_plies=24, share=1.0),
)


def run_config(folder: Path, name: str) -> RunConfig:
    return RunConfig(name=name, runs_dir=folder / "runs", exact=True, shards=2, threads=1)


def train(folder: Path, name: str = "tiny", cfg: Config = CONFIG, init_from: Path | None = None) -> Summary:
    """In this process."""
    torch.manual_seed(0)
    world = World.join(replace(run_config(folder, name), init_from=init_from), device="cpu", workload="chess-value")
    try:
        return chess_value.train(cfg, world)
    finally:
        world.leave()

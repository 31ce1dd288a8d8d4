"""Settings that belong together, by name: `ranks train chess-value --preset NAME`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ranks.engine.config import OptimConfig
from ranks.workloads.chess_value.config import Config, LabelConfig, PlayConfig, RatingConfig, ValueNetConfig


def demo() -> Config:
    """A few minutes on 2 CPU cores, without Stockfish: the net's own search labels its games."""
    return Config(
        iterations=4,
        games=120,
        stockfish_games=0,
        labels="search",
        global_batch=512,
        parts=2,
        result_mix=0.5,
        net=ValueNetConfig(width=64),
        play=PlayConfig(nodes=300),
        rating=RatingConfig(games=80, rung_games=20, nodes=500),
    )


def speed() -> Config:
    """Large batches and a higher learning rate."""
    return replace(
        Config(),
        max_positions=500_000,
        games=60,
        stockfish_games=60,
        global_batch=16_384,
        optim=replace(Config().optim, lr=1.5e-3),
    )


def quality() -> Config:
    """Smaller batches and a lower learning rate."""
    return replace(Config(), global_batch=4096, optim=replace(Config().optim, lr=5e-4))


def conservative() -> Config:
    """Few positions and games, small batches."""
    return replace(Config(), max_positions=100_000, games=10, stockfish_games=10, global_batch=2048)


def cpu() -> Config:
    """An hour and a half on 2 CPU cores with Stockfish as the teacher: many labels without search, and a small net."""
    return Config(
        iterations=26,
        snapshot_every=2,
        max_positions=850_000,
        games=4000,
        stockfish_games=0,
        global_batch=2048,
        reuse=2.0,
        final_passes=4.0,
        window=25_000_000,
        parts=2,
        result_mix=0.0,
        net=ValueNetConfig(width=64, king_scale=0.0),
        play=PlayConfig(nodes=200, random_share=0.05, children=12),
        label=LabelConfig(limit="static"),
        rating=RatingConfig(share=0.08),
        optim=OptimConfig(lr=5e-3, weight_decay=1e-4, schedule="cosine"),
    )


PRESETS: dict[str, Callable[[], Config]] = {
    "default": Config,
    "speed": speed,
    "quality": quality,
    "conservative": conservative,
    "cpu": cpu,
    "demo": demo,
}

"""Small nets, encodings and worlds for the tests of self-play."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ranks import RunConfig, World
from ranks.search import TICTACTOE, Game
from ranks.selfplay import Encoding, Games, Positions, SelfPlay, SelfPlayConfig


@contextmanager
def single_rank(device: str = "cpu", **settings: Any) -> Iterator[World]:
    """A `World` of one rank in this process."""
    world = World.join(RunConfig(threads=1, **settings), device=device, workload="test")
    try:
        yield world
    finally:
        world.leave()


def planes(positions: Positions) -> Tensor:
    """[B, 2, 8, 8]: the bits of both words, for any game of two words."""
    return ((positions.states_BW[:, :, None] >> torch.arange(64, device=positions.states_BW.device)) & 1).unflatten(
        2, (8, 8)
    )


ENCODING = Encoding(planes)


class SmallNet(nn.Module):
    """A linear policy and value. `scale` 0: uniform priors and value 0, whatever the batch."""

    def __init__(self, moves: int, scale: float = 1.0, seed: int = 0) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.weight = nn.Parameter(torch.randn(moves + 1, 128, generator=generator) * scale)

    def forward(self, planes_B288: Tensor) -> tuple[Tensor, Tensor]:
        out = planes_B288.flatten(1) @ self.weight.T
        return out[:, :-1], torch.tanh(out[:, -1])


def selfplay(world: World, game: Game = TICTACTOE, slots: int = 8, games: int = 12, **settings: Any) -> SelfPlay:
    """With few simulations."""
    cfg = SelfPlayConfig(**{"simulations": 8, **settings})
    return SelfPlay(game, ENCODING, slots, games, cfg, world)


def net_of(game: Game, scale: float = 1.0) -> SmallNet:
    """A net for a game, with random weights."""
    return SmallNet(game.max_moves, scale)


def assert_equal(games: Games, other: Games) -> None:
    """All fields have the same bits."""
    for name in ("game_N", "plies_N", "outcome_N", "truncated_N", "resigned_N", "draw_kind_N"):
        np.testing.assert_array_equal(getattr(games, name), getattr(other, name), name)
    for name, array in games.records.arrays().items():
        np.testing.assert_array_equal(array, getattr(other.records, name), name)

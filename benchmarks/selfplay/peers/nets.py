"""The nets of the comparison as arrays, so that every side computes the same layers (32-bit floats, no norm).

    tiny    3x3 convolutions planes -> 32 -> 32 with ReLU
    6x64    3x3 convolution planes -> 64 with ReLU, then 6 blocks of x = relu(x + conv(relu(conv(x))))
    both    a 1x1 convolution to 73 planes of move logits, and a value that is linear in all features, through tanh

A norm is folded into the convolutions of a net that plays, so none is left out. `constant` is no net:
logits 0, value 0.
"""

# O channels out, I channels in, C channels, P planes of moves, F features

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

MOVE_PLANES = 73
NETS = ("tiny", "6x64", "constant")
MAX_PLIES = 512
"""A game of so many plies is a draw (pgx's own limit; OpenSpiel has none below 17,695)."""


@dataclass(frozen=True)
class Weights:
    """float32, normal with variance 2 / fan in; the second convolution of a block has 1/6 of it."""

    convs: list[np.ndarray]
    """[O, I, 3, 3] each."""
    residual: bool
    """Whether the convolutions after the first are pairs with a shortcut."""
    policy_PC: np.ndarray
    value_F: np.ndarray


def weights(net: str, planes: int, seed: int = 1) -> Weights:
    """Of `tiny` or `6x64`, for an input of so many planes."""
    rng = np.random.default_rng(seed)
    channels, count, residual = (32, 2, False) if net == "tiny" else (64, 13, True)

    def normal(*shape: int, gain: float = 2.0) -> np.ndarray:
        fan_in = int(np.prod(shape[1:])) if len(shape) > 1 else shape[0]
        return (rng.standard_normal(shape) * np.sqrt(gain / fan_in)).astype(np.float32)

    convs = [normal(channels, planes, 3, 3)]
    for index in range(1, count):
        is_second = residual and index % 2 == 0
        convs.append(normal(channels, channels, 3, 3, gain=2 / 6 if is_second else 2.0))
    return Weights(convs, residual, normal(MOVE_PLANES, channels), normal(channels * 64))

"""The tiny net of the comparison as arrays. Both sides load the same numbers, so that their trees
are equal.

19 planes, two 3x3 convolutions of 32 channels with ReLU, a 1x1 convolution to 73 planes of move
logits, and a value that is linear in the 32 x 64 features, through tanh. 17,056 multiplications per
square, 32-bit floats.
"""

# O channels out, I channels in, H rows, W columns, P planes of moves, F features

from __future__ import annotations

import numpy as np

PLANES, CHANNELS, MOVE_PLANES = 19, 32, 73
OPENING_PLIES = 8
"""Each game begins this many random plies after the start position."""


def weights(seed: int = 1) -> dict[str, np.ndarray]:
    """float32: conv1 [O, I, H, W], conv2 [O, I, H, W], policy [P, I], value [F]; normal, variance 2
    / fan in."""
    rng = np.random.default_rng(seed)

    def normal(*shape: int) -> np.ndarray:
        fan_in = int(np.prod(shape[1:])) if len(shape) > 1 else shape[0]
        return (rng.standard_normal(shape) * np.sqrt(2 / fan_in)).astype(np.float32)

    return {
        "conv1": normal(CHANNELS, PLANES, 3, 3),
        "conv2": normal(CHANNELS, CHANNELS, 3, 3),
        "policy": normal(MOVE_PLANES, CHANNELS),
        "value": normal(CHANNELS * 64),
    }

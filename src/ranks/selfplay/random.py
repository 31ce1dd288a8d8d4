"""Random numbers of a move: a function of (seed, game id, ply, purpose), as in the search (search/rng.py)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ranks.search.evaluation import Float64Array, Int64Array
from ranks.splitmix64 import mix

FULL_SEARCH, MOVE, OPENING = 3, 4, 5
"""The purposes; 1 and 2 are the search's own."""


def uniform(seed: int, game_P: Int64Array, ply_P: Int64Array, purpose: int) -> Float64Array:
    """float64[P] in the open interval (0, 1), one number for each move."""
    with np.errstate(over="ignore"):
        seeded: Any = mix(np.uint64(seed % 2**64))
        key_P = mix(mix(mix(seeded ^ game_P.astype(np.uint64)) ^ ply_P.astype(np.uint64)) ^ np.uint64(purpose))
        return ((mix(key_P) >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52


def sample(weights_PM: Float64Array, uniform_P: Float64Array) -> Int64Array:
    """int64[P]: a column of each row, with probability in proportion to its weight; a weight of 0 is never chosen."""
    cumulative_PM = weights_PM.cumsum(1)
    chosen_P = (cumulative_PM <= (uniform_P * cumulative_PM[:, -1])[:, None]).sum(1)
    last_P = weights_PM.shape[1] - 1 - (weights_PM[:, ::-1] > 0).argmax(1)
    return np.minimum(chosen_P, last_P)

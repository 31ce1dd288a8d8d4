"""The units of scores.

A score is in centipawns, for the side to move. A mate is MATE_CP for the side that mates, however many moves it takes;
any other score is clipped to MOST_CP. The win probability, with a draw as one half, is

    p = 1 / (1 + exp(-cp / 400))

so any mate is 1 and no score at all is 1 / 2.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MATE_CP = 10_000
MOST_CP = MATE_CP - 1
"""The largest score that is no mate."""
LABEL_CP_PER_LOGIT = 400.0
"""Centipawns of one logit of the win probability, in labels."""


def clipped_cp(score_cp: int | None, mate_in: int | None) -> int:
    """The score of a UCI engine in our units. mate_in: 0 or less if the side to move is mated."""
    if mate_in is not None:
        return MATE_CP if mate_in > 0 else -MATE_CP
    return max(-MOST_CP, min(MOST_CP, score_cp or 0))


def win_probability(cp_N: NDArray[np.int16]) -> NDArray[np.float64]:
    """float64[N] in [0, 1]: the expected result for the side to move; 0 and 1 are mates."""
    logit_N = np.asarray(cp_N, np.float64) / LABEL_CP_PER_LOGIT
    with np.errstate(over="ignore"):
        p_N = 1.0 / (1.0 + np.exp(-logit_N))
    return np.where(np.abs(cp_N) >= MATE_CP, np.sign(cp_N) / 2 + 0.5, p_N)

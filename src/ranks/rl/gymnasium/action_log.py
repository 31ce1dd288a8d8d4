"""Records the actions of running episodes, so that a resumed run can replay them.

Legend: B environments, L actions of the longest running episode.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

MANY_ACTIONS = 1_000_000
MANY_BYTES = 100 * 10**6


class ActionLog:
    """The actions of B running episodes in one zero-padded array, which doubles when it is full."""

    def __init__(self, num_rows: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        """`shape`, `dtype`: of one action."""
        self.length_B = np.zeros(num_rows, np.int64)
        """Actions of each running episode."""
        self._action_BL = np.zeros((num_rows, 0, *shape), dtype)
        self._warned = False

    @property
    def action_BL(self) -> NDArray[Any]:
        """The actions [B, L, ...], a view."""
        return self._action_BL[:, : self.length_B.max(initial=0)]

    def row(self, row: int) -> NDArray[Any]:
        """A copy of the actions of one running episode, [its length, ...]."""
        return self._action_BL[row, : self.length_B[row]].copy()

    def append(self, action_B: NDArray[Any]) -> None:
        """Add one action of each environment.

        Warns once when an episode is so long that keeping it is expensive.
        """
        longest, capacity = int(self.length_B.max(initial=0)), self._action_BL.shape[1]
        if longest == capacity:
            more = np.zeros((len(self.length_B), max(capacity, 16), *self._action_BL.shape[2:]), self._action_BL.dtype)
            self._action_BL = np.concatenate([self._action_BL, more], 1)
        self._action_BL[np.arange(len(self.length_B)), self.length_B] = action_B
        self.length_B += 1
        if not self._warned and (longest >= MANY_ACTIONS or self.action_BL.nbytes > MANY_BYTES):
            self._warned = True
            cost = f"{self.action_BL.nbytes / 1e6:.0f} MB are copied in each iteration, and a resume replays them all"
            do = "end episodes sooner, for example with gymnasium.wrappers.TimeLimit"
            warnings.warn(f"an episode has {longest + 1:,} actions: {cost}; {do}", stacklevel=2)

    def clear(self, mask_B: NDArray[np.bool_]) -> None:
        """Remove the actions of the rows where the mask is true: their next episode starts."""
        for row in np.flatnonzero(mask_B):
            self._action_BL[row, : self.length_B[row]] = 0
        self.length_B[mask_B] = 0

    def load(self, length_B: NDArray[np.int64], action_BL: NDArray[Any]) -> None:
        """Take over copies of another log's arrays; `action_BL` may be zero-padded."""
        self.length_B, self._action_BL = length_B.copy(), action_BL.copy()

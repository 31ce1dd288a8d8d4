"""The actions of running episodes, from which they can be played again.

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
    """Rows of one array, which doubles where it is full; behind an episode's last action stand zeros."""

    def __init__(self, num_rows: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        """`shape`, `dtype`: of one action."""
        self.length_B = np.zeros(num_rows, np.int64)
        self._action_BL = np.zeros((num_rows, 0, *shape), dtype)
        self._said = False

    @property
    def action_BL(self) -> NDArray[Any]:
        """[B, L, ...], a view."""
        return self._action_BL[:, : self.length_B.max(initial=0)]

    def row(self, row: int) -> NDArray[Any]:
        """[l, ...]: a copy of one running episode's actions."""
        return self._action_BL[row, : self.length_B[row]].copy()

    def append(self, action_B: NDArray[Any]) -> None:
        """One action of each environment. Warns once where an episode gets so long that keeping it is a burden."""
        longest, room = int(self.length_B.max(initial=0)), self._action_BL.shape[1]
        if longest == room:
            more = np.zeros((len(self.length_B), max(room, 16), *self._action_BL.shape[2:]), self._action_BL.dtype)
            self._action_BL = np.concatenate([self._action_BL, more], 1)
        self._action_BL[np.arange(len(self.length_B)), self.length_B] = action_B
        self.length_B += 1
        if not self._said and (longest >= MANY_ACTIONS or self.action_BL.nbytes > MANY_BYTES):
            self._said = True
            cost = f"{self.action_BL.nbytes / 1e6:.0f} MB are copied in each iteration, and a resume plays all again"
            do = "end episodes sooner, as gymnasium.wrappers.TimeLimit does"
            warnings.warn(f"an episode has {longest + 1:,} actions: {cost}; {do}", stacklevel=2)

    def forget(self, mask_B: NDArray[np.bool_]) -> None:
        """Where the mask holds the next episode begins."""
        for row in np.flatnonzero(mask_B):
            self._action_BL[row, : self.length_B[row]] = 0
        self.length_B[mask_B] = 0

    def load(self, length_B: NDArray[np.int64], action_BL: NDArray[Any]) -> None:
        """Take over copies of what `length_B` and `action_BL` were; `action_BL` may be padded with zeros."""
        self.length_B, self._action_BL = length_B.copy(), action_BL.copy()

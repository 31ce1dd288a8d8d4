"""What goes to the network and what comes back.

Legend: B rows of a batch, W words of a state, M the most moves that a state of this game can have.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

Words: TypeAlias = np.ndarray[Any, np.dtype[np.uint64]]
Moves: TypeAlias = np.ndarray[Any, np.dtype[np.uint16]]
Ints: TypeAlias = np.ndarray[Any, np.dtype[np.int32]]
Longs: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float32]]
Doubles: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
Flags: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]


class Leaves(NamedTuple):
    """Positions that wait for an evaluation: always B rows, whose arrays are written anew after the call returns.

    A row without a leaf has no moves; what else stands in it is left over from before. No leaf is a finished game.
    """

    states_BW: Words
    moves_BM: Moves
    """The legal moves of row b are moves_BM[b, :num_moves_B[b]], in the order in which the game gives them."""
    num_moves_B: Ints


class Evaluation(NamedTuple):
    """What a network says about B positions. Rows without a leaf are not read."""

    priors_BM: Floats
    """float32: probabilities of the legal moves, beside moves_BM; they sum to one within 2 %, and are then made to.
    Columns beyond the most moves in this batch may be left out."""
    value_B: Floats
    """float32: expected outcome for the side to move, from -1 (lost) to 1 (won)."""


Evaluator: TypeAlias = Callable[[Leaves], Evaluation]
"""A plain function. It is called from the thread that runs the search, one call at a time, and may keep no leaves."""


def uniform(leaves: Leaves) -> Evaluation:
    """Every move alike, every position a draw: what is left is the search itself."""
    num_moves_B1 = np.maximum(leaves.num_moves_B, 1)[:, None]
    priors_BM = np.broadcast_to(1 / num_moves_B1, leaves.moves_BM.shape).astype(np.float32)
    return Evaluation(priors_BM, np.zeros(len(num_moves_B1), np.float32))

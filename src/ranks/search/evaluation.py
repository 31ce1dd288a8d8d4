"""What goes to the network and what comes back.

Legend: B rows of a batch, W words of a state, M the most moves that a state of this game can have.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

Words: TypeAlias = np.ndarray[Any, np.dtype[np.uint64]]
Moves: TypeAlias = np.ndarray[Any, np.dtype[np.uint16]]
Int32Array: TypeAlias = np.ndarray[Any, np.dtype[np.int32]]
Int64Array: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
Float32Array: TypeAlias = np.ndarray[Any, np.dtype[np.float32]]
Float64Array: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
BoolArray: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]


class Leaves(NamedTuple):
    """Positions to evaluate: always B rows. The search overwrites these arrays after the evaluator returns.

    A row without a leaf has num_moves_B = 0; its other contents are left over from an earlier batch. No leaf is a
    finished game.
    """

    states_BW: Words
    moves_BM: Moves
    """The legal moves of row b are moves_BM[b, :num_moves_B[b]], in the order in which the game gives them."""
    num_moves_B: Int32Array


class Evaluation(NamedTuple):
    """The network's answer for B positions. Rows without a leaf are not read."""

    priors_BM: Float32Array
    """float32: probabilities of the legal moves, in the order of moves_BM. They must sum to one within 2 %; the search
    then normalises them. Columns beyond the most moves in this batch may be left out."""
    value_B: Float32Array
    """float32: expected outcome for the side to move, from -1 (lost) to 1 (won)."""


Evaluator: TypeAlias = Callable[[Leaves], Evaluation]
"""A plain function. It is called from the thread that runs the search, one call at a time, and must not keep the
leaves."""


def uniform_evaluator(leaves: Leaves) -> Evaluation:
    """Uniform priors and value 0 everywhere: only the ends of games guide the search."""
    num_moves_B1 = np.maximum(leaves.num_moves_B, 1)[:, None]
    priors_BM = np.broadcast_to(1 / num_moves_B1, leaves.moves_BM.shape).astype(np.float32)
    return Evaluation(priors_BM, np.zeros(len(num_moves_B1), np.float32))

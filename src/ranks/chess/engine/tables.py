"""Evaluation by tapered piece-square tables: the sum of one value for each piece, mixed by the phase of the game.

    phase   24 with all pieces on the board, 0 with kings and pawns only
    score   (midgame sum * phase + endgame sum * (24 - phase)) / 24, from the side to move

The sums are updated with each move. All values, the material included, are one array, so that they can be tuned. The
default squares of the midgame are those of Michniewski's Simplified Evaluation Function (chessprogramming.org, 1995).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import safetensors
import safetensors.numpy
from numpy.typing import NDArray

from ranks.bounded_file import open_file
from ranks.chess.core.bits import ONE, ZERO, clear_lsb, lsb
from ranks.chess.core.evaluation import BONUS_CP
from ranks.chess.core.position import Position, kind_at
from ranks.errors import UserError
from ranks.jit import inlined

TableValues: TypeAlias = NDArray[np.int32]
"""int32[2, 6, 64]: centipawns in the midgame and in the endgame of a white pawn, knight, bishop, rook, queen and king
on each square, a1 first. A black piece has the value of the square mirrored to the other end of the board."""
SHAPE = (2, 6, 64)
ARRAY = "table_values"
MAX_PHASE = 24
KIND_PHASE = np.array([0, 1, 1, 2, 4, 0], np.int64)
"""What a pawn, knight, bishop, rook, queen and king add to the phase."""
MIDGAME_CP = (85, 330, 345, 480, 980, 0)
ENDGAME_CP = (110, 300, 315, 540, 960, 0)
LARGEST_CP = 4000


def default_values() -> TableValues:
    """The values before any tuning."""
    squares_PKS = np.zeros(SHAPE, np.int32)
    from_a1 = np.arange(64) ^ 56
    squares_PKS[0] = BONUS_CP[[0, 1, 2, 3, 4, 5]][:, from_a1]
    squares_PKS[1] = BONUS_CP[[0, 1, 2, 3, 4, 6]][:, from_a1]
    # in the endgame rooks have no rank of their own, and a pawn is worth more on each rank that it has passed
    squares_PKS[1, 3] = 0
    squares_PKS[1, 0] = np.repeat([0, -10, -5, 5, 25, 50, 85, 0], 8)
    return squares_PKS + np.array([MIDGAME_CP, ENDGAME_CP], np.int32)[:, :, None]


@inlined
def count_piece(values: TableValues, f: Any, kind: Any, black: Any, square: Any, sign: int) -> None:
    """Add (sign 1) or take (-1) a piece, kind 0 to 5, to or from the sums of a frame, which are from white's side."""
    seen = np.int64(square) ^ (56 * black)
    of_side = sign * (1 - 2 * black)
    f.midgame += of_side * values[0, kind, seen]
    f.endgame += of_side * values[1, kind, seen]
    f.phase += sign * KIND_PHASE[kind]


@inlined
def count_board(values: TableValues, p: Position, f: Any) -> None:
    """Compute the sums of a frame from scratch."""
    f.midgame, f.endgame, f.phase = 0, 0, 0
    pieces = p.white | p.black
    while pieces != ZERO:
        square = lsb(pieces)
        count_piece(values, f, np.int64(kind_at(p, square)) - 1, np.int64((p.black >> square) & ONE), square, 1)
        pieces = clear_lsb(pieces)


@inlined
def count_move(values: TableValues, before: Position, after: Position, parent: Any, f: Any) -> None:
    """Compute the sums of a frame from those of its parent: only the squares that a move has changed count."""
    f.midgame, f.endgame, f.phase = parent.midgame, parent.endgame, parent.phase
    changed = (before.white ^ after.white) | (before.black ^ after.black)
    while changed != ZERO:
        square = lsb(changed)
        left, came = np.int64(kind_at(before, square)), np.int64(kind_at(after, square))
        if left:
            count_piece(values, f, left - 1, np.int64((before.black >> square) & ONE), square, -1)
        if came:
            count_piece(values, f, came - 1, np.int64((after.black >> square) & ONE), square, 1)
        changed = clear_lsb(changed)


@inlined
def tapered(f: Any, side: Any) -> Any:
    """The score of a frame's sums in centipawns, for the side to move; rounded down."""
    phase = min(f.phase, MAX_PHASE)
    score = (f.midgame * phase + f.endgame * (MAX_PHASE - phase)) // MAX_PHASE
    return score if side == ZERO else -score


def save_tables(path: Path, values: TableValues) -> None:
    """Write a file of table values. Raises ValueError for a wrong shape or type, OSError where it cannot be written."""
    problem = wrong_with(values)
    if problem:
        raise ValueError(problem)
    path.write_bytes(safetensors.numpy.save({ARRAY: np.ascontiguousarray(values)}))


def load_tables(path: Path, asked: str) -> TableValues:
    """Read a file of table values. Raises UserError: missing, damaged, wrong shape, type or values."""
    with open_file(path, asked, has_lines=False) as file:
        content = file.read()
    try:
        arrays = safetensors.numpy.load(content)
        problem = wrong_with(arrays[ARRAY]) if set(arrays) == {ARRAY} else f"its arrays are not {ARRAY} alone"
    except (safetensors.SafetensorError, KeyError, ValueError) as error:
        arrays, problem = {}, f"not a readable safetensors file ({error})"
    if problem:
        raise UserError(asked, f"{path}: {problem}", "give a file of tables that this version of ranks has written")
    return np.ascontiguousarray(arrays[ARRAY])


def wrong_with(values: NDArray[Any]) -> str | None:
    """What is wrong with the type, shape or size of table values."""
    if values.dtype != np.int32 or values.shape != SHAPE:
        return f"{ARRAY} is {values.dtype}{list(values.shape)}, not int32{list(SHAPE)}"
    if np.abs(values.astype(np.int64)).max() > LARGEST_CP:
        return f"a value of more than {LARGEST_CP} centipawns"
    return None

"""Everything that an alpha-beta search is made of, one row for each ply of the line that is being looked at.

    level        0          1          2     ...
    rows      |root      |child     |child  |          positions
    moves     |218       |218       |218    |          the first num_moves of each are to be tried
    keys |128 of the past |level 0   |level 1   |      oldest first, for repetitions

Legend: L levels, T entries of the table.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numba import types
from numpy.typing import NDArray

from ranks.chess.core.moves import MAX_MOVES
from ranks.chess.core.position import HALF_MOVES, WORDS
from ranks.chess.core.tables import Words

MAX_DEPTH = 64
LEVELS = 128
"""MAX_DEPTH, and room for all captures and promotions after it."""
PAST = 128
MATE = 32000
"""The value of having mated; a mate n plies ahead is worth MATE - n."""
MATE_FLOOR = 31000
"""No position without a mate in sight is worth as much."""
UNKNOWN = 1 << 20
"""Larger than any value."""
EXACT, AT_LEAST, AT_MOST = 0, 1, 2
ENTRY_BYTES = 16
"""Of the table, with the key."""

Number: TypeAlias = Any
"""int64 to Numba."""
Numbers: TypeAlias = NDArray[Any]
"""int64[L], where nothing else is said."""


class Tree(NamedTuple):
    """Everything that a search under way is made of."""

    rows: Words
    keys: Words
    moves: NDArray[np.uint16]
    order: Numbers
    """Beside moves: the larger, the earlier it is tried."""
    num_moves: Numbers
    num_tried: Numbers
    depth: Numbers
    """Plies to look ahead from each level; zero or less: captures only."""
    alpha: Numbers
    beta: Numbers
    floor: Numbers
    """Alpha when the level was entered."""
    best: Numbers
    best_move: Numbers
    pure: Numbers
    """1 where no position before this level can change its value."""
    doubled: Numbers
    """1 where a position since the last irreversible move has stood twice."""
    killers: Numbers
    """int64[L, 2]: quiet moves that refuted another move at the same level."""
    pv: Numbers
    """int64[L, L]: the best line from each level on."""
    pv_length: Numbers
    table_keys: Words
    table_entries: Words
    """uint64[T]: value + 32768 | move << 16 | depth << 32 | bound << 40.

    In table_keys stands key ^ salt ^ entry: what two threads have written half each is no entry (Hyatt & Mann 2002)."""
    salt: Words
    """uint64[1]: part of all keys of the table, so that another salt is an empty table."""
    state: Numbers
    """int64[4]: level, 1 if it is entered next, nodes so far, where the past begins in keys."""


_DTYPES = {"moves": np.uint16, **dict.fromkeys(["rows", "keys", "table_keys", "table_entries", "salt"], np.uint64)}
_DIMENSIONS = {"rows": 2, "killers": 2, "pv": 2}
TREE = types.NamedTuple(
    [
        types.Array(getattr(types, np.dtype(_DTYPES.get(name, np.int64)).name), _DIMENSIONS.get(name, 1), "C")
        for name in Tree._fields
    ],
    Tree,
)
"""The type of a tree as an argument of a kernel."""

LEVEL, ENTERING, NODES, BEGIN = 0, 1, 2, 3


def new_tree(table_bits: int = 20) -> Tree:
    """Room for one search; its table has 2**table_bits entries of ENTRY_BYTES."""
    levels = dict.fromkeys(set(Tree._fields[4:17]) - {"killers", "pv"}, (LEVELS,))
    shapes: dict[str, tuple[int, ...]] = {
        **levels,
        "rows": (LEVELS, WORDS),
        "keys": (PAST + LEVELS,),
        "moves": (LEVELS * MAX_MOVES,),
        "order": (LEVELS * MAX_MOVES,),
        "killers": (LEVELS, 2),
        "pv": (LEVELS, LEVELS),
        "table_keys": (1 << table_bits,),
        "table_entries": (1 << table_bits,),
        "salt": (1,),
        "state": (4,),
    }
    arrays: dict[str, Any] = {name: np.zeros(shape, _DTYPES.get(name, np.int64)) for name, shape in shapes.items()}
    return Tree(**arrays)


def with_table_of(tree: Tree) -> Tree:
    """Room for another search of the same root at the same time, which shares what it finds."""
    return new_tree(0)._replace(table_keys=tree.table_keys, table_entries=tree.table_entries, salt=tree.salt)


def set_root(tree: Tree, rows: Words, salt: int) -> None:
    """Begin with the last of these positions, uint64[plies + 1, 13], and forget all that is in the table."""
    past = rows[:-1][-PAST:, WORDS - 1]
    begin = PAST - len(past)
    tree.keys[begin:PAST] = past
    tree.rows[0] = rows[-1]
    tree.state[BEGIN], tree.state[NODES] = begin, 0
    tree.killers.fill(0)
    tree.salt[0] = salt
    window = rows[len(rows) - 1 - min(int(rows[-1, WORDS - 2] & HALF_MOVES), len(rows) - 1) :, WORDS - 1]
    tree.doubled[0] = len(np.unique(window)) < len(window)
    tree.keys[PAST] = rows[-1, WORDS - 1]


def start(tree: Tree, moves: list[int], depth: int) -> None:
    """Begin one search of the root: only these moves, in this order, so many plies deep."""
    tree.moves[: len(moves)] = moves
    tree.order[: len(moves)] = range(len(moves), 0, -1)
    tree.num_moves[0], tree.num_tried[0], tree.depth[0] = len(moves), 0, depth
    tree.alpha[0], tree.beta[0], tree.floor[0], tree.best[0] = -UNKNOWN, UNKNOWN, -UNKNOWN, -UNKNOWN
    tree.best_move[0] = tree.pure[0] = tree.pv_length[0] = 0
    tree.state[LEVEL] = tree.state[ENTERING] = 0

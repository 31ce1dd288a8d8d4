"""The state of an alpha-beta search: flat arrays with one row for each ply of the current line.

    level        0          1          2     ...
    rows      |root      |child     |child  |          positions
    moves     |218       |218       |218    |          num_moves[level] of them are to be searched
    keys |128 before the root |level 0   |level 1   |  Zobrist keys, oldest first, for repetitions

Legend: L levels, T entries of the transposition table.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numba import types
from numpy.typing import NDArray

from ranks.chess.core.moves import MAX_MOVES
from ranks.chess.core.position import HALF_MOVES
from ranks.chess.core.tables import Words
from ranks.chess.core.words import CLOCKS_WORD, KEY_WORD, WORDS

MAX_DEPTH = 64
LEVELS = 128
"""MAX_DEPTH plus room for the quiescence search."""
HISTORY = 128
"""Positions before the root that are kept for repetitions."""
MATE = 32000
"""The score of giving mate now; a mate in n plies scores MATE - n."""
MATE_FLOOR = 31000
"""Scores above this are mates."""
UNKNOWN = 1 << 20
"""Larger than any score; also serves as infinity."""
EXACT, LOWER_BOUND, UPPER_BOUND = 0, 1, 2
ENTRY_BYTES = 16
"""Size of one entry of the transposition table, with its key."""

Number: TypeAlias = Any
"""int64 to Numba."""
Numbers: TypeAlias = NDArray[Any]
"""int64[L], unless stated otherwise."""


class SearchState(NamedTuple):
    """All arrays of one search."""

    rows: Words
    keys: Words
    moves: NDArray[np.uint16]
    order: Numbers
    """The ordering score of each of `moves`; higher ones are searched first."""
    num_moves: Numbers
    num_tried: Numbers
    depth: Numbers
    """Remaining depth at each level; below zero only captures are searched."""
    alpha: Numbers
    beta: Numbers
    original_alpha: Numbers
    """Alpha when the level was entered."""
    best: Numbers
    best_move: Numbers
    path_independent: Numbers
    """1 where the positions before this level cannot change its score (no repetition, no fifty-move
    draw)."""
    repeated: Numbers
    """1 where a position since the last irreversible move has occurred twice."""
    killers: Numbers
    """int64[L, 2]: killer moves, quiet moves that caused a cutoff at the same level."""
    pv: Numbers
    """int64[L, L]: the principal variation from each level on."""
    pv_length: Numbers
    table_keys: Words
    table_entries: Words
    """uint64[T]: score + 32768 | move << 16 | depth << 32 | bound << 40.

    table_keys holds key ^ salt ^ entry. An entry that two threads wrote half each then matches no
    key (Hyatt & Mann 2002)."""
    salt: Words
    """uint64[1]: XORed into all keys of the table, so that a new salt empties the table."""
    counters: Numbers
    """int64[4]: the current level; 1 if it has not been visited yet; nodes so far; the first used
    index of keys."""


_DTYPES = {"moves": np.uint16, **dict.fromkeys(["rows", "keys", "table_keys", "table_entries", "salt"], np.uint64)}
_DIMENSIONS = {"rows": 2, "killers": 2, "pv": 2}
SEARCH_STATE = types.NamedTuple(
    [
        types.Array(getattr(types, np.dtype(_DTYPES.get(name, np.int64)).name), _DIMENSIONS.get(name, 1), "C")
        for name in SearchState._fields
    ],
    SearchState,
)
"""The Numba type of a SearchState argument."""

LEVEL, ENTERING, NODES, BEGIN = 0, 1, 2, 3


def new_state(table_bits: int = 20) -> SearchState:
    """Arrays for one search, with a transposition table of 2**table_bits entries of ENTRY_BYTES."""
    levels = dict.fromkeys(set(SearchState._fields[4:17]) - {"killers", "pv"}, (LEVELS,))
    shapes: dict[str, tuple[int, ...]] = {
        **levels,
        "rows": (LEVELS, WORDS),
        "keys": (HISTORY + LEVELS,),
        "moves": (LEVELS * MAX_MOVES,),
        "order": (LEVELS * MAX_MOVES,),
        "killers": (LEVELS, 2),
        "pv": (LEVELS, LEVELS),
        "table_keys": (1 << table_bits,),
        "table_entries": (1 << table_bits,),
        "salt": (1,),
        "counters": (4,),
    }
    arrays: dict[str, Any] = {name: np.zeros(shape, _DTYPES.get(name, np.int64)) for name, shape in shapes.items()}
    return SearchState(**arrays)


def new_helper_state(state: SearchState) -> SearchState:
    """Arrays for a helper thread, which searches the same root and shares the transposition
    table."""
    return new_state(0)._replace(table_keys=state.table_keys, table_entries=state.table_entries, salt=state.salt)


def set_root(state: SearchState, rows: Words, salt: int) -> None:
    """Make the last of these positions, uint64[plies + 1, 13], the root.

    A new `salt` empties the table."""
    past = rows[:-1][-HISTORY:, KEY_WORD]
    begin = HISTORY - len(past)
    state.keys[begin:HISTORY] = past
    state.rows[0] = rows[-1]
    state.counters[BEGIN], state.counters[NODES] = begin, 0
    state.killers.fill(0)
    state.salt[0] = salt
    window = rows[len(rows) - 1 - min(int(rows[-1, CLOCKS_WORD] & HALF_MOVES), len(rows) - 1) :, KEY_WORD]
    state.repeated[0] = len(np.unique(window)) < len(window)
    state.keys[HISTORY] = rows[-1, KEY_WORD]


def start(state: SearchState, moves: list[int], depth: int) -> None:
    """Start a search of the root to `depth` plies, over these moves only and in this order."""
    state.moves[: len(moves)] = moves
    state.order[: len(moves)] = range(len(moves), 0, -1)
    state.num_moves[0], state.num_tried[0], state.depth[0] = len(moves), 0, depth
    state.alpha[0], state.beta[0], state.original_alpha[0], state.best[0] = -UNKNOWN, UNKNOWN, -UNKNOWN, -UNKNOWN
    state.best_move[0] = state.path_independent[0] = state.pv_length[0] = 0
    state.counters[LEVEL] = state.counters[ENTERING] = 0

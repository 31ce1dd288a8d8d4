"""The memory of one search thread: a stack of frames, one for each ply of the current line, and what is learned on
the way.

    level          0          1          2     ...
    rows         |root      |child     |child  |          positions
    frames       |window, best move, stage, ...|          one Frame each
    moves        |218       |218       |218    |          num_moves of them are to be searched
    keys  |128 before the root |level 0 |level 1 |        Zobrist keys, oldest first, for repetitions

Legend: L levels, T slots of the transposition table, H accumulator width, P = 768 pieces (12) on squares (64).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import types
from numpy.typing import NDArray

from ranks.chess.core.alphabeta_state import HISTORY, LEVELS, UNKNOWN
from ranks.chess.core.moves import MAX_MOVES, MOST_WORDS
from ranks.chess.core.tables import Words
from ranks.chess.core.words import WORDS
from ranks.chess.engine.nnue.inference import NET_ARRAYS, NetArrays
from ranks.chess.engine.search.transpositions import GENERATIONS

ROOT, ENTER, NULL_MOVE, EXPAND, MOVES, SINGULAR = 0, 1, 2, 3, 4, 5
"""Stages of a level: what happens next."""
PIECE_SQUARES = 768
NO_MOVE = 0xFFFF
"""A move that never occurs."""
MAX_SEARCH_DEPTH = LEVELS - 28

FRAME = np.dtype(
    [
        (name, np.int64)
        for name in (
            "stage",  # what happens next at this level; the constants are above
            "depth",  # remaining plies; below 1 the quiescence search
            "alpha",
            "beta",
            "first_alpha",  # alpha when the level was entered
            "best",  # the best score so far
            "best_move",
            "static_eval",  # NO_EVAL in check
            "in_check",
            "cut_node",  # 1 where a beta cutoff is expected
            "excluded",  # a move that this search leaves out, or 0
            "hash_move",
            "hash_score",
            "hash_depth",
            "hash_bound",
            "num_moves",
            "num_tried",
            "num_searched",
            "num_quiets",  # quiet moves searched
            "extension",  # of the hash move
            "singular_tested",  # 1 once the extension is known
            "new_depth",  # depth of the child if nothing is reduced
            "full_window",  # 1 while the child is searched with the window of this level
            "reduced",  # 1 while the child is searched less deeply than new_depth
            "moved",  # index (piece * 64 + to) of the move to the child; PIECE_SQUARES for a null move
            "killer_1",
            "killer_2",
            "pv_length",
            "nodes_before",  # nodes when the search of the child began
            "midgame",  # sums of tables.py
            "endgame",
            "phase",
            "accumulated",  # 1 where the accumulators of this level are up to date
        )
    ]
    + [(name, np.uint64) for name in ("knight_checks", "bishop_checks", "rook_checks", "pawn_checks", "discoverers")]
)
"""One level of a search. The last five are the squares from which a piece of the mover gives check, and its pieces that
discover a check by one behind them when they move."""
CONTROL = np.dtype(
    [
        (name, np.int64)
        for name in (
            "level",  # where the search is; below 0 when it is finished
            "nodes",
            "begin",  # the first used index of keys
            "root_depth",
            "generation",  # of entries in the transposition table
            "sound",  # 1: no pruning that can change the score
            "use_net",
        )
    ]
)


class EngineState(NamedTuple):
    """All arrays of one search thread."""

    rows: Words
    keys: Words
    frames: NDArray[Any]
    """FRAME[L]."""
    control: NDArray[Any]
    """CONTROL[1]."""
    moves: NDArray[np.uint16]
    move_sets: Words
    """uint64[MOST_WORDS]: room for the move generator."""
    order: NDArray[np.int64]
    """The ordering score of each of `moves`; higher ones are searched first."""
    pv: NDArray[np.uint16]
    """uint16[L, L]: the principal variation from each level on."""
    root_nodes: NDArray[np.int64]
    """int64[65536]: nodes below each root move in this iteration."""
    history: NDArray[np.int16]
    """int16[2, 4096]: how often a quiet move (side, from and to) caused a cutoff."""
    continuations: NDArray[np.int16]
    """int16[P + 1, P]: the same for a piece's move after another piece's move; row P after a null move."""
    counters: NDArray[np.uint16]
    """uint16[P + 1]: the quiet move that last refuted a move."""
    table: Words
    """uint64[T, 2]: the transposition table, see transpositions.py."""
    table_values: NDArray[np.int32]
    net: NetArrays
    accumulators: NDArray[np.int16]
    """int16[L, 2, H]."""
    net_inputs: NDArray[np.int16]
    """int16[2H]: room for the inputs of the hidden layer."""


ENGINE_STATE = types.NamedTuple(
    [
        types.Array(types.uint64, 2, "C"),
        types.Array(types.uint64, 1, "C"),
        types.Array(numba.from_dtype(FRAME), 1, "C"),
        types.Array(numba.from_dtype(CONTROL), 1, "C"),
        types.Array(types.uint16, 1, "C"),
        types.Array(types.uint64, 1, "C"),
        types.Array(types.int64, 1, "C"),
        types.Array(types.uint16, 2, "C"),
        types.Array(types.int64, 1, "C"),
        types.Array(types.int16, 2, "C"),
        types.Array(types.int16, 2, "C"),
        types.Array(types.uint16, 1, "C"),
        types.Array(types.uint64, 2, "C"),
        types.Array(types.int32, 3, "C"),
        NET_ARRAYS,
        types.Array(types.int16, 3, "C"),
        types.Array(types.int16, 1, "C"),
    ],
    EngineState,
)
"""The Numba type of an EngineState argument."""


def new_state(table_values: NDArray[np.int32], net: NetArrays, table: Words, *, use_net: bool) -> EngineState:
    """The arrays of one thread, which may share its table with other threads."""
    width = len(net.feature_bias_H)
    state = EngineState(
        rows=np.zeros((LEVELS, WORDS), np.uint64),
        keys=np.zeros(HISTORY + LEVELS, np.uint64),
        frames=np.zeros(LEVELS, FRAME),
        control=np.zeros(1, CONTROL),
        moves=np.zeros(LEVELS * MAX_MOVES, np.uint16),
        move_sets=np.zeros(MOST_WORDS, np.uint64),
        order=np.zeros(LEVELS * MAX_MOVES, np.int64),
        pv=np.zeros((LEVELS, LEVELS), np.uint16),
        root_nodes=np.zeros(1 << 16, np.int64),
        history=np.zeros((2, 4096), np.int16),
        continuations=np.zeros((PIECE_SQUARES + 1, PIECE_SQUARES), np.int16),
        counters=np.zeros(PIECE_SQUARES + 1, np.uint16),
        table=table,
        table_values=table_values,
        net=net,
        accumulators=np.zeros((LEVELS, 2, width), np.int16),
        net_inputs=np.zeros(2 * width, np.int16),
    )
    state.control["use_net"] = use_net
    return state


def forget(state: EngineState) -> None:
    """Clear all that was learned in earlier searches, except the transposition table.

    The generation begins again, because empty entries of the table count as old ones of generation 0."""
    state.control["generation"] = 0
    for array in (state.history, state.continuations, state.counters):
        array.fill(0)


def set_root(state: EngineState, rows: Words, in_check: bool) -> None:
    """Make the last of these positions, uint64[plies + 1, 13], the root of a new search."""
    past = rows[:-1][-HISTORY:, WORDS - 1]
    begin = HISTORY - len(past)
    state.keys[begin:HISTORY] = past
    state.rows[0] = rows[-1]
    control = state.control
    control["begin"], control["nodes"] = begin, 0
    control["generation"] = (control["generation"] + 1) % GENERATIONS
    state.frames.fill(0)
    state.frames["moved"] = PIECE_SQUARES
    state.frames["in_check"][0] = in_check


def start(state: EngineState, moves: Sequence[int], depth: int, alpha: int, beta: int, *, all_moves: bool) -> None:
    """Start a search of the root to a depth, over these moves in this order.

    all_moves: whether they are all legal moves; only then the result goes into the transposition table."""
    state.moves[: len(moves)] = moves
    state.order[: len(moves)] = range(len(moves), 0, -1)
    root = {"stage": ROOT, "depth": depth, "alpha": alpha, "beta": beta, "first_alpha": alpha, "best": -UNKNOWN}
    root |= dict.fromkeys(("best_move", "cut_node", "hash_move", "num_tried", "num_searched", "num_quiets"), 0)
    root |= {"num_moves": len(moves), "pv_length": 0, "excluded": 0 if all_moves else NO_MOVE}
    for name, value in root.items():
        state.frames[name][0] = value
    state.control["level"], state.control["root_depth"] = 0, depth

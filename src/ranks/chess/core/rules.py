"""Chess for search and players: play a move, list the legal moves, random games."""

from __future__ import annotations

import numpy as np
from numba import carray, types
from numpy.typing import NDArray

from ranks import splitmix64
from ranks.chess.core.bits import ONE
from ranks.chess.core.moves import (
    MAX_MOVES,
    MOST_WORDS,
    Moves,
    count_moves,
    generate,
    list_moves,
    move_number,
    room_for_sets,
)
from ranks.chess.core.position import (
    HALF_MOVES,
    REPETITION,
    Position,
    insufficient_material,
    key_of,
    load,
    make,
    store,
)
from ranks.chess.core.tables import Words
from ranks.chess.core.words import CLOCKS_WORD, KEY_WORD, WORDS
from ranks.jit import helper, kernel
from ranks.search.game import DRAWN, LEGAL_MOVES, LOST, MOVES, PLAY, STATES, Game
from ranks.splitmix64 import GOLDEN_GAMMA_U64

mix = helper(splitmix64.mix)
FIFTY_MOVES = np.uint64(100)
EIGHT = np.uint64(8)
"""The halfmove clock below which a third repetition is impossible."""


@helper
def repetitions(p: Position, keys: Words, begin: int, end: int) -> int:
    """How often a position has occurred before, by the earlier keys[begin:end], oldest first."""
    reach = min(np.int64(p.clocks & HALF_MOVES), end - begin)
    if reach < 4:
        return 0
    found = 0
    for back in range(4, reach + 1, 2):
        found += keys[np.uint64(end - back)] == p.key
    return found


@helper
def drawn(p: Position, repeated: int) -> bool:
    """Whether a position with legal moves is a draw; repeated: how often it has occurred before."""
    return repeated >= 2 or p.clocks & HALF_MOVES >= FIFTY_MOVES or insufficient_material(p)


@helper
def status(p: Position, keys: Words, begin: int, end: int, moves: Moves, at: int) -> tuple[int, int]:
    """`Game.legal_moves` of a position, and how often it has occurred before.

    A draw is: stalemate, a dead position, 50 moves of each side without a capture or pawn move, a
    third repetition. Mate takes precedence (FIDE Laws of Chess 2023, 5.2, 9.2, 9.3). The draws of
    article 9 need no claim."""
    sets = carray(room_for_sets(), MOST_WORDS)
    stop, check = generate(p, sets)
    if stop == 0:
        return (LOST if check else DRAWN), 0
    repeated = repetitions(p, keys, begin, end)
    if drawn(p, repeated):
        return DRAWN, repeated
    return list_moves(sets, stop, moves, at), repeated


@kernel(PLAY)
def play(from_states: Words, from_row: int, to_states: Words, to_row: int, move: int) -> None:
    """`Game.play`: write the position after a legal move."""
    store(to_states, to_row, make(load(from_states, from_row), move))


@kernel(LEGAL_MOVES)
def legal_moves(states: Words, row: int, keys: Words, begin: int, end: int, moves: Moves, at: int) -> int:
    """`Game.legal_moves`; also writes into the clocks how often the position has occurred before (up to
    3)."""
    p = load(states, row)
    result, repeated = status(p, keys, begin, end, moves, at)
    states[row, CLOCKS_WORD] = (p.clocks & (REPETITION - ONE)) + np.uint64(min(repeated, 3)) * REPETITION
    return result


LEGAL = types.int64(STATES, types.int64, MOVES, types.int64)
DRAW_KINDS = ("stalemate", "threefold repetition", "fifty moves", "insufficient material")
CHECK = 512
"""Added to the number of moves that `legal` returns if the side to move is in check."""


@kernel(LEGAL)
def legal(states: Words, row: int, moves: Moves, at: int) -> int:
    """Write all legal moves, also of a drawn game, to `moves[at:at+n]`.

    Returns n, plus CHECK if in check."""
    sets = carray(room_for_sets(), MOST_WORDS)
    stop, check = generate(load(states, row), sets)
    return list_moves(sets, stop, moves, at) + CHECK * check


def draw_kind(state_W: Words) -> int:
    """The index in DRAW_KINDS of a drawn position, uint64[13], in which `legal_moves` has counted the repetitions."""
    if legal(state_W[None], 0, np.empty(MAX_MOVES, np.uint16), 0) % CHECK == 0:
        return 0
    clocks = int(state_W[CLOCKS_WORD])
    if clocks >> 32 >= 2:
        return 1
    return 2 if clocks & 0xFFFF >= 100 else 3


@kernel("uint64(uint64[:, ::1], int64)")
def full_key(states: Words, row: int) -> int:
    """The Zobrist key of a position, computed from scratch."""
    return key_of(load(states, row))


@kernel("int64(uint64[:, ::1], int64, int64, uint64[::1], int64[::1])")
def random_games(start: Words, num_games: int, cap: int, draws: Words, ends: NDArray[np.int64]) -> int:
    """Play games of uniformly random legal moves from row 0, each at most `cap` plies long.

    Returns the plies of all.

    draws[0] is the state of the random numbers (splitmix64, Steele, Lea & Flood 2014); ends[3]
    counts mates, draws and games cut off."""
    keys = np.empty(cap + 1, np.uint64)
    sets = carray(room_for_sets(), MOST_WORDS)
    state, plies = draws[0], 0
    for _ in range(num_games):
        p, ply, end = load(start, 0), 0, 2
        while ply < cap:
            stop, check = generate(p, sets)
            twice_before = p.clocks & HALF_MOVES >= EIGHT and repetitions(p, keys, 0, ply) >= 2
            if stop == 0 or drawn(p, 2 * twice_before):
                end = 0 if stop == 0 and check else 1
                break
            word = mix(state)
            state += GOLDEN_GAMMA_U64
            keys[ply] = p.key
            num_moves = count_moves(sets, stop)
            p = make(p, move_number(sets, ((word >> np.uint64(32)) * num_moves) >> np.uint64(32)))
            ply += 1
        ends[end] += 1
        plies += ply
    draws[0] = state
    return plies


START = np.zeros((1, WORDS), np.uint64)
"""uint64[1, 13]: the initial position."""
START[0, :8] = [
    0x00FF00000000FF00,
    0x4200000000000042,
    0x2400000000000024,
    0x8100000000000081,
    0x0800000000000008,
    0x1000000000000010,
    0x000000000000FFFF,
    0xFFFF000000000000,
]
START[0, 9] = START[0, 3]
START[0, CLOCKS_WORD] = 1 << 16
START[0, KEY_WORD] = full_key(START, 0)
CHESS = Game(
    "chess",
    START[0],
    MAX_MOVES,
    KEY_WORD,
    128,
    play,
    legal_moves,
    draw_kinds=DRAW_KINDS,
    draw_kind=draw_kind,
    edges_per_node=64,
)

"""A generator of legal moves.

It finds pins and checks first, so it never has to make a move and test it.

Moves are generated as sets: one bitboard of targets for each piece, and one for each direction in
which pawns move. The sets are then listed or counted, or a single move is picked by its index. The
order is: king; pawn pushes, double pushes, captures towards the a file and towards the h file (free
pawns, then pinned ones), en passant; knights; bishops and queens; rooks and queens; castling.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.extending import intrinsic
from numpy.typing import NDArray

from ranks.chess.core.attacks import (
    NOT_A,
    NOT_H,
    bishop_attacks,
    knight_attacks,
    pawn_attacks,
    rook_attacks,
    slider_attacks,
)
from ranks.chess.core.bits import (
    ALL,
    ONE,
    RANK_1,
    RANK_8,
    SIX,
    SQUARE,
    TWO,
    ZERO,
    Word,
    bit,
    clear_lsb,
    lsb,
    popcount,
    rotate,
)
from ranks.chess.core.position import Position, en_passant_is_legal
from ranks.chess.core.tables import BETWEEN, DIAGONALS, KING, KNIGHT, PAWN, STRAIGHTS, THROUGH, Words
from ranks.jit import helper

Moves = NDArray[np.uint16]
MAX_MOVES = 218
"""The most legal moves that a reachable position has (Petrović 1964)."""
MOST_WORDS = 256
"""Room for all move sets of one position: two words for each of at most 16 pieces, pawn direction
and promotion."""
BY_STEP = np.uint64(64)
"""Flag of an origin that holds an offset: the offset is added to each target (modulo 64) to get the
from-square."""
PROMOTION = np.uint64(0xF000)
CASTLING_ROOMS = np.array([0x0E, 0x60, 0x0E << 56, 0x60 << 56], np.uint64)
"""Squares between king and rook: white long, white short, black long, black short."""
CASTLING_PATHS = np.array([0x0C, 0x60, 0x0C << 56, 0x60 << 56], np.uint64)
"""Squares that the king crosses or reaches, in the same order."""
FINAL_RANKS = RANK_1 | RANK_8
DOUBLE_PUSH_TARGETS = np.array([0x00000000FF000000, 0x000000FF00000000], np.uint64)
"""Where a double push ends: the fourth rank of white, then of black."""


def _words_on_the_stack(context: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return cgutils.alloca_once(builder, ir.IntType(64), size=MOST_WORDS)

    return types.CPointer(types.uint64)(), generate


room_for_sets: Any = intrinsic(_words_on_the_stack)
"""The address of MOST_WORDS words on the stack of the calling function; valid until that function
returns."""


@helper
def put(sets: Words, at: int, origin: Word, targets: Word) -> int:
    """Append a set of moves unless it is empty. Returns the index at which the next set goes.

    origin: the common from-square, or BY_STEP | the offset from each target back to its
    from-square; | promotion << 12."""
    sets[at] = origin
    sets[at + 1] = targets
    return at + 2 * (targets != ZERO)


@helper
def put_pawns(sets: Words, at: int, targets: Word, step: Word) -> int:
    """Append the moves of pawns that move by `step` (modulo 64) to `targets`, with promotions."""
    origin = BY_STEP | ((ZERO - step) & SQUARE)
    at = put(sets, at, origin, targets & ~FINAL_RANKS)
    promoting = targets & FINAL_RANKS
    if promoting != ZERO:
        for kind in range(4, 0, -1):
            at = put(sets, at, origin | (np.uint64(kind) << np.uint64(12)), promoting)
    return at


@helper
def generate(p: Position, sets: Words) -> tuple[int, bool]:
    """Write the sets of all legal moves to sets[:end]. Returns `end` and whether in check."""
    white_to_move = p.side == ZERO
    us, them = (p.white, p.black) if white_to_move else (p.black, p.white)
    occupied: Word = us | them
    king_set = p.kings & us
    king = lsb(king_set)
    their_diagonals, their_straights = (p.bishops | p.queens) & them, (p.rooks | p.queens) & them

    # checkers: enemy pieces that give check; pinned: our pieces that are the only blocker between
    # king and slider
    checkers = (KNIGHT[king] & p.knights & them) | (PAWN[p.side * np.uint64(64) + king] & p.pawns & them)
    pinned = ZERO
    snipers = (DIAGONALS[king] & their_diagonals) | (STRAIGHTS[king] & their_straights)
    while snipers != ZERO:
        sniper = lsb(snipers)
        blockers = BETWEEN[king, sniper] & occupied
        if blockers == ZERO:
            checkers |= bit(sniper)
        elif clear_lsb(blockers) == ZERO:
            pinned |= blockers & us
        snipers = clear_lsb(snipers)

    # squares that the king may not enter; sliders see through the king, so that it cannot step back
    # along their line
    danger = slider_attacks(their_diagonals, their_straights, occupied ^ king_set)
    danger |= knight_attacks(p.knights & them) | pawn_attacks(p.pawns & them, p.side ^ ONE)
    danger |= KING[lsb(p.kings & them)]
    at = put(sets, 0, king, KING[king] & ~us & ~danger)
    # allowed: targets of all other pieces; in check they must capture the checker or block, in
    # double check none moves
    allowed = ~us
    if checkers != ZERO:
        if clear_lsb(checkers) != ZERO:
            return at, True
        allowed = BETWEEN[king, lsb(checkers)] | checkers

    # pawns: all free ones in parallel; the pinned ones one by one, along the line of their pin
    forward, west, east = (
        (np.uint64(8), np.uint64(7), np.uint64(9)) if white_to_move else (np.uint64(56), np.uint64(55), np.uint64(57))
    )
    pawns = p.pawns & us
    empty, theirs = ~occupied, them & allowed
    free = pawns & ~pinned
    if free != ZERO:
        pushed = rotate(free, forward) & empty
        at = put_pawns(sets, at, pushed & allowed, forward)
        double_pushed = rotate(pushed, forward) & empty & DOUBLE_PUSH_TARGETS[p.side]
        at = put(sets, at, BY_STEP | ((ZERO - forward - forward) & SQUARE), double_pushed & allowed)
        at = put_pawns(sets, at, rotate(free & NOT_A, west) & theirs, west)
        at = put_pawns(sets, at, rotate(free & NOT_H, east) & theirs, east)
    pinned_pawns = pawns & pinned
    while pinned_pawns != ZERO:
        square = lsb(pinned_pawns)
        line, pawn = THROUGH[king, square], bit(square)
        pushed = rotate(pawn, forward) & empty & line
        double_pushed = rotate(pushed, forward) & empty & DOUBLE_PUSH_TARGETS[p.side]
        at = put(sets, at, square, (pushed | double_pushed) & allowed)
        at = put_pawns(sets, at, rotate(pawn & NOT_A, west) & theirs & line, west)
        at = put_pawns(sets, at, rotate(pawn & NOT_H, east) & theirs & line, east)
        pinned_pawns = clear_lsb(pinned_pawns)
    if p.en_passant != ZERO:
        target = lsb(p.en_passant)
        takers = PAWN[(p.side ^ ONE) * np.uint64(64) + target] & pawns
        while takers != ZERO:
            if en_passant_is_legal(p, lsb(takers), target):
                at = put(sets, at, lsb(takers), p.en_passant)
            takers = clear_lsb(takers)

    # pieces: a pinned knight cannot move; a pinned slider moves along the line of its pin
    knights = p.knights & us & ~pinned
    while knights != ZERO:
        square = lsb(knights)
        at = put(sets, at, square, KNIGHT[square] & allowed)
        knights = clear_lsb(knights)
    sliders = (p.bishops | p.queens) & us
    while sliders != ZERO:
        square = lsb(sliders)
        line = THROUGH[king, square] if bit(square) & pinned != ZERO else ALL
        at = put(sets, at, square, bishop_attacks(square, occupied) & allowed & line)
        sliders = clear_lsb(sliders)
    sliders = (p.rooks | p.queens) & us
    while sliders != ZERO:
        square = lsb(sliders)
        line = THROUGH[king, square] if bit(square) & pinned != ZERO else ALL
        at = put(sets, at, square, rook_attacks(square, occupied) & allowed & line)
        sliders = clear_lsb(sliders)

    # castling: not in check, the squares between king and rook empty, and no attacked square on the
    # king's path
    if checkers == ZERO and p.castling & us != ZERO:
        for short in range(2):
            way = p.side * TWO + np.uint64(short)
            rook = king + np.uint64(3) if short else king - np.uint64(4)
            blocked = (CASTLING_ROOMS[way] & occupied) | (CASTLING_PATHS[way] & danger)
            if p.castling & bit(rook & SQUARE) != ZERO and blocked == ZERO:
                at = put(sets, at, king, bit(king + TWO if short else king - TWO))
    return at, checkers != ZERO


@helper
def count_moves(sets: Words, end: int) -> Word:
    """The number of moves in sets[:end]."""
    total = ZERO
    for at in range(1, end, 2):
        total += popcount(sets[at])
    return total


@helper
def move_to(origin: Word, target: Word) -> Word:
    """The move from a set's origin to one of its targets."""
    by_step = ZERO - ((origin >> SIX) & ONE)
    return (((target & by_step) + origin) & SQUARE) | (target << SIX) | (origin & PROMOTION)


@helper
def list_moves(sets: Words, end: int, moves: Moves, start: int) -> int:
    """Write the moves of sets[:end] to moves[start:]. Returns their number."""
    to = start
    for at in range(0, end, 2):
        origin, targets = sets[at], sets[at + 1]
        while targets != ZERO:
            moves[to] = np.uint16(move_to(origin, lsb(targets)))
            to += 1
            targets = clear_lsb(targets)
    return to - start


@helper
def move_number(sets: Words, index: int) -> Word:
    """The move that `list_moves` writes at `index`."""
    at, left = 0, np.uint64(index)
    here = popcount(sets[1])
    while left >= here:
        left -= here
        at += 2
        here = popcount(sets[at + 1])
    targets = sets[at + 1]
    for _ in range(left):
        targets = clear_lsb(targets)
    return move_to(sets[at], lsb(targets))

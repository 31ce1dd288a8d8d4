"""Legal moves, and nothing but legal moves: pins and checks are found first, so that no move has to be tried.

They are found as sets, one for each piece and one for each way in which pawns go; then listed, counted, or one of them
taken by its number. Order: king; pawns pushed, pushed twice, capturing to the a side, to the h side (free ones, then
pinned ones), en passant; knights; diagonal sliders; straight sliders (a queen is in both); castling.
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
    attacked_by_knights,
    attacked_by_pawns,
    attacked_by_sliders,
    diagonal,
    straight,
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
    count,
    first,
    rotate,
    without_first,
)
from ranks.chess.core.position import Position, taken_en_passant_legally
from ranks.chess.core.tables import BETWEEN, DIAGONALS, KING, KNIGHT, PAWN, STRAIGHTS, THROUGH, Words
from ranks.jit import helper

Moves = NDArray[np.uint16]
MAX_MOVES = 218
"""No position that can be reached has more legal moves (Petrović 1964)."""
MOST_WORDS = 256
"""Of all sets of one position: two words for each of at most 16 men, and for each way of pawns and promotions."""
BY_STEP = np.uint64(64)
"""Says that the square in an origin is to be added to each target (modulo 64)."""
PROMOTION = np.uint64(0xF000)
CASTLING_ROOMS = np.array([0x0E, 0x60, 0x0E << 56, 0x60 << 56], np.uint64)
"""Squares between king and rook: white long, white short, black long, black short."""
CASTLING_PATHS = np.array([0x0C, 0x60, 0x0C << 56, 0x60 << 56], np.uint64)
"""Squares that the king crosses or reaches."""
FINAL_RANKS = RANK_1 | RANK_8
JUMP_TARGETS = np.array([0x00000000FF000000, 0x000000FF00000000], np.uint64)
"""Where a double push ends: the fourth rank of white, of black."""


def _words_on_the_stack(context: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return cgutils.alloca_once(builder, ir.IntType(64), size=MOST_WORDS)

    return types.CPointer(types.uint64)(), generate


room_for_sets: Any = intrinsic(_words_on_the_stack)
"""The address of MOST_WORDS words in the frame of the function that calls this, gone when it returns."""


@helper
def put(sets: Words, at: int, origin: Word, targets: Word) -> int:
    """Append a set of moves, if there are any, and return where the next goes.

    origin: the square that all come from, or BY_STEP | what leads back from each target; | promotion << 12."""
    sets[at] = origin
    sets[at + 1] = targets
    return at + 2 * (targets != ZERO)


@helper
def put_pawns(sets: Words, at: int, targets: Word, step: Word) -> int:
    """Append the moves of all pawns that go `step` squares (modulo 64) to reach `targets`, promotions included."""
    origin = BY_STEP | ((ZERO - step) & SQUARE)
    at = put(sets, at, origin, targets & ~FINAL_RANKS)
    promoting = targets & FINAL_RANKS
    if promoting != ZERO:
        for kind in range(4, 0, -1):
            at = put(sets, at, origin | (np.uint64(kind) << np.uint64(12)), promoting)
    return at


@helper
def generate(p: Position, sets: Words) -> tuple[int, bool]:
    """Write the sets of all legal moves to `sets[:end]`; return `end` and whether the side to move is in check."""
    white_to_move = p.side == ZERO
    us, them = (p.white, p.black) if white_to_move else (p.black, p.white)
    occupied: Word = us | them
    king_set = p.kings & us
    king = first(king_set)
    their_diagonals, their_straights = (p.bishops | p.queens) & them, (p.rooks | p.queens) & them

    # who gives check, and which of our men stand alone between our king and a slider
    checkers = (KNIGHT[king] & p.knights & them) | (PAWN[p.side * np.uint64(64) + king] & p.pawns & them)
    pinned = ZERO
    snipers = (DIAGONALS[king] & their_diagonals) | (STRAIGHTS[king] & their_straights)
    while snipers != ZERO:
        sniper = first(snipers)
        blockers = BETWEEN[king, sniper] & occupied
        if blockers == ZERO:
            checkers |= bit(sniper)
        elif without_first(blockers) == ZERO:
            pinned |= blockers & us
        snipers = without_first(snipers)

    danger = attacked_by_sliders(their_diagonals, their_straights, occupied ^ king_set)
    danger |= attacked_by_knights(p.knights & them) | attacked_by_pawns(p.pawns & them, p.side ^ ONE)
    danger |= KING[first(p.kings & them)]
    at = put(sets, 0, king, KING[king] & ~us & ~danger)
    allowed = ~us
    if checkers != ZERO:
        if without_first(checkers) != ZERO:
            return at, True
        allowed = BETWEEN[king, first(checkers)] | checkers

    # pawns: all that are free at once, the pinned ones one by one along their line
    forward, west, east = (
        (np.uint64(8), np.uint64(7), np.uint64(9)) if white_to_move else (np.uint64(56), np.uint64(55), np.uint64(57))
    )
    pawns = p.pawns & us
    empty, theirs = ~occupied, them & allowed
    free = pawns & ~pinned
    if free != ZERO:
        pushed = rotate(free, forward) & empty
        at = put_pawns(sets, at, pushed & allowed, forward)
        jumped = rotate(pushed, forward) & empty & JUMP_TARGETS[p.side]
        at = put(sets, at, BY_STEP | ((ZERO - forward - forward) & SQUARE), jumped & allowed)
        at = put_pawns(sets, at, rotate(free & NOT_A, west) & theirs, west)
        at = put_pawns(sets, at, rotate(free & NOT_H, east) & theirs, east)
    bound = pawns & pinned
    while bound != ZERO:
        square = first(bound)
        line, pawn = THROUGH[king, square], bit(square)
        pushed = rotate(pawn, forward) & empty & line
        jumped = rotate(pushed, forward) & empty & JUMP_TARGETS[p.side]
        at = put(sets, at, square, (pushed | jumped) & allowed)
        at = put_pawns(sets, at, rotate(pawn & NOT_A, west) & theirs & line, west)
        at = put_pawns(sets, at, rotate(pawn & NOT_H, east) & theirs & line, east)
        bound = without_first(bound)
    if p.en_passant != ZERO:
        target = first(p.en_passant)
        takers = PAWN[(p.side ^ ONE) * np.uint64(64) + target] & pawns
        while takers != ZERO:
            if taken_en_passant_legally(p, first(takers), target):
                at = put(sets, at, first(takers), p.en_passant)
            takers = without_first(takers)

    knights = p.knights & us & ~pinned
    while knights != ZERO:
        square = first(knights)
        at = put(sets, at, square, KNIGHT[square] & allowed)
        knights = without_first(knights)
    sliders = (p.bishops | p.queens) & us
    while sliders != ZERO:
        square = first(sliders)
        line = THROUGH[king, square] if bit(square) & pinned != ZERO else ALL
        at = put(sets, at, square, diagonal(square, occupied) & allowed & line)
        sliders = without_first(sliders)
    sliders = (p.rooks | p.queens) & us
    while sliders != ZERO:
        square = first(sliders)
        line = THROUGH[king, square] if bit(square) & pinned != ZERO else ALL
        at = put(sets, at, square, straight(square, occupied) & allowed & line)
        sliders = without_first(sliders)

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
    """How many moves are in sets[:end]."""
    total = ZERO
    for at in range(1, end, 2):
        total += count(sets[at])
    return total


@helper
def move_to(origin: Word, target: Word) -> Word:
    """The move of a set's origin to one of its targets."""
    by_step = ZERO - ((origin >> SIX) & ONE)
    return (((target & by_step) + origin) & SQUARE) | (target << SIX) | (origin & PROMOTION)


@helper
def list_moves(sets: Words, end: int, moves: Moves, start: int) -> int:
    """Write the moves of sets[:end] to moves[start:] and return their number."""
    to = start
    for at in range(0, end, 2):
        origin, targets = sets[at], sets[at + 1]
        while targets != ZERO:
            moves[to] = np.uint16(move_to(origin, first(targets)))
            to += 1
            targets = without_first(targets)
    return to - start


@helper
def move_number(sets: Words, index: int) -> Word:
    """The move that `list_moves` would write at `index`."""
    at, left = 0, np.uint64(index)
    here = count(sets[1])
    while left >= here:
        left -= here
        at += 2
        here = count(sets[at + 1])
    targets = sets[at + 1]
    for _ in range(left):
        targets = without_first(targets)
    return move_to(sets[at], first(targets))

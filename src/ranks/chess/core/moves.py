"""Legal moves, and nothing but legal moves: pins and checks are found first, so that no move has to be tried.

Order: pawn pushes, double pushes, captures to the a side, to the h side, en passant; knights; diagonal sliders;
straight sliders (a queen is in both); king; castling.
"""

from __future__ import annotations

import numpy as np
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
    first,
    rotate,
    without_first,
)
from ranks.chess.core.position import Position, taken_en_passant_legally
from ranks.chess.core.tables import BETWEEN, DIAGONALS, KING, KNIGHT, PAWN, STRAIGHTS, THROUGH
from ranks.jit import helper

Moves = NDArray[np.uint16]
MAX_MOVES = 218
"""No position that can be reached has more legal moves (Petrović 1964)."""
CASTLING_ROOMS = np.array([0x0E, 0x60, 0x0E << 56, 0x60 << 56], np.uint64)
"""Squares between king and rook: white long, white short, black long, black short."""
CASTLING_PATHS = np.array([0x0C, 0x60, 0x0C << 56, 0x60 << 56], np.uint64)
"""Squares that the king crosses or reaches."""
FINAL_RANKS = RANK_1 | RANK_8
JUMP_TARGETS = np.array([0x00000000FF000000, 0x000000FF00000000], np.uint64)
"""Where a double push ends: the fourth rank of white, of black."""


@helper
def put(moves: Moves, at: int, from_square: Word, targets: Word) -> int:
    """Write a piece's moves to `targets` and return where the next ones go."""
    while targets != ZERO:
        moves[at] = np.uint16(from_square | (first(targets) << SIX))
        at += 1
        targets = without_first(targets)
    return at


@helper
def put_pawns(moves: Moves, at: int, targets: Word, step: Word) -> int:
    """Write the moves of all pawns that go `step` squares (modulo 64) to reach `targets`, promotions included."""
    plain = targets & ~FINAL_RANKS
    while plain != ZERO:
        to = first(plain)
        moves[at] = np.uint16(((to - step) & SQUARE) | (to << SIX))
        at += 1
        plain = without_first(plain)
    promoting = targets & FINAL_RANKS
    while promoting != ZERO:
        to = first(promoting)
        for kind in range(4, 0, -1):
            moves[at] = np.uint16(((to - step) & SQUARE) | (to << SIX) | (np.uint64(kind) << np.uint64(12)))
            at += 1
        promoting = without_first(promoting)
    return at


@helper
def generate(p: Position, moves: Moves, at: int) -> tuple[int, bool]:
    """Write all legal moves to `moves[at:end]`; return `end` and whether the side to move is in check."""
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
    king_targets = KING[king] & ~us & ~danger

    if without_first(checkers) != ZERO:
        return put(moves, at, king, king_targets), True
    allowed = ~us
    if checkers != ZERO:
        allowed = BETWEEN[king, first(checkers)] | checkers

    # pawns: all that are free at once, the pinned ones one by one along their line
    forward, west, east = (
        (np.uint64(8), np.uint64(7), np.uint64(9)) if white_to_move else (np.uint64(56), np.uint64(55), np.uint64(57))
    )
    pawns = p.pawns & us
    empty, theirs = ~occupied, them & allowed
    free = pawns & ~pinned
    pushed = rotate(free, forward) & empty
    at = put_pawns(moves, at, pushed & allowed, forward)
    jumped = rotate(pushed, forward) & empty & JUMP_TARGETS[p.side]
    at = put_pawns(moves, at, jumped & allowed, (forward + forward) & SQUARE)
    at = put_pawns(moves, at, rotate(free & NOT_A, west) & theirs, west)
    at = put_pawns(moves, at, rotate(free & NOT_H, east) & theirs, east)
    bound = pawns & pinned
    while bound != ZERO:
        square = first(bound)
        line, pawn = THROUGH[king, square], bit(square)
        pushed = rotate(pawn, forward) & empty & line
        jumped = rotate(pushed, forward) & empty & JUMP_TARGETS[p.side]
        at = put(moves, at, square, (pushed | jumped) & allowed)
        at = put_pawns(moves, at, rotate(pawn & NOT_A, west) & theirs & line, west)
        at = put_pawns(moves, at, rotate(pawn & NOT_H, east) & theirs & line, east)
        bound = without_first(bound)
    if p.en_passant != ZERO:
        target = first(p.en_passant)
        takers = PAWN[(p.side ^ ONE) * np.uint64(64) + target] & pawns
        while takers != ZERO:
            if taken_en_passant_legally(p, first(takers), target):
                at = put(moves, at, first(takers), p.en_passant)
            takers = without_first(takers)

    knights = p.knights & us & ~pinned
    while knights != ZERO:
        square = first(knights)
        at = put(moves, at, square, KNIGHT[square] & allowed)
        knights = without_first(knights)
    sliders = (p.bishops | p.queens) & us
    while sliders != ZERO:
        square = first(sliders)
        line = THROUGH[king, square] if bit(square) & pinned != ZERO else ALL
        at = put(moves, at, square, diagonal(square, occupied) & allowed & line)
        sliders = without_first(sliders)
    sliders = (p.rooks | p.queens) & us
    while sliders != ZERO:
        square = first(sliders)
        line = THROUGH[king, square] if bit(square) & pinned != ZERO else ALL
        at = put(moves, at, square, straight(square, occupied) & allowed & line)
        sliders = without_first(sliders)
    at = put(moves, at, king, king_targets)

    if checkers == ZERO and p.castling & us != ZERO:
        for short in range(2):
            way = p.side * TWO + np.uint64(short)
            rook = king + np.uint64(3) if short else king - np.uint64(4)
            blocked = (CASTLING_ROOMS[way] & occupied) | (CASTLING_PATHS[way] & danger)
            if p.castling & bit(rook & SQUARE) != ZERO and blocked == ZERO:
                at = put(moves, at, king, bit(king + TWO if short else king - TWO))
    return at, checkers != ZERO

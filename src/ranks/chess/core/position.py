"""A position: 13 words of 64 bits, 104 bytes, which is also how positions are stored and sent.

    word   0 pawns    1 knights   2 bishops   3 rooks   4 queens   5 kings      sets of squares, both sides together
           6 white    7 black                                                  sets of squares, all kinds together
           8 side           0 white to move, 1 black
           9 castling       the set of rooks (a1, h1, a8, h8) that may still castle
          10 en_passant     the set of the square that a pawn has just jumped over, if it can legally be taken there
          11 clocks         half moves since a capture or pawn move | full move number << 16 | repetitions << 32
          12 key            Zobrist hash (Zobrist 1970) of words 0 to 10

A move is 16 bits: from | to << 6 | promotion << 12, with promotion 1 knight, 2 bishop, 3 rook, 4 queen; castling is the
king's move of two squares.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ranks.chess.core.attacks import diagonal, straight
from ranks.chess.core.bits import DARK, ONE, SIX, SQUARE, TWO, ZERO, Word, bit, count, first, rotate, without_first
from ranks.chess.core.tables import CASTLING_KEPT, EN_PASSANT_KEYS, KEYS, KING, KNIGHT, PAWN, SIDE_KEY
from ranks.jit import helper

WORDS = 13
HALF_MOVES = np.uint64(0xFFFF)
"""The part of `clocks` that counts half moves since a capture or pawn move."""
FULL_MOVE = np.uint64(1 << 16)
REPETITION = np.uint64(1 << 32)
FORWARD = np.uint64(8)
BACKWARD = np.uint64(56)
KIND_KEYS = np.uint64(64)
SIDE_KEYS = np.uint64(448)
"""The keys of black's pieces begin here in KEYS."""


class Position(NamedTuple):
    """Everything that the rules know, but for the positions before it."""

    pawns: Word
    knights: Word
    bishops: Word
    rooks: Word
    queens: Word
    kings: Word
    white: Word
    black: Word
    side: Word
    castling: Word
    en_passant: Word
    clocks: Word
    key: Word


@helper
def load(states: NDArray[np.uint64], row: int) -> Position:
    """The position in a row of uint64[G, 13]."""
    return Position(
        states[row, 0],
        states[row, 1],
        states[row, 2],
        states[row, 3],
        states[row, 4],
        states[row, 5],
        states[row, 6],
        states[row, 7],
        states[row, 8],
        states[row, 9],
        states[row, 10],
        states[row, 11],
        states[row, 12],
    )


@helper
def store(states: NDArray[np.uint64], row: int, p: Position) -> None:
    """Write a position into a row of uint64[G, 13]."""
    for word in range(13):
        states[row, word] = p[word]


@helper
def kind_at(p: Position, square: Word) -> Word:
    """1 pawn, 2 knight, 3 bishop, 4 rook, 5 queen, 6 king, 0 none."""
    ones = ((p.pawns | p.bishops | p.queens) >> square) & ONE
    twos = ((p.knights | p.bishops | p.kings) >> square) & ONE
    fours = ((p.rooks | p.queens | p.kings) >> square) & ONE
    return ones | (twos << ONE) | (fours << TWO)


@helper
def attackers(p: Position, square: Word, occupied: Word, side: Word) -> Word:
    """All pieces, of both sides, that attack a square; of pawns those that would attack a man of `side` there."""
    return (
        (KNIGHT[square] & p.knights)
        | (KING[square] & p.kings)
        | (PAWN[side * np.uint64(64) + square] & p.pawns)
        | (diagonal(square, occupied) & (p.bishops | p.queens))
        | (straight(square, occupied) & (p.rooks | p.queens))
    )


@helper
def taken_en_passant_legally(p: Position, pawn: Word, target: Word) -> bool:
    """Whether the side to move may capture from square `pawn` to the empty square `target` behind an enemy pawn."""
    captured = rotate(bit(target), BACKWARD if p.side == ZERO else FORWARD)
    us, them = (p.white, p.black) if p.side == ZERO else (p.black, p.white)
    them ^= captured
    occupied = ((us ^ bit(pawn)) | bit(target)) | them
    king = first(p.kings & us)
    return attackers(p, king, occupied, p.side) & them == ZERO


@helper
def after_jump(p: Position, target: Word) -> Position:
    """`p`, in which a pawn has just jumped over `target`, with en passant where the side to move can really take."""
    us = p.white if p.side == ZERO else p.black
    takers = PAWN[(p.side ^ ONE) * np.uint64(64) + target] & us & p.pawns
    while takers != ZERO:
        if taken_en_passant_legally(p, first(takers), target):
            key = p.key ^ KEYS[np.uint64(EN_PASSANT_KEYS) + (target & np.uint64(7))]
            return Position(
                p.pawns,
                p.knights,
                p.bishops,
                p.rooks,
                p.queens,
                p.kings,
                p.white,
                p.black,
                p.side,
                p.castling,
                bit(target),
                p.clocks,
                key,
            )
        takers = without_first(takers)
    return p


@helper
def make(p: Position, move: Word) -> Position:
    """The position after a legal move."""
    wide = np.uint64(move)
    from_square, to_square, promotion = wide & SQUARE, (wide >> SIX) & SQUARE, wide >> np.uint64(12)
    to = bit(to_square)
    both = bit(from_square) | to
    kind, captured = kind_at(p, from_square), kind_at(p, to_square)
    side_keys, other_keys = p.side * SIDE_KEYS, (p.side ^ ONE) * SIDE_KEYS
    key = p.key ^ SIDE_KEY ^ KEYS[other_keys + captured * KIND_KEYS + to_square]
    key ^= KEYS[side_keys + kind * KIND_KEYS + from_square] ^ KEYS[side_keys + kind * KIND_KEYS + to_square]

    # the board of the moving kind is the one that holds the origin: no branch is needed to find it
    pawns = (p.pawns & ~to) ^ (both & (ZERO - ((p.pawns >> from_square) & ONE)))
    knights = (p.knights & ~to) ^ (both & (ZERO - ((p.knights >> from_square) & ONE)))
    bishops = (p.bishops & ~to) ^ (both & (ZERO - ((p.bishops >> from_square) & ONE)))
    rooks = (p.rooks & ~to) ^ (both & (ZERO - ((p.rooks >> from_square) & ONE)))
    queens = (p.queens & ~to) ^ (both & (ZERO - ((p.queens >> from_square) & ONE)))
    kings = p.kings ^ (both & (ZERO - ((p.kings >> from_square) & ONE)))
    white = (p.white & ~to) ^ (both & (ZERO - ((p.white >> from_square) & ONE)))
    black = (p.black & ~to) ^ (both & (ZERO - ((p.black >> from_square) & ONE)))

    pawn_moved = (p.pawns >> from_square) & ONE != ZERO
    clocks = (p.clocks & (REPETITION - ONE) & ~HALF_MOVES) + p.side * FULL_MOVE
    clocks += ZERO if pawn_moved or captured != ZERO else (p.clocks & HALF_MOVES) + ONE
    if p.en_passant != ZERO:
        key ^= KEYS[np.uint64(EN_PASSANT_KEYS) + (first(p.en_passant) & np.uint64(7))]
        if pawn_moved and to == p.en_passant:
            victim = rotate(to, BACKWARD if p.side == ZERO else FORWARD)
            pawns ^= victim
            white &= ~victim
            black &= ~victim
            key ^= KEYS[other_keys + KIND_KEYS + first(victim)]
    if promotion != ZERO:
        pawns ^= to
        key ^= KEYS[side_keys + KIND_KEYS + to_square]
        key ^= KEYS[side_keys + (promotion + ONE) * KIND_KEYS + to_square]
        knights |= to if promotion == ONE else ZERO
        bishops |= to if promotion == TWO else ZERO
        rooks |= to if promotion == np.uint64(3) else ZERO
        queens |= to if promotion == np.uint64(4) else ZERO
    castling = p.castling
    if castling != ZERO:
        castling &= CASTLING_KEPT[from_square] & CASTLING_KEPT[to_square]
        key ^= castling_key(castling ^ p.castling)
        if kind == SIX and max(from_square, to_square) - min(from_square, to_square) == TWO:
            long = to_square < from_square
            rook_from = from_square - np.uint64(4) if long else from_square + np.uint64(3)
            rook_to = from_square - ONE if long else from_square + ONE
            squares = bit(rook_from) | bit(rook_to)
            rooks ^= squares
            white ^= squares if p.side == ZERO else ZERO
            black ^= squares if p.side == ONE else ZERO
            key ^= KEYS[side_keys + np.uint64(4) * KIND_KEYS + rook_from]
            key ^= KEYS[side_keys + np.uint64(4) * KIND_KEYS + rook_to]

    result = Position(
        pawns,
        knights,
        bishops,
        rooks,
        queens,
        kings,
        white,
        black,
        p.side ^ ONE,
        castling,
        ZERO,
        clocks,
        key,
    )
    if pawn_moved and (from_square ^ to_square) == np.uint64(16):
        return after_jump(result, (from_square + to_square) >> ONE)
    return result


@helper
def castling_key(rooks: Word) -> Word:
    """The part of the key for a set of castling rights."""
    key = ZERO
    while rooks != ZERO:
        key ^= KEYS[KIND_KEYS + first(rooks)]
        rooks = without_first(rooks)
    return key


@helper
def key_of(p: Position) -> Word:
    """The key from nothing, as `make` keeps it up to date."""
    key = castling_key(p.castling)
    if p.side == ONE:
        key ^= SIDE_KEY
    if p.en_passant != ZERO:
        key ^= KEYS[np.uint64(EN_PASSANT_KEYS) + (first(p.en_passant) & np.uint64(7))]
    pieces = p.white | p.black
    while pieces != ZERO:
        square = first(pieces)
        side = (p.black >> square) & ONE
        key ^= KEYS[side * SIDE_KEYS + kind_at(p, square) * KIND_KEYS + square]
        pieces = without_first(pieces)
    return key


@helper
def dead(p: Position) -> bool:
    """Whether neither side has enough to mate: bare kings, one minor piece, or bishops on squares of one colour."""
    if p.pawns | p.rooks | p.queens != ZERO:
        return False
    minors = p.knights | p.bishops
    if count(minors) <= ONE:
        return True
    return p.knights == ZERO and (p.bishops & DARK == ZERO or p.bishops & ~DARK == ZERO)

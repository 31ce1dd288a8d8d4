"""A position in the registers of a kernel: loaded from its 13 words, changed by a move, stored again.

A move is 16 bits: from | to << 6 | promotion << 12, with promotion 1 knight, 2 bishop, 3 rook, 4
queen; castling is the king's move by two squares.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ranks.chess.core.attacks import bishop_attacks, rook_attacks
from ranks.chess.core.bits import DARK, ONE, SIX, SQUARE, TWO, ZERO, Word, bit, clear_lsb, lsb, popcount, rotate
from ranks.chess.core.tables import CASTLING_KEPT, EN_PASSANT_KEYS, KEYS, KING, KNIGHT, PAWN, SIDE_KEY
from ranks.jit import helper

HALF_MOVES = np.uint64(0xFFFF)
"""The part of `clocks` that holds the halfmove clock: half moves since a capture or pawn move."""
FULL_MOVE = np.uint64(1 << 16)
REPETITION = np.uint64(1 << 32)
FORWARD = np.uint64(8)
BACKWARD = np.uint64(56)
KIND_KEYS = np.uint64(64)
SIDE_KEYS = np.uint64(448)
"""The keys of black's pieces begin here in KEYS."""


class Position(NamedTuple):
    """Everything that the rules need, except the positions before it."""

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
    """All pieces that attack a square; of the pawns those that attack a piece of `side` there."""
    return (
        (KNIGHT[square] & p.knights)
        | (KING[square] & p.kings)
        | (PAWN[side * np.uint64(64) + square] & p.pawns)
        | (bishop_attacks(square, occupied) & (p.bishops | p.queens))
        | (rook_attacks(square, occupied) & (p.rooks | p.queens))
    )


@helper
def en_passant_is_legal(p: Position, pawn: Word, target: Word) -> bool:
    """Whether capturing en passant from `pawn` to `target` leaves the own king out of check."""
    captured = rotate(bit(target), BACKWARD if p.side == ZERO else FORWARD)
    us, them = (p.white, p.black) if p.side == ZERO else (p.black, p.white)
    them ^= captured
    occupied = ((us ^ bit(pawn)) | bit(target)) | them
    king = lsb(p.kings & us)
    return attackers(p, king, occupied, p.side) & them == ZERO


@helper
def with_en_passant(p: Position, target: Word) -> Position:
    """Set the en passant square after a double push over `target`, if the capture is legal."""
    us = p.white if p.side == ZERO else p.black
    takers = PAWN[(p.side ^ ONE) * np.uint64(64) + target] & us & p.pawns
    while takers != ZERO:
        if en_passant_is_legal(p, lsb(takers), target):
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
        takers = clear_lsb(takers)
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

    # move the piece: only the bitboard that holds the from-square changes, so no branch on the kind
    # is needed
    pawns = (p.pawns & ~to) ^ (both & (ZERO - ((p.pawns >> from_square) & ONE)))
    knights = (p.knights & ~to) ^ (both & (ZERO - ((p.knights >> from_square) & ONE)))
    bishops = (p.bishops & ~to) ^ (both & (ZERO - ((p.bishops >> from_square) & ONE)))
    rooks = (p.rooks & ~to) ^ (both & (ZERO - ((p.rooks >> from_square) & ONE)))
    queens = (p.queens & ~to) ^ (both & (ZERO - ((p.queens >> from_square) & ONE)))
    kings = p.kings ^ (both & (ZERO - ((p.kings >> from_square) & ONE)))
    white = (p.white & ~to) ^ (both & (ZERO - ((p.white >> from_square) & ONE)))
    black = (p.black & ~to) ^ (both & (ZERO - ((p.black >> from_square) & ONE)))

    # clocks, en passant capture, promotion
    pawn_moved = (p.pawns >> from_square) & ONE != ZERO
    clocks = (p.clocks & (REPETITION - ONE) & ~HALF_MOVES) + p.side * FULL_MOVE
    clocks += ZERO if pawn_moved or captured != ZERO else (p.clocks & HALF_MOVES) + ONE
    if p.en_passant != ZERO:
        key ^= KEYS[np.uint64(EN_PASSANT_KEYS) + (lsb(p.en_passant) & np.uint64(7))]
        if pawn_moved and to == p.en_passant:
            victim = rotate(to, BACKWARD if p.side == ZERO else FORWARD)
            pawns ^= victim
            white &= ~victim
            black &= ~victim
            key ^= KEYS[other_keys + KIND_KEYS + lsb(victim)]
    if promotion != ZERO:
        pawns ^= to
        key ^= KEYS[side_keys + KIND_KEYS + to_square]
        key ^= KEYS[side_keys + (promotion + ONE) * KIND_KEYS + to_square]
        knights |= to if promotion == ONE else ZERO
        bishops |= to if promotion == TWO else ZERO
        rooks |= to if promotion == np.uint64(3) else ZERO
        queens |= to if promotion == np.uint64(4) else ZERO
    # rights to castle, and the rook's part of castling
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
        return with_en_passant(result, (from_square + to_square) >> ONE)
    return result


@helper
def castling_key(rooks: Word) -> Word:
    """The part of the Zobrist key for a set of castling rights."""
    key = ZERO
    while rooks != ZERO:
        key ^= KEYS[KIND_KEYS + lsb(rooks)]
        rooks = clear_lsb(rooks)
    return key


@helper
def key_of(p: Position) -> Word:
    """The Zobrist key, computed from scratch; `make` updates it incrementally."""
    key = castling_key(p.castling)
    if p.side == ONE:
        key ^= SIDE_KEY
    if p.en_passant != ZERO:
        key ^= KEYS[np.uint64(EN_PASSANT_KEYS) + (lsb(p.en_passant) & np.uint64(7))]
    pieces = p.white | p.black
    while pieces != ZERO:
        square = lsb(pieces)
        side = (p.black >> square) & ONE
        key ^= KEYS[side * SIDE_KEYS + kind_at(p, square) * KIND_KEYS + square]
        pieces = clear_lsb(pieces)
    return key


@helper
def insufficient_material(p: Position) -> bool:
    """Whether neither side can mate: bare kings, one minor piece, or bishops on one colour only."""
    if p.pawns | p.rooks | p.queens != ZERO:
        return False
    minors = p.knights | p.bishops
    if popcount(minors) <= ONE:
        return True
    return p.knights == ZERO and (p.bishops & DARK == ZERO or p.bishops & ~DARK == ZERO)

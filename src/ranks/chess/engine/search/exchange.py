"""Static exchange evaluation: what a sequence of captures on one square wins.

Both sides capture with their least valuable piece and may stop at any time; sliders behind a piece that has captured
join in (x-rays). Pins are ignored. See chessprogramming.org, "Static Exchange Evaluation".
"""

from __future__ import annotations

import numpy as np

from ranks.chess.core.alphabeta_state import Number
from ranks.chess.core.attacks import bishop_attacks, rook_attacks
from ranks.chess.core.bits import ONE, SIX, SQUARE, ZERO, Word, bit
from ranks.chess.core.evaluation import VALUE_CP
from ranks.chess.core.position import Position, kind_at
from ranks.chess.core.tables import KING, KNIGHT, PAWN
from ranks.jit import helper

KING_KIND = 5


@helper
def gain_of(p: Position, move: Number) -> Number:
    """The centipawns that a move wins at once by capture, en passant or promotion; 0 for a quiet move."""
    to = np.uint64(move >> 6 & 63)
    kind = np.int64(kind_at(p, to))
    gain = VALUE_CP[kind - 1] if kind else 0
    if move >> 12:
        gain += VALUE_CP[move >> 12] - VALUE_CP[0]
    elif p.en_passant == bit(to) and kind_at(p, np.uint64(move & 63)) == ONE:
        gain = VALUE_CP[0]
    return gain


@helper
def all_attackers(p: Position, square: Word, occupied: Word) -> Word:
    """The pieces of both sides that attack a square."""
    return (
        (KNIGHT[square] & p.knights)
        | (KING[square] & p.kings)
        | (PAWN[square] & p.pawns & p.black)
        | (PAWN[np.uint64(64) + square] & p.pawns & p.white)
        | (bishop_attacks(square, occupied) & (p.bishops | p.queens))
        | (rook_attacks(square, occupied) & (p.rooks | p.queens))
    )


@helper
def least_valuable(p: Position, pieces: Word) -> tuple[Number, Word]:
    """The kind (0 pawn to 5 king) and the bitboard of the least valuable of some pieces."""
    kind, found = 0, pieces & p.pawns
    if found == ZERO:
        kind, found = 1, pieces & p.knights
    if found == ZERO:
        kind, found = 2, pieces & p.bishops
    if found == ZERO:
        kind, found = 3, pieces & p.rooks
    if found == ZERO:
        kind, found = 4, pieces & p.queens
    if found == ZERO:
        kind, found = KING_KIND, pieces & p.kings
    return kind, found & (ZERO - found)


@helper
def wins_at_least(p: Position, move: Number, threshold_cp: Number) -> bool:
    """Whether a move wins at least so many centipawns by the exchanges on its target square."""
    # balance: what the side that has just moved is ahead of its threshold, if its piece is lost for nothing
    balance = gain_of(p, move) - threshold_cp
    if balance < 0:
        return False
    origin, to = np.uint64(move) & SQUARE, (np.uint64(move) >> SIX) & SQUARE
    balance -= VALUE_CP[move >> 12] if move >> 12 else VALUE_CP[np.int64(kind_at(p, origin)) - 1]
    if balance >= 0:
        return True
    occupied = (p.white | p.black) & ~bit(origin)
    if p.en_passant == bit(to) and kind_at(p, origin) == ONE:
        occupied &= ~(bit(to) << np.uint64(8)) if p.side == ONE else ~(bit(to) >> np.uint64(8))
    attackers = all_attackers(p, to, occupied) & occupied
    side = p.side ^ ONE
    while True:
        own = attackers & (p.white if side == ZERO else p.black)
        if own == ZERO:
            break
        kind, piece = least_valuable(p, own)
        if kind == KING_KIND and attackers != own:
            break  # the king may not capture a protected piece
        occupied &= ~piece
        attackers |= bishop_attacks(to, occupied) & (p.bishops | p.queens)
        attackers |= rook_attacks(to, occupied) & (p.rooks | p.queens)
        attackers &= occupied
        side ^= ONE
        balance = -balance - 1 - VALUE_CP[kind]
        if balance >= 0:
            break
    # the side to move cannot, or need not, capture: it is the one that comes out behind
    return side != p.side

"""Standard algebraic notation (SAN) as integer codes, to find and to describe legal moves.

A code holds what the text of a move says (Nbxd2+), in 25 bits:

    to | kind << 6 | capture << 9 | file << 10 | rank << 14 | promotion << 18 | check << 21 | castling << 23

kind: 1 pawn to 6 king, 0 any piece; file and rank of the origin: 1 to 8, 0 if absent; promotion as
in a move; check: 1 check, 2 mate; castling: 1 short, 2 long. Code 0 means no move.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import types
from numpy.typing import NDArray

from ranks.chess.core.bits import ONE, SIX, SQUARE, TWO, ZERO, Word
from ranks.chess.core.moves import Moves
from ranks.chess.core.position import Position, kind_at, load
from ranks.chess.core.rules import CHECK, LEGAL
from ranks.chess.core.tables import Words
from ranks.jit import helper, kernel
from ranks.search.game import MOVES, PLAY_TYPE, STATES

Codes = NDArray[np.uint64]
CODES = types.Array(types.uint64, 1, "C")
LEGAL_TYPE = types.FunctionType(LEGAL)
KIND, CAPTURE, FILE, RANK = SIX, np.uint64(9), np.uint64(10), np.uint64(14)
PROMOTION, CHECKS, CASTLING = np.uint64(18), np.uint64(21), np.uint64(23)
"""The lowest bit of each part of a code."""
SEVEN, FIFTEEN, TWELVE, EIGHT = np.uint64(7), np.uint64(15), np.uint64(12), np.uint64(8)
NO_MOVE: Word = np.uint64(0)


@helper
def fits(p: Position, move: Word, code: Word) -> bool:
    """Whether a code matches a legal move. The capture and check parts are ignored."""
    wide = np.uint64(move)
    from_square, to = wide & SQUARE, (wide >> SIX) & SQUARE
    castling = code >> CASTLING
    if castling != ZERO:
        return kind_at(p, from_square) == SIX and to == (from_square + TWO if castling == ONE else from_square - TWO)
    kind, file, rank = (code >> KIND) & SEVEN, (code >> FILE) & FIFTEEN, (code >> RANK) & FIFTEEN
    return (
        to == code & SQUARE
        and (kind == ZERO or kind == kind_at(p, from_square))
        and (file == ZERO or file == (from_square & SEVEN) + ONE)
        and (rank == ZERO or rank == (from_square >> np.uint64(3)) + ONE)
        and wide >> TWELVE == (code >> PROMOTION) & SEVEN
    )


@helper
def fitting(rows: Words, row: int, code: Word, moves: Moves, legal: Callable[..., int]) -> int:
    """Write the legal moves of the position in a row that match a code to moves[:n]. Returns n."""
    if code == NO_MOVE:
        return 0
    num_moves = legal(rows, row, moves, 0) % CHECK
    p = load(rows, row)
    found = 0
    for index in range(num_moves):
        if fits(p, moves[index], code):
            moves[found] = moves[index]
            found += 1
    return found


@kernel(types.int64(STATES, types.int64, types.uint64, MOVES, LEGAL_TYPE))
def find(rows: Words, row: int, code: int, moves: Moves, legal: Callable[..., int]) -> int:
    """`fitting` for one position; moves: uint16[218] or more."""
    return fitting(rows, row, code, moves, legal)


@kernel(types.int64(STATES, CODES, MOVES, MOVES, LEGAL_TYPE, PLAY_TYPE))
def follow(
    rows: Words, codes: Codes, line: Moves, moves: Moves, legal: Callable[..., int], play: Callable[..., None]
) -> int:
    """Play codes from row 0 on while each matches exactly one legal move.

    Returns the number of moves played.

    rows: uint64[plies + 1, 13], the positions; codes, line: [plies], the moves found; moves:
    uint16[218], scratch."""
    for ply in range(len(codes)):
        if fitting(rows, ply, codes[ply], moves, legal) != 1:
            return ply
        line[ply] = moves[0]
        play(rows, ply, rows, ply + 1, moves[0])
    return len(codes)


@helper
def code_of(p: Position, move: Word, moves: Moves, num_moves: int) -> Word:
    """The code of one of the legal moves moves[:num_moves], without the check part; 0 for any other
    move.

    The origin is disambiguated as little as possible: the file, else the rank, else both (PGN
    standard 8.2.3.4). The code of a pawn capture always holds the file."""
    wide = np.uint64(move)
    from_square, to = wide & SQUARE, (wide >> SIX) & SQUARE
    kind = kind_at(p, from_square)
    known, rivals, same_file, same_rank = False, False, False, False
    for index in range(num_moves):
        other = np.uint64(moves[index])
        other_from = other & SQUARE
        if other == wide:
            known = True
        elif (other >> SIX) & SQUARE == to and other_from != from_square and kind_at(p, other_from) == kind:
            rivals = True
            same_file = same_file or (other_from ^ from_square) & SEVEN == ZERO
            same_rank = same_rank or (other_from ^ from_square) < EIGHT
    if not known:
        return NO_MOVE
    if kind == SIX and (to == from_square + TWO or to + TWO == from_square):
        return ONE << CASTLING if to > from_square else TWO << CASTLING
    capture = ((p.white | p.black) >> to) & ONE
    file, rank = (from_square & SEVEN) + ONE, (from_square >> np.uint64(3)) + ONE
    if kind == ONE:
        capture = np.uint64((from_square ^ to) & SEVEN != ZERO)
        file, rank = file * capture, ZERO
    elif not rivals:
        file, rank = ZERO, ZERO
    elif not same_file:
        rank = ZERO
    elif not same_rank:
        file = ZERO
    code = to | (kind << KIND) | (capture << CAPTURE) | (file << FILE) | (rank << RANK)
    return code | ((wide >> TWELVE) << PROMOTION)


@kernel(types.int64(STATES, MOVES, CODES, MOVES, LEGAL_TYPE, PLAY_TYPE))
def describe(
    rows: Words, line: Moves, codes: Codes, moves: Moves, legal: Callable[..., int], play: Callable[..., None]
) -> int:
    """Write the codes of a line of moves from row 0 on, up to the first illegal one.

    Returns the number written.

    rows: uint64[plies + 1, 13], the positions; line, codes: [plies]; moves: uint16[218],
    scratch."""
    num_moves = legal(rows, 0, moves, 0) % CHECK
    for ply in range(len(line)):
        code = code_of(load(rows, ply), line[ply], moves, num_moves)
        if code == NO_MOVE:
            return ply
        play(rows, ply, rows, ply + 1, line[ply])
        answers = legal(rows, ply + 1, moves, 0)
        num_moves = answers % CHECK
        if answers >= CHECK:
            code |= (TWO if num_moves == 0 else ONE) << CHECKS
        codes[ply] = code
    return len(line)

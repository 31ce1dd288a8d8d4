"""Moves in standard algebraic notation (PGN standard 8.2.3): Nf3, exd6, O-O, e8=Q+, Qh4#.

Text is converted to and from the codes of ranks.chess.core.notation, which kernels match with the
legal moves. The conversion of each text is cached.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from ranks.chess.board import Board
from ranks.chess.core.moves import MAX_MOVES
from ranks.chess.core.notation import describe, find, follow
from ranks.chess.core.rules import legal, play
from ranks.chess.core.tables import BETWEEN, DIAGONALS, KING, KNIGHT, PAWN, STRAIGHTS, Words
from ranks.chess.core.words import WORDS
from ranks.chess.fen import square_name

KINDS = " PNBRQK"
NAMES = ("piece", "pawn", "knight", "bishop", "rook", "queen", "king")
_PIECE_MOVE = re.compile(
    r"(?P<kind>[PNBRQK])?(?P<file>[a-h])?(?P<rank>[1-8])?[-x:]?(?P<to>[a-h][1-8])"
    r"(?:=?\(?(?P<promotion>[NBRQnbrq])\)?)?(?:e\.?p\.?)?[+#!?]*"
)
_CASTLING = re.compile(r"([O0o])-\1(?P<long>-\1)?[+#!?]*")


def format_san(board: Board, move: int) -> str:
    """A legal move in SAN: shortest disambiguation, + for check, # for mate.

    Raises ValueError if it is not legal."""
    return format_line(board.rows[-1:], [move])[0]


def format_line(start: Words, moves: Sequence[int]) -> list[str]:
    """A line of moves from a position, uint64[1, 13], in SAN.

    Raises ValueError for an illegal move."""
    rows = np.empty((len(moves) + 1, WORDS), np.uint64)
    rows[0] = start[0]
    codes = np.zeros(len(moves), np.uint64)
    written = describe(rows, np.array(moves, np.uint16), codes, np.empty(MAX_MOVES, np.uint16), legal, play)
    if written < len(moves):
        raise ValueError(f"move {written + 1} of the line is not legal: {moves[written]}")
    return [_text_of(code) for code in codes.tolist()]


def parse_san(board: Board, text: str) -> int:
    """Parse a move in SAN. Raises ValueError with the reason.

    The parser is lenient. It accepts any disambiguation, missing or superfluous + # ! ?, 0-0 for
    O-O, e8Q for e8=Q, and long algebraic notation as in Ng1-f3 and e7e8q."""
    moves = np.empty(MAX_MOVES, np.uint16)
    if find(board.rows, board.ply, code_of_text(text), moves, legal) != 1:
        raise ValueError(refusal(board, text))
    return int(moves[0])


def parse_line(start: Words, texts: Sequence[str]) -> list[int]:
    """Parse a line of moves in SAN from a position, uint64[1, 13], up to the first that fails."""
    rows = np.empty((len(texts) + 1, WORDS), np.uint64)
    rows[0] = start[0]
    codes = np.array([code_of_text(text) for text in texts], np.uint64)
    line = np.empty(len(texts), np.uint16)
    num_moves = follow(rows, codes, line, np.empty(MAX_MOVES, np.uint16), legal, play)
    return line[:num_moves].tolist()


@lru_cache(maxsize=1 << 16)
def code_of_text(text: str) -> int:
    """The code of a text (see ranks.chess.core.notation); 0 if it is not SAN."""
    castling = _CASTLING.fullmatch(text)
    if castling:
        return (2 if castling["long"] else 1) << 23
    said = _PIECE_MOVE.fullmatch(text)
    if said is None:
        return 0
    whole_origin = said["file"] and said["rank"]
    kind = KINDS.index(said["kind"]) if said["kind"] else 0 if whole_origin else 1
    file, rank = "abcdefgh".find(said["file"] or "-") + 1, int(said["rank"] or 0)
    promotion = "-nbrq".index((said["promotion"] or "-").lower())
    to = "abcdefgh".index(said["to"][0]) + 8 * int(said["to"][1]) - 8
    return to | kind << 6 | file << 10 | rank << 14 | promotion << 18


@lru_cache(maxsize=1 << 16)
def _text_of(code: int) -> str:
    suffix = ("", "+", "#")[code >> 21 & 3]
    if code >> 23:
        return ("O-O", "O-O-O")[(code >> 23) - 1] + suffix
    kind = KINDS[code >> 6 & 7].replace("P", "")
    origin = " abcdefgh"[code >> 10 & 15].strip() + " 12345678"[code >> 14 & 15].strip()
    promotion = ("", "=N", "=B", "=R", "=Q")[code >> 18 & 7]
    return kind + origin + "x" * (code >> 9 & 1) + square_name(code & 63) + promotion + suffix


def refusal(board: Board, text: str) -> str:
    """Why `parse_san` rejects a text in this position."""
    code = code_of_text(text)
    if not code:
        return f"'{text}' is not a move in algebraic notation"
    moves = np.empty(MAX_MOVES, np.uint16)
    found = find(board.rows, board.ply, code, moves, legal)
    if found:
        return f"'{text}' is ambiguous: {' or '.join(format_san(board, move) for move in moves[:found].tolist())}"
    return f"'{text}' is not legal: {_why_not(board, code)}"


def _why_not(board: Board, code: int) -> str:
    """Why no piece that matches a code can make this move."""
    words, to = board.words, code & 63
    own = int(words[6] if board.white_to_move else words[7])
    if code >> 23:
        return _why_no_castling(board, short=code >> 23 == 1)
    kind, file, rank, promotion = code >> 6 & 7, code >> 10 & 15, code >> 14 & 15, code >> 18 & 7
    pieces = [
        square
        for square in range(64)
        if own >> square & 1
        and (not kind or int(words[kind - 1]) >> square & 1)
        and file in (0, square % 8 + 1)
        and rank in (0, square // 8 + 1)
    ]
    name, there = NAMES[kind], square_name(to)
    if not pieces:
        return f"{'white' if board.white_to_move else 'black'} has no {name}{' there' if file or rank else ''}"
    if own >> to & 1:
        return f"{there} holds a piece of the same side"
    reaching = [square for square in pieces if _reaches(words, square, to)]
    if not reaching:
        return f"no {name} can go to {there}"
    promotes = all(int(words[0]) >> square & 1 for square in reaching) and to // 8 in (0, 7)
    if promotes != bool(promotion):
        return "the promotion piece is missing" if promotes else "only a pawn on the last rank promotes"
    return "it does not end the check" if board.in_check else "the king would be in check"


def _why_no_castling(board: Board, *, short: bool) -> str:
    rook = (7 if short else 0) + (0 if board.white_to_move else 56)
    king = 4 if board.white_to_move else 60
    words = board.words
    if not int(words[9]) >> rook & 1:
        return "the right to castle on that side is lost"
    if int(BETWEEN[king, rook]) & (int(words[6]) | int(words[7])):
        return "a piece is between king and rook"
    return "the king is in check" if board.in_check else "the king would pass through check"


def _reaches(words: Words, square: int, to: int) -> bool:
    """Whether the piece on a square can reach another one, ignoring checks; words: uint64[13]."""
    occupied = int(words[6]) | int(words[7])
    kind = next(kind for kind in range(6) if int(words[kind]) >> square & 1)
    if kind == 0:
        black = int(words[8])
        step = to - square if not black else square - to
        home = square // 8 == (6 if black else 1)
        if step == 8 or (step == 16 and home):
            return not (int(BETWEEN[square, to]) | 1 << to) & occupied
        return bool(int(PAWN[64 * black + square]) & (occupied | int(words[10])) >> to << to & 1 << to)
    if kind in (1, 5):
        return bool(int((KNIGHT if kind == 1 else KING)[square]) >> to & 1)
    lines = {2: int(DIAGONALS[square]), 3: int(STRAIGHTS[square]), 4: int(DIAGONALS[square] | STRAIGHTS[square])}[kind]
    return bool(lines >> to & 1) and not int(BETWEEN[square, to]) & occupied

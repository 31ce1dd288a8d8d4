"""Positions as text: FEN (Edwards 1994, PGN standard 16.1).

The parser checks that a position is playable."""

from __future__ import annotations

import numpy as np

from ranks.chess.core.moves import MAX_MOVES
from ranks.chess.core.rules import CHECK, full_key, legal
from ranks.chess.core.tables import KING, Words
from ranks.chess.core.words import CASTLING_ROOKS, CASTLING_WORD, CLOCKS_WORD, KEY_WORD, WORDS
from ranks.errors import UserError

START_FEN = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"
PIECES = "pnbrqk"
CASTLING = dict(zip("KQkq", CASTLING_ROOKS, strict=True))
"""The square of the rook of each castling right."""
EXAMPLE = f"give six fields, as in {START_FEN}"
EXTRA_PIECES = {"n": 2, "b": 2, "r": 2, "q": 1}
"""The number of each that a side starts with; more must be promoted pawns."""


def square_name(square: int) -> str:
    """0 -> 'a1', 63 -> 'h8'."""
    return "abcdefgh"[square % 8] + "12345678"[square // 8]


def piece_letters(words: Words) -> list[str]:
    """Letters of the squares a1 to h8: 'P' white pawn, 'p' black pawn, '' empty; words:
    uint64[13]."""
    letters = [""] * 64
    sets: list[int] = words.tolist()
    for kind, letter in enumerate(PIECES):
        rest = sets[kind]
        while rest:
            square = rest.bit_length() - 1
            rest ^= 1 << square
            letters[square] = letter.upper() if sets[6] >> square & 1 else letter
    return letters


def format_fen(words: Words) -> str:
    """A position, uint64[13], as FEN.

    The en passant square is written only if the capture is legal."""
    letters = piece_letters(words)
    rows: list[str] = []
    for rank in range(7, -1, -1):
        row = "".join(letter or "1" for letter in letters[8 * rank : 8 * rank + 8])
        for run in range(8, 1, -1):
            row = row.replace("1" * run, str(run))
        rows.append(row)
    castling = "".join(letter for letter, rook in CASTLING.items() if int(words[CASTLING_WORD]) >> rook & 1) or "-"
    en_passant = square_name(int(words[10]).bit_length() - 1) if words[10] else "-"
    clocks = int(words[CLOCKS_WORD])
    return f"{'/'.join(rows)} {'wb'[int(words[8])]} {castling} {en_passant} {clocks & 0xFFFF} {clocks >> 16 & 0xFFFF}"


def parse_fen(text: str) -> Words:
    """Parse a FEN: uint64[1, 13]. The two clocks may be left out (0 and 1). Raises UserError."""
    asked = f"the position '{text}'"
    fields = text.split()
    if len(fields) not in (4, 6):
        raise UserError(asked, f"{len(fields)} fields", EXAMPLE)
    board = _read_board(fields[0], asked)
    states = np.zeros((1, WORDS), np.uint64)
    states[0, :8] = board
    if fields[1] not in ("w", "b"):
        raise UserError(asked, f"'{fields[1]}' is not a side to move", "write w or b as the second field")
    states[0, 8] = "wb".index(fields[1])
    states[0, 9] = _read_castling(fields[2], states[0], asked)
    halfmove_clock, full_move = (_read_clock(field, asked) for field in (fields[4:] or ("0", "1")))
    states[0, CLOCKS_WORD] = halfmove_clock | max(full_move, 1) << 16
    _check_playable(states, asked)
    states[0, 10] = _read_en_passant(fields[3], states, asked)
    states[0, KEY_WORD] = full_key(states, 0)
    return states


def _read_board(text: str, asked: str) -> list[int]:
    """Parse the first field: the eight bitboards, words 0 to 7 of a position."""
    rows = text.split("/")
    if len(rows) != 8:
        raise UserError(asked, f"the board has {len(rows)} ranks", EXAMPLE)
    sets = [0] * 8
    for rank, row in zip(range(7, -1, -1), rows, strict=True):
        file = 0
        for letter in row:
            if letter in "12345678":
                file += int(letter)
            elif letter.lower() in PIECES and file < 8:
                bit = 1 << (8 * rank + file)
                sets[PIECES.index(letter.lower())] |= bit
                sets[6 if letter.isupper() else 7] |= bit
                file += 1
            else:
                raise UserError(asked, f"'{letter}' in the rank '{row}'", "use PNBRQK, pnbrqk and 1 to 8")
        if file != 8:
            raise UserError(asked, f"the rank '{row}' has {file} squares", "each rank has 8")
    return sets


def _read_castling(text: str, words: Words, asked: str) -> int:
    """The bitboard of rooks that may castle.

    Raises UserError if king or rook is not on its home square."""
    rights = 0
    if text == "-":
        return rights
    letters = piece_letters(words)
    for letter in text:
        if letter not in CASTLING or rights >> CASTLING[letter] & 1:
            raise UserError(asked, f"'{text}' as castling rights", "write some of KQkq once each, or -")
        king = 4 if letter.isupper() else 60
        if letters[king] != ("K" if letter.isupper() else "k") or letters[CASTLING[letter]] != (
            "R" if letter.isupper() else "r"
        ):
            raise UserError(
                asked,
                f"the right {letter}, but king or rook is not on its home square",
                f"remove {letter}; Chess960 is not supported",
            )
        rights |= 1 << CASTLING[letter]
    return rights


def _read_clock(text: str, asked: str) -> int:
    if not text.isdecimal() or not text.isascii() or len(text) > 4:
        raise UserError(asked, f"'{text}' as a move counter", "write a number from 0 to 9999")
    return int(text)


def _check_playable(states: Words, asked: str) -> None:
    """Check kings, piece counts, pawns and checks. Raises UserError."""
    pawns, white, black = (int(states[0, word]) for word in (0, 6, 7))
    for side, name in ((white, "white"), (black, "black")):
        kings = (int(states[0, 5]) & side).bit_count()
        if kings != 1:
            raise UserError(asked, f"{name} has {kings} kings", "each side has one")
        own_pawns = (pawns & side).bit_count()
        promoted = sum(
            max(0, (int(states[0, PIECES.index(kind)]) & side).bit_count() - number)
            for kind, number in EXTRA_PIECES.items()
        )
        if own_pawns + promoted > 8:
            found = f"{name} has {own_pawns} pawns and at least {promoted} promoted pieces"
            raise UserError(asked, found, "a side starts with eight pawns")
    if pawns & 0xFF000000000000FF:
        raise UserError(asked, "a pawn on the first or last rank", "move it")
    kings = [square for square in range(64) if int(states[0, 5]) >> square & 1]
    if int(KING[kings[0]]) >> kings[1] & 1:
        raise UserError(asked, "the two kings are on adjacent squares", "move one of them")
    passive = states.copy()
    passive[0, 8] ^= np.uint64(1)
    passive[0, 9] = 0
    moves = np.empty(512, np.uint16)
    if legal(passive, 0, moves, 0) >= CHECK:
        raise UserError(asked, "the side that is not to move is in check", "give the move to the other side")
    if legal(states, 0, moves, 0) % CHECK > MAX_MOVES:
        raise UserError(asked, f"more than {MAX_MOVES} legal moves", "no game can reach this position")


def _read_en_passant(text: str, states: Words, asked: str) -> int:
    """The bitboard of the en passant square if a capture is legal, else 0. Raises UserError."""
    if text == "-":
        return 0
    white_to_move = not states[0, 8]
    rank = 5 if white_to_move else 2
    if len(text) != 2 or text[0] not in "abcdefgh" or text[1] != str(rank + 1):
        raise UserError(asked, f"'{text}' as en passant square", f"write - or a square of rank {rank + 1}")
    square = 8 * rank + "abcdefgh".index(text[0])
    behind, before = (square + 8, square - 8) if white_to_move else (square - 8, square + 8)
    letters = piece_letters(states[0])
    if letters[square] or letters[behind] or letters[before] != ("p" if white_to_move else "P"):
        raise UserError(asked, f"no pawn can have made a double push over {text}", "write - as the fourth field")
    trial = states.copy()
    trial[0, 10] = np.uint64(1 << square)
    moves = np.empty(512, np.uint16)
    num_moves = legal(trial, 0, moves, 0) % CHECK
    taken = any(
        int(move) >> 6 & 63 == square and int(states[0, 0]) >> (int(move) & 63) & 1 for move in moves[:num_moves]
    )
    return 1 << square if taken else 0

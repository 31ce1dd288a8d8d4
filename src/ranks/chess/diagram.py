"""A board as text: in colours, in Unicode, or in plain letters."""

from __future__ import annotations

from typing import Literal, TypeAlias

from ranks.chess.core.tables import Words
from ranks.chess.fen import piece_letters

Style: TypeAlias = Literal["colours", "unicode", "letters"]

OUTLINED = dict(zip("KQRBNPkqrbnp", "♔♕♖♗♘♙♚♛♜♝♞♟", strict=True))
FILLED = dict(zip("KQRBNPkqrbnp", "♚♛♜♝♞♟♚♛♜♝♞♟", strict=True))
LIGHT, DARK, LIGHT_MOVED, DARK_MOVED = 180, 137, 186, 143
"""Colours of the squares, of the 256 of a terminal; the last two mark the last move."""
WHITE, BLACK = 231, 16


def draw(words: Words, *, style: Style, black_below: bool = False, last_move: int | None = None) -> str:
    """Draw a position, uint64[13], as ten lines: files, eight ranks, files.

    Without colours, brackets mark the last move."""
    letters = piece_letters(words)
    moved = () if last_move is None else (last_move & 63, last_move >> 6 & 63)
    files = range(7, -1, -1) if black_below else range(8)
    ranks = range(8) if black_below else range(7, -1, -1)
    header = "   " + "".join(f" {'abcdefgh'[file]} " for file in files)
    lines = [header]
    for rank in ranks:
        cells = [
            _cell(letters[8 * rank + file], (rank + file) % 2 == 1, 8 * rank + file in moved, style) for file in files
        ]
        end = "\x1b[0m" if style == "colours" else ""
        lines.append(f" {rank + 1} {''.join(cells)}{end} {rank + 1}")
    return "\n".join([*lines, header])


def _cell(letter: str, light: bool, moved: bool, style: Style) -> str:
    """One square, three columns wide."""
    if style == "colours":
        background = (LIGHT_MOVED if moved else LIGHT) if light else (DARK_MOVED if moved else DARK)
        foreground = WHITE if letter.isupper() else BLACK
        return f"\x1b[48;5;{background};38;5;{foreground}m {FILLED.get(letter, ' ')} "
    empty = " " if light else "·" if style == "unicode" else "."
    piece = (OUTLINED.get(letter, empty) if style == "unicode" else letter) or empty
    return f"[{piece}]" if moved else f" {piece} "

"""Write PGN: the seven tag roster first, lines of at most 80 columns, comments after their
moves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from ranks.chess.core.rules import START
from ranks.chess.fen import parse_fen
from ranks.chess.pgn.game import ROSTER, PgnGame
from ranks.chess.san import format_line
from ranks.errors import UserError

COLUMNS = 80
_WORD = re.compile(r"(?:\[%[^\]\s]+ [^\]]*\]|\S)+")
"""A word of a comment. A command such as [%eval 0.35,12] is one: not all programs read it over two lines."""


def write_game(stream: TextIO, game: PgnGame) -> None:
    """Append a game and an empty line. Raises ValueError for an illegal move.

    PGN cannot hold a closing brace in a comment or a line break in a tag: they are written as ) and
    as a space."""
    held = {"Result": game.result} | ({} if game.fen is None else {"SetUp": "1", "FEN": game.fen})
    tags = {tag: game.headers.get(tag, unknown) for tag, unknown in ROSTER.items()} | held
    tags |= {tag: value for tag, value in game.headers.items() if tag not in tags}
    lines = [f'[{tag} "{_escaped(value)}"]\n' for tag, value in tags.items()]
    stream.write("".join([*lines, "\n", *_wrapped(_words(game)), "\n"]))


def open_pgn(path: Path) -> TextIO:
    """Open a PGN file for appending games. Raises UserError if it cannot be written."""
    try:
        return path.open("a", encoding="utf-8", newline="\n")
    except OSError as error:
        do = "give a file in an existing, writable folder"
        raise UserError(f"--pgnout {path}", error.strerror or str(error), do) from None


def _escaped(value: str) -> str:
    return " ".join(value.splitlines()).replace("\\", "\\\\").replace('"', '\\"')


def _words(game: PgnGame) -> Iterator[str]:
    """The words of the movetext: move numbers, moves, comments and the result."""
    start = START if game.fen is None else parse_fen(game.fen)
    black, full_move = int(start[0, 8]), int(start[0, 11]) >> 16 & 0xFFFF
    yield from _comment_words(game, 0)
    must_number = True
    for ply, move in enumerate(format_line(start, game.moves)):
        number = full_move + (ply + black) // 2
        if (ply + black) % 2 == 0:
            yield f"{number}."
        elif must_number:
            yield f"{number}..."
        yield move
        if ply + 1 in game.glyphs:
            yield f"${game.glyphs[ply + 1]}"
        yield from _comment_words(game, ply + 1)
        must_number = ply + 1 in game.comments
    yield game.result


def _comment_words(game: PgnGame, ply: int) -> list[str]:
    text = game.comments.get(ply)
    return [] if text is None else _WORD.findall(f"{{{text.replace('}', ')')}}}")


def _wrapped(words: Iterator[str]) -> Iterator[str]:
    """Break the words into lines.

    No line starts with [ or %, which would read as a tag or an escape."""
    line = ""
    for word in words:
        if line and len(line) + 1 + len(word) > COLUMNS and word[0] not in "%[":
            yield line + "\n"
            line = word
        else:
            line = f"{line} {word}" if line else word
    yield line + "\n"

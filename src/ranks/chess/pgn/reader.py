"""Reading PGN: what cannot be read is named and skipped, and the next game is read.

Kept are tags, moves, comments on the main line and the result; variations, annotation glyphs and move numbers are
passed over.
"""

from __future__ import annotations

import codecs
import gzip
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TextIO, cast

from ranks.chess.board import Board
from ranks.chess.core.rules import START
from ranks.chess.fen import parse_fen
from ranks.chess.pgn.draft import Draft, drafts
from ranks.chess.pgn.game import ELSEWHERE, ROSTER, Damage, Game, Termination
from ranks.chess.san import parse_line, refusal
from ranks.errors import UserError


def read_games(source: Path | str | TextIO, on_damage: Callable[[Damage], None] | None = None) -> Iterator[Game]:
    """The games of a .pgn or .pgn.gz file, or of an open text stream, one at a time in the order they stand.

    A game that cannot be read is handed to `on_damage`, which by default prints a line to stderr, and skipped. Bytes
    that are not UTF-8 are read as Latin-1. Raises UserError where there is no such file.
    """
    report = on_damage or _print_damage
    if not isinstance(source, (str, Path)):
        yield from _read(source, str(getattr(source, "name", "stream")), report)
        return
    path = Path(source)
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        stream = opened(path, "rt", encoding="utf-8", errors=_LATIN_1)
    except OSError as error:
        raise UserError(f"the games in {path}", str(error.strerror), "give a .pgn or .pgn.gz file") from None
    with stream:
        yield from _read(stream, str(path), report)


def _read(lines: Iterable[str], path: str, report: Callable[[Damage], None]) -> Iterator[Game]:
    for number, draft in enumerate(drafts(lines), 1):
        try:
            yield _finished(draft)
        except _Broken as broken:
            report(Damage(path, number, draft.line, broken.move, broken.reason))


class _Broken(Exception):
    """A game that cannot be read."""

    def __init__(self, reason: str, move: str | None = None) -> None:
        super().__init__(reason)
        self.reason, self.move = reason, move


def _finished(draft: Draft) -> Game:
    """The game of a draft, its moves found. Raises _Broken."""
    fen = draft.headers.get("FEN")
    try:
        start = START if fen is None else parse_fen(fen)
    except UserError as error:
        raise _Broken(f"the tag FEN: {error.found}") from None
    moves = parse_line(start, draft.words)
    if len(moves) < len(draft.words):
        board = Board(fen)
        for move in moves:
            board.push(move)
        text = draft.words[len(moves)]
        number = board.fen().split()[5] + ("." if board.white_to_move else "...")
        raise _Broken(refusal(board, text), f"{number} {text}")
    if draft.damage:
        raise _Broken(draft.damage)
    told = {tag: value for tag, value in draft.headers.items() if tag not in ELSEWHERE and value != ROSTER.get(tag)}
    return Game(told, fen, tuple(moves), draft.comments, cast(Termination, draft.result))


def _print_damage(damage: Damage) -> None:
    print(f"ranks: skipped {damage}", file=sys.stderr)


def _as_latin_1(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return error.object[error.start : error.end].decode("latin-1"), error.end


_LATIN_1 = "ranks-latin-1"
codecs.register_error(_LATIN_1, _as_latin_1)

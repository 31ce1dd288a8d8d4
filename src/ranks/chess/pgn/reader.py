"""Read PGN. A game with an error is reported and skipped, and reading continues with the next game.

Tags, moves, comments on the main line and the result are kept. Variations, annotation glyphs (NAGs)
and move numbers are ignored.
"""

from __future__ import annotations

import codecs
import io
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TextIO, cast

from ranks.bounded_file import DamagedGzip, open_file
from ranks.chess.board import Board
from ranks.chess.core.rules import START
from ranks.chess.fen import parse_fen
from ranks.chess.pgn.game import OTHER_FIELDS, ROSTER, PgnGame, SkippedGame, Termination
from ranks.chess.pgn.raw_game import RawGame, raw_games
from ranks.chess.san import parse_line, refusal
from ranks.errors import UserError

CHESS_VARIANTS = ("standard", "chess", "classical", "normal", "from position", "?", "")
"""Values of the tag Variant that are chess, in lower case."""


def read_games(
    source: Path | str | TextIO, on_skipped: Callable[[SkippedGame], None] | None = None, *, whole: bool = False
) -> Iterator[PgnGame]:
    """Iterate over the games of a .pgn or .pgn.gz file, or of an open text stream.

    A game that cannot be read is skipped, and `on_skipped` is called with it; the default prints a
    line to stderr. Bytes that are not UTF-8 are read as Latin-1. Raises UserError if the file cannot be
    read, or is beyond the limits of files; with `whole` also where a compressed file is damaged, after the
    games before.
    """
    report = on_skipped or _print_skipped
    if not isinstance(source, (str, Path)):
        yield from _read(source, str(getattr(source, "name", "stream")), report, whole=whole)
        return
    path = Path(source)
    with io.TextIOWrapper(open_file(path, f"the games in {path}"), "utf-8", _LATIN_1) as stream:
        yield from _read(stream, str(path), report, whole=whole)


def _read(lines: Iterable[str], path: str, report: Callable[[SkippedGame], None], *, whole: bool) -> Iterator[PgnGame]:
    try:
        for number, raw in enumerate(raw_games(lines), 1):
            try:
                yield _parse_moves(raw)
            except _ParseError as error:
                report(SkippedGame(path, number, raw.line, error.move, error.reason))
    except DamagedGzip:
        if whole:
            raise


class _ParseError(Exception):
    """Raised for a game that cannot be read."""

    def __init__(self, reason: str, move: str | None = None) -> None:
        super().__init__(reason)
        self.reason, self.move = reason, move


def _parse_moves(raw: RawGame) -> PgnGame:
    """Parse the moves of a raw game. Raises _ParseError."""
    variant = raw.headers.get("Variant", "standard")
    if variant.lower() not in CHESS_VARIANTS:
        raise _ParseError(f"the tag Variant: {variant} has other rules")
    fen = raw.headers.get("FEN")
    try:
        start = START if fen is None else parse_fen(fen)
    except UserError as error:
        raise _ParseError(f"the tag FEN: {error.found}") from None
    moves = parse_line(start, raw.words)
    if len(moves) < len(raw.words):
        board = Board(fen)
        for move in moves:
            board.push(move)
        text = raw.words[len(moves)]
        number = board.fen().split()[5] + ("." if board.white_to_move else "...")
        raise _ParseError(refusal(board, text), f"{number} {text}")
    if raw.error:
        raise _ParseError(raw.error)
    headers = {tag: value for tag, value in raw.headers.items() if tag not in OTHER_FIELDS and value != ROSTER.get(tag)}
    return PgnGame(headers, fen, tuple(moves), raw.comments, cast(Termination, raw.result))


def _print_skipped(skipped: SkippedGame) -> None:
    print(f"ranks: skipped {skipped}", file=sys.stderr)


def _as_latin_1(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return error.object[error.start : error.end].decode("latin-1"), error.end


_LATIN_1 = "ranks-latin-1"
codecs.register_error(_LATIN_1, _as_latin_1)

"""Openings from a file: positions of an .epd, or the moves of the games of a .pgn."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path

from ranks.bounded_file import open_file
from ranks.chess.board import Board
from ranks.chess.epd import parse_epd
from ranks.chess.match.openings import Opening
from ranks.chess.pgn import SkippedGame, read_games
from ranks.errors import UserError


def read_openings(path: Path) -> list[Opening]:
    """All openings of an .epd, .pgn or .pgn.gz file, in order.

    Raises UserError with the line or game at fault."""
    asked = f"--openings {path}"
    if not os.path.lexists(path):
        raise UserError(
            asked, "no such file", "give an .epd or .pgn file, or leave the flag out to use the built-in openings"
        )
    if path.name.endswith(".epd"):
        openings = list(_read_epd(path))
    elif path.name.endswith((".pgn", ".pgn.gz")):
        openings = list(_read_pgn(path))
    else:
        raise UserError(asked, f"'{path.suffix}' is not a format of openings", "give an .epd or .pgn file")
    if not openings:
        raise UserError(asked, "no opening in it", "give a file with at least one")
    return openings


def _read_epd(path: Path) -> Iterator[Opening]:
    """Read lines of EPD (four fields and operations; hmvc and fmvn are used) or FEN (six
    fields)."""
    for number, line in enumerate(_text_lines(path), 1):
        epd = parse_epd(line)
        if epd is None:
            continue
        place = f"{path}, line {number}"
        try:
            board = Board(epd.fen)
        except UserError as error:
            raise UserError(f"an opening of {place}: {error.asked}", error.found, error.do) from None
        yield _unfinished(board, Opening(f"{path.name} line {number}", board.fen(), ()), place)


def _text_lines(path: Path) -> Iterator[str]:
    with io.TextIOWrapper(open_file(path, f"--openings {path}"), "utf-8-sig", "replace") as lines:
        yield from lines


def _read_pgn(path: Path) -> Iterator[Opening]:
    def refuse(skipped: SkippedGame) -> None:
        raise UserError(f"the openings of {path}", str(skipped), "correct this game or remove it")

    for number, game in enumerate(read_games(path, refuse), 1):
        place = f"{path}, game {number}"
        yield _unfinished(game.board(), Opening(f"{path.name} game {number}", game.fen, game.moves), place)


def _unfinished(board: Board, opening: Opening, place: str) -> Opening:
    outcome = board.outcome()
    if outcome:
        raise UserError(f"an opening of {place}", f"the game is over: {outcome.reason}", "remove it")
    return opening

"""Positions of PGN files, game by game, as a stream."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ranks.bounded_file import FileLimits, open_file
from ranks.chess.core.rules import START, play
from ranks.chess.core.words import CLOCKS_WORD, WORDS
from ranks.chess.fen import parse_fen
from ranks.chess.pgn import PgnGame, SkippedGame, read_games
from ranks.data.prepared.say import say
from ranks.engine.sharding.numpy_rng import numpy_generator
from ranks.errors import UserError
from ranks.workloads.chess_value.labels.label import RESULTS
from ranks.workloads.chess_value.positions.sourced import (
    SourcedPositions,
    SourceOptions,
    game_id,
    is_validation,
    sourced,
)

SUFFIXES = (".pgn", ".pgn.gz")
PACKED = (".zst", ".bz2", ".xz", ".zip", ".7z")
"""How else files are packed."""
ABANDONED = re.compile(r"\b(abandoned|rules infraction)\b", re.IGNORECASE)
"""In the tag Termination of games whose result says nothing about the position. Lichess writes 'Abandoned', chess.com
'NAME won - game abandoned'."""
NAMED = 5
"""Damaged games that are named; more are only counted."""


class DamagedGames:
    """Counts games that cannot be read, and names the first."""

    def __init__(self, report: Callable[[str], None] = say) -> None:
        self.count = 0
        self._report = report

    def __call__(self, skipped: SkippedGame) -> None:
        self.count += 1
        if self.count <= NAMED:
            self._report(f"skipped {skipped}")

    def end(self) -> None:
        """Say how many there were, if not all were named."""
        if self.count > NAMED:
            self._report(f"skipped {self.count:,} damaged games in all")


def pgn_files(paths: Sequence[Path]) -> list[Path]:
    """The files, and those in the folders and below them, by name. Raises UserError where there is none, and for files
    that are packed in another way than .gz."""
    found: list[Path] = []
    for path in paths:
        inside = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
        archives = [file for file in inside if ".pgn." in file.name.lower()] if path.is_dir() else inside
        refuse_packed(archives, f"the games in {path}")
        inside = [file for file in inside if file.name.lower().endswith(SUFFIXES)] if path.is_dir() else inside
        if not inside:
            raise UserError(f"the games in {path}", "no .pgn or .pgn.gz file in this folder", "give one that has some")
        found += inside
    return found


def refuse_packed(files: Sequence[Path], asked: str) -> None:
    """Raises UserError for the first file that is packed in another way than .gz."""
    if packed := [file for file in files if file.name.lower().endswith(PACKED)]:
        do = "unpack it, as with zstd -d, or pack it with gzip"
        raise UserError(asked, f"{packed[0].name}: it is not packed as .gz", do)


def pgn_positions(path: Path, options: SourceOptions, damaged: DamagedGames) -> Iterator[SourcedPositions]:
    """The positions of each game of a file. Raises UserError where the file cannot be read, at its end where only the
    rest of it cannot."""
    asked = f"the games in {path}"
    with io.TextIOWrapper(open_file(path, asked, limits=FileLimits.streamed()), "utf-8", "replace") as text:
        for game in read_games(text, damaged, whole=True):
            yield positions_of_game(game, options)


def positions_of_game(game: PgnGame, options: SourceOptions) -> SourcedPositions:
    """The positions before each move, from `min_move` on; by rating, some of them."""
    boards_P13 = boards_before_moves(game)
    number = game_id(boards_P13[0].tobytes() if len(boards_P13) else b"", game.moves)
    used_P = boards_P13[:, CLOCKS_WORD] >> np.uint64(16) & np.uint64(0xFFFF) >= options.min_move
    weight = rating_weight(game, options)
    if weight < 1:
        used_P &= numpy_generator(options.seed, "value/pgn", 0, number).random(len(boards_P13)) < weight
    boards_N13 = boards_P13[used_P]
    without = ABANDONED.search(game.headers.get("Termination", "")) is not None
    count, result = len(boards_N13), None if without else RESULTS.get(game.result)
    validates = is_validation(number, options.validation_share)
    return sourced(boards_N13, [None] * count, [result] * count, "pgn", [validates] * count)


def boards_before_moves(game: PgnGame) -> NDArray[np.uint64]:
    """uint64[P, 13]: the position before each move."""
    rows = np.empty((len(game.moves) + 1, WORDS), np.uint64)
    rows[0] = (START if game.fen is None else parse_fen(game.fen))[0]
    for ply, move in enumerate(game.moves):
        play(rows, ply, rows, ply + 1, move)
    return rows[:-1]


def rating_weight(game: PgnGame, options: SourceOptions) -> float:
    """The share of a game's positions that is used: 1 at `full_weight_elo`, half of it for each 400 below."""
    if options.full_weight_elo is None:
        return 1.0
    ratings = [_rating(game.headers.get(tag, ""), options.unrated_elo) for tag in ("WhiteElo", "BlackElo")]
    return 2.0 ** min(0.0, (sum(ratings) / 2 - options.full_weight_elo) / 400)


def _rating(text: str, unrated: float) -> float:
    return float(text) if text.isascii() and text.isdecimal() and len(text) <= 4 and 0 < int(text) < 5000 else unrated

"""All games of a PGN file, one after the other: scored, written and drawn."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from ranks.chess.pgn import PgnGame, SkippedGame, read_games, write_game
from ranks.chess.players.player import Limits, Player
from ranks.errors import UserError
from ranks.progress import ProgressBar
from ranks.workloads.chess_value.analysis.annotated import annotated, summary
from ranks.workloads.chess_value.analysis.game import AnalysedGame, analyse_game
from ranks.workloads.chess_value.analysis.graph import draw_game

PGN = "annotated.pgn"
PART = f"{PGN}.part"
"""The games that are done, while the command runs."""


@dataclass
class GamesAnalysis:
    """What is done with each game, and how far it is."""

    player: Player
    limits: Limits
    searched: str
    """The player and its limits, for titles."""
    place: Path
    """The folder of the files."""
    bar: ProgressBar
    done: int = 0
    skipped: list[SkippedGame] = field(default_factory=list["SkippedGame"])

    def run(self, file: Path, only: int | None) -> None:
        """Analyse the games of a file, or the one with a number. The games that are done replace an earlier analysis at
        the end, also where this one is interrupted. Raises UserError, Forfeit, OSError."""
        for name in (PGN, PART):
            _refuse_same_file(file, self.place / name)
        read = 0
        with ExitStack() as closing:
            pgn: TextIO | None = None
            for game in read_games(file, self._skip):
                read += 1
                number = read + len(self.skipped)
                if only in (None, number):
                    self.place.mkdir(parents=True, exist_ok=True)
                    analysed = self._analyse(game, number)
                    if pgn is None:
                        pgn = closing.enter_context(_replacing(self.place / PGN, self.place / PART))
                    write_game(pgn, annotated(analysed, f"ranks, {self.searched}"))
                    pgn.flush()
                if number == only:
                    break

    def _analyse(self, game: PgnGame, number: int) -> AnalysedGame:
        scored = 0

        def advance() -> None:
            nonlocal scored
            scored += 1
            self.bar.update(scored, [f"game {number}"], len(game.moves) + 1)

        analysed = analyse_game(game, self.player, self.limits, advance)
        draw_game(analysed, self.searched, self.place / f"game-{number}.png")
        for line in (f"game {number}: {analysed.title}", *(f"  {line}" for line in summary(analysed))):
            self.bar.line(line)
        self.done += 1
        return analysed

    def _skip(self, found: SkippedGame) -> None:
        self.skipped.append(found)
        self.bar.line(f"skipped {found}")


def _refuse_same_file(read: Path, written: Path) -> None:
    """Raise UserError where the file to be written is the one that is read, by whatever names."""
    with suppress(OSError):  # one of them does not exist
        if written.samefile(read):
            found = f"{written} is the file that is read"
            raise UserError(f"to analyse {read}", found, "give another folder with --out")


@contextmanager
def _replacing(path: Path, part: Path) -> Generator[TextIO]:
    """Open `part` for this block; after it `part` replaces `path`, also where the block was interrupted. After an
    OSError in the block both stay: the disk may be full, and `part` may end within a game."""
    try:
        with part.open("w", encoding="utf-8", newline="\n") as file:
            yield file
    except OSError:
        raise
    except BaseException:
        os.replace(part, path)
        raise
    os.replace(part, path)

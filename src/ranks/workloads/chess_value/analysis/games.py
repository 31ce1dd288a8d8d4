"""All games of a PGN file, one after the other: scored, written and drawn."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from ranks.chess.pgn import PgnGame, SkippedGame, read_games, write_game
from ranks.chess.players.player import Limits, Player
from ranks.progress import ProgressBar
from ranks.workloads.chess_value.analysis.annotated import annotated, summary
from ranks.workloads.chess_value.analysis.game import AnalysedGame, analyse_game
from ranks.workloads.chess_value.analysis.graph import draw_game

PGN = "annotated.pgn"


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
        """Analyse the games of a file, or the one with a number. An earlier analysis stays until the first game of
        this one is done. Raises UserError, Forfeit, OSError."""
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
                        pgn = closing.enter_context((self.place / PGN).open("w", encoding="utf-8", newline="\n"))
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

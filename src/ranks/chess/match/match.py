"""A match of two players: pairs of games up to a number of rounds or the decision of an SPRT."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ranks.chess.match import MAX_PLIES
from ranks.chess.match.game import Conditions, GameRecord
from ranks.chess.match.openings import Opening, repetition_lines
from ranks.chess.match.schedule import PairRecord, Participant, pair_tasks, play_pairs
from ranks.errors import UserError
from ranks.progress import ProgressBar
from ranks.rating.crosstable import Crosstable, Points
from ranks.rating.report import report, score_line
from ranks.rating.sprt import Sprt


@dataclass(frozen=True)
class MatchPlan:
    """The settings of a match."""

    first: Participant
    second: Participant
    openings: Iterable[Opening]
    """Used in order, and again from the first if there are fewer than rounds."""
    conditions: Conditions
    rounds: int
    """The greatest number of pairs of games."""
    seed: int = 0
    concurrency: int = 1
    sprt: Sprt | None = None
    max_plies: int = MAX_PLIES

    def __post_init__(self) -> None:
        if self.first.name == self.second.name:
            raise UserError(
                f"a match of {self.first.name} with itself", "two equal names", "name two different players"
            )
        for flag, value in (("--rounds", self.rounds), ("--concurrency", self.concurrency)):
            if value < 1:
                raise UserError(f"{flag} {value}", "nothing to play", f"give {flag} 1 or more")


@dataclass
class MatchScore:
    """The score so far, counted for the first player, and the forfeits."""

    first: str
    second: str
    table: Crosstable = field(default_factory=Crosstable)
    forfeits: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    """The number of forfeits by (player, reason)."""

    def add(self, pair: PairRecord) -> None:
        """Count a pair."""
        self.table.add(self.first, self.second, *points(pair))
        for game in (pair.with_white, pair.with_black):
            if game.forfeited and game.loser:
                self.forfeits[game.loser, game.reason] += 1

    @property
    def line(self) -> str:
        """`Score of A vs B: ...`."""
        return score_line(self.first, self.second, self.table.games(self.first, self.second))

    def report(self, sprt: Sprt | None) -> list[str]:
        """The final report, with a line for each kind of forfeit."""
        games = self.table.games(self.first, self.second)
        lines = report(self.first, self.second, games, self.table.pentanomial(self.first, self.second), sprt)
        return lines + forfeit_lines(self.forfeits)


def points(pair: PairRecord) -> tuple[Points, Points]:
    """The first player's points with white and with black, in half points."""
    with_black: tuple[Points, Points, Points] = (2, 1, 0)
    return pair.with_white.white_points, with_black[pair.with_black.white_points]


def forfeit_lines(forfeits: Counter[tuple[str, str]]) -> list[str]:
    """`Forfeit: B 3 times (Black loses on time)` for each player and reason."""
    lines = sorted(forfeits.items())
    return [f"Forfeit: {name} {num} {'time' if num == 1 else 'times'} ({reason})" for (name, reason), num in lines]


def play_match(plan: MatchPlan, on_game: Callable[[GameRecord], None]) -> MatchScore:
    """Play a match. Prints a line for each game, the score after each pair, and a final report.

    `on_game` is called with each finished game. After Ctrl-C the report of the pairs so far is
    printed, and KeyboardInterrupt is raised again.
    """
    score = MatchScore(plan.first.name, plan.second.name)
    finished = itertools.count(1)
    tasks = pair_tasks([(plan.first, plan.second, plan.rounds)], plan.openings)
    with ProgressBar(plan.rounds, unit="pairs", log_every_s=None) as progress:
        for line in repetition_lines(plan.openings, plan.rounds):
            progress.line(line)

        def show(game: GameRecord) -> None:
            on_game(game)
            number = next(finished)
            progress.line(f"Finished game {number} ({game.white} vs {game.black}): {game.result} {{{game.reason}}}")

        pairs = play_pairs(tasks, plan.conditions, plan.seed, plan.concurrency, show, plan.max_plies)
        try:
            for pair in pairs:
                score.add(pair)
                progress.advance()
                progress.line(score.line)
                if plan.sprt:
                    verdict = plan.sprt.verdict(score.table.pentanomial(score.first, score.second))
                    progress.line(str(verdict))
                    if verdict.accepted:
                        break
        finally:
            pairs.close()
            for line in score.report(plan.sprt):
                progress.line(line)
    return score

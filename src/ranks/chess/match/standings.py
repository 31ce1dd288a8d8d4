"""The table of a ladder: one fit over all pairs of games, and whether neighbours are separated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ranks.chess.rating.bradley_terry import Ratings, fit
from ranks.chess.rating.crosstable import Crosstable
from ranks.chess.rating.elo import Interval
from ranks.errors import UserError


class Row(NamedTuple):
    """One player's line."""

    player: str
    elo: Interval
    games: int
    score: float
    """Points per game, from 0 to 1."""
    draws: float
    """Share of drawn games, from 0 to 1."""
    above_next: Interval | None
    """How much stronger it is than the player below, with the interval of the difference; None in the last row."""
    games_with_next: int

    @property
    def separated(self) -> bool:
        """Whether it is stronger than the player below beyond the interval of their difference."""
        return self.above_next is None or self.above_next.low > 0


class Standings(NamedTuple):
    """The whole table."""

    ratings: Ratings
    rows: list[Row]

    @property
    def unseparated(self) -> list[tuple[str, str]]:
        """Neighbours whose order is not sure."""
        pairs = zip(self.rows, self.rows[1:], strict=False)
        return [(upper.player, lower.player) for upper, lower in pairs if not upper.separated]


def rate(table: Crosstable, anchors: Mapping[str, float]) -> Standings:
    """Fit by maximum likelihood alone; where that has no maximum, with a prior of one game for each player."""
    anchors = {player: elo for player, elo in anchors.items() if player in table.players}
    try:
        ratings = fit(table, anchors)
    except UserError:
        ratings = fit(table, anchors, prior_games=1)
    rows: list[Row] = []
    for place, player in enumerate(ratings.players):
        each = [table.games(player, other) for other in ratings.players if other != player]
        games = sum(met.games for met in each)
        below = ratings.players[place + 1] if place + 1 < len(ratings.players) else None
        row = Row(
            player=player,
            elo=ratings.rating(player),
            games=games,
            score=sum(met.wins + met.draws / 2 for met in each) / games,
            draws=sum(met.draws for met in each) / games,
            above_next=ratings.difference(player, below) if below else None,
            games_with_next=table.games(player, below).games if below else 0,
        )
        rows.append(row)
    return Standings(ratings, rows)


def standings_lines(standings: Standings) -> Iterable[str]:
    """The table in plain text."""
    ratings = standings.ratings
    width = max(6, *(len(row.player) for row in standings.rows))
    yield f"{'':>3} {'player':<{width}} {'Elo':>7} {'+/-':>6} {'games':>6} {'score':>7} {'draws':>7}  above the next"
    for place, row in enumerate(standings.rows, 1):
        reach = (row.elo.high - row.elo.low) / 2
        line = f"{place:>3} {row.player:<{width}} {row.elo.value:7.1f} {reach:6.1f} {row.games:6} "
        line += f"{100 * row.score:5.1f} % {100 * row.draws:5.1f} %"
        if row.above_next:
            word = "separated" if row.separated else "NOT separated"
            line += f"  {row.above_next}, {word} after {row.games_with_next} games with each other"
        yield line
    yield f"scale: {ratings.scale}; +/- is 95 %"
    draws = ", ".join(f"{100 * share:.1f} %" for share in ratings.draw_share)
    yield f"first move: {ratings.first_move} Elo; draws between equals: {draws} (value, 95 % from, to)"
    if ratings.prior_games:
        yield "one player or more won or lost every game: rated with a prior of one game for each player"

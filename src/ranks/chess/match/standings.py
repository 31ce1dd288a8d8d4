"""The table of a ladder: one fit over all pairs of games, and which neighbours are separated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ranks.errors import UserError
from ranks.rating.bradley_terry import Ratings, fit
from ranks.rating.crosstable import Crosstable
from ranks.rating.elo import Interval

SURE = 0.95
"""The confidence that two neighbours called separated are in the right order, for each two
neighbours."""
LEAST_GAMES = 10
"""Games that both must have played; after fewer, intervals are not reliable."""


class Row(NamedTuple):
    """One player's line of the table."""

    player: str
    elo: Interval
    games: int
    score: float
    """Points per game, from 0 to 1."""
    draws: float
    """Share of drawn games, from 0 to 1."""
    above_next: Interval | None
    """The Elo difference to the player below, with its interval at `Standings.level`; None in the
    last row."""
    games_with_next: int
    separated: bool
    """The interval of `above_next` is above 0, and both players have played LEAST_GAMES."""
    given: bool
    """It is an anchor: its rating was given, not measured."""


class Standings(NamedTuple):
    """The whole table."""

    ratings: Ratings
    rows: list[Row]
    looks: int
    """How often the ratings may be checked before the ladder ends. Each check could separate two
    equals by chance."""
    level: float
    """The level of the intervals between neighbours: 1 - (1 - SURE) / looks. The error of all looks
    together is then at most 1 - SURE (Bonferroni)."""
    prior_because: str | None
    """Why maximum likelihood alone gave no ratings; None if it did."""

    @property
    def unseparated(self) -> list[tuple[str, str]]:
        """The neighbours that are not separated."""
        pairs = zip(self.rows, self.rows[1:], strict=False)
        return [(upper.player, lower.player) for upper, lower in pairs if not upper.separated]


def rate(table: Crosstable, anchors: Mapping[str, float], looks: int = 1) -> Standings:
    """Fit the ratings by maximum likelihood.

    If there is no maximum, use a prior of one game for each player.

    `looks` is how often the ratings may be checked before the ladder ends.
    """
    anchors = {player: elo for player, elo in anchors.items() if player in table.players}
    prior_because = None
    try:
        ratings = fit(table, anchors)
    except UserError as error:
        prior_because = error.found
        ratings = fit(table, anchors, prior_games=1)
    level = 1 - (1 - SURE) / looks
    games_of = {player: sum(table.games(player, other).games for other in table.players) for player in table.players}
    rows: list[Row] = []
    for place, player in enumerate(ratings.players):
        each = [table.games(player, other) for other in ratings.players if other != player]
        games = games_of[player]
        above_next, games_with_next, separated = None, 0, True
        if place + 1 < len(ratings.players):
            below = ratings.players[place + 1]
            above_next = ratings.difference(player, below, level)
            games_with_next = table.games(player, below).games
            separated = above_next.low > 0 and min(games, games_of[below]) >= LEAST_GAMES
        row = Row(
            player=player,
            elo=ratings.rating(player),
            games=games,
            score=sum(met.wins + met.draws / 2 for met in each) / games,
            draws=sum(met.draws for met in each) / games,
            above_next=above_next,
            games_with_next=games_with_next,
            separated=separated,
            given=player in ratings.given,
        )
        rows.append(row)
    return Standings(ratings, rows, looks, level, prior_because)


def standings_lines(standings: Standings) -> Iterable[str]:
    """The table in plain text."""
    ratings = standings.ratings
    width = max(6, *(len(row.player) for row in standings.rows))
    yield f"{'':>3} {'player':<{width}} {'Elo':>7} {'+/-':>6} {'games':>6} {'score':>7} {'draws':>7}  above the next"
    for place, row in enumerate(standings.rows, 1):
        reach = "given" if row.given else f"{(row.elo.high - row.elo.low) / 2:.1f}"
        line = f"{place:>3} {row.player:<{width}} {row.elo.value:7.1f} {reach:>6} {row.games:6} "
        line += f"{100 * row.score:5.1f} % {100 * row.draws:5.1f} %"
        if row.above_next and row.given and standings.rows[place].given:
            line += f"  {row.above_next.value:.1f}, given"
        elif row.above_next:
            word = "separated" if row.separated else "NOT separated"
            line += f"  {row.above_next}, {word} after {row.games_with_next} games with each other"
        yield line
    yield f"scale: {scale_text(ratings)}; +/- is 95 %"
    looks = f", at any of {standings.looks} looks at the games," if standings.looks > 1 else ""
    yield (
        f"above the next: +/- is {100 * standings.level:.3g} %, so that two players called separated{looks} are in "
        f"this order with {100 * SURE:g} % confidence"
    )
    draws = ", ".join(f"{100 * share:.1f} %" for share in ratings.draw_share)
    yield f"first move: {ratings.first_move} Elo; draws between equals: {draws} (value, 95 % from, to)"
    if standings.prior_because:
        yield f"rated with a prior of one game for each player, because without it: {standings.prior_because}"


def scale_text(ratings: Ratings) -> str:
    """The scale of the ratings, and whether it has anchors."""
    return f"{ratings.scale} (given: its own error is in no interval)" if ratings.given else ratings.scale

"""The report of a match in the format of cutechess and fastchess."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ranks.rating.elo import estimate
from ranks.rating.sprt import Sprt


class WinsLossesDraws(NamedTuple):
    """The results of single games, counted for the first player."""

    wins: int
    losses: int
    draws: int

    @property
    def games(self) -> int:
        """The number of games."""
        return sum(self)


def score_line(first: str, second: str, games: WinsLossesDraws) -> str:
    """`Score of A vs B: 7 - 2 - 1  [0.750] 10`: wins, losses, draws, points per game, games."""
    share = (games.wins + games.draws / 2) / games.games if games.games else 0.0
    return f"Score of {first} vs {second}: {games.wins} - {games.losses} - {games.draws}  [{share:.3f}] {games.games}"


def report(first: str, second: str, games: WinsLossesDraws, pairs_5: Sequence[int], sprt: Sprt | None) -> list[str]:
    """The final report of a match: score, Elo, LOS, draw ratio, pentanomial counts, SPRT."""
    found = estimate(pairs_5)
    draw_ratio = games.draws / games.games if games.games else 0.0
    elo = f"Elo difference: {found.elo}, LOS: {100 * found.los:.1f} %, DrawRatio: {100 * draw_ratio:.1f} %"
    lines = [
        score_line(first, second, games),
        elo,
        f"Normalised Elo: {found.normalised_elo:.1f}",
        f"Ptnml(0-2): {', '.join(map(str, pairs_5))}",
    ]
    return [*lines, str(sprt.verdict(pairs_5))] if sprt else lines

"""Rates the nets of a training: the newest and the best weights in one fit, from games with players of known Elo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ranks.chess.match.standings import rate
from ranks.errors import UserError
from ranks.rating.bradley_terry import Ratings
from ranks.rating.crosstable import Crosstable, Points

NET, BEST = "net", "best"
"""The newest weights, and the best before them, in a crosstable."""
LADDER: Mapping[str, float] = {
    "random": -731.0,
    "greedy": -135.0,
    "minimax:2": 559.0,
    "alphabeta:1": 635.0,
    "alphabeta:2": 953.0,
    "alphabeta:3": 1164.0,
    "alphabeta:4": 1384.0,
    "uci:stockfish@1000?Threads=1&Hash=16": 2127.0,
    "uci:stockfish@2000?Threads=1&Hash=16": 2487.0,
}
"""Players with fixed limits and their Elo on the committed ladder (benchmarks/results/chess_ladder_2026-11-20.json),
where Stockfish 15.1 with 5,000 nodes and UCI_Elo 1350 has 1350."""


class Pair(NamedTuple):
    """A pair of games against an opponent, in half points of the net."""

    opponent: str
    with_white: Points
    with_black: Points


def rate_nets(pairs: Sequence[Pair], of_best: Sequence[Pair], rungs: Mapping[str, float]) -> Ratings | None:
    """The ratings of NET and BEST in the crosstable of both; None where the games do not determine them.

    `of_best`: pairs of the best weights against players of `rungs`, whose Elo is given."""
    table = Crosstable()
    for name, played in ((NET, pairs), (BEST, of_best)):
        for pair in played:
            table.add(name, pair.opponent, pair.with_white, pair.with_black)
    try:
        return rate(table, rungs).ratings
    except UserError:
        return None

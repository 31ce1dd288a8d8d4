"""Rates the nets of a training: the newest and the best weights in one fit, from games with players of known Elo."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ranks.chess.match.standings import rate
from ranks.chess.players.player import Forfeit
from ranks.chess.uci.client import UciClient
from ranks.chess.uci.player import find_command
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
RATED_WITH = "Stockfish 15.1"
"""The `id name` of Stockfish there. Another version is stronger or weaker with the same nodes."""
UCI = "uci:"


class Pair(NamedTuple):
    """A pair of games against an opponent, in half points of the net."""

    opponent: str
    with_white: Points
    with_black: Points


def rate_nets(pairs: Sequence[Pair], of_best: Sequence[Pair], rungs: Mapping[str, float]) -> Ratings | None:
    """The ratings of NET and BEST in the crosstable of both; None where the games do not determine them.

    `of_best`: pairs of the best weights against players of `rungs`, whose Elo is given. Where one of these is another
    version of Stockfish than RATED_WITH, one line on stderr says so, once in a process."""
    table = Crosstable()
    for name, played in ((NET, pairs), (BEST, of_best)):
        for pair in played:
            table.add(name, pair.opponent, pair.with_white, pair.with_black)
    for opponent in table.players:
        if opponent in rungs and opponent.startswith(UCI):
            warn_of_other_version(opponent)
    try:
        return rate(table, rungs).ratings
    except UserError:
        return None


def warn_of_other_version(opponent: str) -> None:
    """Say on stderr where a UCI engine of LADDER is not RATED_WITH. Of the ranks of a host only the first one does."""
    if os.environ.get("LOCAL_RANK", "0") == "0":
        try:
            program = find_command(opponent.removeprefix(UCI).partition("@")[0], opponent)[0]
        except UserError:
            return  # nobody has played with it here
        _say_other_version(program)


@functools.cache
def _say_other_version(program: str) -> None:
    try:
        engine = UciClient([program], dies_with_us=True)
    except Forfeit:
        return
    engine.close()
    if engine.name != RATED_WITH:
        text = f"rungs are rated with {RATED_WITH}, this is {engine.name}: ratings may be off"
        print(f"warning: {text} ({program})", file=sys.stderr, flush=True)

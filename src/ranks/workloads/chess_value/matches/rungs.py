"""The fixed players that a net meets for its rating."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial

from ranks.chess.commands.players import make_player
from ranks.chess.match.net_rating import LADDER
from ranks.chess.players.player import Player
from ranks.chess.uci.player import UciPlayer, find_command
from ranks.errors import UserError
from ranks.workloads.chess_value.players.net_player import OpenPlayer

AT_ONCE = 4
"""Opponents of one rating."""
UNTRAINED_RATING = 600.0
"""Of a net that was never rated: the first opponents are those near it."""
STOCKFISH_COMMAND = "stockfish"
STOCKFISH = f"uci:{STOCKFISH_COMMAND}@"


def rung_players(*, with_stockfish: bool) -> Mapping[str, OpenPlayer]:
    """The players of LADDER and how to open them. Without Stockfish they end at 1384."""
    words = [word for word in LADDER if with_stockfish or not word.startswith(STOCKFISH)]
    return {word: partial(make_player, word) for word in words}


def has_stockfish() -> bool:
    """Whether there is a program `stockfish`."""
    try:
        find_command(STOCKFISH_COMMAND, STOCKFISH_COMMAND)
    except UserError:
        return False
    return True


def open_stockfish(command: str, nodes: int) -> Player:
    """Stockfish, or another engine of this command, with nodes for each move. Raises UserError where there is none."""
    name = f"uci:{command}@{nodes}"
    return UciPlayer(name, find_command(command, name), {}, nodes, if_known={"Threads": "1", "Hash": "16"})


def nearest_rungs(rating: float | None, known: Collection[str]) -> tuple[str, ...]:
    """Of the fixed players those whose Elo is nearest to a rating, the weakest first."""
    around = UNTRAINED_RATING if rating is None else rating
    nearest = sorted(known, key=lambda word: abs(LADDER[word] - around))[:AT_ONCE]
    return tuple(sorted(nearest, key=LADDER.__getitem__))

"""`ranks chess uci`: a player as a UCI engine, for any chess GUI."""

from __future__ import annotations

import gc
import os
import sys
from typing import TYPE_CHECKING, NoReturn

from ranks import __version__
from ranks.chess.commands.players import parse_player, strength_of
from ranks.chess.players.player import Forfeit
from ranks.chess.uci.engine import Engine, print_line, read_lines
from ranks.errors import UserError

if TYPE_CHECKING:
    from ranks.chess.players.player import Player


def uci(*, player: str = "alphabeta:64?evaluation=position") -> NoReturn:
    """Run a player as a UCI engine on stdin and stdout, until `quit` or the end of the input.

    Args:
        player: The player, as in `ranks chess match`.
    """
    spec = parse_player(player)

    def load() -> Player:
        loaded = spec.make()
        warm_up(loaded)
        return loaded

    engine = Engine(f"ranks {__version__} {player}", load, print_line, strength=strength_of(spec))
    try:
        engine.run(read_lines(sys.stdin.fileno()))
    except Forfeit as fault:
        do = "run the engine's command by hand and read its output"
        raise UserError(f"the player '{player}'", f"the engine {fault}", do) from fault
    # Leave without the end of Python: the loader may be in the compiler, which cannot be interrupted, and a thread of
    # torch that ends at the same time as Python aborts the process.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def warm_up(player: Player) -> None:
    """Let a player make one move, so that all is loaded and compiled before the first game."""
    from ranks.chess.board import Board
    from ranks.chess.players.player import Limits

    player.new_game(0)
    player.choose(Board(), Limits(nodes=1, depth=1))
    gc.collect()
    gc.freeze()  # the collector no longer scans loaded objects, so it does not pause a search

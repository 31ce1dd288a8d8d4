"""`ranks chess uci`: a player as a UCI engine, for any chess program with a board."""

from __future__ import annotations

import gc
import os
import sys

from ranks import __version__
from ranks.chess.players.player import Forfeit, Player
from ranks.chess.players.words import PlayerWord
from ranks.chess.uci.engine import Engine, lines_of, print_line
from ranks.errors import UserError


def uci(*, player: str = "alphabeta:64?evaluation=position") -> int:
    """Be a UCI engine: read commands from stdin, write answers to stdout, until `quit` or the end of the input.

    Args:
        player: Who plays, as in `ranks chess match`.
    """
    word = PlayerWord.parse(player)

    def load() -> Player:
        made = word.make()
        rehearse(made)
        return made

    engine = Engine(f"ranks {__version__} {player}", load, print_line)
    try:
        engine.run(lines_of(sys.stdin.fileno()))
    except Forfeit as fault:
        do = "start the program by itself, and look what it says"
        raise UserError(f"the player '{player}'", f"the program {fault}", do) from fault
    if engine.loading:  # the loader may be inside the compiler, where no thread can be ended
        os._exit(0)
    return 0


def rehearse(player: Player) -> None:
    """Let a player move once, so that nothing is left to be loaded when it matters."""
    from ranks.chess.board import Board
    from ranks.chess.players.player import Limits

    player.new_game(0)
    player.choose(Board(), Limits(nodes=1, depth=1))
    gc.collect()
    gc.freeze()  # what was loaded stays: nobody has to look through it again in the middle of a move

"""The UCI engines that a run plays with, found before its first game.

Which engines there are belongs to the identity of the run: with other opponents it would be another run.
"""

from __future__ import annotations

from typing import NamedTuple

from ranks.chess.uci.player import UciPlayer
from ranks.engine.distributed.agree import on_every_rank
from ranks.engine.distributed.world import World
from ranks.errors import UserError
from ranks.workloads.chess_value.config import Config
from ranks.workloads.chess_value.matches.rungs import STOCKFISH_COMMAND, has_stockfish, open_stockfish


class GameEngines(NamedTuple):
    """What was found on all ranks."""

    rates: bool
    """Whether a net is rated against Stockfish too."""
    identity: tuple[str, ...] = ()
    """Of the engines that the labels do not name."""


def find_game_engines(cfg: Config, world: World) -> GameEngines:
    """Start the engine of --stockfish-games once on each rank, and look for the Stockfish that rates. Every rank calls
    it. Raises UserError, on all ranks, where a game would have no engine, or where hosts have different ones."""
    identity: list[str] = []
    if cfg.stockfish_games:
        opponent = _the_same(f"--stockfish-games {cfg.stockfish_games}", cfg.label.engine, world, _without_games(cfg))
        if cfg.labels != "stockfish":
            identity.append(f"games with {opponent}")
    if not cfg.needs_stockfish or cfg.label.engine == STOCKFISH_COMMAND:
        return GameEngines(cfg.needs_stockfish, tuple(identity))
    if not all(world.comm.gather_objects(has_stockfish())):
        return GameEngines(False, (*identity, "rated without Stockfish"))
    program = _the_same("rating with Stockfish", STOCKFISH_COMMAND, world, "install it again, or remove it")
    return GameEngines(True, (*identity, f"rated with {program}"))


def _without_games(cfg: Config) -> str:
    """The flags of a run that needs no engine for its games."""
    labels = " --labels outcome" if cfg.labels == "stockfish" else ""
    return f"or train with{labels} --stockfish-games 0"


def _the_same(asked: str, command: str, world: World, otherwise: str) -> str:
    """The name and version of an engine that all ranks have. Raises UserError on all ranks."""
    found = world.comm.gather_objects(on_every_rank(world, lambda: _program(asked, command, otherwise)))
    if len(set(found)) > 1:
        listed = "; ".join(sorted(set(found)))
        raise UserError(asked, f"hosts have different engines '{command}': {listed}", "install the same version")
    return found[0]


def _program(asked: str, command: str, otherwise: str) -> str:
    """What an engine calls itself. Raises UserError where it cannot be started with our options."""
    try:
        player = open_stockfish(command, nodes=1)
    except UserError as error:
        raise UserError(asked, error.found, f"{error.do}; {otherwise}") from None
    assert isinstance(player, UciPlayer)
    player.close()
    return player.program

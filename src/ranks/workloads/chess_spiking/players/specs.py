"""Player specs of nets: `chess-spiking[@SIMULATIONS]`, `run:RUN[/ITERATION][@SIMULATIONS]`,
`model:FOLDER[@SIMULATIONS]`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ranks.chess.players.player import Player
from ranks.chess.players.spec import name_and_number, no_options
from ranks.chess.players.tree_search import MOST_SIMULATIONS
from ranks.engine.runs.checkpoints.pick import run_and_checkpoint
from ranks.errors import UserError
from ranks.workloads.chess_spiking.players.net_player import net_player
from ranks.workloads.chess_spiking.players.saved_net import SHIPPED, SavedNet, from_export, from_files, from_run

SIMULATIONS = 64
"""Of each move, where the spec does not say."""
SHIPPED_USAGE = "chess-spiking[@SIMULATIONS], e.g. chess-spiking@64; @0 plays without search"
RUN_USAGE = "run:RUN[/ITERATION][@SIMULATIONS], e.g. run:demo, run:demo/20@64; ITERATION may be best or latest"
MODEL_USAGE = "model:FOLDER[@SIMULATIONS], e.g. model:models/me/net@64"


def shipped_player(spec: str, argument: str | None, options: Mapping[str, str]) -> Player:
    """`chess-spiking[@SIMULATIONS]`: the trained net of the package."""
    no_options(spec, options)
    name, simulations = name_and_number(spec, argument, 0, MOST_SIMULATIONS, SHIPPED_USAGE)
    if name:
        raise UserError(f"the player '{spec}'", f"simulations follow an @, not '{name}'", f"write {SHIPPED_USAGE}")
    return net_player(spec, from_files(SHIPPED, f"the player '{spec}'"), _or_default(simulations))


def run_player(spec: str, argument: str | None, options: Mapping[str, str]) -> Player:
    """`run:RUN[/ITERATION][@SIMULATIONS]`: the net of a run, without ITERATION that of its best checkpoint."""
    no_options(spec, options)
    name, simulations = name_and_number(spec, argument, 0, MOST_SIMULATIONS, RUN_USAGE)
    return net_player(spec, net_of_run(name, f"the player '{spec}'"), _or_default(simulations))


def model_player(spec: str, argument: str | None, options: Mapping[str, str]) -> Player:
    """`model:FOLDER[@SIMULATIONS]`: a net that `ranks fetch` brought, which plays as that of its run does."""
    no_options(spec, options)
    name, simulations = name_and_number(spec, argument, 0, MOST_SIMULATIONS, MODEL_USAGE)
    return net_player(spec, from_export(Path(name), f"the player '{spec}'"), _or_default(simulations))


def net_of_run(name: str, asked: str) -> SavedNet:
    """The net of RUN[/ITERATION]. Raises UserError."""
    run, which = run_and_checkpoint(name, asked)
    return from_run(run, which, asked)


def _or_default(simulations: int | None) -> int:
    return SIMULATIONS if simulations is None else simulations

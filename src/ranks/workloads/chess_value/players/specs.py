"""Player specs of nets: `chess-value[@NODES]`, `run:RUN[/ITERATION][@NODES]`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ranks.chess.players.player import Player
from ranks.chess.players.spec import name_and_number, no_options
from ranks.errors import UserError
from ranks.workloads.chess_value.config import MOST_SIMULATIONS
from ranks.workloads.chess_value.net.building import ValueNet
from ranks.workloads.chess_value.net.nnue import NnueNet
from ranks.workloads.chess_value.net.quantise import quantise
from ranks.workloads.chess_value.players.engine import open_engine
from ranks.workloads.chess_value.players.net_player import open_net
from ranks.workloads.chess_value.players.saved_net import SHIPPED, from_export, from_files, from_run

SHIPPED_USAGE = "chess-value[@NODES], e.g. chess-value, chess-value@5000"
RUN_USAGE = "run:RUN[/ITERATION][@NODES], e.g. run:demo, run:demo/20@5000; ITERATION may be best or latest"
MODEL_USAGE = "model:FOLDER[@NODES], e.g. model:models/me/net@5000"
MOST_NODES = 10**12
SIMULATIONS = 400
"""Of each move of a cnn or a resnet, where the spec does not say."""


def shipped_player(spec: str, argument: str | None, options: Mapping[str, str]) -> Player:
    """`chess-value[@NODES]`: the engine with the trained net of the package."""
    no_options(spec, options)
    name, nodes = name_and_number(spec, argument, 1, MOST_NODES, SHIPPED_USAGE)
    if name:
        raise UserError(f"the player '{spec}'", f"nodes follow an @, not '{name}'", f"write {SHIPPED_USAGE}")
    shipped = from_files(SHIPPED, f"the player '{spec}'")
    return open_engine(spec, shipped.weights, nodes)


def run_player(spec: str, argument: str | None, options: Mapping[str, str]) -> Player:
    """`run:RUN[/ITERATION][@NODES]`: the net of a run, without ITERATION that of its best checkpoint.

    An nnue plays in the alpha-beta engine; NODES limits every move. A cnn or a resnet plays in the tree search with
    NODES simulations."""
    no_options(spec, options)
    name, nodes = name_and_number(spec, argument, 1, MOST_NODES, RUN_USAGE)
    return _player(spec, from_run(name, f"the player '{spec}'").model, nodes)


def model_player(spec: str, argument: str | None, options: Mapping[str, str]) -> Player:
    """`model:FOLDER[@NODES]`: a net from its export folder, which plays as that of a run does."""
    no_options(spec, options)
    name, nodes = name_and_number(spec, argument, 1, MOST_NODES, MODEL_USAGE)
    return _player(spec, from_export(Path(name), f"the player '{spec}'"), nodes)


def _player(spec: str, model: ValueNet, nodes: int | None) -> Player:
    if not isinstance(model, NnueNet):
        if nodes is not None and nodes > MOST_SIMULATIONS:
            found = f"its net plays in the tree search, with at most {MOST_SIMULATIONS:,} simulations"
            raise UserError(f"the player '{spec}'", found, f"write @{SIMULATIONS}, for example")
        return open_net(model, spec, nodes or SIMULATIONS)()
    return open_engine(spec, quantise(model), nodes)

"""chess-spiking: a spiking policy-value net that learns chess from its own games."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ranks.errors import UserError
from ranks.workloads.chess_spiking.config import PRESETS, Config

if TYPE_CHECKING:
    from ranks.workloads.chess_spiking.building import build, example_inputs
    from ranks.workloads.chess_spiking.game_notation import format_pgn, notation
    from ranks.workloads.chess_spiking.strength_table import table
    from ranks.workloads.chess_spiking.training import evaluate, train

SHAPE = "self-play"
COMMANDS = {
    "report": "ranks.workloads.chess_spiking.report.report:report",
    "weights": "ranks.workloads.chess_spiking.players.ship:weights",
}
PLAYERS = {
    "chess-spiking": "ranks.workloads.chess_spiking.players.specs:shipped_player",
}
"""Players of `ranks chess`: chess-spiking[@SIMULATIONS]."""
RUN_PLAYER = "ranks.workloads.chess_spiking.players.specs:run_player"
"""The player of a run: run:RUN[/ITERATION][@SIMULATIONS]."""
MODEL_PLAYER = "ranks.workloads.chess_spiking.players.specs:model_player"
"""The player of an export folder with ranks.json: model:FOLDER[@SIMULATIONS]."""

_HOME = {
    "build": "building",
    "example_inputs": "building",
    "train": "training",
    "evaluate": "training",
    "notation": "game_notation",
    "format_pgn": "game_notation",
    "table": "strength_table",
}

__all__ = [
    "COMMANDS",
    "MODEL_PLAYER",
    "PLAYERS",
    "PRESETS",
    "RUN_PLAYER",
    "SHAPE",
    "Config",
    "build",
    "evaluate",
    "example_inputs",
    "format_pgn",
    "notation",
    "table",
    "train",
]


def __getattr__(name: str) -> Any:
    """Import what needs torch or Numba on its first use. No submodule may have one of these names.

    Raises UserError where Numba is not installed."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    except ModuleNotFoundError as missing:
        if missing.name != "numba":
            raise
        found = "the package numba is not installed"
        raise UserError("chess-spiking", found, "pip install 'ranks[chess-spiking]'") from missing

"""chess-value: a net that learns what positions are worth, and an alpha-beta engine that plays with it."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ranks.errors import UserError
from ranks.workloads.chess_value.config import Config
from ranks.workloads.chess_value.presets import PRESETS

if TYPE_CHECKING:
    from ranks.workloads.chess_value.evaluation import evaluate
    from ranks.workloads.chess_value.net.building import example_inputs
    from ranks.workloads.chess_value.strength_table import table
    from ranks.workloads.chess_value.training import build, train

SHAPE = "self-play"
FLAG_ALIASES = {"--cycles": "--iterations"}
COMMANDS = {
    "analyse": "ranks.workloads.chess_value.commands.analyse:analyse",
    "report": "ranks.workloads.chess_value.report.report:report",
    "weights": "ranks.workloads.chess_value.players.ship:weights",
    "import": "ranks.workloads.chess_value.net.import_origin:import_origin",
    "label": "ranks.workloads.chess_value.commands.label:label",
    "cache": "ranks.workloads.chess_value.commands.cache:cache",
}
PLAYERS = {"chess-value": "ranks.workloads.chess_value.players.specs:shipped_player"}
"""Players of `ranks chess`: chess-value[@NODES]."""
STRENGTHS = {"chess-value": Path(__file__).parent / "weights" / "strength.json"}
"""Their Elo by nodes, for UCI_LimitStrength."""
RUN_PLAYER = "ranks.workloads.chess_value.players.specs:run_player"
"""The player of a run: run:RUN[/ITERATION][@NODES]."""
MODEL_PLAYER = "ranks.workloads.chess_value.players.specs:model_player"
"""The player of an export folder with ranks.json: model:FOLDER[@NODES]."""

_HOME = {
    "build": "training",
    "train": "training",
    "evaluate": "evaluation",
    "example_inputs": "net.building",
    "table": "strength_table",
}

__all__ = [
    "COMMANDS",
    "FLAG_ALIASES",
    "MODEL_PLAYER",
    "PLAYERS",
    "PRESETS",
    "RUN_PLAYER",
    "SHAPE",
    "STRENGTHS",
    "Config",
    "build",
    "evaluate",
    "example_inputs",
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
        raise UserError("chess-value", found, "pip install 'ranks[chess-value]'") from missing

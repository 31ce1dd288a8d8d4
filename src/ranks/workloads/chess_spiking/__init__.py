"""chess-spiking: a spiking policy-value net that learns chess from its own games."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ranks.workloads.chess_spiking.config import PRESETS, Config

if TYPE_CHECKING:
    from ranks.workloads.chess_spiking.building import build, example_inputs
    from ranks.workloads.chess_spiking.training import evaluate, train

COMMANDS: dict[str, str] = {}

_HOME = {"build": "building", "example_inputs": "building", "train": "training", "evaluate": "training"}

__all__ = ["COMMANDS", "PRESETS", "Config", "build", "evaluate", "example_inputs", "train"]


def __getattr__(name: str) -> Any:
    """Import what needs torch on its first use. No submodule may have one of these names."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)

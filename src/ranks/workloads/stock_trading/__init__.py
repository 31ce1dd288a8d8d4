"""stock-trading: PPO trades a portfolio with costs and is tested on days that it never saw."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ranks.workloads.stock_trading.config import PRESETS, Config

if TYPE_CHECKING:
    from ranks.workloads.stock_trading.tables.table import table
    from ranks.workloads.stock_trading.training import build, evaluate, train

SHAPE = "on-policy"
COMMANDS: dict[str, str] = {
    "backtest": "ranks.workloads.stock_trading.reports.backtest:backtest",
    "report": "ranks.workloads.stock_trading.reports.report:report",
    "walk-forward": "ranks.workloads.stock_trading.reports.walk_forward:walk_forward",
}
_MODULES = {"build": "training", "train": "training", "evaluate": "training", "table": "tables.table"}

__all__ = ["COMMANDS", "PRESETS", "SHAPE", "Config", "build", "evaluate", "table", "train"]


def __getattr__(name: str) -> Any:
    """Import what needs torch on first use. No submodule may have one of these names."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)

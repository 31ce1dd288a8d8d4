"""The workloads: found by name in one table, or by the path of a user's own file."""

from __future__ import annotations

import difflib
import sys
from dataclasses import MISSING, fields, is_dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType

from ranks.engine.user_file import load_file
from ranks.errors import UserError

WORKLOADS: dict[str, str] = {
    "chess-spiking": "ranks.workloads.chess_spiking",
    "chess-value": "ranks.workloads.chess_value",
    "graph-coloring": "ranks.workloads.graph_coloring",
    "stock-trading": "ranks.workloads.stock_trading",
    "video-behavior": "ranks.workloads.video_behavior",
}
CONTRACT = ("Config", "build", "train", "evaluate")
"""What every workload defines."""


def load(name_or_path: str) -> ModuleType:
    """The workload's module. Raises UserError with the nearest name, or with what the file
    lacks."""
    if name_or_path in WORKLOADS:
        return import_module(WORKLOADS[name_or_path])
    if is_path(name_or_path):
        return load_workload_file(Path(name_or_path), f"the workload in {name_or_path}")
    own_file = [f"./{name_or_path}.py"] if Path(f"{name_or_path}.py").is_file() else []
    close = own_file or difflib.get_close_matches(name_or_path, WORKLOADS, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]}? " if close else ""
    listed = ", ".join(WORKLOADS)
    raise UserError(
        f"the workload '{name_or_path}'",
        "there is no workload of that name",
        f"{hint}there is {listed}; your own file is given by its path, ./FILE.py",
    )


def is_path(name_or_path: str) -> bool:
    """Whether a workload is given by the path of its file."""
    return name_or_path.endswith(".py") or "/" in name_or_path


def load_workload_file(path: Path, asked: str) -> ModuleType:
    """A user's file as a workload. Raises UserError with what it lacks."""
    module = load_file(path, asked)
    missing = [part for part in CONTRACT if not hasattr(module, part)]
    try:
        if missing:
            raise UserError(asked, f"it does not define {', '.join(missing)}", "see a whole one with `ranks new NAME`")
        check_config(module.Config, asked)
    except UserError:
        del sys.modules[module.__name__]
        raise
    return module


def check_config(config: object, asked: str) -> None:
    """Raises UserError where a workload's Config is not a frozen dataclass with a default for every
    field."""
    if not isinstance(config, type) or not is_dataclass(config):
        raise UserError(asked, "Config is not a dataclass", "write @dataclass(frozen=True) above class Config")
    if not config.__dataclass_params__.frozen:  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
        found = "Config is not frozen, and the settings of a run must not change while it trains"
        raise UserError(asked, found, "write @dataclass(frozen=True) above class Config")
    without = [f.name for f in fields(config) if f.init and f.default is MISSING and f.default_factory is MISSING]
    if without:
        do = f"give each a default, such as {without[0]}: int = 1; every field is a flag"
        raise UserError(asked, f"Config has fields without a default: {', '.join(without)}", do)

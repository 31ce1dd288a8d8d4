"""The workloads: found by name in one table, or by the path of a user's own file."""

from __future__ import annotations

import difflib
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

from ranks.engine.user_file import load_file
from ranks.errors import UserError

WORKLOADS: dict[str, str] = {
    "graph-coloring": "ranks.workloads.graph_coloring",
    "stock-trading": "ranks.workloads.stock_trading",
}


def load(name_or_path: str) -> ModuleType:
    """The workload's module. Raises UserError with the nearest name, or saying what the file lacks."""
    if name_or_path in WORKLOADS:
        return import_module(WORKLOADS[name_or_path])
    if name_or_path.endswith(".py") or "/" in name_or_path:
        return _load_file(Path(name_or_path))
    own = [f"./{name_or_path}.py"] if Path(f"{name_or_path}.py").is_file() else []
    close = own or difflib.get_close_matches(name_or_path, WORKLOADS, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]}? " if close else ""
    listed = ", ".join(WORKLOADS)
    raise UserError(
        f"the workload '{name_or_path}'",
        "there is none of that name",
        f"{hint}there is {listed}; your own file is given by its path, ./FILE.py",
    )


def _load_file(path: Path) -> ModuleType:
    asked = f"the workload in {path}"
    module = load_file(path, asked)
    missing = [part for part in ("Config", "build", "train", "evaluate") if not hasattr(module, part)]
    if missing:
        del sys.modules[module.__name__]
        raise UserError(asked, f"it does not define {', '.join(missing)}", "see a whole one with `ranks new NAME`")
    return module

"""graph-coloring: a recurrent network that colours graphs, trained without reference colourings."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ranks.workloads.graph_coloring.config import PRESETS, Config

if TYPE_CHECKING:
    from ranks.workloads.graph_coloring.net.onnx_export import example_inputs, export_onnx
    from ranks.workloads.graph_coloring.solving.many import solve_many
    from ranks.workloads.graph_coloring.solving.networkx_solve import solve
    from ranks.workloads.graph_coloring.tables.table import table
    from ranks.workloads.graph_coloring.training import build, train
    from ranks.workloads.graph_coloring.validation import evaluate

COMMANDS: dict[str, str] = {
    "solve": "ranks.workloads.graph_coloring.solving.solve:solve",
    "bench": "ranks.workloads.graph_coloring.solving.bench.command:bench",
}

_HOME = {
    "build": "training",
    "train": "training",
    "evaluate": "validation",
    "solve": "solving.networkx_solve",
    "solve_many": "solving.many",
    "table": "tables.table",
    "example_inputs": "net.onnx_export",
    "export_onnx": "net.onnx_export",
}

__all__ = [
    "COMMANDS",
    "PRESETS",
    "Config",
    "build",
    "evaluate",
    "example_inputs",
    "export_onnx",
    "solve",
    "solve_many",
    "table",
    "train",
]


def __getattr__(name: str) -> Any:
    """Import what needs torch on its first use. No submodule may have one of these names."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)

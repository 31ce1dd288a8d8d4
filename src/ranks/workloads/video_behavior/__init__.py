"""video-behavior: a 3-D convolutional network that names what an animal does, frame by frame."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ranks.workloads.video_behavior.config import PRESETS, Config

if TYPE_CHECKING:
    from ranks.workloads.video_behavior.net.examples import example_inputs
    from ranks.workloads.video_behavior.tables.table import table
    from ranks.workloads.video_behavior.training import build, train
    from ranks.workloads.video_behavior.validation import evaluate

COMMANDS: dict[str, str] = {
    "dataset": "ranks.workloads.video_behavior.study.dataset_command:dataset",
    "cache": "ranks.workloads.video_behavior.video.store.command:cache",
    "render": "ranks.workloads.video_behavior.renderer.command:render",
    "predict": "ranks.workloads.video_behavior.prediction.command:predict",
    "report": "ranks.workloads.video_behavior.report.command:report",
    "agree": "ranks.workloads.video_behavior.metrics.agree_command:agree",
}

_HOME = {
    "build": "training",
    "train": "training",
    "evaluate": "validation",
    "table": "tables.table",
    "example_inputs": "net.examples",
}

__all__ = [
    "COMMANDS",
    "PRESETS",
    "Config",
    "build",
    "evaluate",
    "example_inputs",
    "table",
    "train",
]


def __getattr__(name: str) -> Any:
    """Import what needs torch on its first use. No submodule may have one of these names."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)

"""Train a model on every GPU you have.

The names below are imported when they are first used, so that `import ranks` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    from ranks.data.stream import Stream as Stream
    from ranks.data.stream import stream as stream
    from ranks.engine.config import OptimConfig as OptimConfig
    from ranks.engine.config import RunConfig as RunConfig
    from ranks.engine.config import at_least as at_least
    from ranks.engine.config import free as free
    from ranks.engine.distributed.world import World as World
    from ranks.engine.runs.kept.kept_file import KeptFile as KeptFile
    from ranks.engine.runs.kept.kept_files import KeptFiles as KeptFiles
    from ranks.engine.runs.run import Run as Run
    from ranks.engine.runs.summary import Summary as Summary
    from ranks.engine.sharding import rng as rng
    from ranks.engine.sharding.batch import ShardItems as ShardItems
    from ranks.engine.sharding.batch import StepBatch as StepBatch
    from ranks.engine.update.evaluate import eval_mode as eval_mode
    from ranks.engine.update.evaluate import evaluate_by_shard as evaluate_by_shard
    from ranks.engine.update.learner import Learner as Learner
    from ranks.engine.update.loss import Loss as Loss
    from ranks.errors import GaveUp as GaveUp
    from ranks.errors import Stopped as Stopped
    from ranks.errors import UserError as UserError

HOMES = {
    "ranks.engine.sharding.batch": ("ShardItems", "StepBatch"),
    "ranks.engine.config": ("OptimConfig", "RunConfig", "at_least", "free"),
    "ranks.errors": ("GaveUp", "Stopped", "UserError"),
    "ranks.engine.update.evaluate": ("eval_mode", "evaluate_by_shard"),
    "ranks.engine.update.learner": ("Learner",),
    "ranks.engine.update.loss": ("Loss",),
    "ranks.engine.runs.kept.kept_file": ("KeptFile",),
    "ranks.engine.runs.kept.kept_files": ("KeptFiles",),
    "ranks.engine.runs.run": ("Run",),
    "ranks.engine.runs.summary": ("Summary",),
    "ranks.engine.distributed.world": ("World",),
    "ranks.data.stream": ("Stream", "stream"),
}
PUBLIC = {name: home for home, names in HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name == "rng":
        return import_module("ranks.engine.sharding.rng")
    if name not in PUBLIC:
        raise AttributeError(f"module 'ranks' has no attribute {name!r}")
    return getattr(import_module(PUBLIC[name]), name)


def __dir__() -> list[str]:
    return [*PUBLIC, "rng", "__version__"]

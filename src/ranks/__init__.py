"""Train a model on every GPU you have.

The names below are imported when they are first used, so that `import ranks` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from ranks.engine import draws as draws
    from ranks.engine.batch import ShardItems as ShardItems
    from ranks.engine.batch import StepBatch as StepBatch
    from ranks.engine.config import OptimConfig as OptimConfig
    from ranks.engine.config import RunConfig as RunConfig
    from ranks.engine.config import at_least as at_least
    from ranks.engine.config import free as free
    from ranks.engine.evaluate import acting as acting
    from ranks.engine.evaluate import evaluate_by_shard as evaluate_by_shard
    from ranks.engine.learner import Learner as Learner
    from ranks.engine.loss import Loss as Loss
    from ranks.engine.run import Run as Run
    from ranks.engine.run import Summary as Summary
    from ranks.engine.world import World as World
    from ranks.errors import GaveUp as GaveUp
    from ranks.errors import Stopped as Stopped
    from ranks.errors import UserError as UserError
    from ranks.experience.dataset import Stream as Stream
    from ranks.experience.dataset import stream as stream

HOMES = {
    "ranks.engine.batch": ("ShardItems", "StepBatch"),
    "ranks.engine.config": ("OptimConfig", "RunConfig", "at_least", "free"),
    "ranks.errors": ("GaveUp", "Stopped", "UserError"),
    "ranks.engine.evaluate": ("acting", "evaluate_by_shard"),
    "ranks.engine.learner": ("Learner",),
    "ranks.engine.loss": ("Loss",),
    "ranks.engine.run": ("Run", "Summary"),
    "ranks.engine.world": ("World",),
    "ranks.experience.dataset": ("Stream", "stream"),
}
PUBLIC = {name: home for home, names in HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name == "draws":
        return import_module("ranks.engine.draws")
    if name not in PUBLIC:
        raise AttributeError(f"module 'ranks' has no attribute {name!r}")
    return getattr(import_module(PUBLIC[name]), name)


def __dir__() -> list[str]:
    return [*PUBLIC, "draws", "__version__"]

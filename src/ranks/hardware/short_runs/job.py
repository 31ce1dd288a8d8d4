"""A workload with its settings, changed such that a run is short: no evaluations, no saves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from ranks.engine.config import RunConfig
from ranks.engine.distributed.world import World
from ranks.errors import UserError

ENDLESS = 1_000_000
"""Iterations of a run that the clock ends."""
NAME = "short"
"""Of the run, in its folder."""


@dataclass(frozen=True)
class Job:
    """A run, as its settings say."""

    workload: str
    train: Callable[[Any, World], Any]
    config: Any
    engine: RunConfig

    def shortened(
        self, folder: Path, max_time: str | None, iterations: int = ENDLESS, eval_every: int = ENDLESS
    ) -> Job:
        """The same with its run in `folder`, without saves by the clock, and with evaluations every so many iterations
        where Config has `eval_every`. Raises UserError where Config has no `iterations`."""
        names = {f.name for f in fields(self.config)}
        if "iterations" not in names:
            asked = f"a short run of {self.workload}"
            raise UserError(asked, "its Config has no field `iterations`", "name the number of iterations so")
        changes = {"iterations": iterations} | ({"eval_every": eval_every} if "eval_every" in names else {})
        engine = replace(self.engine, runs_dir=folder, name=NAME, save_every=str(ENDLESS), max_time=max_time)
        return replace(self, config=replace(self.config, **changes), engine=engine)

"""A small run of the images toy, which a test can crash."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ranks import Run, RunConfig, World
from ranks.engine.files.jsonl import read_rows
from tests.toys import images

CONFIG = images.Config(iterations=12, eval_every=4, num_images=48)


class Crash(Exception):
    """Simulates a process that ends between two iterations."""


def small_runs(tmp_path: Path) -> RunConfig:
    return RunConfig(name="r", runs_dir=tmp_path / "runs", threads=1, shards=8, save_every="3")


def train(config: RunConfig, cfg: images.Config = CONFIG, crash_at: int | None = None) -> images.Summary:
    world = World.join(config, workload="images")
    original = Run.every

    def every(self: Run, num_iterations: int) -> bool:
        if self.iteration == crash_at:
            raise Crash
        return original(self, num_iterations)

    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Run, "every", every)
            return images.train(cfg, world)
    finally:
        world.leave()


def rows(config: RunConfig) -> list[dict[str, Any]]:
    return read_rows(config.runs_dir / "r" / "metrics.jsonl")

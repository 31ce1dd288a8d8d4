"""Many trainings, as many at a time as there are cores, each in a process of its own with one thread."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from ranks.engine.config import RunConfig
from ranks.engine.environment import available_cores
from ranks.workloads.stock_trading.config import Config


@dataclass(frozen=True)
class Training:
    """A run to be made: its name under the runs' folder, its settings and its seed."""

    name: str
    cfg: Config
    seed: int


def train_all(trainings: Sequence[Training], runs_dir: Path, workers: int | None = None) -> Iterator[Training]:
    """Each training once its run has finished, in the order in which they finish. A run that is there already and has
    finished is taken as it is, one that was cut off goes on. Raises what a training raised."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers or available_cores(), mp_context=spawn) as pool:
        running: dict[Future[None], Training] = {pool.submit(_train, one, runs_dir): one for one in trainings}
        for done in as_completed(running):
            done.result()
            yield running[done]


def _train(one: Training, runs_dir: Path) -> None:
    from ranks.engine.world import World
    from ranks.workloads.stock_trading.training import train

    config = RunConfig(seed=one.seed, name=one.name, runs_dir=runs_dir, threads=1, save_every="1h")
    world = World.join(config, device="cpu", workload="stock-trading")
    try:
        train(one.cfg, world)
    finally:
        world.leave()

"""Train several runs in parallel, each in its own process with job thread."""

from __future__ import annotations

import itertools
import multiprocessing
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from ranks.engine.config import RunConfig
from ranks.engine.distributed.process_env import available_cores
from ranks.errors import GaveUp, Stopped, UserError
from ranks.workloads.stock_trading.config import Config


@dataclass(frozen=True)
class TrainingJob:
    """A run to train: its name in the runs folder, its config and its seed."""

    name: str
    cfg: Config
    seed: int


def train_many(jobs: Sequence[TrainingJob], runs_dir: Path, workers: int | None = None) -> Iterator[TrainingJob]:
    """Train all jobs, `workers` at a time (default: one per core), and yield each when its run has finished.

    Runs that exist already are not trained again if they have finished, and resume if not. Raises the error of a job
    that fails, or GaveUp if its process died. After an error, or if the caller stops iterating, the running jobs save a
    checkpoint and stop.
    """
    spawn, most = multiprocessing.get_context("spawn"), workers or available_cores()
    waiting, finished = iter(jobs), list[TrainingJob]()
    running: dict[Connection, tuple[TrainingJob, BaseProcess]] = {}
    try:
        while True:
            for job in itertools.islice(waiting, most - len(running)):
                receiver, sender = spawn.Pipe(duplex=False)
                process = spawn.Process(target=_train, args=(job, runs_dir, sender))
                process.start()
                sender.close()
                running[receiver] = job, process
            yield from finished
            if not running:
                return
            finished = []
            for receiver in wait(list(running)):
                assert isinstance(receiver, Connection)
                job, process = running[receiver]
                _receive(receiver, job)
                process.join()
                finished.append(job)
                del running[receiver]
    finally:
        for _, process in running.values():
            process.terminate()
        for _, process in running.values():
            process.join()


def _receive(receiver: Connection, job: TrainingJob) -> None:
    """Wait for the result of a job. Raises its error."""
    try:
        error = receiver.recv()
    except EOFError:
        raise GaveUp(
            f"the process of run {job.name} died; the other runs have saved a checkpoint and stopped"
        ) from None
    if error is not None:
        raise error


def _train(job: TrainingJob, runs_dir: Path, sender: Connection) -> None:
    from ranks.engine.distributed.world import World
    from ranks.workloads.stock_trading.training import train

    config = RunConfig(seed=job.seed, name=job.name, runs_dir=runs_dir, threads=1, save_every="1h")
    world = World.join(config, device="cpu", workload="stock-trading")
    try:
        train(job.cfg, world)
        sender.send(None)
    except (UserError, GaveUp, Stopped) as error:
        sender.send(error)
    finally:
        world.leave()

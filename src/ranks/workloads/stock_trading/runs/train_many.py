"""Train several runs in parallel, in worker processes with one thread each."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from ranks.engine.config import RunConfig
from ranks.engine.distributed.rendezvous.process_env import available_cores
from ranks.errors import GaveUp, Stopped, UserError
from ranks.workloads.stock_trading.config import Config


@dataclass(frozen=True)
class TrainingJob:
    """A run to train: its name in the runs folder, its config and its seed."""

    name: str
    cfg: Config
    seed: int


def train_many(jobs: Sequence[TrainingJob], runs_dir: Path, workers: int | None = None) -> Iterator[TrainingJob]:
    """Train all jobs in `workers` processes (default: one per core), and yield each when its run has finished.

    Runs that exist already are not trained again if they have finished, and resume if not. Raises the error of a job
    that fails, or GaveUp if its process died. After an error, or if the caller stops iterating, the running jobs save a
    checkpoint and stop.
    """
    context, num = multiprocessing.get_context("forkserver"), min(len(jobs), workers or available_cores())
    context.set_forkserver_preload(["ranks.workloads.stock_trading.training"])  # torch is imported once, not by each
    waiting, finished, idle = iter(jobs), list[TrainingJob](), list[Connection]()
    processes: dict[Connection, BaseProcess] = {}
    running: dict[Connection, TrainingJob] = {}
    try:
        for _ in range(num):
            connection, other_end = context.Pipe()
            processes[connection] = context.Process(target=_work, args=(runs_dir, other_end))
            processes[connection].start()
            other_end.close()
            idle.append(connection)
        while True:
            for connection, job in zip(idle, waiting, strict=False):
                connection.send(job)
                running[connection] = job
            yield from finished  # while the workers train
            if not running:
                return
            finished, idle = [], []
            for connection in wait(list(running)):
                assert isinstance(connection, Connection)
                job = running[connection]
                _receive(connection, job)
                del running[connection]
                finished.append(job)
                idle.append(connection)
    finally:
        for connection, process in processes.items():
            if connection in running:
                process.terminate()
            else:
                connection.close()
        for process in processes.values():
            process.join()


def _receive(connection: Connection, job: TrainingJob) -> None:
    """Wait for the result of a job. Raises its error."""
    try:
        error = connection.recv()
    except EOFError:
        raise GaveUp(f"the process of run {job.name} died; the other runs saved a checkpoint and stopped") from None
    if error is not None:
        raise error


def _work(runs_dir: Path, connection: Connection) -> None:
    """A worker process: train the jobs that arrive, until one fails or the connection closes."""
    from ranks.engine.distributed.world import World
    from ranks.workloads.stock_trading.training import train

    while True:
        try:
            job: TrainingJob = connection.recv()
        except EOFError:
            return
        config = RunConfig(seed=job.seed, name=job.name, runs_dir=runs_dir, threads=1, save_every="1h")
        world = World.join(config, device="cpu", workload="stock-trading")
        try:
            train(job.cfg, world)
        except (UserError, GaveUp, Stopped) as error:
            connection.send(error)
            return
        finally:
            world.leave()
        connection.send(None)

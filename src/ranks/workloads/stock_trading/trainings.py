"""Many trainings, as many at a time as there are cores, each in a process of its own with one thread."""

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
class Training:
    """A run to be made: its name under the runs' folder, its settings and its seed."""

    name: str
    cfg: Config
    seed: int


def train_all(trainings: Sequence[Training], runs_dir: Path, workers: int | None = None) -> Iterator[Training]:
    """Each training once its run has finished, in the order in which they finish. A run that is there already and has
    finished is taken as it is, one that was cut off goes on.

    Raises what ended a training, GaveUp where it was killed or failed otherwise. Then, and where the caller goes no
    further, those under way save and stop.
    """
    spawn, most = multiprocessing.get_context("spawn"), workers or available_cores()
    waiting, finished = iter(trainings), list[Training]()
    running: dict[Connection, tuple[Training, BaseProcess]] = {}
    try:
        while True:
            for one in itertools.islice(waiting, most - len(running)):
                receiver, sender = spawn.Pipe(duplex=False)
                process = spawn.Process(target=_train, args=(one, runs_dir, sender))
                process.start()
                sender.close()
                running[receiver] = one, process
            yield from finished
            if not running:
                return
            finished = []
            for receiver in wait(list(running)):
                assert isinstance(receiver, Connection)
                one, process = running[receiver]
                _read(receiver, one)
                process.join()
                finished.append(one)
                del running[receiver]
    finally:
        for _, process in running.values():
            process.terminate()
        for _, process in running.values():
            process.join()


def _read(receiver: Connection, one: Training) -> None:
    """What a training's process said last."""
    try:
        error = receiver.recv()
    except EOFError:
        raise GaveUp(f"the training {one.name} was killed, or failed; the others have saved and stopped") from None
    if error is not None:
        raise error


def _train(one: Training, runs_dir: Path, sender: Connection) -> None:
    from ranks.engine.distributed.world import World
    from ranks.workloads.stock_trading.training import train

    config = RunConfig(seed=one.seed, name=one.name, runs_dir=runs_dir, threads=1, save_every="1h")
    world = World.join(config, device="cpu", workload="stock-trading")
    try:
        train(one.cfg, world)
        sender.send(None)
    except (UserError, GaveUp, Stopped) as error:
        sender.send(error)
    finally:
        world.leave()

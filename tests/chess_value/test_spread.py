"""Tasks that the ranks share: each result once and in order."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from ranks import RunConfig, World
from ranks.engine.distributed.comm import Comm
from ranks.engine.distributed.process_env import ProcessEnv
from ranks.hardware.forecast.echo_comm import EchoComm
from ranks.workloads.chess_value.games.spread import spread


class Squares:
    """A worker."""

    def run(self, task: int, stopping: Callable[[], bool]) -> int:
        return task * task

    def close(self) -> None:
        pass


def of(comm: Comm, count: int) -> list[int]:
    world = World(RunConfig(), ProcessEnv("alone"), torch.device("cpu"), comm, "test")
    world.stop.install()
    try:
        return spread("squares", count, Squares, world, threads=2)
    finally:
        world.leave()


@pytest.mark.parametrize("count", [0, 7, 33])
def test_a_forecast_of_several_ranks_has_a_result_of_each_task(count: int) -> None:
    """The other ranks do not exist, and give what the first one gives."""
    assert of(Comm(0, 1, staged=False), count) == [task * task for task in range(count)]
    for ranks in (2, 3):
        assert len(of(EchoComm(ranks), count)) == count

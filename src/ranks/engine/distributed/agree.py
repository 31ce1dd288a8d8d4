"""What one rank does and all ranks learn: results, errors, and files that every host must see."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, cast

from ranks.engine.distributed.world import World
from ranks.errors import UserError

T = TypeVar("T")
SEEN_S = 15.0
"""How long a host may take to see what another host has written."""


def on_first_rank(world: World, act: Callable[[], T]) -> T:
    """What `act` returns on the first rank, on every rank; a UserError is raised on all ranks."""
    outcome: tuple[T | None, UserError | None] = (None, None)
    if world.rank == 0:
        try:
            outcome = (act(), None)
        except UserError as error:
            outcome = (None, error)
    result, problem = world.comm.gather_objects(outcome)[0]
    if problem is not None:
        raise problem
    return cast(T, result)


def on_every_rank(world: World, act: Callable[[], T]) -> T:
    """What `act` returns on this rank; a UserError of any rank is raised on all ranks."""
    result: T | None = None
    problem: UserError | None = None
    try:
        result = act()
    except UserError as error:
        problem = error
    for found in world.comm.gather_objects(problem):
        if found is not None:
            raise found
    return cast(T, result)


def check_shared(world: World, run: Path, sees: Callable[[], bool]) -> None:
    """Raises UserError, on all ranks, where a host does not see what the first rank has written in the
    folder `run`. `sees`: whether this rank sees it.

    A network file system may show a new file late, so a rank looks for a few seconds.
    """
    if world.process_env.one_host:
        return
    deadline = time.monotonic() + SEEN_S
    while not (seen := sees()) and time.monotonic() < deadline:
        time.sleep(0.2)
    hosts = world.comm.gather_objects((world.rank, socket.gethostname(), seen))
    blind = ", ".join(f"rank {rank} on {host}" for rank, host, saw in hosts if not saw)
    if blind:
        raise UserError(
            f"to train on several hosts in {run}",
            f"not the folder that rank 0 on {hosts[0][1]} sees: {blind}",
            "give a folder that all hosts share with --runs-dir",
        )

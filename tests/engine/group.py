"""Real ranks for tests: processes that join over gloo, run one function, and return what it
returns."""

from __future__ import annotations

import multiprocessing
import os
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ranks import RunConfig, World

FORKED = multiprocessing.get_context("forkserver")
PRELOADED = ["pytest", "ranks.workloads.chess_spiking.training", "ranks.workloads.chess_value.training"]
FORKED.set_forkserver_preload(PRELOADED)  # torch, numba and the kernels are loaded once, not by each rank


def join(config: RunConfig) -> World:
    return World.join(config, workload="test")


def another_world(world: World, config: RunConfig) -> World:
    """Another world over the same process group."""
    return World(config, world.process_env, world.device, world.comm, "test")


def _rank(
    function: Callable[..., Any], config: RunConfig, rank: int, size: int, store: str, pipe: Any, args: Any
) -> None:
    os.environ.update(
        RANK=str(rank), WORLD_SIZE=str(size), LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE=str(size), OMP_NUM_THREADS="1"
    )
    if size > 1:
        os.environ["RANKS_STORE"] = store
    try:
        world = join(replace(config, threads=1))
        pipe.send((True, function(world, *args)))
        world.leave()
    except BaseException:
        pipe.send((False, traceback.format_exc()))
        raise


def run_ranks(size: int, function: Callable[..., Any], *args: Any, config: RunConfig, tmp_path: Path) -> list[Any]:
    """`function(world, *args)` on every rank, at the same time; its results in rank order."""
    store = tmp_path / f"store-{size}-{len(list(tmp_path.iterdir()))}"
    processes, pipes = [], []
    for rank in range(size):
        mine, theirs = FORKED.Pipe(duplex=False)
        process = FORKED.Process(target=_rank, args=(function, config, rank, size, str(store), theirs, args))
        process.start()
        theirs.close()
        processes.append(process)
        pipes.append(mine)
    outcomes = []
    for pipe in pipes:
        try:
            outcomes.append(pipe.recv())
        except EOFError:
            outcomes.append((False, "the process ended without a word"))
    for process in processes:
        process.join(60)
    failures = [text for ok, text in outcomes if not ok]
    assert not failures, failures[0]
    return [value for _, value in outcomes]

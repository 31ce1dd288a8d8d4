"""The ranks of a run, as one of them sees it: who carries what, and what all agree on."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from ranks.engine.config import RunConfig
from ranks.engine.distributed import precision
from ranks.engine.distributed.comm import Comm
from ranks.engine.distributed.process_env import Environment, available_cores
from ranks.engine.distributed.stop_signal import StopSignal
from ranks.engine.sharding.assignment import ShardAssignment, shard_items
from ranks.engine.update.vote import NONE, Flags
from ranks.errors import Stopped, UserError


class World:
    """This rank, its device, the shards it carries, and the agreed decisions. Made by `World.join`."""

    def __init__(
        self, config: RunConfig, environment: Environment, device: torch.device, comm: Comm, workload: str
    ) -> None:
        self.config = config.resolved()
        self.environment = environment
        self.rank, self.size, self.device, self.comm = comm.rank, comm.size, device, comm
        self.assignment = ShardAssignment.make(self.config.num_shards, self.size, self.config.shares)
        if self.exact and any(len(self.assignment.shards_of(r)) == 0 for r in range(self.size)):
            raise UserError(
                f"--exact with shares {self.config.shares}",
                "a rank without shards",
                "give each rank one shard at least",
            )
        self.stop = StopSignal()
        self.interruptible = False
        self.decided = Flags()
        self.clock_requests: Callable[[], tuple[bool, bool]] = lambda: (False, False)
        self.drains: list[Callable[[], None]] = []
        self.spent: dict[str, float] = defaultdict(float)
        """Seconds of this iteration by phase; each row of metrics has its own."""
        self.workload = workload
        self.joined_at = time.time()
        self.emit: Callable[[dict[str, Any]], None] = lambda event: None

    @classmethod
    def join(cls, config: RunConfig | None = None, *, device: str | None = None, workload: str | None = None) -> World:
        """Join the ranks that our launcher, torchrun or Slurm started; alone, a world of one. Raises UserError.

        `workload`: its name, or the path of its file; the program's own name without it.
        """
        config = config or RunConfig()
        environment = Environment.detect(config.runs_dir)
        chosen = torch.device(device or environment.device or _default_device(environment.local_rank))
        threads = config.resolved().threads or int(os.environ.get("OMP_NUM_THREADS") or available_cores())
        precision.set_up(config, chosen, threads)
        torch.manual_seed(config.seed)
        if environment.world_size > 1 and not dist.is_initialized():
            _init_process_group(environment, chosen)
        comm = Comm(environment.rank, environment.world_size, staged=False)
        if chosen.type == "cuda":
            card = str(getattr(torch.cuda.get_device_properties(chosen), "uuid", chosen))
            places = comm.gather_objects((socket.gethostname(), card))
            comm.staged = len(set(places)) < len(places)
        world = cls(config, environment, chosen, comm, workload or Path(sys.argv[0]).stem)
        world.stop.install()
        return world

    def leave(self) -> None:
        """Give signals back and end the process group."""
        self.stop.uninstall()
        if dist.is_initialized():
            dist.destroy_process_group()

    @property
    def seed(self) -> int:
        return self.config.seed

    @property
    def exact(self) -> bool:
        return self.config.exact

    @property
    def shards(self) -> int:
        return self.assignment.num_shards

    def items(self, count: int) -> range:
        """The ids of `count` items that this rank carries."""
        return self.assignment.items_of(self.rank, count)

    def shard_items(self, count: int) -> list[tuple[int, range]]:
        """(shard, item ids) for each shard that this rank carries."""
        return [(s, shard_items(s, count, self.shards)) for s in self.assignment.shards_of(self.rank)]

    def gather_rows(self, rows: Tensor, count: int) -> Tensor:
        """This rank's rows [n, ...] (one for each of `items(count)`) -> all rows [count, ...] in id order."""
        if self.size == 1:
            return rows
        sizes = [len(self.assignment.items_of(r, count)) for r in range(self.size)]
        padded = rows.new_zeros((max(sizes), *rows.shape[1:]))
        padded[: len(rows)] = rows
        return torch.cat([part[:n] for part, n in zip(self.comm.gather_equal(padded), sizes, strict=True)])

    def requests(self) -> Flags:
        """What this rank asks of all ranks now: to stop (a signal it got), to save or end (the first rank's clock)."""
        save, time_up = self.clock_requests() if self.rank == 0 else (False, False)
        return Flags(term=self.stop.received == 15, int=self.stop.received == 2, save=save, time_up=time_up)

    def decide(self, flags: Flags) -> None:
        """Take in an agreed vote; a decision stays until it is acted on."""
        old = self.decided
        if flags != NONE or old != NONE:
            self.decided = Flags(
                old.term or flags.term, old.int or flags.int, old.save or flags.save, old.time_up or flags.time_up
            )

    @property
    def stop_signal(self) -> int:
        """The signal that all ranks agreed to stop for, or 0."""
        return 15 if self.decided.term else 2 if self.decided.int else 0

    def poll(self) -> None:
        """Agree on requests now, by a small collective; every rank must call it at the same place."""
        numbers = self.comm.sum_host(self.requests().numbers())
        self.decide(Flags(*(n > 0 for n in numbers)))

    def check_stop(self) -> None:
        """For long phases (eval_mode, playing, a long evaluation): every rank calls it at the same place.

        Raises Stopped inside a long iteration, whose start is then saved; elsewhere an iteration is finished first.
        """
        if self.interruptible:
            self.poll()
            if self.stop_signal:
                raise Stopped(self.stop_signal)

    def any(self, flag: bool) -> bool:
        """Whether any rank says so; every rank must call it at the same place."""
        return self.comm.sum_host([float(flag)])[0] > 0

    def drain(self) -> None:
        """Read every vote that is still under way."""
        for drain in self.drains:
            drain()

    def saved(self) -> None:
        """The request to save has been met."""
        self.decided = replace(self.decided, save=False)


def _default_device(local_rank: int) -> str:
    return f"cuda:{local_rank % torch.cuda.device_count()}" if torch.cuda.is_available() else "cpu"


def _init_process_group(environment: Environment, device: torch.device) -> None:
    if environment.kind in ("ranks", "slurm"):
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo" if os.uname().sysname == "Linux" else "lo0")
    backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
    if environment.store is None:
        dist.init_process_group(backend)
        return
    environment.store.parent.mkdir(parents=True, exist_ok=True)
    store = dist.FileStore(str(environment.store), environment.world_size)
    dist.init_process_group(backend, store=store, rank=environment.rank, world_size=environment.world_size)

"""The ranks of a run as one rank sees them: its device, its shards, and what all ranks have agreed
on."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor

from ranks.engine.config import RunConfig
from ranks.engine.distributed import precision
from ranks.engine.distributed.comm import Comm
from ranks.engine.distributed.malloc import keep_freed_memory
from ranks.engine.distributed.rendezvous.process_env import ProcessEnv, default_threads
from ranks.engine.distributed.rendezvous.rendezvous import store_of
from ranks.engine.distributed.requests import NOTHING, Requests
from ranks.engine.distributed.session import Session
from ranks.engine.distributed.stop_signal import StopSignal
from ranks.engine.liveness.beats import Collective
from ranks.engine.liveness.heartbeat import heartbeat
from ranks.engine.liveness.phases import MOST, Phase
from ranks.engine.sharding.assignment import ShardAssignment, shard_items
from ranks.errors import Stopped, UserError

WATCHED_TIMEOUT_S = 24 * 3600.0
"""Time limit of a collective where our launcher watches the ranks: it ends a hang much earlier, and knows the phase.
Also where `--hang-timeout none` asks for no limit."""


class World:
    """This rank, its device, the shards it carries, and the agreed requests. Made by `World.join`.

    `session`: what the open run shares with learners and long phases; detached while no run is
    open.
    """

    def __init__(
        self, config: RunConfig, process_env: ProcessEnv, device: torch.device, comm: Comm, workload: str
    ) -> None:
        self.config = config.resolved()
        self.process_env = process_env
        self.rank, self.size, self.device, self.comm = comm.rank, comm.size, device, comm
        self.assignment = ShardAssignment.make(self.config.num_shards, self.size, self.config.shares)
        if self.exact and any(len(self.assignment.shards_of(r)) == 0 for r in range(self.size)):
            raise UserError(
                f"--exact with shares {self.config.shares}",
                "a rank without shards",
                "give each rank at least one shard",
            )
        self.session = Session()
        self.stop = StopSignal(
            lambda: self.session.attached,
            unsupervised=self.size == 1 and not heartbeat.watched,
            grace_s=self.config.stop_grace_s,
            saved=lambda: self.session.saved(),
        )
        self.decided = NOTHING
        self.workload = workload
        self.price: float | None = None
        """What an hour of the machine costs, as --price says. sessions.jsonl has it. No result depends on it."""
        self.first_iteration = 0
        """Where a new run begins, if it has no long iterations: each is a function of its number, so one that is only
        measured can begin anywhere."""
        self.joined_at = time.time()
        self._at_leave: list[Callable[[], object]] = []

    @classmethod
    def join(cls, config: RunConfig | None = None, *, device: str | None = None, workload: str | None = None) -> World:
        """Join the ranks that `ranks launch`, torchrun or Slurm started; a world of one rank
        otherwise.

        `workload`: its name, or the path of its file; the program's own name by default. Raises
        UserError.
        """
        config = config or RunConfig()
        heartbeat.connect()
        process_env = ProcessEnv.detect(config.runs_dir)
        chosen = torch.device(device or process_env.device or _default_device(process_env.local_rank))
        threads = config.resolved().threads or default_threads()
        precision.set_up(config, chosen, threads)
        if chosen.type == "cpu":
            keep_freed_memory()
        torch.manual_seed(config.seed)
        if process_env.world_size > 1 and not dist.is_initialized():
            _init_process_group(process_env, chosen, config.hang_timeout_s)
        comm = Comm(process_env.rank, process_env.world_size, staged=False)
        if chosen.type == "cuda":
            card = torch.cuda.get_device_properties(chosen)
            places = comm.gather_objects((socket.gethostname(), str(card.uuid), " MIG " in card.name))
            # NCCL refuses two ranks on one GPU, and its slices (MIG) do not reach each other
            comm.staged = len(set(places)) < len(places) or any(sliced for _, _, sliced in places)
        world = cls(config, process_env, chosen, comm, workload or Path(sys.argv[0]).stem)
        world.stop.install()
        return world

    def at_leave(self, close: Callable[[], object]) -> None:
        """Call `close` when this rank leaves, for example to end its worker processes."""
        self._at_leave.append(close)

    def leave(self) -> None:
        """Call what was registered by `at_leave`, restore the signal handlers and end the process group."""
        while self._at_leave:
            self._at_leave.pop()()
        self.stop.uninstall()
        if dist.is_initialized():
            dist.destroy_process_group()
        heartbeat.enter(Phase.LEFT)

    @property
    def seed(self) -> int:
        return self.config.seed

    @property
    def run_name(self) -> str:
        """The name of the run's folder: `--name`, or that of the workload."""
        return self.config.name or Path(self.workload).stem

    @property
    def exact(self) -> bool:
        return self.config.exact

    @property
    def shards(self) -> int:
        """The number of shards of a global batch, over all ranks."""
        return self.assignment.num_shards

    def items(self, count: int) -> range:
        """The ids of `count` items that this rank carries."""
        return self.assignment.items_of(self.rank, count)

    def shard_items(self, count: int) -> list[tuple[int, range]]:
        """(shard, item ids) for each shard that this rank carries."""
        return [(s, shard_items(s, count, self.shards)) for s in self.assignment.shards_of(self.rank)]

    def gather_rows(self, rows: Tensor, count: int) -> Tensor:
        """This rank's rows [n, ...] (one for each of `items(count)`) -> all rows [count, ...] in id
        order."""
        if self.size == 1:
            return rows
        sizes = [len(self.assignment.items_of(r, count)) for r in range(self.size)]
        padded = rows.new_zeros((max(sizes), *rows.shape[1:]))
        padded[: len(rows)] = rows
        return torch.cat([part[:n] for part, n in zip(self.comm.gather_equal(padded), sizes, strict=True)])

    # Requests: a signal, a checkpoint that is due, the end of the time ------------------------------------------------

    def requests(self) -> Requests:
        """This rank's requests now: the signal it received; on the first rank also those of the
        run's clock."""
        save, time_up = self.session.clock_requests() if self.rank == 0 else (False, False)
        if not (save or time_up or self.stop.received):
            return NOTHING
        return Requests(sigterm=self.stop.received == 15, sigint=self.stop.received == 2, save=save, time_up=time_up)

    def decide(self, requests: Requests) -> None:
        """Take in the requests that all ranks agreed on; they hold until they are acted on."""
        if requests != NOTHING or self.decided != NOTHING:
            self.decided = self.decided.and_also(requests)

    @property
    def stop_signal(self) -> int:
        """The signal that all ranks agreed to stop for, or 0."""
        return self.decided.stop_signal

    def poll(self) -> None:
        """Agree on requests now, by a small collective; every rank must call it at the same
        place."""
        self.decide(Requests.of(self.comm.sum_host(self.requests().numbers())))

    def beat(self) -> None:
        """Show progress. For long work of your own (data, a custom evaluation), so that it does not
        count as a hang; it costs less than a microsecond."""
        heartbeat.beat()

    def check_stop(self) -> None:
        """For long phases (rollouts, self-play, long evaluations): every rank calls it at the same
        place.

        Raises Stopped inside a long iteration; the state at its start is then saved. Elsewhere the
        iteration is finished first.
        """
        heartbeat.beat()
        if self.session.long_iterations:
            self.poll()
            if self.stop_signal:
                raise Stopped(self.stop_signal)

    def any(self, flag: bool) -> bool:
        """Whether the flag is set on any rank; every rank must call it at the same place."""
        return self.comm.sum_host([float(flag)])[0] > 0

    def save_done(self) -> None:
        """A checkpoint was written; the request for one is met."""
        self.decided = self.decided.without_save()


def _default_device(local_rank: int) -> str:
    return f"cuda:{local_rank % torch.cuda.device_count()}" if torch.cuda.is_available() else "cpu"


def _init_process_group(process_env: ProcessEnv, device: torch.device, hang_timeout_s: float) -> None:
    """Meet the other ranks.

    The time limit of a collective is the longest that any phase allows. `device_id` binds NCCL to
    this rank's GPU, so that it connects at once and never guesses the device; ranks that share a GPU
    cannot have it.
    """
    unwatched_s = min(MOST * hang_timeout_s, WATCHED_TIMEOUT_S)
    timeout_s = WATCHED_TIMEOUT_S if heartbeat.watched else unwatched_s
    with heartbeat.collective(Collective.JOIN):
        dist.init_process_group(
            "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo",
            store=store_of(process_env),
            rank=process_env.rank,
            world_size=process_env.world_size,
            timeout=timedelta(seconds=timeout_s),
            device_id=device if device.type == "cuda" and process_env.owns_gpu else None,
        )

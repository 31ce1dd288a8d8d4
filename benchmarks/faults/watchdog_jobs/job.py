"""A workload whose passes sleep or compute for a while, and in which one rank can hang or be slow in a chosen way.

Everything else is real: the engine's learner, gloo, evaluations, saves. `ranks train ./job.py --ranks 2 --hang lock`
"""

from __future__ import annotations

import os
import random
import time
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from benchmarks.faults.watchdog_jobs.hangs import HANGS  # `measure.environment` has it on the path
from ranks import Learner, Loss, OptimConfig, Run, Summary, World, evaluate_by_shard, free, stream

STARTED, PIDS = "started", "pid"
"""Files in the run folder: when the hang began (Unix seconds); pidN: the process of rank N."""


@dataclass(frozen=True)
class Config:
    """One job. The items are shared by the ranks; a rank sleeps as long as its items take."""

    iterations: int = free(1000)
    eval_every: int = free(1_000_000)
    save_every_updates: int = free(1_000_000)
    global_batch: int = 64
    compute_ms: float = free(20.0)
    """Of a rank's passes in an update."""
    load_ms: float = free(4.0)
    evaluate_ms: float = free(200.0)
    burn: bool = free(False)
    """Compute for that long instead of sleeping."""
    jitter: float = free(0.05)
    """Standard deviation of each sleep, as a share; other sleeps on each rank."""
    at: int = free(1_000_000)
    """The iteration from which on something is wrong."""
    rank: int = free(1)
    """With this rank."""
    hang: str = free("")
    """What it waits for, a name in hangs.py."""
    slow: str = free("")
    """compute, data or network: what takes longer."""
    extra_ms: float = free(20.0)
    """By how much."""
    optim: OptimConfig = OptimConfig(lr=1e-6, clip_norm=None, schedule="constant", warmup_updates=0)


class Worker:
    """What this rank does in its passes. `iteration` is set by the loop."""

    def __init__(self, cfg: Config, world: World) -> None:
        self.cfg, self.world, self.iteration = cfg, world, 0
        self.random = random.Random(1000 * world.seed + world.rank)
        self.matrix = torch.ones(64, 64) / 64

    @property
    def wrong(self) -> bool:
        """Whether something is wrong with this rank now."""
        return self.world.rank == self.cfg.rank and self.iteration >= self.cfg.at

    def work(self, milliseconds: float, slow: str) -> None:
        """Take so long, and longer where this rank is to be slow in that."""
        extra_ms = self.cfg.extra_ms if self.wrong and self.cfg.slow == slow else 0.0
        seconds = max(0.0, (milliseconds + extra_ms) * (1 + self.cfg.jitter * self.random.gauss(0, 1))) / 1000
        if not self.cfg.burn:
            time.sleep(seconds)
            return
        end_s = time.thread_time() + seconds  # CPU time: a rank that gets less of it takes longer
        while time.thread_time() < end_s:
            self.matrix = self.matrix @ self.matrix

    def hang(self, place: str) -> None:
        """Hang for good where this is the place of the hang that was asked for."""
        if self.wrong and self.cfg.hang and HANGS[self.cfg.hang].place == place:
            folder = self.world.config.runs_dir / self.world.run_name
            if not (folder / STARTED).exists():  # a signal may end a sleep in C, and the next update hangs again
                (folder / STARTED).write_text(repr(time.time()))
            HANGS[self.cfg.hang].act(self.world)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(20_000))

    def forward(self, x_B: Tensor) -> Tensor:
        return x_B + self.weight.mean()


class Items:
    """Items that take time to load."""

    cost, sha256 = None, "sleeping items"

    def __init__(self, worker: Worker) -> None:
        self.worker = worker

    def __len__(self) -> int:
        return self.worker.cfg.global_batch

    def gather(self, ids: Tensor) -> Tensor:
        self.worker.hang("gather")
        self.worker.work(self.worker.cfg.load_ms, "data")
        return torch.ones(len(ids))


def build(cfg: Config) -> nn.Module:
    return Net()


def train(cfg: Config, world: World) -> Summary:
    worker = Worker(cfg, world)
    slow_sends(worker)
    items = stream(Items(worker), cfg.global_batch, world)

    def loss(model: nn.Module, x_B: Tensor) -> Loss:
        worker.hang("loss")
        worker.work(cfg.compute_ms, "compute")
        y_B = model(x_B)
        return Loss(y_B.sum(), len(y_B))

    learner = Learner(build(cfg), cfg.optim, world, global_batch=cfg.global_batch, updates=cfg.iterations)
    with Run.open(cfg, world, keep=dict(learner=learner), data=Items.sha256) as run:
        (run.folder.path / f"{PIDS}{world.rank}").write_text(str(os.getpid()))
        for iteration in run.iterations(cfg.iterations):
            worker.iteration = iteration
            worker.hang("loop")
            run.log(learner.step(loss, items.at(iteration)))
            if run.every(cfg.eval_every):
                run.log(evaluate(learner.model, cfg, world, worker), prefix="val")
            if (iteration + 1) % cfg.save_every_updates == 0:
                worker.hang("save")
                run.save()
    return run.finish()


def evaluate(model: nn.Module, cfg: Config, world: World, worker: Worker | None = None) -> dict[str, float]:
    mine = worker or Worker(cfg, world)

    def one(ids: Tensor) -> Loss:
        mine.hang("evaluate")
        mine.work(cfg.evaluate_ms, "evaluate")
        return Loss(torch.zeros(()), len(ids))

    return evaluate_by_shard(world, cfg.global_batch, one)


def slow_sends(worker: Worker) -> None:
    """Each all-reduce of this process starts later where the rank is to be slow in the network."""
    all_reduce = dist.all_reduce

    def slow(*arguments: Any, **options: Any) -> Any:
        if options.get("async_op"):  # the sum of gradients
            worker.work(0.0, "network")
        return all_reduce(*arguments, **options)

    dist.all_reduce = slow

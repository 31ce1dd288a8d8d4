"""A toy workload: a linear net learns from a replay window of kept files. Each iteration writes one
part; updates use the newest parts."""

# R rows of a part, B rows of a batch, F = 4 features

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ranks import KeptFile, KeptFiles, Learner, Loss, OptimConfig, Run, ShardItems, StepBatch, Summary, World, free, rng


@dataclass(frozen=True)
class Config:
    iterations: int = free(8)
    eval_every: int = free(4)
    part_rows: int = 32
    window_parts: int = 3
    updates: int = 2
    global_batch: int = 16
    optim: OptimConfig = OptimConfig(lr=0.05, schedule="constant")


class Window:
    """The newest parts. A checkpoint holds their names."""

    def __init__(self, cfg: Config, world: World) -> None:
        self.cfg, self.world = cfg, world
        self.parts = KeptFiles(world, "window")
        self.opened: dict[KeptFile, Mapping[str, NDArray[Any]]] = {}

    def add(self, iteration: int, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.parts.write(iteration, arrays)
        if len(self.parts.files) > self.cfg.window_parts:
            self.parts.drop(self.parts.files[0])
        self._open()

    def batch(self, update: int) -> StepBatch[tuple[Tensor, Tensor]]:
        count = self.cfg.part_rows * len(self.parts.files)
        ids_B = rng.integers(rng.key(self.world.seed, "window", update), torch.arange(self.cfg.global_batch), 1, count)[
            :, 0
        ]
        shards = tuple(ShardItems(s, ids_B[i.start : i.stop]) for s, i in self.world.shard_items(len(ids_B)))
        return StepBatch(shards, self._gather)

    def _gather(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        places = [divmod(row, self.cfg.part_rows) for row in ids.tolist()]
        parts = [self.opened[file] for file in self.parts.files]
        x_BF = np.stack([parts[part]["x_RF"][row] for part, row in places])
        y_B = np.stack([parts[part]["y_R"][row] for part, row in places])
        return torch.from_numpy(x_BF), torch.from_numpy(y_B)

    def _open(self) -> None:
        self.opened = {file: self.opened.get(file) or self.parts.open(file) for file in self.parts.files}

    def state_dict(self) -> dict[str, Any]:
        return {"parts": self.parts.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.parts.load_state_dict(state["parts"])
        self._open()


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(4, 1)

    def forward(self, x_BF: Tensor) -> Tensor:
        return self.out(x_BF)[:, 0]


def play(net: Net, cfg: Config, world: World, iteration: int) -> dict[str, NDArray[Any]]:
    """Rows that depend on the weights, gathered from all ranks."""
    world.check_stop()
    ids = torch.tensor(list(world.items(cfg.part_rows)), dtype=torch.int64)
    x_RF = rng.normal(rng.key(world.seed, "rows", iteration), ids, 4).to(torch.float32)
    y_R = x_RF[:, 0] - x_RF[:, 1] + net.out.weight.detach()[0, 0]
    every = world.gather_rows(torch.cat([x_RF, y_R[:, None]], 1), cfg.part_rows).numpy()
    return {"x_RF": every[:, :4], "y_R": every[:, 4]}


def square_loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Loss:
    x_BF, y_B = batch
    return Loss((model(x_BF) - y_B).square().sum(), len(y_B))


def build(cfg: Config) -> nn.Module:
    return Net()


def train(cfg: Config, world: World) -> Summary:
    net = Net()
    learner = Learner(net, cfg.optim, world, global_batch=cfg.global_batch)
    window = Window(cfg, world)
    with Run.open(cfg, world, keep=dict(learner=learner, window=window)) as run:
        for iteration in run.iterations(cfg.iterations, long=True):
            window.add(iteration, play(net, cfg, world, iteration))
            for _ in range(cfg.updates):
                stats = learner.step(square_loss, window.batch(learner.updates))
            world.check_stop()
            run.log(stats)
            if run.every(cfg.eval_every):
                found = evaluate(net, cfg, world)
                run.log(found, prefix="val")
                run.save(score=found["loss"])
    return run.finish(export=net)


def evaluate(model: nn.Module, cfg: Config, world: World) -> dict[str, float]:
    x_BF = rng.normal(rng.key(world.seed, "rows", 10**6), torch.arange(64), 4).to(torch.float32)
    with torch.inference_mode():
        return {"loss": float((model(x_BF) - x_BF[:, 0] + x_BF[:, 1]).square().mean())}

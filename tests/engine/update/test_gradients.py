"""The gradient of any split of a batch is the one-process full-batch gradient."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from ranks import Learner, Loss, OptimConfig, RunConfig, World, stream
from tests.engine.group import another_world, run_ranks

CASES = 50
ITEMS = 16
PLAIN = OptimConfig(lr=1e-2, clip_norm=None, schedule="constant")


class Net(nn.Module):
    """Two layers and one that is never used."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(1)
        self.inner, self.outer, self.unused = nn.Linear(5, 7), nn.Linear(7, 3), nn.Linear(4, 4)
        for p in self.parameters():
            p.data = torch.randn(p.shape, generator=generator, dtype=torch.float64)

    def forward(self, x_BF: Tensor) -> Tensor:
        return self.outer(torch.tanh(self.inner(x_BF)))


class Points:
    sha256 = "points"

    def __init__(self, n: int, ragged: bool) -> None:
        generator = torch.Generator().manual_seed(n)
        self.x_NF = torch.randn(n, 5, generator=generator, dtype=torch.float64)
        self.cost = torch.randint(1, 9, (n,), generator=generator).double() if ragged else None

    def __len__(self) -> int:
        return len(self.x_NF)

    def gather(self, ids: Tensor) -> Tensor:
        return self.x_NF[ids]


def point_loss(model: nn.Module, x_BF: Tensor) -> Loss:
    each_B = model(x_BF).square().sum(1) + model(x_BF).sin().sum(1)
    return Loss(each_B.sum(), len(x_BF), first=x_BF[:, 0])


@dataclass(frozen=True)
class Case:
    items: int
    global_batch: int
    iteration: int
    config: RunConfig
    ragged: bool

    @classmethod
    def draw(cls, chance: random.Random, size: int) -> Case:
        exact = chance.random() < 0.4
        shards = chance.randint(size, 16)
        shares = None
        if chance.random() < 0.5:
            shares = (*(chance.randint(1 if exact else 0, 5) for _ in range(size - 1)), chance.randint(1, 5))
        items = chance.randint(1, 40)
        global_batch = chance.randint(1, 24)
        epoch = -(-items // min(items, global_batch))
        config = RunConfig(
            exact=exact,
            shards=shards * (4 if exact and shares else 1),
            shares=shares,
            micro_batch=chance.choice([None, None, 1, 2, 5]),
            precision="fp64",
        )
        return cls(
            items,
            global_batch,
            chance.choice([0, epoch - 1, chance.randint(0, 3 * epoch)]),
            config,
            chance.random() < 0.5,
        )


def gradient_of(learner: Learner) -> dict[str, Tensor]:
    """The averaged gradient of the first update, from AdamW's first moment: m = (1 - beta1) g."""
    moments = learner.state_dict()["optimizer"]["exp_avg"]
    return {name: m / (1.0 - PLAIN.betas[0]) for name, m in moments.items()}


def worst_difference(world: World, cases: list[Case]) -> tuple[float, int]:
    worst, without_work = 0.0, 0
    for case in cases:
        other = another_world(world, case.config)
        data = Points(case.items, case.ragged)
        batch = stream(data, case.global_batch, other).at(case.iteration)
        without_work += not any(len(s.ids) for s in batch.shards)
        learner = Learner(Net(), PLAIN, other)
        stats = learner.step(point_loss, batch)
        learner.drain()
        every = other.comm.gather_objects([i for s in batch.shards for i in s.ids.tolist()])
        ids = torch.tensor([i for mine in every for i in mine], dtype=torch.int64)
        full = Net()
        loss = point_loss(full, data.gather(ids))
        (loss.sum / loss.count).backward()
        mine = gradient_of(learner)
        for name, p in full.named_parameters():
            wanted = p.grad if p.grad is not None else torch.zeros_like(p)
            worst = max(worst, float((mine[name] - wanted).norm() / wanted.norm().clamp(min=1e-30)))
        assert stats.read().count == len(ids)
        assert stats.read().values["first"] == pytest.approx(float(data.x_NF[ids, 0].mean()), abs=1e-12)
    return worst, without_work


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_fifty_random_splits_give_the_full_batch_gradient(size: int, tmp_path: Path) -> None:
    chance = random.Random(size)
    cases = [Case.draw(chance, size) for _ in range(CASES)]
    results = run_ranks(size, worst_difference, cases, config=RunConfig(precision="fp64", shards=16), tmp_path=tmp_path)
    assert max(worst for worst, _ in results) <= 1e-12
    assert size == 1 or sum(idle for _, idle in results) > 0, "no case had a rank without work: the draw is too tame"


def dropped_shard(model: nn.Module, x_BF: Tensor) -> Loss:
    """A broken loss: it forgets the first item of each micro-batch but counts it."""
    loss = point_loss(model, x_BF[1:]) if len(x_BF) > 1 else point_loss(model, x_BF)
    return Loss(loss.sum, len(x_BF))


def broken(world: World) -> float:
    other = another_world(world, RunConfig(shards=8, precision="fp64"))
    data = Points(32, False)
    learner = Learner(Net(), PLAIN, other)
    learner.step(dropped_shard, stream(data, 32, other).at(0))
    learner.drain()
    full = Net()
    loss = point_loss(full, data.x_NF)
    (loss.sum / loss.count).backward()
    return max(
        float((gradient_of(learner)[n] - p.grad).norm() / p.grad.norm())
        for n, p in full.named_parameters()
        if p.grad is not None
    )


def test_a_forgotten_item_is_seen(tmp_path: Path) -> None:
    assert min(run_ranks(2, broken, config=RunConfig(precision="fp64"), tmp_path=tmp_path)) > 1e-6


def exact_fingerprints(world: World, all_shares: list[tuple[int, ...] | None]) -> list[list[float]]:
    out = []
    for shares in all_shares:
        other = another_world(world, RunConfig(exact=True, shards=13, shares=shares))
        learner = Learner(Net().float(), PLAIN, other)
        data = Points(50, False)
        data.x_NF = data.x_NF.float()
        for iteration in range(3):
            learner.step(point_loss, stream(data, 29, other).at(iteration))
        learner.drain()
        out.append([float(p.double().sum()) for p in learner.model.parameters()])
    return out


def test_exact_mode_gives_the_same_bits_on_any_assignment_of_thirteen_shards(tmp_path: Path) -> None:
    config = RunConfig(exact=True, shards=13)
    alone = run_ranks(1, exact_fingerprints, [None], config=config, tmp_path=tmp_path)[0][0]
    for size, all_shares in ((2, [None, (1, 12), (5, 3)]), (3, [None, (1, 11, 1)]), (4, [None, (2, 9, 1, 1)])):
        for rank in run_ranks(size, exact_fingerprints, all_shares, config=config, tmp_path=tmp_path):
            assert all(found == alone for found in rank)
    assert replace(config, shards=8).num_shards == 8


def clipped(world: World) -> float:
    other = another_world(world, RunConfig(shards=4, precision="fp64"))
    config = OptimConfig(lr=1e-2, clip_norm=0.5, schedule="constant")
    learner = Learner(Net(), config, other)
    learner.step(point_loss, stream(Points(ITEMS, False), ITEMS, other).at(0))
    learner.drain()
    return float(torch.cat([g.flatten() for g in gradient_of(learner).values()]).norm())


def test_the_global_norm_is_clipped(tmp_path: Path) -> None:
    assert run_ranks(2, clipped, config=RunConfig(precision="fp64"), tmp_path=tmp_path) == pytest.approx(
        [0.5, 0.5], abs=1e-6
    )


class Strided(nn.Module):
    """A weight that is the transpose of a contiguous tensor."""

    def __init__(self, transposed: bool) -> None:
        super().__init__()
        weight = torch.arange(15.0, dtype=torch.float64).reshape(5, 3) / 10
        self.weight = nn.Parameter(weight.t().contiguous().t() if transposed else weight)

    def forward(self, x_BF: Tensor) -> Tensor:
        return x_BF @ self.weight


def with_strides(world: World) -> tuple[bool, float]:
    other = another_world(world, RunConfig(shards=8, precision="fp64"))
    batches = stream(Points(ITEMS, False), ITEMS, other)
    models = [Strided(transposed) for transposed in (True, False)]
    learners = [Learner(model, PLAIN, other) for model in models]
    for iteration in range(3):
        for learner in learners:
            learner.step(point_loss, batches.at(iteration))
            learner.model.zero_grad()
    for learner in learners:
        learner.drain()
    strided, plain = (model.weight.detach() for model in models)
    return strided.is_contiguous(), float((strided - plain).norm() / plain.norm())


def test_strides_and_a_zero_grad_change_nothing(tmp_path: Path) -> None:
    contiguous, gap = run_ranks(1, with_strides, config=RunConfig(precision="fp64"), tmp_path=tmp_path)[0]
    assert not contiguous
    assert gap < 1e-12

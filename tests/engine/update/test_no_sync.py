"""The host never waits for the step it is in: it only reads the vote of the update before, once its
passes are sent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from ranks import Learner, Loss, OptimConfig, RunConfig, World, stream

# everything that turns a tensor's values into Python's, which on a GPU means to wait for it
READS = frozenset(
    ["item", "tolist", "numpy", "cpu", "__bool__", "__float__", "__int__", "__index__", "__array__", "nonzero", "equal"]
)
ITEMS = 8
STEPS = 6


class Points:
    cost, sha256 = None, "fixed"

    def __init__(self, device: torch.device) -> None:
        self.x_NF = torch.linspace(-1, 1, ITEMS * 5).reshape(ITEMS, 5).to(device)

    def __len__(self) -> int:
        return ITEMS

    def gather(self, ids: Tensor) -> Tensor:
        return self.x_NF[ids.to(self.x_NF.device)]


def loss(model: nn.Module, x_BF: Tensor) -> Loss:
    each_B = model(x_BF).square().sum(1)
    return Loss(each_B.sum(), len(x_BF), largest=each_B.detach())


def impatient_loss(model: nn.Module, x_BF: Tensor) -> Loss:
    found = loss(model, x_BF)
    assert found.sum.item() >= 0
    return found


@dataclass
class Reads(TorchFunctionMode):
    """Where the host reads a tensor's values: the tensor, and the model's weights by then."""

    model: nn.Module
    found: list[tuple[Tensor, Tensor]] = field(default_factory=list[tuple[Tensor, Tensor]])

    def __post_init__(self) -> None:
        super().__init__()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__name__", "") in READS:
            self.found.append((args[0], weights_of(self.model)))
        return func(*args, **(kwargs or {}))


def weights_of(model: nn.Module) -> Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


@pytest.fixture
def config(tmp_path: Path) -> RunConfig:
    return RunConfig(threads=1, runs_dir=tmp_path)


@pytest.fixture
def world(config: RunConfig, request: pytest.FixtureRequest) -> Iterator[World]:
    exact = getattr(request, "param", False)
    made = World.join(RunConfig(threads=1, exact=exact, runs_dir=config.runs_dir), device="cpu", workload="test")
    yield made
    made.leave()


def learner_of(world: World) -> Learner:
    return Learner(nn.Linear(5, 3), OptimConfig(schedule="constant"), world)


@pytest.mark.parametrize("world", [False, True], indirect=True, ids=["fast", "exact"])
def test_a_step_reads_nothing_but_the_vote_of_the_step_before(world: World) -> None:
    learner = learner_of(world)
    batches = stream(Points(world.device), ITEMS, world)
    before = None
    for iteration in range(STEPS):
        passes: list[int] = []

        def watched_loss(model: nn.Module, x_BF: Tensor, passes: list[int] = passes) -> Loss:
            passes.append(len(reads.found))
            return loss(model, x_BF)

        weights = weights_of(learner.model)
        with Reads(learner.model) as reads:
            stats = learner.step(watched_loss, batches.at(iteration))
            assert stats["loss"].ndim == 0
            assert stats["grad_norm"].ndim == 0
        if before is not None:  # the first step with a loss function looks at what its passes do
            assert [tensor.data_ptr() for tensor, _ in reads.found] == [before]
            assert torch.equal(reads.found[0][1], weights), "the update was enqueued before the vote was read"
            assert passes == [0] * len(passes), "the vote was read before the passes were enqueued"
        assert not torch.equal(weights_of(learner.model), weights), "no update was made"
        before = stats.copy.host.data_ptr()


def test_a_loss_that_waits_is_seen(world: World) -> None:
    learner = learner_of(world)
    batches = stream(Points(world.device), ITEMS, world)
    learner.step(impatient_loss, batches.at(0))
    with Reads(learner.model) as reads:
        learner.step(impatient_loss, batches.at(1))
    assert len(reads.found) == 2

"""Gradients that autograd adds up in several steps of one pass are whole before they are sent."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from ranks import RunConfig, UserError, World
from ranks.engine.update.gradients import FastReduction, FlatGradients
from tests.engine.group import run_ranks

PIECES = 3
UPDATES = 3


def net() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1)).double()


def inputs(rank: int) -> torch.Tensor:
    return torch.randn(6, 16, generator=torch.Generator().manual_seed(rank), dtype=torch.float64)


def summed(world: World, first_with_pieces: int) -> list[list[float]] | str:
    """The sums of all ranks' gradients in three updates. From one of them on, each pass calls `backward` several times,
    as a loss function with truncated backpropagation does."""
    model = net()
    gradients = FlatGradients(model, tail=16, bucket_bytes=8 * 16)
    assert len(gradients.buckets) == 6
    reduction, found = FastReduction(gradients, world.comm), list[list[float]]()
    for update in range(UPDATES):
        reduction.begin()
        reduction.before_pass(may_send=update > 0)
        try:
            for part in inputs(world.rank).chunk(PIECES if update >= first_with_pieces else 1):
                model(part).sum().backward()
        except UserError as error:
            return error.found
        reduction.launch()
        reduction.wait()
        found.append(gradients.grads.tolist())
    return found


def test_a_loss_that_calls_backward_several_times_has_the_same_sum_on_all_ranks(tmp_path: Path) -> None:
    expected = net()
    for rank in range(2):
        expected(inputs(rank)).sum().backward()
    whole = FlatGradients(net(), tail=16)
    for parameter, view in zip([*expected.parameters()][::-1], whole.views, strict=True):
        assert parameter.grad is not None
        view.copy_(parameter.grad)
    for of_rank in run_ranks(2, summed, 0, config=RunConfig(shards=2), tmp_path=tmp_path):
        for found in of_rank:
            assert found == pytest.approx(whole.grads.tolist())


def test_a_second_backward_that_comes_after_a_bucket_was_sent_is_named(tmp_path: Path) -> None:
    for found in run_ranks(2, summed, 1, config=RunConfig(shards=2), tmp_path=tmp_path):
        assert found.startswith("4.weight got gradients twice") or found.startswith("4.bias got gradients twice")

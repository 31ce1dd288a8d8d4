"""Switches of torch's arithmetic, on any torch in the tested range."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn

from ranks import RunConfig
from ranks.engine.distributed.precision import allow_tf32, autocast

CUDNN: Any = torch.backends.cudnn


@pytest.fixture
def default_switches() -> Iterator[None]:
    yield
    torch.backends.cuda.matmul.allow_tf32 = False
    CUDNN.allow_tf32 = True
    CUDNN.conv.fp32_precision = CUDNN.rnn.fp32_precision = "tf32"


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize(("allowed", "precision"), [(True, "tf32"), (False, "ieee")])
def test_the_old_and_the_new_tf32_switches_agree(
    before: bool, allowed: bool, precision: str, default_switches: None
) -> None:
    allow_tf32(before)
    allow_tf32(allowed)
    assert torch.backends.cuda.matmul.fp32_precision == precision
    assert CUDNN.conv.fp32_precision == precision
    assert CUDNN.rnn.fp32_precision == precision
    assert torch.backends.cuda.matmul.allow_tf32 == allowed  # an error where the two disagree
    assert CUDNN.allow_tf32 == allowed
    with CUDNN.flags(enabled=False):  # it reads the old switch
        pass
    assert (CUDNN.rnn.fp32_precision == "tf32") == allowed  # it leaves "none", which is not TF32


def test_a_forward_pass_without_gradients_does_not_take_them_from_the_next() -> None:
    """Autocast keeps the weights in bf16. Up to torch 2.10, weights that it met first under no_grad had no gradient."""
    layer = nn.Linear(4, 4)
    with autocast(RunConfig(precision="bf16"), torch.device("cpu")):
        with torch.no_grad():
            layer(torch.ones(2, 4))
        loss = layer(torch.ones(2, 4)).sum()
    loss.backward()
    assert layer.weight.grad is not None
    assert layer.weight.grad.abs().sum() > 0

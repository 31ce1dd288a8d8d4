"""The fused group norm of video-behavior against plain torch: on a GPU, or in Triton's interpreter on the CPU:

TRITON_INTERPRET=1 python -m pytest -n 0 tests/cuda/test_fused_norm.py
"""

from __future__ import annotations

import os
from importlib import import_module

import pytest
import torch
from torch import Tensor

from ranks.workloads.video_behavior.net.layers import Activation, ClipNorm

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = "cuda" if torch.cuda.is_available() and not INTERPRETED else "cpu"
pytestmark = pytest.mark.skipif(
    DEVICE == "cpu" and not INTERPRETED, reason="a GPU is needed, or TRITON_INTERPRET=1 and triton"
)
BOUNDS = {torch.float32: 2e-5, torch.bfloat16: 1e-2}
"""The largest error, relative to the largest value."""


def fused(*arguments: object) -> Tensor:
    return import_module("ranks.workloads.video_behavior.net.fused_norm").fused_norm(*arguments)


def results_of(norm: ClipNorm, x: Tensor, add: Tensor | None, activation: Activation, upstream: Tensor) -> list[Tensor]:
    """The output, and the gradients of all that goes in."""
    inputs = [each for each in (x, add, norm.weight, norm.bias) if each is not None]
    y = norm(x, activation, add)
    return [y.detach(), *torch.autograd.grad(y, inputs, upstream.to(y.dtype))]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    ("activation", "has_sum"), [("none", False), ("relu", False), ("silu", False), ("none", True), ("relu", True)]
)
@pytest.mark.parametrize(("channels", "sizes"), [(24, (5, 9, 11)), (4, (3, 5, 5)), (56, (1, 3, 2)), (8, (4, 64, 80))])
def test_it_gives_what_plain_torch_gives(
    channels: int, sizes: tuple[int, int, int], activation: Activation, has_sum: bool, dtype: torch.dtype
) -> None:
    torch.manual_seed(0)
    shape, last = (3, channels, *sizes), torch.channels_last_3d
    x, add, upstream = (torch.randn(shape).to(DEVICE, dtype, memory_format=last) for _ in range(3))
    x = (2 * x + 1).requires_grad_()
    added = add.requires_grad_() if has_sum else None
    norm = ClipNorm(channels).to(DEVICE)
    with torch.no_grad():
        norm.weight.normal_()
        norm.bias.normal_()
    norm.fused = fused
    found = results_of(norm, x, added, activation, upstream)
    assert found[0].dtype == dtype
    assert found[0].is_contiguous(memory_format=last)
    exact = ClipNorm(channels).to(DEVICE, torch.float64)
    exact.load_state_dict(norm.state_dict())
    doubles = [None if each is None else each.detach().double().requires_grad_() for each in (x, added)]
    assert doubles[0] is not None
    wanted = results_of(exact, doubles[0], doubles[1], activation, upstream.double())
    for mine, theirs in zip(found, wanted, strict=True):
        assert float((mine - theirs).abs().max()) <= BOUNDS[dtype] * float(theirs.abs().max())


def test_a_clip_does_not_change_another_and_bits_stay() -> None:
    torch.manual_seed(0)
    norm = ClipNorm(16).to(DEVICE)
    norm.fused = fused
    x = torch.randn(5, 16, 7, 12, 12).to(DEVICE, memory_format=torch.channels_last_3d).requires_grad_()
    both = [
        results_of(norm, x[:count].detach().requires_grad_(), None, "relu", x[:count].detach()) for count in (5, 2, 2)
    ]
    for whole, part, again in zip(*(results[:2] for results in both), strict=True):
        torch.testing.assert_close(whole[:2], part, rtol=0, atol=0)
        torch.testing.assert_close(part, again, rtol=0, atol=0)

"""The fused group norm against plain torch: on a GPU, or in Triton's interpreter on the CPU:

TRITON_INTERPRET=1 python -m pytest -n 0 tests/cuda/test_fused_norm.py
"""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec

import pytest
import torch
from torch import Tensor

from ranks.engine.distributed.precision import autocast
from ranks.nets.channels_last import FirstConv2d, fused_norm_for
from ranks.nets.group_norm import Activation, GroupNorm
from ranks.workloads.chess_spiking.building import build_net
from ranks.workloads.chess_spiking.config import NetConfig
from ranks.workloads.chess_spiking.net.fused import use_fused_kernels
from tests.cuda.gpu import NEEDS_GPU
from tests.selfplay.fixtures import single_rank

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = "cuda" if torch.cuda.is_available() and not INTERPRETED else "cpu"
pytestmark = pytest.mark.skipif(
    DEVICE == "cpu" and not INTERPRETED, reason="a GPU is needed, or TRITON_INTERPRET=1 and triton"
)
BOUNDS = {torch.float32: 2e-5, torch.bfloat16: 1e-2}
"""The largest error, relative to the largest value."""


def fused(*arguments: object) -> Tensor:
    return import_module("ranks.nets.fused_norm").fused_norm(*arguments)


def results_of(
    norm: GroupNorm, x: Tensor, add: Tensor | None, activation: Activation, upstream: Tensor
) -> list[Tensor]:
    """The output, and the gradients of all that goes in."""
    inputs = [each for each in (x, add, norm.weight, norm.bias) if each is not None]
    y = norm(x, activation, add)
    return [y.detach(), *torch.autograd.grad(y, inputs, upstream.to(y.dtype))]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    ("activation", "has_sum"), [("none", False), ("relu", False), ("silu", False), ("none", True), ("relu", True)]
)
@pytest.mark.parametrize(
    ("channels", "groups", "sizes"),
    [
        (24, 3, (5, 9, 11)),
        (4, 1, (3, 5, 5)),
        (56, 7, (1, 3, 2)),
        (8, 1, (4, 64, 80)),
        (128, 8, (8, 8)),
        (64, 16, (8, 8)),
        (4, 4, (8, 8)),
        (8, 1, (1, 1)),
    ],
)
def test_it_gives_what_plain_torch_gives(
    channels: int, groups: int, sizes: tuple[int, ...], activation: Activation, has_sum: bool, dtype: torch.dtype
) -> None:
    torch.manual_seed(0)
    shape, last = (3, channels, *sizes), torch.channels_last if len(sizes) == 2 else torch.channels_last_3d
    x, add, upstream = (torch.randn(shape).to(DEVICE, dtype, memory_format=last) for _ in range(3))
    x = (2 * x + 1).requires_grad_()
    added = add.requires_grad_() if has_sum else None
    norm = GroupNorm(groups, channels).to(DEVICE)
    with torch.no_grad():
        norm.weight.normal_()
        norm.bias.normal_()
    norm.fused = fused
    found = results_of(norm, x, added, activation, upstream)
    assert found[0].dtype == dtype
    assert found[0].is_contiguous(memory_format=last)
    exact = GroupNorm(groups, channels).to(DEVICE, torch.float64)
    exact.load_state_dict(norm.state_dict())
    doubles = [None if each is None else each.detach().double().requires_grad_() for each in (x, added)]
    assert doubles[0] is not None
    wanted = results_of(exact, doubles[0], doubles[1], activation, upstream.double())
    for mine, theirs in zip(found, wanted, strict=True):
        assert float((mine - theirs).abs().max()) <= BOUNDS[dtype] * float(theirs.abs().max())


def test_a_sample_does_not_change_another_and_bits_stay() -> None:
    torch.manual_seed(0)
    norm = GroupNorm(2, 16).to(DEVICE)
    norm.fused = fused
    x = torch.randn(5, 16, 7, 12, 12).to(DEVICE, memory_format=torch.channels_last_3d).requires_grad_()
    both = [
        results_of(norm, x[:count].detach().requires_grad_(), None, "relu", x[:count].detach()) for count in (5, 2, 2)
    ]
    for whole, part, again in zip(*(results[:2] for results in both), strict=True):
        torch.testing.assert_close(whole[:2], part, rtol=0, atol=0)
        torch.testing.assert_close(part, again, rtol=0, atol=0)


def test_a_sum_of_another_type_has_the_type_of_the_input() -> None:
    torch.manual_seed(0)
    norm = GroupNorm(2, 16).to(DEVICE)
    norm.fused = fused
    x, add = (torch.randn(3, 16, 8, 8).to(DEVICE, memory_format=torch.channels_last) for _ in range(2))
    half, add = x.bfloat16().requires_grad_(), add.requires_grad_()
    y, *gradients = results_of(norm, half, add, "relu", torch.ones_like(x))
    assert [each.dtype for each in (y, *gradients[:2])] == [torch.bfloat16, torch.bfloat16, torch.float32]
    plain = GroupNorm(2, 16).to(DEVICE)
    wanted = results_of(plain, half.detach().float().requires_grad_(), add, "relu", torch.ones_like(x))
    for mine, theirs in zip((y, *gradients), wanted, strict=True):
        assert float((mine - theirs).abs().max()) <= 2e-2 * float(theirs.abs().max())


def test_what_the_kernel_cannot_compute_is_refused_and_an_empty_batch_is_not() -> None:
    norm = GroupNorm(1, 8).to(DEVICE)
    norm.fused = fused
    x = torch.zeros(2, 8, 4, 4, device=DEVICE)
    with pytest.raises(ValueError, match="silu after a sum"):
        norm(x, "silu", x)
    with pytest.raises(ValueError, match="groups of 3 channels"):
        fused(torch.zeros(1, 6, 4, 4, device=DEVICE), None, norm.weight, norm.bias, 2, 1e-5, "none")
    assert norm(x[:0]).shape == (0, 8, 4, 4)


@NEEDS_GPU
@pytest.mark.skipif(find_spec("triton") is None, reason="triton is not installed")
def test_a_run_on_a_gpu_finds_the_kernels(capsys: pytest.CaptureFixture[str]) -> None:
    """Where one does not compile, nets use plain torch, and a warning is all that says so."""
    with single_rank("cuda:0", precision="bf16") as world:
        net = build_net(NetConfig(blocks=1, width=8)).to(world.device)
        assert use_fused_kernels(net, world)
        assert fused_norm_for(world) is not None
        assert isinstance(net.stem, FirstConv2d)
        assert net.stem.channels_last
        planes = torch.rand(2, net.planes, 8, 8, device=world.device)
        with autocast(world.config, world.device):
            assert all(each.isfinite().all() for each in net(planes))
    assert "warning" not in capsys.readouterr().err

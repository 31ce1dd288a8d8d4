"""Nets in channels_last with fused group norms: what decides it, and that it computes the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from ranks import RunConfig
from ranks.nets import channels_last
from ranks.nets.channels_last import FirstConv2d, use_channels_last
from ranks.nets.group_norm import Activation, GroupNorm
from ranks.workloads.chess_spiking.building import build_net
from ranks.workloads.chess_spiking.config import PRESETS, NetConfig
from ranks.workloads.chess_value.net.resnet import ResnetValue
from tests.video_behavior.example_frames import world_of

ROOT = Path(__file__).parents[2]
NETS = {
    "resnet": lambda: ResnetValue(18, 2, 16, 8),
    "relu": lambda: build_net(NetConfig(neuron="relu", blocks=2, width=16)),
    "lif": lambda: build_net(NetConfig(blocks=2, width=16, steps=3)),
    "origin": lambda: build_net(PRESETS["origin"]().net),
}


class PlainKernel:
    """Computes what the kernel computes, and notes the layouts that it got."""

    def __init__(self) -> None:
        self.all_channels_last = list[bool]()

    def __call__(
        self, x: Tensor, add: Tensor | None, weight: Tensor, bias: Tensor, groups: int, eps: float, kind: Activation
    ) -> Tensor:
        for each in (x,) if add is None else (x, add):
            self.all_channels_last.append(each.is_contiguous(memory_format=torch.channels_last))
        y = nn.functional.group_norm(x, groups, weight, bias, eps)
        y = y if add is None else y + add
        y = y.relu() if kind == "relu" else y
        return y.contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("name", NETS)
def test_a_net_computes_the_same_in_channels_last(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    net, kernel, world = NETS[name]().double(), PlainKernel(), world_of()
    first = next(module for module in net.modules() if isinstance(module, FirstConv2d))
    planes = torch.rand(3, first.in_channels, 8, 8, dtype=torch.float64)
    wanted = net(planes)
    monkeypatch.setattr(channels_last, "fused_norm_for", lambda world: kernel)
    assert use_channels_last(net, world)
    found = net(planes)
    for mine, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-9)
    norms = [module for module in net.modules() if isinstance(module, GroupNorm) and module.fused is not None]
    assert len(kernel.all_channels_last) >= len(norms) - 1 > 0, "all but a norm of vectors"
    assert all(kernel.all_channels_last)


@pytest.mark.parametrize("config", [RunConfig(exact=True), RunConfig(deterministic=True), RunConfig(precision="fp64")])
def test_bits_that_must_stay_keep_the_plain_layers(config: RunConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next machine of the run may have no Triton. The kernel has no float64."""
    monkeypatch.setattr(channels_last, "load_kernels", lambda *_: pytest.fail("asked for the kernel"))
    net = NETS["resnet"]()
    assert not use_channels_last(net, world_of(config=config))
    assert not any(getattr(module, "channels_last", False) for module in net.modules())
    assert all(module.fused is None for module in net.modules() if isinstance(module, GroupNorm))


def test_the_fused_norm_in_tritons_interpreter() -> None:
    pytest.importorskip("triton", reason="triton is not installed")
    env = {**os.environ, "TRITON_INTERPRET": "1"}
    command = [sys.executable, "-m", "pytest", "-n", "0", "-q", "tests/cuda/test_fused_norm.py"]
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed" in done.stdout

"""The layout of activations, and what is computed in another way there."""

from __future__ import annotations

import pytest
import torch

from ranks import RunConfig
from ranks.workloads.video_behavior.config import VideoNetConfig
from ranks.workloads.video_behavior.net.layers import Size, StemConv, VideoStem
from ranks.workloads.video_behavior.net.layout import choose_layout, set_channels_last
from ranks.workloads.video_behavior.net.nets import make_net
from tests.video_behavior.example_frames import SMALL, world_of
from tests.video_behavior.net.test_nets import CLASSES, TINY, net


@pytest.mark.parametrize("name", ["r2plus1d-s", "x3d-s", "mouse3d"])
def test_both_layouts_give_the_same_logits(name: str) -> None:
    model = net(TINY[name]).eval()
    clips_BTHW = torch.rand(2, 17, 32, 32)
    expected = model(clips_BTHW)
    set_channels_last(model, True)
    torch.testing.assert_close(model(clips_BTHW), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("stride", [(1, 2, 2), (2, 4, 4), (1, 3, 2), (1, 1, 1)])
@pytest.mark.parametrize("size", [(32, 32), (33, 30)])
def test_the_stem_of_squares_of_pixels_is_the_same_convolution(stride: Size, size: tuple[int, int]) -> None:
    stem, x_B2THW = VideoStem(8, stride), torch.randn(2, 2, 9, *size)
    found: list[tuple[torch.Tensor, ...]] = []
    for stem.conv.space_to_depth in (False, True):
        y = stem(x_B2THW)
        found.append((y, *torch.autograd.grad(y.square().sum(), list(stem.parameters()))))
    for plain, squares in zip(*found, strict=True):
        torch.testing.assert_close(squares, plain, rtol=1e-3, atol=1e-3)


def test_the_layout_decides_the_kernels() -> None:
    """`fused` takes the place of group norm where the activations' layout is its own, and its groups are."""
    calls: list[int] = []

    def fused(x: torch.Tensor, *_: object) -> torch.Tensor:
        calls.append(x.shape[1])
        return x

    for width, channels_last, uses in ((8, True, True), (8, False, False), (12, True, False)):
        model = net(VideoNetConfig(width=width, blocks=(1,)))
        set_channels_last(model, channels_last, fused, space_to_depth=True)
        calls.clear()
        model(torch.rand(1, 5, 16, 16))
        assert bool(calls) is uses
        assert [conv.space_to_depth for conv in model.modules() if isinstance(conv, StemConv)] == [channels_last]


@pytest.mark.parametrize("config", [RunConfig(exact=True), RunConfig(deterministic=True)])
def test_no_layout_is_measured_where_a_resume_must_give_the_same_bits(config: RunConfig) -> None:
    """A resume may measure another one than the start. It would round otherwise."""
    net = make_net(SMALL, CLASSES)
    assert "no layout is measured" in choose_layout(net, SMALL.clips, 4, world_of(config=config))
    assert not any(getattr(module, "channels_last", False) for module in net.modules())

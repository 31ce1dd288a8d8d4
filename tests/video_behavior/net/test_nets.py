"""Shapes, sizes and exports of the networks. Legend: B clips, C classes."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from ranks import UserError
from ranks.engine.export.export import export_model
from ranks.onnx_export.layout import examples_of, layout_of
from ranks.onnx_export.write import write_onnx
from ranks.workloads.video_behavior.config import PRESETS, ClipConfig, Config, VideoNetConfig
from ranks.workloads.video_behavior.net.examples import example_inputs
from ranks.workloads.video_behavior.net.layers import grey_and_motion, stage_strides
from ranks.workloads.video_behavior.net.nets import VideoNet, make_net
from tests.engine.export.plain_torch import value_of
from tests.video_behavior.example_frames import SMALL

CLASSES = ("rest", "active", "walk", "lick", "shake", "withdraw")
TINY = {
    "r2plus1d-s": VideoNetConfig(width=4, blocks=(1, 1, 1)),
    "x3d-s": VideoNetConfig(name="x3d-s", width=4, blocks=(1, 1, 1)),
    "mouse3d": VideoNetConfig(name="mouse3d"),
}


def net(cfg: VideoNetConfig) -> VideoNet:
    torch.manual_seed(0)
    return make_net(replace(Config(), net=cfg), CLASSES)


def size_of(cfg: VideoNetConfig) -> tuple[int, float]:
    """(parameters, GFLOP of a forward pass of one clip of 17 x 256 x 256)."""
    with torch.device("meta"), FlopCounterMode(display=False) as counter:
        found = make_net(replace(Config(), net=cfg), CLASSES)
        found(torch.rand(1, 17, 256, 256))
    return sum(p.numel() for p in found.parameters()), counter.get_total_flops() / 1e9


@pytest.mark.parametrize("name", TINY)
def test_a_net_gives_a_logit_for_each_clip_and_class_and_a_gradient_for_each_parameter(name: str) -> None:
    model = net(TINY[name])
    logits_BC = model(torch.rand(2, 17, 32, 32))
    assert logits_BC.shape == (2, 6)
    logits_BC.square().sum().backward()
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in model.parameters())


def test_the_full_nets_have_about_three_million_parameters_and_at_most_six_gflop_a_clip() -> None:
    for name in ("r2plus1d-s", "x3d-s"):
        parameters, gflop = size_of(VideoNetConfig(name=name))
        assert 2.5e6 < parameters < 3.5e6, name
        assert gflop <= 6, name
    small, _ = size_of(PRESETS["small"]().net)
    assert 0.15e6 < small < 0.4e6


def test_mouse3d_has_the_size_of_the_origins_net() -> None:
    parameters, gflop = size_of(VideoNetConfig(name="mouse3d"))
    assert parameters == pytest.approx(1.43e6, rel=0.005)
    assert gflop == pytest.approx(54.5, rel=0.02)


def test_light_and_camera_gain_do_not_change_what_a_net_sees() -> None:
    clips_BTHW = torch.rand(2, 5, 16, 16)
    seen = grey_and_motion(clips_BTHW)
    torch.testing.assert_close(grey_and_motion(clips_BTHW * 0.5 + 0.2), seen, rtol=0.05, atol=0.05)
    assert torch.isfinite(grey_and_motion(torch.zeros(1, 5, 16, 16))).all()
    still = grey_and_motion(clips_BTHW[:, :1].expand(2, 5, 16, 16))
    torch.testing.assert_close(still[:, 1], torch.zeros(2, 5, 16, 16), atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", ["r2plus1d-s", "x3d-s"])
def test_a_clip_does_not_change_the_logits_of_another(name: str) -> None:
    model = net(TINY[name])
    clips_BTHW = torch.rand(3, 17, 32, 32)
    torch.testing.assert_close(model(clips_BTHW)[:1], model(clips_BTHW[:1]))


@pytest.mark.parametrize("name", ["x3d-s", "mouse3d"])
def test_an_export_needs_torch_alone(name: str, tmp_path: Path) -> None:
    model = net(TINY[name]).eval()
    export_model(model, tmp_path / "export")
    with torch.no_grad():
        expected = float(model(torch.ones(1, 17, 32, 32).cumsum(1) / 17).double().sum())
    found = value_of("net(torch.ones(1, 17, 32, 32).cumsum(1) / 17).double().sum()", tmp_path / "export")
    assert found == pytest.approx(expected, abs=1e-5)
    assert json.loads((tmp_path / "export" / "config.json").read_text())["arguments"]["classes"] == list(CLASSES)


def test_an_onnx_file_has_the_logits_of_torch(tmp_path: Path) -> None:
    """`write_onnx` compares them."""
    model = make_net(SMALL, CLASSES).eval()
    folder, example = export_model(model, tmp_path / "export"), example_inputs(model)
    assert example[0].shape == (2, 5, 16, 16)
    path = write_onnx(model, folder, layout_of(model, example, {}), examples_of(example))
    assert path.stat().st_size > 0


def test_wrong_sizes_are_refused() -> None:
    wrong = (
        lambda: ClipConfig(frames=16),
        lambda: ClipConfig(size=8),
        lambda: VideoNetConfig(width=0),
        lambda: VideoNetConfig(blocks=(1, 0)),
        lambda: Config(imbalance_power=2.0),
        lambda: Config(clips=ClipConfig(frames=13)),
        lambda: Config(clips=ClipConfig(frames=9), net=VideoNetConfig(stem_stride=(2, 4, 4))),
        lambda: Config(labels="multi", unlabelled="ignore"),
    )
    for make in wrong:
        with pytest.raises(UserError):
            make()


@pytest.mark.parametrize("blocks", [(1,), (1, 1), (1, 1, 1), (1, 1, 1, 1)])
@pytest.mark.parametrize("stem", [1, 2])
def test_the_middle_of_the_last_frames_is_the_labelled_frame(blocks: tuple[int, ...], stem: int) -> None:
    """Each stride of 2 with a kernel of 3 keeps every second frame, from the first on."""
    strides = [stem, *(stride[0] for stride in stage_strides(len(blocks)))]
    cfg = VideoNetConfig(blocks=blocks, stem_stride=(stem, 4, 4))
    assert cfg.time_stride == math.prod(strides)
    allowed = [frames for frames in range(1, 42, 2) if (frames - 1) % (2 * cfg.time_stride) == 0]
    for frames in allowed:
        kept = range(0, frames, cfg.time_stride)
        assert kept[len(kept) // 2] == frames // 2

"""Regression tests for the defects of the program that this workload follows, "the origin" (prj_mouse_pain).

Each docstring names the defect. Legend: N frames, C classes.
"""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from ranks import RunConfig, World
from ranks.workloads import video_behavior as workload
from ranks.workloads.video_behavior.clips.balance import class_balance
from ranks.workloads.video_behavior.clips.cut import ClipCutter
from ranks.workloads.video_behavior.clips.labelled import LabelledFrames, split_bouts
from ranks.workloads.video_behavior.config import PRESETS, Config
from ranks.workloads.video_behavior.metrics.frames import confusion_counts
from ranks.workloads.video_behavior.net.examples import example_inputs
from ranks.workloads.video_behavior.net.nets import make_net
from ranks.workloads.video_behavior.tables.baselines import split_by_clip
from ranks.workloads.video_behavior.training import train
from ranks.workloads.video_behavior.validation import predict_frames, validate
from tests.engine.group import another_world, run_ranks
from tests.video_behavior.example_frames import CLASSES, SMALL, example_frames

SIZES = range(1, 65)


def evaluated(world: World) -> tuple[dict[bool, list[list[int]]], dict[str, float]]:
    """The confusion matrix of the first n frames of the test split, for each n, without and with --exact; and what a
    validation says."""
    data = example_frames()
    cutter = ClipCutter(data, SMALL.clips, world.device)
    torch.manual_seed(0)
    model = make_net(SMALL, CLASSES)
    found = {}
    for exact in (False, True):
        each = another_world(world, RunConfig(threads=1, exact=exact))
        found[exact] = []
        for size in SIZES:
            frames_n = data.frames_of("test")[:size]
            predicted_n = predict_frames(model, cutter, frames_n, each).argmax(1)
            found[exact].append(confusion_counts(data.class_N[frames_n], predicted_n, 3).ravel().tolist())
    return found, validate(model, cutter, "val", 1, another_world(world, RunConfig(threads=1, exact=True)))


def test_evaluation_counts_every_frame_once_on_any_number_of_ranks(tmp_path: Path) -> None:
    """The origin: each rank validated its own part, without a reduction. The ranks stopped early by their own losses,
    and the best F1 was that of the part of rank 0.

    One and three ranks, data sets of 1 to 64 frames."""
    (alone,) = run_ranks(1, evaluated, config=RunConfig(), tmp_path=tmp_path)
    for found in run_ranks(3, evaluated, config=RunConfig(), tmp_path=tmp_path):
        assert found == alone
    assert [sum(counts) for counts in alone[0][True]] == list(SIZES)


def animals_by_split(data: LabelledFrames) -> list[set[str]]:
    return [{video.animal for video in data.videos_of(split)} for split in ("train", "val", "test")]


def test_no_animal_is_in_two_splits() -> None:
    """The origin: trials were split at random, so each animal was on both sides. The table measures what that hides."""
    splits = animals_by_split(example_frames())
    assert sum(map(len, splits)) == len(set().union(*splits))
    leaky = split_by_clip(example_frames(), 8, seed=0)
    shared = [one & other for one, other in zip(animals_by_split(leaky), animals_by_split(leaky)[1:], strict=False)]
    assert all(len(both) > 1 for both in shared)
    counts = [sum(video.num_frames for video in data.videos) for data in (leaky, example_frames())]
    assert counts[0] == counts[1] == len(leaky.label_NC)


def test_a_clip_has_seventeen_frames_everywhere() -> None:
    """The origin: a default of 9 frames in one place, 16 or 17 in others."""
    assert {preset().clips.frames for preset in PRESETS.values()} | {Config().clips.frames} == {17}
    assert example_inputs(make_net(PRESETS["small"](), CLASSES))[0].shape[1] == 17


def test_nothing_is_downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The origin: its training downloaded another net."""

    def refuse(*arguments: object) -> None:
        raise AssertionError("a connection to another machine")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    config = RunConfig(runs_dir=tmp_path / "runs", name="r", threads=1)
    world = World.join(config, device="cpu", workload="video-behavior")
    try:
        assert train(replace(SMALL, iterations=1), world, example_frames()).complete
    finally:
        world.leave()


def test_weights_net_and_data_have_the_same_classes() -> None:
    """The origin: class weights for 10 classes, a net for 7, data with 6. Here the data alone say which there are."""
    data = example_frames()
    balance = class_balance(split_bouts(data, "train"), data.classes, "weights", 0.5)
    net = workload.build(replace(SMALL, classes=data.classes))
    assert len(balance.weight_C) == net(torch.rand(1, 5, 16, 16)).shape[1] == len(data.classes)

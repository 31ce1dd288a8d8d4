"""Probabilities and scores of frames. Legend: N frames, C classes. Several ranks: test_origin_defects.py."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from ranks.workloads.video_behavior.clips.cut import ClipCutter
from ranks.workloads.video_behavior.net.nets import make_net
from ranks.workloads.video_behavior.scoring import VideoPrediction, score
from ranks.workloads.video_behavior.validation import frame_scores, log_loss, predict_frames
from tests.video_behavior.example_frames import CLASSES, SMALL, example_frames, world_of


def test_probabilities_are_those_of_each_frame_alone() -> None:
    data = example_frames()
    cutter = ClipCutter(data, SMALL.clips, torch.device("cpu"))
    model = make_net(SMALL, CLASSES)
    frames_n = data.frames_of("val")[:9]
    together = predict_frames(model, cutter, frames_n, world_of())
    alone = [predict_frames(model, cutter, frames_n[i : i + 1], world_of())[0] for i in range(9)]
    np.testing.assert_allclose(together, alone, atol=1e-6)
    np.testing.assert_allclose(together.sum(1), 1, atol=1e-6)
    assert model.training


def test_scores_of_a_perfect_and_of_a_constant_answer() -> None:
    for multi in (False, True):
        data = example_frames(multi=multi)
        frames_n = data.frames_of("test")
        perfect = data.label_NC[frames_n].astype(np.float64)
        assert frame_scores(data, frames_n, perfect).macro_f1 == 1
        assert log_loss(data, frames_n, perfect) == 0
    data = example_frames()
    uniform = np.full((len(frames_n), 3), 1 / 3)
    assert log_loss(data, data.frames_of("test"), uniform) == pytest.approx(math.log(3))
    rest = float((data.class_N[data.frames_of("test")] == 0).mean())
    np.testing.assert_allclose(frame_scores(data, data.frames_of("test"), uniform).macro_f1, 2 * rest / (1 + rest) / 3)


def test_an_interval_is_of_samples_that_show_every_class() -> None:
    """Class 2 is easy and class 1 hard, and one animal alone shows class 1. The mean of the others would be 1."""
    easy, hard = np.zeros(20, np.int64), np.array([1, 0] * 10)
    easy[10:] = 2
    videos = [
        VideoPrediction(animal, animal, truth, np.eye(3)[np.where(truth == 1, 0, truth)])
        for animal, truth in (("m1", easy), ("m2", easy), ("m3", easy), ("m4", hard))
    ]
    found = score(videos, [video.probability_NC.argmax(1) for video in videos], excluded=())
    assert found.macro_f1.value < 0.66
    assert found.macro_f1.high < 0.67


def test_latency_is_in_seconds_of_each_video() -> None:
    """The first bout is 10 frames late at 25 frames a second, and 10 frames late at 100: 0.25 s on average."""
    truth = np.repeat([0, 1], (20, 20))
    late = np.eye(2)[np.repeat([0, 1], (30, 10))]
    videos = [VideoPrediction(f"m{us}", f"m{us}", truth, late, us) for us in (40_000, 10_000)]
    found = score(videos, [video.probability_NC.argmax(1) for video in videos], excluded=())
    assert found.bouts[0.3].latency_s_C[1] == pytest.approx(0.25)

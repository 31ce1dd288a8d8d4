"""Evaluation on several ranks. Legend: N frames, C classes."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from ranks import RunConfig, World
from ranks.workloads.video_behavior.clips.cut import ClipCutter
from ranks.workloads.video_behavior.metrics.frames import confusion_counts
from ranks.workloads.video_behavior.net.nets import make_net
from ranks.workloads.video_behavior.validation import frame_scores, log_loss, predict_frames
from tests.engine.group import another_world, run_ranks
from tests.video_behavior.example_frames import CLASSES, SMALL, example_frames, world_of

SIZES = range(1, 65)


def counts_by_size(world: World) -> dict[bool, list[list[int]]]:
    """The confusion matrix of the first n frames of the test split, for each n, without and with --exact."""
    data = example_frames()
    cutter = ClipCutter(data, SMALL.clips, world.device)
    torch.manual_seed(0)
    model = make_net(SMALL.net, CLASSES)
    found = {}
    for exact in (False, True):
        each = another_world(world, RunConfig(threads=1, exact=exact))
        found[exact] = []
        for size in SIZES:
            frames_n = data.frames_of("test")[:size]
            predicted_n = predict_frames(model, cutter, frames_n, each).argmax(1)
            found[exact].append(confusion_counts(data.class_N[frames_n], predicted_n, 3).ravel().tolist())
    return found


def test_one_and_three_ranks_count_alike_for_every_size_of_data_set(tmp_path: Path) -> None:
    (alone,) = run_ranks(1, counts_by_size, config=RunConfig(), tmp_path=tmp_path)
    for found in run_ranks(3, counts_by_size, config=RunConfig(), tmp_path=tmp_path):
        assert found == alone
    assert [sum(counts) for counts in alone[True]] == list(SIZES)


def test_probabilities_are_those_of_each_frame_alone() -> None:
    data = example_frames()
    cutter = ClipCutter(data, SMALL.clips, torch.device("cpu"))
    model = make_net(SMALL.net, CLASSES)
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

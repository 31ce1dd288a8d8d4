"""The baselines of the table. Legend: N frames, T frames of a clip, C classes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from ranks.errors import UserError
from ranks.workloads.video_behavior.clips.cut import ClipCutter
from ranks.workloads.video_behavior.tables.baselines import (
    difference_energies,
    energy_f1,
    fit_logistic,
    majority_f1,
    with_one,
)
from ranks.workloads.video_behavior.tables.table import table
from ranks.workloads.video_behavior.tables.task import trained
from tests.video_behavior.example_frames import CPU, SMALL, example_frames, pixels_of


def test_the_most_frequent_class_has_the_f1_of_the_formula() -> None:
    data = example_frames()
    truth_N = data.class_N[data.frames_of("test")]
    frequent = np.bincount(data.class_N[data.frames_of("train")]).argmax()
    share = (truth_N == frequent).mean()
    assert majority_f1(data, data, "test") == pytest.approx(2 * share / (1 + share) / 3)


def test_the_energy_of_differences_is_that_of_each_pair_of_frames() -> None:
    data = example_frames()
    cutter = ClipCutter(data, SMALL.clips, CPU)
    frames_n = data.frames_of("val")[10:13]
    found = difference_energies(cutter, frames_n)
    for row, frame in zip(found, frames_n.tolist(), strict=True):
        clip = pixels_of(data.store)[frame - 2 : frame + 3].astype(np.float64)
        change = [np.abs(clip[t + 1] - clip[t]).mean() for t in range(4)]
        np.testing.assert_allclose(row[:4], np.log(np.array(change) + 1e-3))


def test_energy_tells_what_changes_from_what_rests() -> None:
    cutter = ClipCutter(example_frames(), SMALL.clips, CPU)
    assert energy_f1(cutter, cutter, "test", 1) > 0.6


def test_the_regression_separates_what_a_line_separates() -> None:
    features_NF = torch.linspace(-1, 1, 60, dtype=torch.float64)[:, None]
    class_N = (features_NF[:, 0] > 0.2).long()
    weights = fit_logistic(features_NF, class_N, 2)
    assert torch.equal((with_one(features_NF) @ weights).argmax(1), class_N)


def test_a_training_of_the_table_that_has_finished_is_kept(tmp_path: Path) -> None:
    data, cfg = example_frames(), replace(SMALL, eval_stride=8)
    first = trained(cfg, data, tmp_path, "net-0", 0)
    rows = (tmp_path / "net-0" / "metrics.jsonl").read_bytes()
    again = trained(cfg, data, tmp_path, "net-0", 0)
    assert (tmp_path / "net-0" / "metrics.jsonl").read_bytes() == rows
    assert again.seconds == first.seconds > 0
    for name, values in first.net.state_dict().items():
        assert torch.equal(values, again.net.state_dict()[name]), name


def test_a_table_without_a_seed_is_refused() -> None:
    with pytest.raises(UserError, match="--seeds 0"):
        table(seeds=0)

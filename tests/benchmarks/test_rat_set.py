"""benchmarks/video_behavior/rat_set.py: poses as they are read, drawn and measured, and what counts as a whole run."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.video_behavior import rat_set
from benchmarks.video_behavior.rat import poses as rat_poses
from ranks.errors import UserError


def table(poses: np.ndarray, likelihood: np.ndarray) -> str:
    """A table of DeepLabCut with two animals."""
    parts = [name for _ in range(2) for name in rat_poses.KEY_POINTS for _ in range(3)]
    header = [["scorer"] * 30, [f"individual{1 + at // 15}" for at in range(30)], parts, ["x", "y", "likelihood"] * 10]
    rows = np.concatenate([poses, likelihood[..., None]], -1).reshape(len(poses), -1)
    names = ("scorer", "individuals", "bodyparts", "coords")
    lines = [",".join([name, *cells]) for name, cells in zip(names, header, strict=True)]
    for at, row in enumerate(rows):
        lines.append(",".join([str(at), *("" if np.isnan(value) else f"{value:g}" for value in row)]))
    return "\n".join(lines) + "\n"


def walking(num_frames: int) -> np.ndarray:
    """float64[N, 2, 5, 2]: two rats, one behind the other, that walk to the right by 2 pixels a frame."""
    first = np.array([[200.0, 100], [150, 100], [100, 100], [50, 100], [10, 100]])
    poses = np.stack([first, first + np.array([0, 200])])[None].repeat(num_frames, 0)
    poses[..., 0] += 2.0 * np.arange(num_frames)[:, None, None]
    return poses


def test_poses_are_read_and_short_gaps_filled(tmp_path: Path) -> None:
    poses, likelihood = walking(60), np.ones((60, 2, 5))
    likelihood[10:20, 0, 0] = 0.3  # ten frames
    likelihood[30:50, 1, 2] = 0.3  # twenty frames
    poses[:5, 0, 1] = np.nan
    path = tmp_path / "1DLC_x.csv"
    path.write_text(table(poses, likelihood))
    found = rat_poses.read_poses(path)
    missing = np.zeros((60, 2, 5), np.bool_)
    missing[30:50, 1, 2] = missing[:5, 0, 1] = True
    assert (np.isnan(found[..., 0]) == missing).all()
    np.testing.assert_allclose(found[~missing], poses[~missing])
    assert np.isnan(rat_poses.padded(found, 63)[60:]).all()
    path.write_text(path.read_text().replace("top", "nose"))
    with pytest.raises(UserError, match="no table of two rats"):
        rat_poses.read_poses(path)


def test_rats_are_drawn_where_they_are() -> None:
    poses = walking(40).astype(np.float32)
    poses[:, 1, :, :] = np.nan  # the second rat is not seen
    frames_NHW = np.concatenate(list(rat_poses.pictures(poses)))
    assert frames_NHW.shape == (40, rat_poses.SIZE, rat_poses.SIZE)
    bright = frames_NHW > 200
    columns = np.array([np.flatnonzero(frame.any(0)).mean() for frame in bright])
    assert columns[-1] - columns[0] == pytest.approx(39 * 2 * rat_poses.SIZE / rat_poses.FIELD, abs=1)
    assert (np.diff(columns) > -0.51).all()
    assert not (frames_NHW[:, :20] > rat_poses.BACKGROUND).any()


def test_features_by_hand() -> None:
    features_NF = rat_poses.features(walking(30).astype(np.float32))
    assert features_NF.shape == (30, len(rat_poses.NAMES)) == (30, 26)
    found = dict(zip(rat_poses.NAMES, features_NF[10], strict=True))
    assert found["top to top"] == pytest.approx(200)
    assert found["top to tail"] == pytest.approx(np.hypot(100, 200))
    assert found["body to tail of 2"] == pytest.approx(50)
    assert found["speed of top of 1"] == pytest.approx(2)
    assert found["change of body to body"] == pytest.approx(0, abs=1e-4)
    assert found["angle of both"] == pytest.approx(1)
    assert found["angle of 1 to 2"] == pytest.approx(0, abs=1e-4)


def test_means_and_deviations_over_a_window() -> None:
    values_N1 = np.random.default_rng(0).normal(size=(40, 1)).astype(np.float32)
    values_N1[5:15] = np.nan
    found = rat_poses.over_time(values_N1, 7)
    for at in range(40):
        window = values_N1[max(0, at - 3) : at + 4, 0]
        window = window[~np.isnan(window)]
        expected = (window.mean(), window.std()) if len(window) else (np.nan, np.nan)
        np.testing.assert_allclose(found[at, 1:], expected, atol=1e-4)


def test_a_folder_without_the_data_set_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no data/annotations/NUMBER_annot\.txt"):
        rat_set.annotations_of(tmp_path, 3)
    (tmp_path / "data" / "annotations").mkdir(parents=True)
    for number in (10, 9, 1, 2):
        (tmp_path / "data" / "annotations" / f"{number}_annot.txt").touch()
    assert [rat_set.number_of(path) for path in rat_set.annotations_of(tmp_path, 3)] == [1, 2, 9]


def test_the_trees_can_be_imported() -> None:
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    assert importlib.import_module("benchmarks.video_behavior.rat.trees").trees_table


def test_the_bars_are_of_means_over_seeds() -> None:

    def seed(net: float, trees: float) -> dict[str, Any]:
        return {"net": {rat_set.RAW: net}, "trees": {rat_set.FRAME: {rat_set.RAW: trees}}}

    assert list(rat_set.verdicts_of([seed(0.6, 0.7), seed(0.7, 0.65)]).values()) == [True, True]
    assert list(rat_set.verdicts_of([seed(0.6, 0.7), seed(0.6, 0.65)]).values()) == [False, True]
    assert list(rat_set.verdicts_of([seed(0.4, 0.3), seed(0.5, 0.3)]).values()) == [True, False]

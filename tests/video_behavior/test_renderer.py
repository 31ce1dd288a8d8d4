"""The built-in mouse: deterministic, with the shares of its classes, and unseen cameras for the test."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranks.data.prepared.file_lock import file_lock
from ranks.engine.sharding.numpy_rng import numpy_generator
from ranks.errors import UserError
from ranks.workloads.video_behavior.annotations.frame_labels import exclusive_labels
from ranks.workloads.video_behavior.annotations.read import read_annotation
from ranks.workloads.video_behavior.clips.prepare import rendered_folder
from ranks.workloads.video_behavior.config import PRESETS, RenderedConfig
from ranks.workloads.video_behavior.renderer.command import render
from ranks.workloads.video_behavior.renderer.looks import RANGES, draw_look
from ranks.workloads.video_behavior.renderer.render import FPS, JITTER_FRAMES, StudyPlan, noted_events
from ranks.workloads.video_behavior.renderer.rendered_study import render_study
from ranks.workloads.video_behavior.renderer.schedule import CLASSES, SHARES, WITHDRAW, labels_of, make_schedule
from ranks.workloads.video_behavior.study.study import load_study
from ranks.workloads.video_behavior.video.decode import probe

PLAN = StudyPlan(animals=5, seconds=30.0, size=32)


def test_a_study_as_a_lab_would_have_it(tmp_path: Path) -> None:
    found = render_study(PLAN, tmp_path / "one", workers=1)
    assert render_study(PLAN, tmp_path / "two", workers=2)["frames_sha256"] == found["frames_sha256"]
    study = load_study(tmp_path / "one")
    assert [video.split for video in study.videos] == ["train", "train", "train", "val", "test"]
    assert {video.group for video in study.videos} == {"control", "treated"}
    facts = probe(study.videos[0].video)
    assert (facts.height, facts.width, facts.expected_frames, facts.fps) == (32, 32, 900, FPS)
    annotation = study.videos[0].annotation
    assert annotation is not None
    times_s_N = np.arange(900) / FPS
    label_N = exclusive_labels(read_annotation(annotation), study.classes, times_s_N, unlabelled="background")
    true_N = np.load(tmp_path / "one" / "true_labels" / "mouse000.npy")
    edges = np.flatnonzero(np.diff(true_N)) + 1
    far_N = np.abs(np.arange(900)[:, None] - np.concatenate([edges, [-99]])).min(1) > JITTER_FRAMES
    assert np.array_equal(np.array(study.classes)[label_N][far_N], np.array(CLASSES)[true_N][far_N])
    with pytest.raises(UserError, match="it has another study"):
        render(tmp_path / "one", animals=5, seconds=30.0, size=32, seed=1)


def test_a_study_that_was_interrupted_is_finished(tmp_path: Path) -> None:
    """Whatever a kill left: some videos, all of them with or without rendered.json, temporary files."""
    plan, folder = StudyPlan(animals=5, seconds=10.0, size=16), tmp_path / "study"
    found = render_study(plan, folder, workers=1)
    table = (folder / "dataset.csv").read_bytes()
    video = folder / "videos" / "mouse000.mp4"
    rendered_ns = video.stat().st_mtime_ns
    (folder / "dataset.csv").unlink()
    assert render_study(plan, folder, workers=1) == found
    assert (folder / "dataset.csv").read_bytes() == table
    assert video.stat().st_mtime_ns == rendered_ns, "nothing is rendered twice"
    for damage in ("", "{}", "3"):
        (folder / "dataset.csv").unlink()
        (folder / "rendered.json").write_text(damage)
        left = folder / "videos" / ".mouse000.mp4.17.tmp"
        left.write_bytes(b"half")
        assert render_study(plan, folder, workers=1) == found
        assert not left.exists()
    with file_lock(folder / ".lock", "the study"):
        assert render_study(plan, folder) == found, "a finished one needs no lock"


def test_a_folder_with_a_study_of_the_user_is_refused(tmp_path: Path) -> None:
    (tmp_path / "dataset.csv").write_text("video,annotation\n")
    with pytest.raises(UserError, match="it has another study"):
        render_study(StudyPlan(animals=5, seconds=10.0, size=16), tmp_path, workers=1)


def test_videos_are_rendered_at_the_size_of_the_clips(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not at 64 pixels to be enlarged to 256, as preset full did."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    rendered = RenderedConfig(animals=5, seconds=10.0)
    for clip_size, size in ((24, 24), (33, 34)):
        facts = probe(next(rendered_folder(rendered, clip_size).glob("videos/*.mp4")))
        assert (facts.height, facts.width) == (size, size)
    assert {preset().rendered.size for preset in PRESETS.values()} == {None}


def test_the_shares_of_the_classes_and_enough_withdrawals() -> None:
    frames = StudyPlan().frames
    labels = [labels_of(make_schedule(frames, numpy_generator(0, "renderer/schedule", 0, a))) for a in range(40)]
    shares = np.bincount(np.concatenate(labels), minlength=len(CLASSES)) / (40 * frames)
    assert np.allclose(shares, SHARES, atol=0.01)
    withdrawals = sum(int((np.diff((label_N == WITHDRAW).astype(int)) == 1).sum()) for label_N in labels[32:])
    assert withdrawals >= 60


def test_test_animals_have_cameras_coats_and_lights_of_their_own() -> None:
    for name, ((low, high), (test_low, test_high)) in RANGES.items():
        assert low < high
        assert test_low < test_high
        assert high < test_low or test_high < low, name
    for i in range(20):
        look = draw_look(numpy_generator(0, "look", 0, i), is_test=bool(i % 2))
        for name, ranges in RANGES.items():
            low, high = ranges[i % 2]
            assert low <= getattr(look, name) <= high


def test_edges_are_noted_up_to_two_frames_off_and_no_bout_is_lost() -> None:
    label_N = labels_of(make_schedule(3000, numpy_generator(3, "renderer/schedule", 0, 0)))
    events = noted_events(label_N, numpy_generator(3, "renderer/edges", 0, 0))
    edges = np.flatnonzero(np.diff(label_N)) + 1
    assert len(events) == len(edges) + 1
    moved = np.array([round(event.start_s * FPS + 0.5) for event in events[1:]]) - edges
    assert np.abs(moved).max() == JITTER_FRAMES
    assert len(np.unique(moved)) == 2 * JITTER_FRAMES + 1
    assert all(a.stop_s == b.start_s for a, b in pairwise(events))


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"animals": 2}, "5 animals"),
    ({"size": 33}, "even"),
    ({"contrast": 0.0}, "contrast"),
]


@pytest.mark.parametrize(("flags", "found"), WRONG)
def test_wrong_flags(flags: dict[str, Any], found: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=found):
        render(tmp_path / "study", **flags)

"""The other formats, and labels of frames from events."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ranks.errors import UserError
from ranks.workloads.video_behavior.annotations.caltech import write_caltech
from ranks.workloads.video_behavior.annotations.events import Annotation, Event
from ranks.workloads.video_behavior.annotations.frame_labels import (
    IGNORED,
    events_of_labels,
    exclusive_labels,
    multi_labels,
    nominal_times,
)
from ranks.workloads.video_behavior.annotations.frame_tables import write_binary_table, write_labels, write_zero_one
from ranks.workloads.video_behavior.annotations.read import merged, parse_merge, read_annotation, shifted_events
from ranks.workloads.video_behavior.clips.join import JoinedVideo, labels_of
from ranks.workloads.video_behavior.config import Config
from ranks.workloads.video_behavior.study.study import StudyVideo
from tests.video_behavior.annotations import annotation_examples as examples

CLASSES = ("rest", "lick", "shake")


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_a_format_is_recognised_by_its_content(tmp_path: Path) -> None:
    """All files have a suffix that says nothing."""
    path = tmp_path / "annotation.dat"
    lick = (Event("lick", 1.0, 2.0),)
    for text in (examples.NEW, examples.OLD):
        assert read_annotation(written(path, text)) == Annotation("v.mp4", lick, 25.0, None, "o")
    found = read_annotation(written(path, examples.AGGREGATED))
    assert found.events == (*lick, Event("shake", 3.0, None, "m1"))
    assert [event.behavior for event in read_annotation(written(path, examples.PROJECT)).events] == ["lick", "shake"]
    assert read_annotation(written(path, examples.LABELS), fps=2.0).events == (Event("0", 0, 1.5), Event("1", 1.5, 3))
    found = read_annotation(written(path, examples.ZERO_ONE), fps=1.0)
    assert found.events == (Event("background", 0, 1), Event("lick", 1, 2))
    assert (found.duration_s, found.unknown_frames) == (3.0, 1)
    assert read_annotation(written(path, examples.BINARY)).events == (Event("groom", 0, 1), Event("lick", 0.5, 1))
    found = read_annotation(written(path, examples.CALTECH), "S1", fps=25.0)
    assert found.events == (Event("base", 0, 0.4, "S1"), Event("lick", 0.4, 1.0, "S1"))
    path.write_bytes(gzip.compress(examples.PROJECT.encode()))
    assert read_annotation(path, "m1").events[0].subject == "m1"
    assert read_annotation(written(path, "\ufeff" + examples.NEW.replace("\t", ";"))).events == lick


def test_frames_that_nobody_labelled_are_no_background(tmp_path: Path) -> None:
    path = written(tmp_path / "annotation.csv", examples.ZERO_ONE)
    video = JoinedVideo(
        StudyVideo(Path("v.mp4"), path, "m1", "", None, 0.0, ""), read_annotation(path, fps=1.0), nominal_times(3, 1.0)
    )
    study: Any = SimpleNamespace(classes=("background", "lick"))
    for labels in ("exclusive", "multi"):
        with pytest.raises(UserError, match="-1 in every column, which nobody labelled: 1"):
            labels_of(video, study, Config(labels=labels))
    assert labels_of(video, study, Config(unlabelled="ignore")).tolist() == [[1, 0], [0, 1], [0, 0]]


def test_frame_formats_are_written_and_read(tmp_path: Path) -> None:
    labels = ["rest", "lick", "lick", "", "shake"]
    write_labels(tmp_path / "a.csv", labels, {"lick": [0.1, 0.9, 0.8, 0.2, 0.0]})
    assert (tmp_path / "a.csv").read_text().splitlines()[:2] == ["Frame,Action,lick_prob", "0,rest,0.1"]
    read = read_annotation(tmp_path / "a.csv", fps=30.0)
    times_N = nominal_times(5, 30.0)
    assert exclusive_labels(read, CLASSES, times_N, unlabelled="ignore").tolist() == [0, 1, 1, IGNORED, 2]
    write_zero_one(tmp_path / "b.csv", CLASSES, [[1, 0, 0], [0, 1, 1], [0, 0, 1]])
    shown = multi_labels(read_annotation(tmp_path / "b.csv", fps=30.0), CLASSES, nominal_times(3, 30.0))
    assert shown.tolist() == [[1, 0, 0], [0, 1, 1], [0, 0, 1]]
    write_binary_table(tmp_path / "c.tsv", Annotation("v", (Event("lick", 0.5, 1.0),), None, 2.0), 0.25)
    assert read_annotation(tmp_path / "c.tsv").events == (Event("lick", 0.5, 1.0),)
    both = Annotation(
        "", (Event("base", 0, 0.4, "S1"), Event("lick", 0.4, 1.0, "S1"), Event("base", 0, 1, "S2")), 25.0, 1.0
    )
    both = replace(both, counts_frames=True)
    write_caltech(tmp_path / "d_annot.txt", both, 25.0)
    assert read_annotation(tmp_path / "d_annot.txt", fps=25.0) == both


def test_trials_are_joined_in_time(tmp_path: Path) -> None:
    """In one file, where frames start again at 0, and in a folder, where trial 10 comes after trial 2."""
    one = written(tmp_path / "a.csv", "Frame,Action\n0,3\n1,1\n0,5\n1,\n")
    found = merged(read_annotation(one, fps=1.0), parse_merge("3->1, 5->1"))
    assert exclusive_labels(found, ("none", "1"), nominal_times(4, 1.0), unlabelled="ignore").tolist() == [1, 1, 1, -1]
    folder = tmp_path / "m1"
    folder.mkdir()
    for trial, action in ((2, "x"), (10, "y"), (1, "w")):
        written(folder / f"prediction_m1_{trial}.csv", f"Frame,Action\n0,{action}\n1,{action}\n")
    assert [event.behavior for event in read_annotation(folder, fps=2.0).events] == ["w", "x", "y"]
    assert read_annotation(folder, fps=2.0).events[-1] == Event("y", 2.0, 3.0)
    assert (read_annotation(one, fps=1.0).trials, read_annotation(folder, fps=2.0).trials) == (2, 3)


def slow_labels(events: tuple[Event, ...], times_N: np.ndarray) -> list[int]:
    """The class of each frame by the rule itself, for times far from any edge."""
    labels = []
    for n, t in enumerate(times_N):
        after = times_N[n + 1] if n + 1 < len(times_N) else np.inf
        shown = [e for e in events if e.stop_s is None and t <= e.start_s < after]
        shown += [e for e in events if e.stop_s is not None and e.start_s <= t < e.stop_s]
        labels.append(CLASSES.index(shown[0].behavior) if shown else 0)
    return labels


def test_labels_follow_the_rule_on_uneven_frames() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        times_N = np.cumsum(rng.uniform(0.01, 0.1, 40))
        edges = np.sort(rng.uniform(times_N[0], times_N[-1], 6))
        events = (Event("lick", edges[0], edges[1]), Event("shake", edges[2], edges[3]), Event("lick", edges[5], None))
        if abs(times_N[:, None] - edges).min() < 0.0006:  # the tolerance for rounded times
            continue
        found = exclusive_labels(Annotation("v", events), CLASSES, times_N, unlabelled="background")
        assert found.tolist() == slow_labels(events, times_N)


@pytest.mark.parametrize("fps", [10.0, 24.0, 25.0, 29.97, 30.0, 59.94, 60.0, 120.0])
def test_times_that_boris_rounds_label_the_frames_that_were_meant(fps: float) -> None:
    """A bout from frame 1 to frame n - 1, with times rounded to milliseconds."""
    for count in range(3, 200):
        event = Event("lick", round(1 / fps, 3), round((count - 1) / fps, 3))
        labels_N = exclusive_labels(
            Annotation("v", (event,)), CLASSES, nominal_times(count, fps), unlabelled="background"
        )
        assert labels_N.tolist() == [0, *[1] * (count - 2), 0]


def test_one_short_frame_takes_the_tolerance_from_no_other() -> None:
    """30 frames a second, with an additional one 0.2 ms behind frame 10. Around it no label is off by more than it."""
    times_N = np.sort(np.append(nominal_times(100, 30.0), 10 / 30 + 0.0002))
    for n in (3, 5, 8, 20, 50, 98):
        start_s, stop_s = round(float(times_N[n]), 3), round(float(times_N[n + 1]), 3)
        annotation = Annotation("v", (Event("lick", start_s, stop_s),))
        labels_N = exclusive_labels(annotation, CLASSES, times_N, unlabelled="background")
        assert np.flatnonzero(labels_N).tolist() == [n]
        point = Annotation("v", (Event("shake", start_s, None),))
        assert np.flatnonzero(multi_labels(point, CLASSES, times_N)[:, 2]).tolist() == [n]
    for n, event in ((10, Event("lick", 10 / 30, 10 / 30 + 0.0002)), (11, Event("lick", 10 / 30 + 0.0002, 11 / 30))):
        found_N = exclusive_labels(Annotation("v", (event,)), CLASSES, times_N, unlabelled="background")
        assert np.flatnonzero(found_N).tolist() == [n]


@pytest.mark.parametrize("kind", ["labels", "0/1 columns", "Caltech", "trials"])
@pytest.mark.parametrize("fps", [30.0, None])
def test_frame_n_of_an_annotation_is_frame_n_of_the_video(kind: str, fps: float | None, tmp_path: Path) -> None:
    """A camera that drops frames, at 29.97 frames a second, which a person may call 30: no label moves."""
    number_N = np.arange(9000)
    times_N = (number_N + 40 * (number_N > 2000) + 8 * np.sin(number_N / 300)) / 29.97
    truth_N = np.random.default_rng(0).integers(0, 3, 900).repeat(10)
    names = [CLASSES[label] for label in truth_N]
    path = tmp_path / "a_annot.txt"
    if kind == "labels":
        write_labels(path, names)
    elif kind == "0/1 columns":
        write_zero_one(path, CLASSES, np.eye(3, dtype=np.int64)[truth_N].tolist())
    elif kind == "Caltech":
        events = events_of_labels(truth_N, CLASSES, nominal_times(9000, 30.0), subject="S1")
        write_caltech(path, Annotation("", events), 30.0)
    else:
        path.mkdir()
        for trial in range(10):
            write_labels(path / f"trial_{trial}.csv", names[900 * trial : 900 * (trial + 1)])
    mean_fps = 1 / float(np.diff(times_N).mean())
    read = read_annotation(path, fps=fps or mean_fps)
    assert exclusive_labels(read, CLASSES, times_N, unlabelled="ignore").tolist() == truth_N.tolist()
    multi_NC = multi_labels(read, CLASSES, times_N)
    assert (multi_NC.argmax(1) == truth_N).all()
    if kind == "labels":  # the same events in seconds are where the time stamps say
        in_seconds = replace(read, counts_frames=False)
        assert (exclusive_labels(in_seconds, CLASSES, times_N, unlabelled="ignore") != truth_N).any()


def test_labels_become_events_and_labels_again() -> None:
    labels_N = np.array([0, 0, 1, 2, 2, IGNORED, 1])
    times_N = nominal_times(7, 29.97)
    events = events_of_labels(labels_N, CLASSES, times_N)
    assert [event.behavior for event in events] == ["rest", "lick", "shake", "lick"]
    again_N = exclusive_labels(Annotation("v", events), CLASSES, times_N, unlabelled="ignore")
    assert again_N.tolist() == labels_N.tolist()


def test_overlaps_name_both_events() -> None:
    events = (Event("lick", 0.0, 2.0, "m1"), Event("shake", 1.0, 3.0, "m2"))
    annotation = Annotation("day 1/v.mp4", events)
    with pytest.raises(UserError) as error:
        exclusive_labels(annotation, CLASSES, nominal_times(4, 1.0), unlabelled="background")
    assert "'lick' of 'm1' from 0 to 2 s and 'shake' of 'm2' from 1 to 3 s label the same frame" in str(error.value)
    assert "day 1/v.mp4" in str(error.value)
    shown_NC = multi_labels(annotation, CLASSES, nominal_times(4, 1.0))
    assert shown_NC.tolist() == [[0, 1, 0], [0, 1, 1], [0, 0, 1], [0, 0, 0]]


def test_offsets_shift_all_times() -> None:
    shifted = shifted_events(Annotation("v", (Event("lick", 1.0, 2.0), Event("shake", 3.0, None))), 0.5)
    assert shifted.events == (Event("lick", 1.5, 2.5), Event("shake", 3.5, None))

"""The command agree with one subject, and with behaviours that overlap. test_study.py has the simple cases."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ranks.cli.main import main
from ranks.errors import UserError
from ranks.workloads.video_behavior.annotations.boris_events import write_boris_events
from ranks.workloads.video_behavior.annotations.events import Annotation, Event
from ranks.workloads.video_behavior.annotations.read import check_subject, read_annotation
from ranks.workloads.video_behavior.prediction.stream_video import PredictedFrames
from ranks.workloads.video_behavior.prediction.written import predicted_video, write_frames, write_project

TIMES_N = np.arange(100) / 25


def rated(path: Path, *events: Event) -> str:
    write_boris_events(path, [Annotation("v.mp4", events, 25.0, 4.0, "v")])
    return str(path)


def agreed(*argv: str) -> int:
    return main(["video-behavior", "agree", *argv])


def test_a_subject_of_a_rater_against_the_files_of_a_net(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A table by frame names no subject, so all of it counts. BORIS files name that of the run."""
    rater = rated(tmp_path / "rater.tsv", Event("lick", 0.0, 2.0, "m1"), Event("lick", 1.0, 4.0, "m2"))
    label_N = np.repeat([1, 0, 1], [40, 50, 10])
    found, classes = PredictedFrames(np.eye(2)[label_N], TIMES_N), ("background", "lick")
    video = predicted_video("v", Path("v.mp4"), found, label_N, classes, 0, subject="m1")
    assert {event.subject for event in video.events} == {"m1"}
    write_frames(tmp_path / "v.csv", found, label_N, classes)
    write_boris_events(tmp_path / "v.boris.tsv", [video.annotation])
    write_project(tmp_path / "predictions.boris", "labels", [video.annotation])
    for name in ("v.csv", "v.boris.tsv", "predictions.boris"):
        assert agreed(rater, str(tmp_path / name), "--subject", "m1") == 0
        assert "100 frames at 25 frames a second\nCohen's kappa 0.600" in capsys.readouterr().out
    assert agreed(rater, str(tmp_path / "v.csv"), "--subject", "M1") == 2
    assert "no events of the subject 'M1'\n   do: it has m1, m2" in capsys.readouterr().err


def test_a_table_with_a_variable_rate_is_compared_by_its_times(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """50 frames in the first second and 25 in each of the next two; 100 frames in 3 s have a mean rate of 33.3. By that
    rate the bout from frame 50 to 75 would be from 1.5 to 2.25 s."""
    times_N = np.concatenate([np.arange(50) / 50, 1 + np.arange(50) / 25])
    label_N = np.repeat([0, 1, 0], [50, 25, 25])
    write_frames(tmp_path / "v.csv", PredictedFrames(np.eye(2)[label_N], times_N), label_N, ("background", "lick"))
    rater = rated(tmp_path / "rater.tsv", Event("lick", 1.0, 2.0))
    rate = 99 / times_N[-1]
    write_boris_events(tmp_path / "rater.tsv", [Annotation("v.mp4", (Event("lick", 1.0, 2.0),), rate, 3.0, "v")])
    assert agreed(rater, str(tmp_path / "v.csv")) == 0
    assert "Cohen's kappa 1.000" in capsys.readouterr().out


def test_a_subject_that_only_one_rater_names_does_nothing_in_the_other_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = rated(tmp_path / "a.tsv", Event("lick", 0.0, 2.0, "m1"))
    two = rated(tmp_path / "b.tsv", Event("lick", 0.0, 2.0, "m2"))
    assert agreed(one, two, "--subject", "m1") == 0
    printed = capsys.readouterr().out
    assert f"note: {two} has no event of 'm1', only of m2" in printed
    assert "Cohen's kappa 0.000" in printed


def test_the_subjects_of_a_file_are_those_of_all_its_observations(tmp_path: Path) -> None:
    each = [
        Annotation(f"m{n}.mp4", (Event("lick", 0.0, 1.0, subject),), 25.0, 4.0, f"day {n}")
        for n, subject in enumerate(("", "mouse 1"))
    ]
    write_boris_events(tmp_path / "a.tsv", each)
    write_project(tmp_path / "a.boris", "two days", each)
    for name in ("a.tsv", "a.boris"):
        first, second = (read_annotation(tmp_path / name, "mouse 1", video=f"m{n}.mp4") for n in (0, 1))
        assert (first.events, second.events) == ((), each[1].events)
        with pytest.raises(UserError, match=r"no events of the subject 'mouse1'\n   do: did you mean mouse 1\?"):
            read_annotation(tmp_path / name, "mouse1", video="m1.mp4")
        absent = read_annotation(tmp_path / name, "mouse1", video="m1.mp4", missing_ok=True)
        assert (absent.events, absent.fps, absent.duration_s) == ((), 25.0, 4.0)
        with pytest.raises(UserError, match="asked: the study\nfound: no events of the subject 'mouse1'"):
            check_subject("mouse1", [absent, first], "the study")


def test_overlapping_behaviours_are_compared_one_by_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The rater: lick 0 to 2 s, shake 1 to 3 s, in 4 s. The net misses the last 10 of 50 frames of lick, and shows 10
    others; it is right about shake, which overlaps both."""
    rater = rated(tmp_path / "rater.tsv", Event("lick", 0.0, 2.0), Event("shake", 1.0, 3.0))
    shown_NC = np.zeros((100, 2), np.int64)
    shown_NC[:40, 0] = shown_NC[60:70, 0] = 1
    shown_NC[25:75, 1] = 1
    net = tmp_path / "net.csv"
    write_frames(net, PredictedFrames(shown_NC.astype(np.float64), TIMES_N), shown_NC, ("lick", "shake"))
    assert "lick+shake" in net.read_text()
    found = {(event.behavior, event.start_s, event.stop_s) for event in read_annotation(net).events}
    assert found == {("lick", 0.0, 1.6), ("lick", 2.4, 2.8), ("shake", 1.0, 3.0)}
    out = tmp_path / "out.json"
    assert agreed(rater, str(net), "--labels", "multi", "--json", str(out)) == 0
    table = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith(("lick", "shake"))]
    assert table == [
        ["lick", "0.600", "50", "50", "0.800", "1", "2", "0.667"],
        ["shake", "1.000", "50", "50", "1.000", "1", "1", "1.000"],
    ]
    content = json.loads(out.read_text())
    assert content["labels"] == "multi"
    assert content["classes"]["lick"]["kappa"] == pytest.approx(0.6)
    assert content["classes"]["shake"]["bout_f1"] == 1.0
    assert agreed(rater, str(net)) == 2
    assert "label the same frame" in (message := capsys.readouterr().err)
    assert "give --labels multi" in message


def test_the_background_is_no_behaviour_that_may_overlap(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rater = rated(tmp_path / "rater.tsv", Event("lick", 0.0, 2.0))
    net = tmp_path / "net.csv"
    net.write_text("Frame,Action\n" + "".join(f"{n},{'lick' if n < 50 else 'rest'}\n" for n in range(100)))
    assert agreed(rater, str(net), "--labels", "multi", "--background", "rest") == 0
    printed = capsys.readouterr().out
    assert "lick    1.000" in printed
    assert "rest " not in printed


def test_labels_with_a_plus_are_taken_apart_by_the_columns_of_classes(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    for header, label, behaviors in (
        ("a_prob,b_prob", "a+b", ["a", "b"]),
        ("a_prob,a+b_prob,c_prob", "a+b", ["a+b"]),
        ("a+b_prob,c_prob", "a+b+c", ["a+b", "c"]),
        ("a_prob,c_prob", "a+b", ["a+b"]),
        ("a_prob,_prob", "a+", ["a+"]),
        ("x,y", "a+b", ["a+b"]),
    ):
        path.write_text(f"Frame,Action,{header}\n0,{label}" + ",0" * (header.count(",") + 1) + "\n")
        assert [event.behavior for event in read_annotation(path, fps=1.0).events] == behaviors

"""ranks video-behavior predict: it labels every frame of real videos, as training would see it."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from ranks import RunConfig, World
from ranks.cli.main import main
from ranks.engine.files.strict_json import read_object
from ranks.workloads.video_behavior.annotations.boris_events import write_boris_events
from ranks.workloads.video_behavior.annotations.boris_project import read_boris_project
from ranks.workloads.video_behavior.annotations.events import Annotation, Event
from ranks.workloads.video_behavior.annotations.read import read_annotation
from ranks.workloads.video_behavior.clips.cut import ClipReader
from ranks.workloads.video_behavior.config import ClipConfig
from ranks.workloads.video_behavior.prediction.stream_video import PredictedFrames, clips_of_stream
from ranks.workloads.video_behavior.prediction.summary import VideoSummary, times_of, write_summary
from ranks.workloads.video_behavior.prediction.written import least_certain, predicted_video
from ranks.workloads.video_behavior.smoothing.label_rule import LabelRule, read_rule
from ranks.workloads.video_behavior.smoothing.smoothing import Smoothing
from ranks.workloads.video_behavior.study.study import StudyVideo, write_dataset_csv
from ranks.workloads.video_behavior.training import train
from ranks.workloads.video_behavior.video.decode import open_video
from tests.video_behavior.example_frames import CLASSES, SMALL, example_frames, pixels_of
from tests.video_behavior.video.videos import write_square


def trained_run(
    tmp_path: Path,
    multi: bool = False,
    classes: tuple[str, ...] = CLASSES,
    subject: str | None = None,
    without_background: bool = False,
) -> Path:
    """The folder of a run of two updates, whose study is not there any more. `without_background`: frames without a
    code were left out of its training."""
    data = example_frames(multi=multi)
    uncoded = classes[0] if classes[0] == "background" else ""
    data = data if multi else replace(data, classes=classes, background=classes[0], uncoded=uncoded)
    cfg = replace(SMALL, iterations=2, data=tmp_path / "gone", labels="multi" if multi else "exclusive")
    cfg = replace(cfg, subject=subject)
    if without_background:
        data = replace(data, label_NC=data.label_NC[:, 1:].copy(), classes=classes[1:])
        cfg = replace(cfg, unlabelled="ignore")
    world = World.join(
        RunConfig(runs_dir=tmp_path / "runs", name="r", threads=1), device="cpu", workload="video-behavior"
    )
    try:
        return train(cfg, world, data).folder
    finally:
        world.leave()


@pytest.mark.parametrize(("stride", "block", "most"), [(1, 7, 4), (3, 5, 64), (2, 40, 1)])
def test_the_clips_of_a_stream_are_those_of_training(stride: int, block: int, most: int) -> None:
    data = example_frames()
    video = data.videos[0]
    rows = slice(video.first_frame, video.first_frame + video.num_frames)
    frames_NHW = pixels_of(data.store)[rows]
    clips = ClipConfig(frames=5, stride=stride, size=frames_NHW.shape[1])
    reader = ClipReader(data, clips, pixels=True, pinned=False)
    centres = torch.arange(rows.start, rows.stop)
    expected = reader.read(centres, centres).clips_BTHW
    blocks = (frames_NHW[at : at + block] for at in range(0, len(frames_NHW), block))
    found = list(clips_of_stream(blocks, clips, most))
    assert max(map(len, found)) <= most
    assert expected is not None
    assert torch.equal(torch.cat(found), expected)


@pytest.mark.parametrize("background", ["rest", "background"])
def test_predict_writes_a_row_for_each_frame_and_events_that_can_be_read_back(
    background: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Frames without a code are no event. A behaviour that people code is, also as the background of the training."""
    monkeypatch.chdir(tmp_path)
    classes = (background, *CLASSES[1:])
    trained_run(tmp_path, classes=classes, subject="m1")
    for name, frames in (("a", 30), ("b", 9)):
        write_square(tmp_path / f"{name}.mp4", frames)
    predict = ["video-behavior", "predict", "r", "a.mp4", "b.mp4", "--overlay", "--least-certain", "3"]
    assert main(predict) == 0
    assert "labels are not smoothed" in capsys.readouterr().out  # the study is gone, and nothing is hidden
    out = tmp_path / "predictions"
    with (out / "a.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["Frame"]) for row in rows] == list(range(30))
    assert [float(row["Time"]) for row in rows] == pytest.approx([i / 25 for i in range(30)])
    for row in rows:
        shares = {name: float(row[f"{name}_prob"]) for name in classes}
        assert sum(shares.values()) == pytest.approx(1, abs=1e-3)
        assert row["Action"] == max(shares, key=lambda name: shares[name])
    events = read_annotation(out / "a.boris.tsv").events
    assert {event.subject for event in events} == ({"m1"} if events else set())
    shown = {event.behavior for event in events}
    assert shown == {row["Action"] for row in rows} - {"background"}
    with open_video(out / "a.overlay.mp4") as video:
        assert sum(len(block.frames_NHW) for block in video.blocks()) == 30
    assert (out / "a.ethogram.png").read_bytes().startswith(b"\x89PNG")
    with (out / "summary.csv").open() as file:
        summary = list(csv.DictReader(file))
    assert {row["animal"] for row in summary} == {"a.mp4", "b.mp4"}
    assert {row["source"] for row in summary} == {"net"}
    project = read_boris_project(out / "predictions.boris")
    assert [one.observation for one in project.annotations] == ["a", "b"]
    assert project.annotations[0].video == str(tmp_path / "a.mp4")
    assert project.annotations[0].events == read_annotation(out / "a.boris.tsv").events
    uncertain = read_boris_project(out / "least_certain.boris").annotations
    marked = [event.comment_start for one in uncertain for event in one.events]
    assert len(marked) == min(3, sum(len(one.events) for one in project.annotations))
    assert all(comment.startswith("uncertain: ") for comment in marked)
    assert {row["behavior"] for row in summary} == set(classes) - {"background"}
    whole = sum(float(row["share"]) for row in summary if row["animal"] == "a.mp4")
    assert background == "background" or whole == pytest.approx(1, abs=1e-3)

    (out / "b.done.json").unlink()
    (out / "b.csv").unlink()
    before = (out / "a.csv").stat().st_mtime_ns
    assert main(predict) == 0  # as after a kill: the first video stays
    assert "a.mp4: done before" in capsys.readouterr().out
    assert (out / "a.csv").stat().st_mtime_ns == before
    assert (out / "b.csv").exists()
    assert not list(out.glob("predictions-*.boris")), "what nobody has changed is written again"

    corrected = (out / "predictions.boris").read_text().replace("labels of r", "corrected by Ann")
    (out / "predictions.boris").write_text(corrected)
    for _ in range(2):
        assert main(predict) == 0
        assert "summary.csv, predictions-2.boris, least_certain.boris" in capsys.readouterr().out
    assert (out / "predictions.boris").read_text() == corrected, "a person's work stays"
    assert read_boris_project(out / "predictions-2.boris").annotations == project.annotations


def test_a_persons_bouts_are_those_of_frames_as_the_nets_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two states with different modifiers, one right after the other, are one bout; a point event is one frame."""
    monkeypatch.chdir(tmp_path)
    trained_run(tmp_path)
    write_square(tmp_path / "a.mp4", 30)
    states = Event("move", 0.2, 0.4, "", ("slow",)), Event("move", 0.4, 0.8, "", ("fast",)), Event("blink", 1.0, None)
    write_boris_events(tmp_path / "a.tsv", [Annotation("a.mp4", states, 25.0, 1.2, "a")])
    row = StudyVideo(tmp_path / "a.mp4", tmp_path / "a.tsv", "m1", "", None, 0.0, "")
    write_dataset_csv(tmp_path / "dataset.csv", [row])
    assert main(["video-behavior", "predict", "r", "dataset.csv"]) == 0
    found = rows_of(tmp_path / "predictions" / "summary.csv")
    rows = {row["behavior"]: row for row in found if row["source"] == "person"}
    assert (rows["move"]["bouts"], float(rows["move"]["total_s"])) == ("1", pytest.approx(0.6))
    assert (rows["blink"]["bouts"], float(rows["blink"]["total_s"])) == ("1", pytest.approx(0.04))


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def annotated_study(folder: Path, annotation: str | None = None, animal: str = "m1") -> list[str]:
    """A study of a video of 30 frames that shows `move` from 0.2 to 0.8 s; the command that labels it."""
    write_square(folder / "a.mp4", 30)
    move = Event("move", 0.2, 0.8)
    write_boris_events(folder / "a.tsv", [Annotation("a.mp4", (move,), 25.0, 1.2, "a")])
    if annotation is not None:
        (folder / "a.tsv").write_text(annotation)
    write_dataset_csv(
        folder / "dataset.csv", [StudyVideo(folder / "a.mp4", folder / "a.tsv", animal, "", None, 0.0, "")]
    )
    return ["video-behavior", "predict", "r", "dataset.csv"]


def test_frames_that_a_person_left_open_are_no_behaviour_where_training_ignored_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    trained_run(tmp_path, classes=("background", "blink", "move"), without_background=True)
    assert main(annotated_study(tmp_path)) == 0
    person = {
        row["behavior"]: row for row in rows_of(tmp_path / "predictions/summary.csv") if row["source"] == "person"
    }
    assert {name: row["bouts"] for name, row in person.items()} == {"blink": "0", "move": "1"}
    assert float(person["move"]["observed_s"]) == pytest.approx(0.6), "what the person has labelled"
    assert float(person["move"]["share"]) == pytest.approx(1)


def test_an_annotation_that_cannot_be_read_costs_no_prediction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    trained_run(tmp_path)
    assert main(annotated_study(tmp_path, "no annotation at all")) == 0
    assert "a.mp4: not compared with a person" in capsys.readouterr().out
    assert len(rows_of(tmp_path / "predictions/a.csv")) == 30
    assert {row["source"] for row in rows_of(tmp_path / "predictions/summary.csv")} == {"net"}


@pytest.mark.parametrize(("animal", "split"), [("m0", "train"), ("m5", "test"), ("new", "")])
def test_the_summary_says_from_which_animals_the_net_has_learned(
    animal: str, split: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    trained_run(tmp_path)
    assert main(annotated_study(tmp_path, animal=animal)) == 0
    assert {row["split"] for row in rows_of(tmp_path / "predictions/summary.csv")} == {split}


def test_a_full_disk_ends_the_command_before_the_next_video(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(runs)
    (tmp_path / "a.csv").mkdir()  # a file that cannot be written
    assert main(["video-behavior", "predict", "r", "a.mp4", "b.mp4", "--out", str(tmp_path)]) == 2
    assert f"to write {tmp_path / 'a.csv'}" in capsys.readouterr().err
    assert not (tmp_path / "b.csv").exists()


def test_commands_that_share_a_folder_lose_nothing_of_each_other(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(runs)
    predict = ["video-behavior", "predict", "r", "--out", str(tmp_path)]
    assert main([*predict, "a.mp4", "--overlay"]) == 0
    table = (tmp_path / "a.csv").read_bytes()
    (runs / "day2").mkdir()
    write_square(runs / "day2/a.mp4", 9)
    assert main([*predict, "day2/a.mp4"]) == 2
    assert f"are those of {runs / 'a.mp4'}" in capsys.readouterr().err
    assert (tmp_path / "a.csv").read_bytes() == table

    assert main([*predict, "b.mp4"]) == 0
    assert "with 1 video of earlier commands" in capsys.readouterr().out
    assert {row["animal"] for row in rows_of(tmp_path / "summary.csv")} == {"a.mp4", "b.mp4"}
    assert {one.observation for one in read_boris_project(tmp_path / "predictions.boris").annotations} == {"a", "b"}

    assert main([*predict, "a.mp4", "day2/a.mp4"]) == 0
    capsys.readouterr()
    animals = {row["animal"] for row in rows_of(tmp_path / "summary.csv")}
    assert animals == {f"{runs.name}_a.mp4", "day2_a.mp4", "a.mp4", "b.mp4"}, "videos of one name are several animals"

    assert main([*predict, "a.mp4"]) == 0
    assert "done before" in capsys.readouterr().out, "an overlay more is no reason to label the video again"
    (tmp_path / "a.csv").unlink()
    assert main([*predict, "a.mp4"]) == 0
    assert (tmp_path / "a.csv").read_bytes() == table, "what was deleted comes back"
    assert not (tmp_path / "a.overlay.mp4").exists()


def test_overlapping_behaviours_and_a_rule_that_the_run_keeps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = trained_run(tmp_path, multi=True)
    weights = json.loads((folder / "export/config.json").read_text())["weights_sha256"]
    always = Smoothing((1.0, 1e-9))
    LabelRule((always, always), multi=True).write(folder, weights)
    write_square(tmp_path / "a.mp4", 12)
    assert main(["video-behavior", "predict", "r", "a.mp4"]) == 0
    assert "not smoothed" not in capsys.readouterr().out
    with (tmp_path / "predictions/a.csv").open() as file:
        assert {row["Action"] for row in csv.DictReader(file)} == {"move+blink"}


def test_a_rule_survives_its_file_and_no_other_weights(tmp_path: Path) -> None:
    smoothing = Smoothing((1.0, 0.5, 2.0), "hmm", 1, ((5, 1, 0), (1, 4, 0), (0, 1, 3)), (0.2, 0.2, 0.6), (1, 2, 3))
    one_by_one = tuple(Smoothing((1.0, threshold)) for threshold in (0.2, 0.5, 0.9))
    for rule, multi in ((LabelRule((smoothing,)), False), (LabelRule(one_by_one, multi=True), True)):
        rule.write(tmp_path, "abc")
        assert read_rule(tmp_path, "abc", 3, multi) == rule
        assert read_rule(tmp_path, "abd", 3, multi) is None
        assert read_rule(tmp_path, "abc", 4, multi) is None
        path = tmp_path / "label_rule.json"
        for damaged in ("{", "[]", '{"weights_sha256": "abc"}', path.read_text().replace("0.5", '"x"')):
            path.write_text(damaged)
            assert read_rule(tmp_path, "abc", 3, multi) is None
    assert read_object(tmp_path / "label_rule.json")


def test_the_least_certain_bouts_come_first() -> None:
    probability_NC = np.array([[0.1, 0.9], [0.2, 0.8], [0.9, 0.1], [0.45, 0.55], [0.9, 0.1]])
    found = PredictedFrames(probability_NC, np.arange(5) / 10)
    video = predicted_video("v", Path("v.mp4"), found, probability_NC.argmax(1), ("rest", "lick"), 0)
    assert [(e.start_s, e.stop_s) for e in video.events] == [(0.0, 0.2), (0.3, 0.4)]
    assert video.certainty == pytest.approx((0.85, 0.55))
    assert [event.start_s for one in least_certain([video], 1) for event in one.events] == [0.3]


def test_the_summary_adds_up_the_videos_of_an_animal(tmp_path: Path) -> None:
    probability_NC = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    found = PredictedFrames(probability_NC, np.arange(4.0))
    video = predicted_video("v", Path("v.mp4"), found, np.array([0, 1, 1, 0]), ("r", "l"), 0)
    times = times_of(video.events, ("l", "never"))
    write_summary(tmp_path / "s.csv", [VideoSummary(name, "m1", "g", "test", "net", 4.0, times) for name in ("v", "w")])
    with (tmp_path / "s.csv").open() as file:
        lick, never = csv.DictReader(file)
    assert (lick["total_s"], lick["share"], lick["bouts"], lick["mean_bout_s"], lick["latency_s"]) == (
        "4.000", "0.5000", "2", "2.000", "1.000",
    )  # fmt: skip
    assert (never["total_s"], never["bouts"], never["latency_s"]) == ("0.000", "0", "")


WRONG = {
    "no video": (["r"], "video"),
    "a missing video": (["r", "none.mp4"], "there is no none.mp4"),
    "no run": (["nothing", "a.mp4"], "nothing"),
    "another workload's run": (["other", "a.mp4"], "a run of graph-coloring"),
    "a run without an export": (["unfinished", "a.mp4"], "it has no export yet"),
    "a number of bouts": (["r", "a.mp4", "--least-certain", "-1"], "0 or more"),
    "a device": (["r", "a.mp4", "--device", "tpu"], "--device"),
    "the same name twice": (["r", "a.mp4", "a.mp4"], "would have the same files"),
    "no video at all": (["r", "text.mp4"], "no video could be labelled"),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run, two others, a video, and a text that calls itself one."""
    folder = tmp_path_factory.mktemp("predict")
    run = trained_run(folder)
    write_square(folder / "a.mp4", 6)
    write_square(folder / "b.mp4", 6)
    (folder / "text.mp4").write_text("no video")
    for name, change in (("other", ("video-behavior", "graph-coloring")), ("unfinished", ("", ""))):
        (folder / "runs" / name).mkdir()
        for file in ("run.json", "run_config.json"):
            (folder / "runs" / name / file).write_text((run / file).read_text().replace(*change))
    return folder


@pytest.mark.parametrize("name", WRONG)
def test_bad_input(name: str, runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    argv, found = WRONG[name]
    monkeypatch.chdir(runs)
    assert main(["video-behavior", "predict", *argv]) == 2
    assert found in capsys.readouterr().err

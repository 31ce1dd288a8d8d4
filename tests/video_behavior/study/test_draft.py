"""Drafts of studies whose files hold several observations, some of them damaged, or the trials of one video."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from ranks.errors import UserError
from ranks.workloads.video_behavior.annotations.aggregated import write_aggregated
from ranks.workloads.video_behavior.annotations.boris_events import write_boris_events
from ranks.workloads.video_behavior.annotations.boris_project_writer import (
    empty_project,
    with_annotations,
    write_boris_project,
)
from ranks.workloads.video_behavior.annotations.events import Annotation, Event
from ranks.workloads.video_behavior.annotations.read import read_annotation, read_annotations
from ranks.workloads.video_behavior.study.draft import Draft, draft_study
from ranks.workloads.video_behavior.study.study import load_study, write_dataset_csv

LICK = Event("lick", 1.0, 2.0)
TRIAL = "Frame,Action\n0,lick\n1,rest\n"


def observed(*numbers: int) -> list[Annotation]:
    return [Annotation(f"m{n}.mp4", (LICK, Event("rest", 2.0, 3.0)), 25.0, 4.0, f"day {n}") for n in numbers]


def paired(draft: Draft, folder: Path) -> dict[str, str | None]:
    return {
        row.video.name: None if row.annotation is None else row.annotation.relative_to(folder).as_posix()
        for row in draft.videos
    }


def videos(folder: Path, *numbers: int) -> None:
    for number in numbers:
        (folder / f"m{number}.mp4").touch()


def test_damaged_observations_of_a_project_leave_the_others(tmp_path: Path) -> None:
    """A state without a stop, an observation of images, one of two files in a row, and one that is right."""
    videos(tmp_path, 1, 2, 3, 4, 5)
    path = tmp_path / "all.boris"
    write_boris_project(path, with_annotations(empty_project(), observed(1, 2, 3, 4)))
    document = json.loads(path.read_text())
    document["observations"]["day 2"]["events"].pop()
    document["observations"]["day 3"]["type"] = "IMAGES"
    document["observations"]["day 4"]["file"]["1"].append("m5.mp4")
    path.write_text(json.dumps(document))
    draft = draft_study(tmp_path)
    assert paired(draft, tmp_path) == {"m1.mp4": "all.boris"} | {f"m{n}.mp4": None for n in (2, 3, 4, 5)}
    for number, found in ((2, "has no STOP"), (3, "is of images"), (4, "plays several files: m4.mp4, m5.mp4")):
        (note,) = [note for note in draft.notes if f"left out: observation 'day {number}'" in note]
        assert note.startswith(str(path))
        assert found in note
    write_dataset_csv(tmp_path / "dataset.csv", draft.videos)
    assert load_study(tmp_path).classes == ("background", "lick", "rest")


@pytest.mark.parametrize("write", [write_boris_events, write_aggregated])
def test_damaged_observations_of_a_table_leave_the_others(
    write: Callable[[Path, Sequence[Annotation]], None], tmp_path: Path
) -> None:
    videos(tmp_path, 1, 2, 3)
    path = tmp_path / "all.tsv"
    write(path, observed(1, 2, 3))
    lines = path.read_text().splitlines()
    first = next(at for at, line in enumerate(lines) if "m2.mp4" in line)
    lines[first] = lines[first].replace("START", "STOP").replace("STATE", "BOTH")
    last = max(at for at, line in enumerate(lines) if "m3.mp4" in line)
    lines[last] = lines[last].replace("m3.mp4", "other.mp4")
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(UserError, match=f"line {first + 1}: "):
        read_annotations(path)
    draft = draft_study(tmp_path)
    assert paired(draft, tmp_path) == {"m1.mp4": "all.tsv", "m2.mp4": None, "m3.mp4": None}
    assert [note for note in draft.notes if f"left out: observation 'day 2', line {first + 1}: " in note]
    assert [
        note for note in draft.notes if "left out: observation 'day 3', events of observation 'day 3' in sev" in note
    ]
    assert read_annotation(path, video="m1.mp4") == observed(1)[0]
    write_dataset_csv(tmp_path / "dataset.csv", draft.videos)
    assert load_study(tmp_path).classes == ("background", "lick", "rest")


def test_a_file_whose_observations_are_all_damaged_is_not_used(tmp_path: Path) -> None:
    videos(tmp_path, 1)
    write_boris_events(tmp_path / "m1.tsv", observed(1))
    text = (tmp_path / "m1.tsv").read_text()
    (tmp_path / "m1.tsv").write_text(text.replace("START", "STOP"))
    draft = draft_study(tmp_path)
    assert paired(draft, tmp_path) == {"m1.mp4": None}
    assert len(draft.notes) == 2


def trials(folder: Path, *names: str, text: str = TRIAL) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / f"{name}.csv").write_text(text)
    return folder


def test_a_folder_of_numbered_trials_is_one_annotation(tmp_path: Path) -> None:
    videos(tmp_path, 1, 2, 3, 12)
    trials(tmp_path / "scored" / "one", "prediction_m1_1", "prediction_m1_2", "prediction_m1_10", "._prediction_m1_1")
    trials(tmp_path / "m2", "trial_1", "trial_2")
    trials(tmp_path / "both", "m3-t1", "m3-t2")
    trials(tmp_path / "single", "prediction_m12_1")
    draft = draft_study(tmp_path)
    assert paired(draft, tmp_path) == {
        "m1.mp4": "scored/one",
        "m2.mp4": "m2",
        "m3.mp4": "both",
        "m12.mp4": "single/prediction_m12_1.csv",
    }
    assert draft.notes == ()
    write_dataset_csv(tmp_path / "dataset.csv", draft.videos)
    assert set(load_study(tmp_path).classes) == {"lick", "rest"}
    joined = read_annotation(tmp_path / "scored" / "one", fps=1.0)
    assert [event.start_s for event in joined.events if event.behavior == "lick"] == [0, 2, 4]


def test_what_is_no_folder_of_trials_is_paired_file_by_file(tmp_path: Path) -> None:
    """Two videos, two raters, names that end in the number of the video, BORIS events, and the root of the study."""
    videos(tmp_path, 1, 2, 3, 4, 5, 6, 7)
    for name in ("mouse_1", "mouse_2", "mouse"):
        (tmp_path / f"{name}.mp4").touch()
    trials(tmp_path / "two videos", "m1_1", "m2_2")
    trials(tmp_path / "raters", "m3_anna_1", "m3_ben_2")
    trials(tmp_path / "by number", "mouse_1", "mouse_2")
    write_boris_events(trials(tmp_path / "m4") / "m4_1.csv", observed(4))
    write_boris_events(tmp_path / "m4" / "m4_2.csv", observed(5))
    trials(tmp_path, "m6_1", "m6_2")
    trials(tmp_path / "nobody", "trial_1", "trial_2")
    trials(tmp_path / "wrong", "m7_1", "m7_2", text="Frame,Action\n1,lick\n")
    draft = draft_study(tmp_path)
    assert paired(draft, tmp_path) == {
        "m1.mp4": "two videos/m1_1.csv",
        "m2.mp4": "two videos/m2_2.csv",
        "m3.mp4": None,
        "m4.mp4": "m4/m4_1.csv",
        "m5.mp4": "m4/m4_2.csv",
        "m6.mp4": None,
        "m7.mp4": None,
        "mouse.mp4": None,
        "mouse_1.mp4": "by number/mouse_1.csv",
        "mouse_2.mp4": "by number/mouse_2.csv",
    }
    notes = "\n".join(draft.notes)
    assert "m3.mp4: 2 annotations, none is used: m3_anna_1.csv, m3_ben_2.csv" in notes
    assert "m6.mp4: 2 annotations, none is used: m6_1.csv, m6_2.csv" in notes
    assert "trial_1.csv: no video of this name" in notes
    assert f"wrong: not used: the annotation {tmp_path / 'wrong' / 'm7_1.csv'}: line 2: frame 1 where 0" in notes

"""Annotations that name another video than that of their row, or a subject in another way than the others."""

from __future__ import annotations

import copy
import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from ranks.cli.main import main
from ranks.errors import UserError
from ranks.workloads.video_behavior.annotations.aggregated import write_aggregated
from ranks.workloads.video_behavior.annotations.boris_events import write_boris_events, write_old_boris_events
from ranks.workloads.video_behavior.annotations.boris_project import (
    forget_project,
    read_boris_project,
)
from ranks.workloads.video_behavior.annotations.boris_project_writer import (
    empty_project,
    with_annotations,
    write_boris_project,
)
from ranks.workloads.video_behavior.annotations.events import Annotation, Event
from ranks.workloads.video_behavior.annotations.read import read_annotation
from ranks.workloads.video_behavior.study.class_table import counts_of_events
from ranks.workloads.video_behavior.study.study import load_study


def annotation(media: str, observation: str = "day 1", subject: str = "") -> Annotation:
    return Annotation(media, (Event("lick", 1.0, 2.0, subject),), 25.0, 10.0, observation)


def written_project(path: Path, annotations: Sequence[Annotation]) -> None:
    write_boris_project(path, with_annotations(empty_project(), annotations))


def written_old(path: Path, annotations: Sequence[Annotation]) -> None:
    write_old_boris_events(path, annotations[0])


WRITERS: list[Callable[[Path, Sequence[Annotation]], None]] = [
    write_boris_events,
    write_aggregated,
    written_old,
    written_project,
]


def study(folder: Path, annotations: Sequence[Annotation], write: Callable[..., None] = write_boris_events) -> Path:
    """A study of videos m1.mp4, m2.mp4, ..., with an annotation for each of them."""
    rows = "".join(f"m{number}.mp4,m{number}.tsv\n" for number in range(1, len(annotations) + 1))
    (folder / "dataset.csv").write_text(f"video,annotation\n{rows}")
    for number, one in enumerate(annotations, 1):
        (folder / f"m{number}.mp4").touch()
        write(folder / f"m{number}.tsv", [one])
    return folder


@pytest.mark.parametrize("write", WRITERS)
def test_an_annotation_of_another_rows_video_is_refused(write: Callable[..., None], tmp_path: Path) -> None:
    study(tmp_path, [annotation("C:\\lab\\m2.avi"), annotation("m2.mp4")], write)
    with pytest.raises(UserError) as refused:
        load_study(tmp_path)
    assert refused.value.found == "the annotation of m1.mp4 is about m2.avi, which is the video m2.mp4"
    assert "column annotation of m1.mp4" in refused.value.do
    assert main(["video-behavior", "dataset", str(tmp_path)]) == 2


@pytest.mark.parametrize("write", WRITERS)
def test_a_converted_video_is_its_own_and_a_renamed_one_is_warned_of(
    write: Callable[..., None], tmp_path: Path
) -> None:
    media = ("/raw/M1.AVI", "cam 2.mp4", "cam 3.mp4", "cam 4.mp4", "cam 5.mp4")
    study(tmp_path, [annotation(name) for name in media], write)
    (warning,) = load_study(tmp_path).warnings
    listed = "m2.mp4: cam 2.mp4, m3.mp4: cam 3.mp4, m4.mp4: cam 4.mp4, ..."
    assert f"annotations of 4 videos name another media file ({listed})" in warning
    study(tmp_path, [annotation("m1.avi"), annotation("m2.avi", "m1"), annotation("cam 3.mp4", "m3")], write)
    assert load_study(tmp_path).warnings == (), "also where the observation has the name of the video"


def test_the_command_dataset_prints_what_it_is_not_sure_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study(tmp_path, [annotation("m1.mp4"), annotation("cam 2.mp4"), annotation("m3.mp4")])
    assert main(["video-behavior", "dataset", str(tmp_path), "--unlabelled", "ignore"]) == 0
    assert "another media file (m2.mp4: cam 2.mp4)" in capsys.readouterr().out


def test_an_observation_of_two_cameras_is_of_both_videos(tmp_path: Path) -> None:
    for number, source in ((1, "player #1:m1.mp4|player #2:m2.mp4"), (2, "player #1:m1.mp4|player #2:C:\\raw\\m2.avi")):
        (tmp_path / f"m{number}.mp4").touch()
        write_boris_events(tmp_path / f"m{number}.tsv", [annotation("m1.mp4")])
        text = (tmp_path / f"m{number}.tsv").read_text()
        (tmp_path / f"m{number}.tsv").write_text(text.replace("player #1:m1.mp4", source))
    (tmp_path / "dataset.csv").write_text("video,annotation\nm1.mp4,m1.tsv\nm2.mp4,m2.tsv\n")
    assert load_study(tmp_path).warnings == ()
    for number in (1, 2):
        written_old(tmp_path / f"m{number}.tsv", [annotation("m1.mp4")])
        first, *lines = (tmp_path / f"m{number}.tsv").read_text().splitlines()
        second = lines[1].replace("Player #1", "Player #2").replace("m1.mp4", "m2.mp4")
        (tmp_path / f"m{number}.tsv").write_text("\n".join([first, *lines[:2], second, *lines[2:]]) + "\n")
    assert load_study(tmp_path).warnings == ()
    written_project(tmp_path / "m1.tsv", [annotation("m1.mp4")])
    document = json.loads((tmp_path / "m1.tsv").read_text())
    document["observations"]["day 1"]["file"]["2"] = ["m2.mp4"]
    for number in (1, 2):
        (tmp_path / f"m{number}.tsv").write_text(json.dumps(document))
    assert load_study(tmp_path).warnings == ()


def test_a_project_of_one_observation_is_read_like_a_table_of_one(tmp_path: Path) -> None:
    written_project(tmp_path / "a.boris", [annotation("m1.mp4")])
    assert read_annotation(tmp_path / "a.boris", video="m1_small.mp4").video == "m1.mp4"
    written_project(tmp_path / "b.boris", [annotation("m1.mp4"), annotation("m2.mp4", "day 2")])
    with pytest.raises(UserError, match=r"no observation of m3\.mp4"):
        read_annotation(tmp_path / "b.boris", video="m3.mp4")


@pytest.mark.parametrize("other", ["Mouse", "mouse ", "m ouse"])
def test_a_subject_in_another_spelling_is_refused(other: str, tmp_path: Path) -> None:
    names = ["mouse"] * 3 + [other]
    study(tmp_path, [annotation(f"m{n}.mp4", subject=name) for n, name in enumerate(names, 1)], written_project)
    with pytest.raises(UserError) as refused:
        load_study(tmp_path, subject="mouse")
    assert refused.value.found == f"the annotation of m4.mp4 has the subject '{other}', and --subject is 'mouse'"
    assert load_study(tmp_path).warnings == ()


def test_files_that_name_other_subjects_only_are_warned_of(tmp_path: Path) -> None:
    names = ["mouse", "", "mouse", "rat", "cat", "dog", "cow"]
    study(tmp_path, [annotation(f"m{n}.mp4", subject=name) for n, name in enumerate(names, 1)])
    (warning,) = load_study(tmp_path, subject="mouse").warnings
    listed = "m4.mp4: rat, m5.mp4: cat, m6.mp4: dog, ..."
    assert f"4 of 7 annotations name subjects, but not 'mouse' ({listed})" in warning


def counted(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> list[int]:
    """A list that grows by one whenever a function of a standard module is called."""
    calls, called = list[int](), getattr(module, name)

    def count(*args: Any, **options: Any) -> Any:
        calls.append(1)
        return called(*args, **options)

    monkeypatch.setattr(module, name, count)
    return calls


def test_a_project_of_all_videos_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, many = tmp_path / "all.boris", [annotation(f"m{n}.mp4", f"day {n}", f"s{n}") for n in range(1, 31)]
    written_project(path, many)
    for one in many:
        (tmp_path / one.video).touch()
    (tmp_path / "dataset.csv").write_text("video,annotation\n" + "".join(f"{one.video},all.boris\n" for one in many))
    os.utime(path, (1e9, 1e9))
    forget_project()
    parsed = counted(monkeypatch, json, "loads")
    found = load_study(tmp_path)
    assert counts_of_events(found).bouts_VC[:, 1].tolist() == [1] * 30
    assert len(parsed) == 1
    read = read_boris_project(path, "m7.mp4")
    assert (len(read.annotations), len(read.subjects), len(parsed)) == (1, 30, 1)

    written_project(path, many[:3])
    assert len(read_boris_project(path).annotations) == 3, "a changed file is read again"
    written_project(path, [annotation("m1.mp4", "day 9", "s9")])
    text = path.read_text()
    now_ns = time.time_ns() + 10**12
    for subject in ("s1", "s2", "s3"):  # the same length, at the same time, just now
        path.write_text(text.replace("s9", subject))
        os.utime(path, ns=(now_ns, now_ns))
        assert read_boris_project(path).subjects == (subject,)
    forget_project()


def test_many_observations_are_written_with_one_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    many = [annotation(f"m{n}.mp4", f"day {n}", f"s{n % 3}") for n in range(20)]
    one_by_one, empty = empty_project(), empty_project()
    for one in many:
        one_by_one = with_annotations(one_by_one, [one])
    copied = counted(monkeypatch, copy, "deepcopy")
    project = with_annotations(empty, many)
    assert len(copied) == 1
    assert project == one_by_one
    assert empty == empty_project(), "the given project stays as it was"

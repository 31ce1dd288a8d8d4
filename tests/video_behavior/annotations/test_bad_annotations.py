"""Every wrong annotation and every wrong study gets one clear error: what was asked, what was found, what to do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ranks.errors import UserError
from ranks.workloads.video_behavior.annotations.delimited import rows_of
from ranks.workloads.video_behavior.annotations.events import Annotation, Event
from ranks.workloads.video_behavior.annotations.frame_labels import exclusive_labels, multi_labels, nominal_times
from ranks.workloads.video_behavior.annotations.frame_tables import read_labels
from ranks.workloads.video_behavior.annotations.read import parse_merge, read_annotation
from ranks.workloads.video_behavior.study.study import annotation_of, load_study, read_dataset_csv
from tests.video_behavior.annotations.annotation_examples import (
    AGGREGATED_HEADER,
    BINARY,
    CALTECH,
    NEW,
    NEW_HEADER,
    OLD,
    PROJECT,
    ZERO_ONE,
)


def events(*rows: str) -> str:
    """Tabular events of 'START 1.0 lick'."""
    cells = [row.split(" ") for row in rows]
    return NEW_HEADER + "".join(f"o\tv.mp4\t25\t\t{name}\t{kind}\t{time}\t0\t\n" for kind, time, name in cells)


CALTECH_START = CALTECH[: CALTECH.index("   \t1\t10")]
ANNOTATIONS: dict[str, tuple[str, str]] = {
    "empty": ("", "the file is empty"),
    "blank": (" \n\n", "the file is empty"),
    "no format": ("hello\nworld\n", "a format that is not known: it starts with 'hello'"),
    "another table": ("name,age\nx,3\n", "a format that is not known"),
    "header of an image": ("\x89PNG\x00\x01", "a format that is not known"),
    "STOP without START": (events("STOP 1.0 lick"), "line 2: STOP of 'lick' at 1 s: it has no START"),
    "START without STOP": (events("START 1.0 lick"), "line 2: START of 'lick' at 1 s: it has no STOP"),
    "two STARTs": (events("START 1 lick", "START 2 lick"), "line 3: START of 'lick' at 2 s: it has run since 1 s"),
    "a point twice": (events("POINT 1 x", "POINT 1 x"), "line 3: POINT of 'x' at 1 s: the same point event is listed"),
    "negative time": (events("POINT -0.5 x"), "line 2: time -0.5 s lies before the first frame"),
    "a date for a time": (events("POINT 1700000000 x"), "is longer than any video"),
    "a word for a time": (events("POINT soon x"), "line 2: time 'soon' is not a number"),
    "a comma in a time": (events("POINT 1,5 x"), "write a decimal number with a point"),
    "infinite time": (events("POINT 1e999 x"), "is not a number"),
    "unknown kind": (events("BEGIN 1 x"), "line 2: 'BEGIN' is none of START, STOP, POINT"),
    "no behaviour": (events("POINT 1 "), "line 2: no behaviour is named"),
    "too few cells": (NEW_HEADER + "o\tv.mp4\n", "line 2: 2 cells, and the header has 9"),
    "too many cells": (NEW.replace("25\t\no", "25\t\tx\no"), "line 2: 10 cells, and the header has 9"),
    "a column twice": (NEW.replace("Image index", "Time"), "two columns are called 'Time'"),
    "open quotes": (NEW + 'o\t"v.mp4\n', "unexpected end of data"),
    "several media files": (NEW + NEW.split("\n")[1].replace("v.mp4", "w.mp4"), "in several media files: v.mp4, w.mp4"),
    "old without a table": (OLD[: OLD.index("Time,Media")], "no row with Time, Subject, Behavior and Status"),
    "old, STOP before START": (OLD.replace("1.5,v", "3.5,v"), "STOP of 'lick' at 2 s: it has no START"),
    "old, before the offset": (OLD.replace("0.5", "2.0"), "time -0.5 s lies before the first frame"),
    "aggregated backwards": (AGGREGATED_HEADER + "o,v,25,,lick,STATE,2,1\n", "stop 1 s before start 2 s"),
    "aggregated without a stop": (AGGREGATED_HEADER + "o,v,25,,lick,STATE,2,NA\n", "a state without a stop"),
    "aggregated twice": (AGGREGATED_HEADER + 2 * "o,v,25,,x,POINT,2,2\n", "line 3: the same event as in line 2"),
    "aggregated kind": (AGGREGATED_HEADER + "o,v,25,,lick,START,2,3\n", "'START' is neither STATE nor POINT"),
    "damaged project": (PROJECT[:200], "not a JSON document"),
    "deep project": ("{" + '"a":[' * 1 + "[" * 100_000, "not a JSON document"),
    "other JSON": ('{"a": 1}', "no BORIS project: it has no 'observations' and 'behaviors_conf'"),
    "unknown code": (PROJECT.replace('"m1", "lick", "a|None", "hm"', '"m1", "lik", "", ""'), "did you mean lick?"),
    "unpaired state": (
        PROJECT.replace('"", "shake"', '"m1", "lick"'),
        "START of 'lick' of 'm1' at 1.5 s: it has no STOP",
    ),
    "no times": (PROJECT.replace("[1.5,", "[NaN,"), "observation 'o', event 1 has no time"),
    "event of three": (PROJECT.replace('[2.0, "", "shake", "", ""]', '[2.0, "", "shake"]'), "event 2 is not [time"),
    "images": (PROJECT.replace("MEDIA", "IMAGES"), "observation 'o' is of images"),
    "two files in a row": (PROJECT.replace('["C:/videos/v.mp4"]', '["v.mp4", "w.mp4"]'), "plays several files: v.mp4"),
    "frames that jump": ("Frame,Action\n0,a\n1,a\n3,a\n", "line 4: frame 3 where 2 was expected"),
    "frames from 1": ("Frame,Action\n1,a\n2,a\n", "line 2: frame 1 where 0 was expected"),
    "half a frame": ("Frame,Action\n0.5,a\n", "frame '0.5' is not a whole number"),
    "no frames": ("Frame,Action\n", "no rows below the header"),
    "0/1 that jump": (ZERO_ONE.replace("\n1,", "\n2,"), "line 3: frame 2 where 1 was expected"),
    "0/1 with 0.5": (ZERO_ONE.replace("0,1,0", "0,0.5,0"), "background '0.5' is not a whole number"),
    "uneven steps": (BINARY.replace("1.0\t", "1.7\t"), "line 4: a step of 1.2 s after steps of 0.5 s"),
    "times that stand still": (BINARY.replace("1.0\t", "0.5\t"), "line 4: time 0.5 s is not after 0.5 s"),
    "Caltech without a stream": (CALTECH[:80], "no stream"),
    "Caltech from 0": (CALTECH_START + "0\t5\tbase\n", "line 9: frames 0 to 5"),
    "Caltech backwards": (CALTECH_START + "7\t5\tbase\n", "line 9: frames 7 to 5"),
    "Caltech overlap": (CALTECH_START + "1\t5\tbase\n5\t9\tlick\n", "line 10: frame 5 also belongs to the bout before"),
    "Caltech words": (CALTECH_START + "one\ttwo\tbase\n", "is not 'start end type' in frames from 1"),
}


def refused(path: Path, found: str) -> None:
    with pytest.raises(UserError) as error:
        read_annotation(path, fps=25.0)
    message = str(error.value)
    assert found in message
    assert str(path) in message
    assert re.fullmatch(r"asked: .+\nfound: .+\n   do: .+", message)


@pytest.mark.parametrize("name", ANNOTATIONS)
def test_wrong_annotations(name: str, tmp_path: Path) -> None:
    content, found = ANNOTATIONS[name]
    path = tmp_path / "a.csv"
    path.write_text(content)
    refused(path, found)


def test_files_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "v.mp4"
    path.write_bytes(bytes(range(256)) * 300)
    refused(path, "bytes that are not UTF-8 text")
    path.write_bytes(NEW.encode() + b"\xff" * 100_000)
    refused(path, "bytes that are not UTF-8 text")
    refused(tmp_path / "missing.csv", "No such file")


def test_a_billion_rows_are_refused_before_they_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    with path.open("w") as file:
        file.write("Frame,Action\n")
        file.truncate(1_000_000_000 * len("999999999,1\n"))
    refused(path, "the limit of a file is")
    path.write_text("Frame,Action\n" + "".join(f"{frame},a\n" for frame in range(5)))
    with pytest.raises(UserError, match="more than 4 rows"):
        read_labels(path, ",", 25.0, max_rows=4)
    assert len(list(rows_of(path, ",", 5))) == 6


def test_subjects_and_frame_rates(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text(PROJECT)
    with pytest.raises(UserError, match="no events of the subject 'm2'\n   do: it has m1"):
        read_annotation(path, "m2")
    path.write_text(ZERO_ONE)
    with pytest.raises(UserError, match=r"it counts frames, and the frame rate is not known"):
        read_annotation(path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(UserError, match=r"a folder without \.csv files"):
        read_annotation(tmp_path / "folder", fps=1.0)
    for text in ("3>1", "3->", "3->1,3->2", "3->5,5->1"):
        with pytest.raises(UserError, match="to merge"):
            parse_merge(text)


@pytest.mark.parametrize(
    ("event", "fps", "found"),
    [
        (
            Event("lick", 0.0, 4.5),
            None,
            "'lick' from 0 to 4.5 s outside the video, which has 100 frames and ends at 4 s",
        ),
        (Event("lick", 6.0, None), None, "'lick' at 6 s outside the video"),
        (Event("lick", -1.0, 1.0), None, "'lick' from -1 to 1 s outside the video"),
        (Event("lick", 0.0, 1.0), 30.0, "30 frames a second in the annotation, 25 in the video"),
        (Event("lik", 0.0, 1.0), None, "'lik' is no class"),
    ],
)
def test_annotations_that_do_not_fit_their_video(event: Event, fps: float | None, found: str) -> None:
    annotation = Annotation("day 1/v.mp4", (event,), fps)
    for labels in (
        lambda: exclusive_labels(annotation, ("rest", "lick"), nominal_times(100, 25.0), unlabelled="background"),
        lambda: multi_labels(annotation, ("rest", "lick"), nominal_times(100, 25.0)),
    ):
        with pytest.raises(UserError) as error:
            labels()
        assert found in str(error.value)
        assert "day 1/v.mp4" in str(error.value)


def test_one_frame_too_many_is_cut() -> None:
    """A stop may lie up to one frame behind the end: BORIS rounds the length of a video."""
    annotation = Annotation("v", (Event("lick", 1.0, 4.04),), 25.0)
    labels_N = exclusive_labels(annotation, ("rest", "lick"), nominal_times(100, 25.0), unlabelled="background")
    assert labels_N.tolist() == [0] * 25 + [1] * 75


HEADER = "video,annotation,animal,group,fps,offset_s,split\n"
STUDIES: dict[str, tuple[str, str]] = {
    "empty": ("", "the file is empty"),
    "no rows": (HEADER, "no rows below the header"),
    "wrong column": (
        HEADER.replace("animal", "anmial") + "a.mp4,,,,,,\n",
        "a column 'anmial'\n   do: did you mean animal?",
    ),
    "no video column": ("annotation,animal\na.tsv,m1\n", "no column 'video'"),
    "no video": (HEADER + ",a.tsv,,,,,\n", "line 2: no video"),
    "missing video": (HEADER + "a.mp4,,,,,,\nz.mp4,,,,,,\n", "line 3: there is no video"),
    "missing annotation": (HEADER + "a.mp4,z.tsv,,,,,\n", "line 2: there is no annotation"),
    "a video twice": (HEADER + 2 * "a.mp4,,,,,,\n", "is also in line 2"),
    "fps": (HEADER + "a.mp4,,,,-25,,\n", "line 2: -25 frames a second"),
    "fps in words": (HEADER + "a.mp4,,,,fast,,\n", "line 2: fps 'fast' is not a number"),
    "offset": (HEADER + "a.mp4,,,,,1e9,\n", "line 2: an offset of 1e+09 s"),
    "split": (HEADER + "a.mp4,,,,,,dev\n", "line 2: split 'dev'"),
    "an animal in two splits": (
        HEADER + "a.mp4,,m1,,,,train\nb.mp4,,m1,,,,test\n",
        "line 3: animal 'm1' is in 'test' here and in 'train' in line 2",
    ),
    "short row": (HEADER + "a.mp4,a.tsv\n", "line 2: 2 cells, and the header has 7"),
}


@pytest.mark.parametrize("name", STUDIES)
def test_wrong_studies(name: str, tmp_path: Path) -> None:
    content, found = STUDIES[name]
    for file in ("a.mp4", "b.mp4", "a.tsv"):
        (tmp_path / file).touch()
    (tmp_path / "dataset.csv").write_text(content)
    with pytest.raises(UserError) as error:
        read_dataset_csv(tmp_path / "dataset.csv")
    assert found in str(error.value)
    assert str(tmp_path / "dataset.csv") in str(error.value)


def test_studies_and_their_annotations(tmp_path: Path) -> None:
    (tmp_path / "v.mp4").touch()
    (tmp_path / "v.tsv").write_text(NEW)
    (tmp_path / "dataset.csv").write_text(HEADER + "v.mp4,,,,,,\n")
    with pytest.raises(UserError, match="no annotation with an event"):
        load_study(tmp_path)
    (tmp_path / "dataset.csv").write_text(HEADER + "v.mp4,v.tsv,,,,0.25,\n")
    study = load_study(tmp_path)
    found = annotation_of(study.videos[0])
    assert found is not None
    assert found.events == (Event("lick", 1.25, 2.25),)
    assert study.classes == ("background", "lick")

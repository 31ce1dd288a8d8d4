"""BORIS -> ranks -> BORIS loses nothing."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranks.errors import UserError
from ranks.workloads.video_behavior.annotations.aggregated import read_aggregated, write_aggregated
from ranks.workloads.video_behavior.annotations.boris_events import (
    read_boris_events,
    read_old_boris_events,
    write_boris_events,
    write_old_boris_events,
)
from ranks.workloads.video_behavior.annotations.boris_project import (
    BorisProject,
    read_boris_project,
)
from ranks.workloads.video_behavior.annotations.boris_project_writer import (
    empty_project,
    with_annotations,
    write_boris_project,
)
from ranks.workloads.video_behavior.annotations.events import Annotation, Event
from ranks.workloads.video_behavior.annotations.read import read_annotation, read_annotations
from tests.video_behavior.annotations.annotation_examples import (
    FEW,
    NEW,
    OLD,
    OLD_COLUMNS,
    PROJECT,
    old_tables,
    ordered,
    random_annotations,
)


def check_same(read: Annotation, wanted: Annotation) -> None:
    assert ordered(read) == ordered(wanted)
    assert replace(read, events=()) == replace(wanted, events=())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all examples: each overwrites its files."""
    return tmp_path_factory.mktemp("files")


@FEW
@given(random_annotations())
def test_tabular_events(folder: Path, annotation: Annotation) -> None:
    for name in ("a.tsv", "a.csv"):
        write_boris_events(folder / name, [annotation])
        check_same(read_annotation(folder / name), annotation)


@FEW
@given(random_annotations())
def test_old_tabular_events(folder: Path, annotation: Annotation) -> None:
    write_old_boris_events(folder / "a.tsv", annotation)
    check_same(read_annotation(folder / "a.tsv"), annotation)


def cells_of(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file, delimiter="\t"))


@FEW
@given(random_annotations(), st.data())
def test_old_files_lose_nothing(folder: Path, annotation: Annotation, data: st.DataObject) -> None:
    """The block, categories and columns of others come back in an old file row by row. In a new or an aggregated one
    the block is in columns: date, description, time offset and independent variables."""
    rows = data.draw(old_tables(annotation))
    old, again, new, aggregated = (folder / f"{name}.tsv" for name in ("old", "again", "new", "aggregated"))
    with old.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter="\t").writerows(rows)
    check_same(read_annotation(old), annotation)
    found = read_old_boris_events(old, "\t")
    (read,) = found.annotations
    write_old_boris_events(again, read, found.kept)
    check_same(read_annotation(again), annotation)
    written, top = cells_of(again), rows.index(list(OLD_COLUMNS))
    for row, cells in zip(rows[:top], written, strict=False):
        assert cells[: len(row)] == row
        assert not any(cells[len(row) :])
    tables = [
        [dict(zip(some[top], row, strict=True)) for row in some[top + 1 :]] for some in (rows, written, cells_of(old))
    ]
    added = {"Modifier 1": "", "Modifier 2": ""}
    assert [added | row for row in tables[1]] == tables[0] == tables[2]

    block = {row[0]: row[1] for row in rows[:top] if row[0]}
    facts = {name: block[name] for name in ("Observation date", "Description", "Time offset (s)")}
    first = [row[0] for row in rows].index("variable") + 1
    variables = {row[0]: row[1] for row in rows[first:top] if row[0]}
    write_boris_events(new, found.annotations, found.kept)
    write_aggregated(aggregated, found.annotations, found.kept)
    for path in (new, aggregated):
        check_same(read_annotation(path), annotation)
        names, *below = cells_of(path)
        for row in below:
            cells = dict(zip(names, row, strict=True))
            assert {name: cells[name] for name in facts} == facts
            for name, value in variables.items():
                assert cells.get(f"{name} (observation)", cells.get(name)) == value
    columns, *below = cells_of(new)
    for cells, expected in zip(below, tables[0], strict=True):
        named = dict(zip(columns, cells, strict=True))
        assert [named[name] for name in ("Time", "dose", "Behavioral category", "Media duration (s)")] == [
            expected[name] for name in ("Time", "dose", "Behavioral category", "Total length")
        ]


def test_the_block_of_an_old_file_goes_with_its_observation_only(tmp_path: Path) -> None:
    path, again = tmp_path / "a.csv", tmp_path / "b.csv"
    path.write_text(OLD.replace(",,,\n,,,,\n", ",,,\nweather,rain,,,\n"))
    found = read_old_boris_events(path, ",")
    (read,) = found.annotations
    write_old_boris_events(again, read, found.kept)
    assert again.read_text().splitlines()[1:3] == ["Time offset (s),0.5,,,,,,,", "weather,rain,,,,,,,"]
    write_old_boris_events(again, replace(read, observation="another"), found.kept)
    text = again.read_text()
    assert "rain" not in text
    assert "another" in text
    assert read_annotation(again).events == read.events


@FEW
@given(random_annotations())
def test_aggregated_events(folder: Path, annotation: Annotation) -> None:
    for name in ("a.tsv", "a.csv"):
        write_aggregated(folder / name, [annotation])
        check_same(read_annotation(folder / name), annotation)


@FEW
@given(random_annotations())
def test_projects(folder: Path, annotation: Annotation) -> None:
    project = with_annotations(empty_project("p"), [annotation])
    write_boris_project(folder / "a.boris", project)
    check_same(read_annotation(folder / "a.boris"), annotation)
    assert with_annotations(project, [annotation]).document == project.document


def test_a_project_goes_back_as_it_was(tmp_path: Path) -> None:
    """Unknown keys, the frame index of events and the time offset stay; a new event adds itself and its behaviour."""
    path = tmp_path / "p.boris"
    path.write_text(PROJECT)
    project = read_boris_project(path)
    (read,) = project.annotations
    assert read.video == "C:/videos/v.mp4"
    assert (read.fps, read.duration_s) == (25.0, 60.0)
    assert read.events[0] == Event("lick", 1.0, 2.0, "m1", ("a", "None"), "hm", "")
    write_boris_project(path, with_annotations(project, [read]))
    assert json.loads(path.read_text()) == json.loads(PROJECT)
    more = with_annotations(project, [replace(read, events=(*read.events, Event("walk", 3.0, 4.0, "m2")))])
    (again,) = more.annotations
    assert again.events[-1] == Event("walk", 3.0, 4.0, "m2")
    assert more.document["observations"]["o"]["events"][0] == [1.5, "m1", "lick", "a|None", "hm", 25]
    assert more.document["observations"]["o"]["mood"] == "good"
    assert [one["code"] for one in more.document["behaviors_conf"].values()] == ["lick", "shake", "walk"]
    assert [one["name"] for one in more.document["subjects_conf"].values()] == ["m1", "m2"]
    assert isinstance(project, BorisProject)


def test_tables_keep_the_columns_of_others(tmp_path: Path) -> None:
    """Independent variables, categories, dates, image indices and the time offset, with the numbers as they were."""
    path, again = tmp_path / "a.tsv", tmp_path / "b.tsv"
    names = (
        "Observation id|Observation date|FPS|Time offset (s)|dose|Subject|Behavior|Behavioral category|Behavior type"
    )
    names += "|Time|Media file name|Image index|Comment"
    rows = [
        "o|2026-01-01|25.000|0.1|5 mg|m1|lick|care|START|0.3|v.mp4|5|",
        "o|2026-01-01|25.000|0.1|5 mg|m1|lick|care|STOP|0.7|v.mp4|15|x",
    ]
    path.write_text("\n".join([names, *rows]).replace("|", "\t"))
    found = read_boris_events(path, "\t")
    assert found.annotations[0].events == (Event("lick", 0.2, 0.6, "m1", (), "", "x"),)
    write_boris_events(again, found.annotations, found.kept)
    with again.open(newline="") as file:
        written = list(csv.DictReader(file, delimiter="\t"))
    for row, cells in zip(rows, written, strict=True):
        expected = dict(zip(names.split("|"), row.split("|"), strict=True))
        assert {name: cells[name] for name in expected} == expected | {"Time": f"{float(expected['Time']):.3f}"}
    aggregated = tmp_path / "c.csv"
    write_aggregated(aggregated, found.annotations, found.kept)
    assert read_aggregated(aggregated, ",").annotations == found.annotations
    assert "5 mg" in aggregated.read_text()


def test_missing_rates_are_none(tmp_path: Path) -> None:
    for text in ("", "NA", "nan", "NaN", "0"):
        (tmp_path / "a.tsv").write_text(NEW.replace("\t25\t\t", f"\t{text}\t\t"))
        assert read_annotation(tmp_path / "a.tsv").fps is None
    (tmp_path / "p.boris").write_text(PROJECT.replace('"C:/videos/v.mp4": 25.0', '"C:/videos/v.mp4": NaN'))
    assert read_annotation(tmp_path / "p.boris").fps is None


def test_several_observations_in_one_file(tmp_path: Path) -> None:
    both = [Annotation(f"m{n}.mp4", (Event("lick", n, n + 1.0),), 25.0, None, f"day {n}") for n in (1, 2)]
    write_boris_events(tmp_path / "a.tsv", both)
    assert read_annotations(tmp_path / "a.tsv") == tuple(both)
    for video in ("m2.mp4", "day 2"):
        assert read_annotation(tmp_path / "a.tsv", video=video) == both[1]
    with pytest.raises(UserError, match="2 observations: day 1, day 2"):
        read_annotation(tmp_path / "a.tsv")
    with pytest.raises(UserError, match=r"no observation of m3\.mp4"):
        read_annotation(tmp_path / "a.tsv", video="m3.mp4")


def test_what_boris_cannot_hold_is_refused(tmp_path: Path) -> None:
    twice = Annotation("v.mp4", (Event("lick", 0.0, 5.0), Event("lick", 2.0, 3.0)))
    with pytest.raises(UserError, match=r"'lick' runs from 0 to 5 s and again from 2 to 3 s"):
        write_boris_events(tmp_path / "a.tsv", [twice])
    mixed = Annotation("v.mp4", (Event("lick", 0.0, 5.0), Event("lick", 7.0, None)))
    with pytest.raises(UserError, match="'lick' is a state in the ethogram, and a point event at 7 s"):
        with_annotations(empty_project(), [mixed])
    with pytest.raises(UserError, match="to write"):
        write_boris_events(tmp_path / "no" / "a.tsv", [mixed])

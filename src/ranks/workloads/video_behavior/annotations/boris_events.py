"""BORIS' tabular events: one row for each point event and for each end of a state.

    Observation id  ...  FPS  (variables)  Subject  Behavior  ...  Behavior type  Time  Media file name  ...  Comment
    day 1                25.0              m1       lick           START          3.3   m1.mp4
    day 1                25.0              m1       lick           STOP           7.75  m1.mp4

Files of BORIS before version 8 start with a block about the observation, and call the columns otherwise:

    Observation id    day 1
    Time offset (s)   0.0
    Time  Media file path  Total length  FPS  Subject  Behavior  Behavioral category  (modifiers)  Comment  Status
    3.3   m1.mp4           359.96        25.0 m1       lick                                                 START
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ranks.errors import UserError
from ranks.workloads.video_behavior.annotations.boris_columns import (
    KeptCells,
    ObservationColumns,
    annotation_of,
    by_observation,
    frame_text,
    modifier_cells,
    observation_cells,
    shifted,
)
from ranks.workloads.video_behavior.annotations.delimited import (
    MAX_EVENT_ROWS,
    Header,
    TableRow,
    asked,
    delimiter_for,
    number,
    number_text,
    rows_of,
    table_of,
    write_rows,
)
from ranks.workloads.video_behavior.annotations.events import Annotation
from ranks.workloads.video_behavior.annotations.pairing import Mark, events_of, marks_of

KINDS = ("START", "STOP", "POINT")
OBSERVATION = (
    "Observation id",
    "Observation date",
    "Description",
    "Observation duration",
    "Observation type",
    "Source",
)
BEFORE_SUBJECT = (*OBSERVATION, "Time offset (s)", "Media duration (s)", "FPS")
EVENT = ("Behavior type", "Time", "Media file name", "Image index", "Image file path", "Comment")
OLD_BLOCK = 200
"""The most lines before the table of an old file."""


@dataclass(frozen=True)
class BorisEvents:
    """A file of tabular events: its annotations, and the cells that they do not hold."""

    annotations: tuple[Annotation, ...]
    kept: KeptCells


def is_boris_events(names: Sequence[str]) -> bool:
    """Whether these are the columns of tabular events."""
    folded = {name.strip().casefold() for name in names}
    return {"time", "subject", "behavior"} <= folded and bool({"behavior type", "status"} & folded)


def read_boris_events(path: Path, delimiter: str) -> BorisEvents:
    """Read new tabular events. Raises UserError."""
    header, rows = table_of(path, rows_of(path, delimiter, MAX_EVENT_ROWS))
    return _read(header, list(rows), ObservationColumns.of(header))


def read_old_boris_events(path: Path, delimiter: str) -> BorisEvents:
    """Read tabular events that start with a block about the observation. Raises UserError."""
    rows = rows_of(path, delimiter, MAX_EVENT_ROWS)
    block: dict[str, TableRow] = {}
    for row in itertools.islice(rows, OLD_BLOCK):
        if is_boris_events(row.cells):
            header, table = table_of(path, itertools.chain([row], rows))
            named, offset = block.get("observation id"), block.get("time offset (s)")
            observation = "" if named is None else named.cells[1]
            offset_s = 0.0 if offset is None else number(offset, 1, "time offset")
            return _read(header, list(table), ObservationColumns.of(header, observation, offset_s))
        if len(row.cells) > 1:
            block.setdefault(row.cells[0].strip().casefold(), row)
    raise UserError(asked(path), "no row with Time, Subject, Behavior and Status", "export the events again")


def _read(header: Header, rows: list[TableRow], columns: ObservationColumns) -> BorisEvents:
    kind, time = header.required("Behavior type", "Status"), header.required("Time")
    comment = header.index("Comment")

    def mark_of(row: TableRow) -> Mark:
        word = row.cells[kind].strip().upper()
        if word not in KINDS:
            row.fail(f"'{row.cells[kind]}' is none of {', '.join(KINDS)}", "export the events again")
        return Mark(
            word,
            columns.time_of(row, time, "time"),
            columns.subject_of(row),
            columns.behavior_of(row),
            columns.modifiers_of(row),
            "" if comment is None else row.cells[comment],
            row.fail,
        )

    annotations: list[Annotation] = []
    keys: dict[int, Hashable] = {}
    for group, observation, video in by_observation(rows, columns):
        marks = [mark_of(row) for row in group]
        keys |= {row.line: key_of(mark) for row, mark in zip(group, marks, strict=True)}
        annotations.append(annotation_of(group, columns, observation, video, events_of(marks)))
    return BorisEvents(tuple(annotations), KeptCells.of(header, rows, columns, [keys[row.line] for row in rows]))


def key_of(mark: Mark) -> Hashable:
    """What identifies a row among those of its observation."""
    return mark.kind, mark.key, mark.time_s


def write_boris_events(path: Path, annotations: Sequence[Annotation], kept: KeptCells | None = None) -> None:
    """Write new tabular events: commas for .csv, else tabs. Raises UserError.

    `kept`: the cells of the file that the annotations were read from. Columns that only it has, such as independent
    variables, follow FPS; events that it does not have get empty cells there.
    """
    kept = kept or KeptCells()
    width = max((len(event.modifiers) for one in annotations for event in one.events), default=0)
    modifiers = tuple(modifier_cells((), width))
    owned = ("Subject", "Behavior", *modifiers, "Behavior type", "Time", "Comment")
    names = (*BEFORE_SUBJECT, "Subject", "Behavior", "Behavioral category", *modifiers, *EVENT)

    def rows() -> Iterator[dict[str, str]]:
        for annotation in annotations:
            shared = observation_cells(annotation)
            offset_s = kept.offset_s(shared["Observation id"])
            for mark in marks_of(annotation.events, f"to write {path}"):
                cells = {
                    **shared,
                    "Subject": mark.subject,
                    "Behavior": mark.behavior,
                    **modifier_cells(mark.modifiers, width),
                    "Behavior type": mark.kind,
                    "Time": number_text(shifted(mark.time_s, offset_s)),
                    "Image index": frame_text(mark.time_s, annotation.fps),
                    "Comment": mark.comment,
                }
                yield kept.filled(annotation, key_of(mark), cells, owned)

    write_rows(path, kept.with_own_columns(names, "FPS"), rows(), delimiter_for(path))


def write_old_boris_events(path: Path, annotation: Annotation) -> None:
    """Write the tabular events of one observation as BORIS did before version 8, which other programs read. Raises
    UserError."""
    width = max((len(event.modifiers) for event in annotation.events), default=0)
    modifiers = tuple(f"Modifier {at + 1}" for at in range(width))
    first = ("Time", "Media file path", "Total length", "FPS", "Subject", "Behavior", "Behavioral category")
    names = (*first, *modifiers, "Comment", "Status")
    block = {
        "Observation id": annotation.observation,
        "Media file(s)": "",
        "Player #1": annotation.video,
        "Observation date": "",
        "Description": "",
        "Time offset (s)": "0.0",
    }
    shared = observation_cells(annotation)

    def rows() -> Iterator[dict[str, str]]:
        yield from ({first[0]: name, first[1]: value} for name, value in itertools.islice(block.items(), 1, None))
        yield dict(zip(names, names, strict=True))
        for mark in marks_of(annotation.events, f"to write {path}"):
            yield {
                "Time": number_text(mark.time_s),
                "Media file path": annotation.video,
                "Total length": shared["Media duration (s)"],
                "FPS": shared["FPS"],
                "Subject": mark.subject,
                "Behavior": mark.behavior,
                **{name: part for name, part in zip(modifiers, mark.modifiers, strict=False)},
                "Comment": mark.comment,
                "Status": mark.kind,
            }

    top = ["Observation id", block["Observation id"], *[""] * (len(names) - 2)]
    write_rows(path, names, rows(), delimiter_for(path), top=top)

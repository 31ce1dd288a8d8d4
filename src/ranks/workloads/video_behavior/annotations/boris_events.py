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
from ranks.workloads.video_behavior.annotations.boris_block import FACTS, ObservationBlock
from ranks.workloads.video_behavior.annotations.boris_columns import (
    OLD_NAMES,
    KeptCells,
    ObservationColumns,
    annotation_of,
    by_observation,
    frame_text,
    leaving_out,
    media_file_of,
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
    number_text,
    rows_of,
    table_of,
    write_cells,
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
OLD_BLOCK = 400
"""The most lines before the table of an old file."""


@dataclass(frozen=True)
class BorisEvents:
    """A file of events: its annotations, and the cells that they do not hold. `subjects`: of all its rows."""

    annotations: tuple[Annotation, ...]
    kept: KeptCells
    subjects: frozenset[str]


def is_boris_events(names: Sequence[str]) -> bool:
    """Whether these are the columns of tabular events."""
    folded = {name.strip().casefold() for name in names}
    return {"time", "subject", "behavior"} <= folded and bool({"behavior type", "status"} & folded)


def read_boris_events(
    path: Path, delimiter: str, video: str | None = None, damaged: list[UserError] | None = None
) -> BorisEvents:
    """Read new tabular events. Raises UserError.

    `video`: only the observations of this media file or with this id, where there are some; the others may be damaged.
    `damaged`: takes what is wrong with single observations, which are left out; without it, that is raised.
    """
    header, rows = table_of(path, rows_of(path, delimiter, MAX_EVENT_ROWS))
    return _read(header, list(rows), None, video, damaged)


def read_old_boris_events(
    path: Path, delimiter: str, video: str | None = None, damaged: list[UserError] | None = None
) -> BorisEvents:
    """Read tabular events that start with a block about the observation. As `read_boris_events`."""
    rows = rows_of(path, delimiter, MAX_EVENT_ROWS, blank=True)
    block: list[TableRow] = []
    for row in itertools.islice(rows, OLD_BLOCK):
        if is_boris_events(row.cells):
            below = (row for row in rows if not row.is_blank)
            header, table = table_of(path, itertools.chain([row], below))
            return _read(header, list(table), ObservationBlock(tuple(block)), video, damaged)
        block.append(row)
    raise UserError(asked(path), "no row with Time, Subject, Behavior and Status", "export the events again")


def _read(
    header: Header,
    rows: list[TableRow],
    block: ObservationBlock | None,
    video: str | None,
    damaged: list[UserError] | None,
) -> BorisEvents:
    columns = ObservationColumns.of(header, block)
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
    read: list[tuple[Hashable, TableRow]] = []
    for observation, group in by_observation(rows, columns, video).items():
        with leaving_out(damaged, observation):
            media = media_file_of(group, columns, observation)
            marks = [mark_of(row) for row in group]
            annotations.append(annotation_of(group, columns, observation, media, events_of(marks)))
            read += [(key_of(mark), row) for mark, row in zip(marks, group, strict=True)]
    kept = KeptCells.of(header, read, columns, block)
    return BorisEvents(tuple(annotations), kept, frozenset(map(columns.subject_of, rows)))


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
            offset_s = kept.offset_s(annotation.observation)
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


def write_old_boris_events(path: Path, annotation: Annotation, kept: KeptCells | None = None) -> None:
    """Write the tabular events of one observation as BORIS did before version 8, which other programs read. Raises
    UserError.

    `kept`: as in `write_boris_events`; the block of an old file of this observation goes back row by row.
    """
    kept = kept or KeptCells()
    width = max((len(event.modifiers) for event in annotation.events), default=0)
    modifiers = tuple(modifier_cells((), width))
    owned = ("Subject", "Behavior", *modifiers, "Behavior type", "Time", "Comment")
    first = ("Time", "Media file name", "Media duration (s)", "FPS", "Subject", "Behavior", "Behavioral category")
    has_block = bool(kept.block.rows) and kept.block.observation == annotation.observation
    in_block = {*OBSERVATION, *FACTS, *kept.block_names}
    names = kept.with_own_columns((*first, *modifiers, "Comment", "Behavior type"), "FPS")
    names = [name for name in names if name not in in_block]
    shown = {**OLD_NAMES, **{name: f"Modifier {at + 1}" for at, name in enumerate(modifiers)}}
    offset_s = kept.offset_s(annotation.observation)
    shared = {**observation_cells(annotation), "Media file name": annotation.video}

    def rows() -> Iterator[Sequence[str]]:
        block = [row.cells for row in kept.block.rows] if has_block else _new_block(annotation, kept)
        yield from ((*row, *[""] * (len(names) - len(row))) if any(row) else row for row in block)
        yield [shown.get(name, name) for name in names]
        for mark in marks_of(annotation.events, f"to write {path}"):
            cells = {
                **shared,
                "Subject": mark.subject,
                "Behavior": mark.behavior,
                **modifier_cells(mark.modifiers, width),
                "Behavior type": mark.kind,
                "Time": number_text(shifted(mark.time_s, offset_s)),
                "Comment": mark.comment,
            }
            filled = kept.filled(annotation, key_of(mark), cells, owned)
            yield [filled.get(name, "") for name in names]

    write_cells(path, rows(), delimiter_for(path))


def _new_block(annotation: Annotation, kept: KeptCells) -> list[tuple[str, ...]]:
    """The block of an observation that was not read from an old file."""
    known = {"Time offset (s)": "0.0", **kept.by_observation.get(annotation.observation, {})}
    return [
        ("Observation id", annotation.observation),
        ("Media file(s)", ""),
        ("Player #1", annotation.video),
        *((name, known.get(name, "")) for name in FACTS),
    ]

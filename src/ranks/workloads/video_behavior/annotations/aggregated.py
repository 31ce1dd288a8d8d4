"""BORIS' aggregated events: one row for each event, with its start and its stop.

Observation id  ...  FPS (frame/s)  Subject  Behavior  ...  Behavior type  Start (s)  Stop (s)  ...
day 1                25.0           m1       lick           STATE          3.3        7.75
day 1                25.0           m1       shake          POINT          9.2        9.2
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from pathlib import Path

from ranks.errors import UserError
from ranks.workloads.video_behavior.annotations.boris_columns import (
    NO_SUBJECT,
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
from ranks.workloads.video_behavior.annotations.boris_events import EVENT, OBSERVATION, BorisEvents
from ranks.workloads.video_behavior.annotations.delimited import (
    MAX_EVENT_ROWS,
    TableRow,
    delimiter_for,
    is_given,
    number_text,
    rows_of,
    table_of,
    write_rows,
)
from ranks.workloads.video_behavior.annotations.events import Annotation, Event

BEFORE_SUBJECT = (*OBSERVATION, "Time offset (s)", "Coding duration", "Media duration (s)", "FPS (frame/s)")
TIMES = ("Behavior type", "Start (s)", "Stop (s)", "Duration (s)", "Media file name")
IMAGES = ("Image index start", "Image index stop", "Image file path start", "Image file path stop")
COMMENTS = ("Comment start", "Comment stop")


def is_aggregated(names: Sequence[str]) -> bool:
    """Whether these are the columns of aggregated events."""
    return {"behavior", "start (s)", "stop (s)"} <= {name.strip().casefold() for name in names}


def read_aggregated(
    path: Path, delimiter: str, video: str | None = None, damaged: list[UserError] | None = None
) -> BorisEvents:
    """Read aggregated events, in the order of their starts. Raises UserError. `video` and `damaged` as in
    `read_boris_events`."""
    header, table = table_of(path, rows_of(path, delimiter, MAX_EVENT_ROWS))
    rows, columns = list(table), ObservationColumns.of(header)
    start, stop = header.required("Start (s)"), header.required("Stop (s)")
    kind = header.required("Behavior type")
    comments = [header.index(name) for name in COMMENTS]

    def event_of(row: TableRow) -> Event:
        word = row.cells[kind].strip().upper()
        if word not in ("STATE", "POINT"):
            row.fail(f"'{row.cells[kind]}' is neither STATE nor POINT", "export the events again")
        start_s = columns.time_of(row, start, "start")
        if word == "STATE" and not is_given(row.cells[stop]):
            row.fail("a state without a stop", "add the stop in BORIS, and export the events again")
        stop_s = columns.time_of(row, stop, "stop") if word == "STATE" else None
        if stop_s is not None and stop_s < start_s:
            row.fail(f"stop {stop_s:g} s before start {start_s:g} s", "exchange the two")
        said = ["" if at is None else row.cells[at] for at in comments]
        fixed = (columns.subject_of(row), columns.modifiers_of(row))
        return Event(columns.behavior_of(row), start_s, stop_s, *fixed, said[0], said[1] if word == "STATE" else "")

    annotations: list[Annotation] = []
    read: list[tuple[Hashable, TableRow]] = []
    for observation, group in by_observation(rows, columns, video).items():
        with leaving_out(damaged, observation):
            media = media_file_of(group, columns, observation)
            events: dict[Event, TableRow] = {}
            for row in group:
                event = event_of(row)
                if event in events:
                    row.fail(f"the same event as in line {events[event].line}", "remove one of the two rows")
                events[event] = row
            ordered = tuple(sorted(events, key=lambda event: event.start_s))
            annotations.append(annotation_of(group, columns, observation, media, ordered))
            read += [(key_of(event), row) for event, row in events.items()]
    kept = KeptCells.of(header, read, columns)
    return BorisEvents(tuple(annotations), kept, frozenset(map(columns.subject_of, rows)))


def key_of(event: Event) -> Hashable:
    """What identifies a row among those of its observation."""
    return event.behavior, event.start_s, event.stop_s, event.subject, event.modifiers


def write_aggregated(path: Path, annotations: Sequence[Annotation], kept: KeptCells | None = None) -> None:
    """Write aggregated events: commas for .csv, else tabs. Raises UserError.

    `kept`: the cells of the file that the annotations were read from, as in `write_boris_events`.
    """
    kept = kept or KeptCells()
    width = max((len(event.modifiers) for one in annotations for event in one.events), default=0)
    modifiers = tuple(modifier_cells((), width))
    owned = ("Subject", "Behavior", *modifiers, *TIMES[:4], *COMMENTS)
    subject = ("Subject", "Observation duration by subject by observation", "Behavior", "Behavioral category")
    names = (*BEFORE_SUBJECT, *subject, *modifiers, *TIMES, *IMAGES, *COMMENTS)

    def rows() -> Iterator[dict[str, str]]:
        for annotation in annotations:
            shared = observation_cells(annotation)
            offset_s = kept.offset_s(annotation.observation)
            for event in annotation.events:
                cells = {
                    **shared,
                    "FPS (frame/s)": shared["FPS"],
                    "Subject": event.subject or NO_SUBJECT,
                    "Behavior": event.behavior,
                    **modifier_cells(event.modifiers, width),
                    "Behavior type": "POINT" if event.stop_s is None else "STATE",
                    "Start (s)": number_text(shifted(event.start_s, offset_s)),
                    "Stop (s)": number_text(shifted(event.end_s, offset_s)),
                    "Duration (s)": "NA"
                    if event.stop_s is None
                    else number_text(round(event.end_s - event.start_s, 6)),
                    "Image index start": frame_text(event.start_s, annotation.fps),
                    "Image index stop": frame_text(event.end_s, annotation.fps),
                    "Comment start": event.comment_start,
                    "Comment stop": event.comment_stop,
                }
                yield kept.filled(annotation, key_of(event), cells, owned)

    columns = [name for name in kept.with_own_columns(names, "FPS (frame/s)") if name in names or name not in EVENT]
    write_rows(path, columns, rows(), delimiter_for(path))

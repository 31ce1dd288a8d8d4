"""Tables with one row a frame, or one row a moment.

- Labels: `Frame,Action` and any further columns. Frames count from 0. Where they start again at 0, a new trial of the
  same video begins, and the trials are joined in time. An action such as lick+shake, of a table with the columns
  lick_prob and shake_prob, is two behaviours: predict writes it where behaviours overlap.
- 0/1 columns: the number of the frame, then one column a behaviour (DeepEthogram).
- Binary table of BORIS: the time in seconds at equal steps, then one column a behaviour.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ranks.errors import UserError
from ranks.workloads.video_behavior.annotations.delimited import (
    MAX_FRAME_ROWS,
    MAX_TIME_S,
    Header,
    TableRow,
    asked,
    check_time,
    delimiter_for,
    number,
    number_text,
    rows_of,
    table_of,
    whole_number,
    write_rows,
)
from ranks.workloads.video_behavior.annotations.events import Annotation, Event

PROBABILITY = "_prob"
"""Ends the name of the column with a class's probability."""
UNLABELLED = "-1"
"""What DeepEthogram writes into all columns of a frame that nobody has labelled yet."""
SAME_STEP = 0.011
"""By how many seconds, or part of a step, two steps of a binary table may differ: its times are rounded."""


def is_labels(names: Sequence[str]) -> bool:
    """Whether these are the columns of `Frame,Action`."""
    return {"frame", "action"} <= {name.strip().casefold() for name in names}


def is_zero_one(names: Sequence[str]) -> bool:
    """Whether the first column may be the number of the frame and the others behaviours."""
    return len(names) > 1 and names[0].strip().casefold() in ("", "frame", "unnamed: 0")


def is_binary_table(names: Sequence[str]) -> bool:
    """Whether the first column is the time and the others may be behaviours."""
    return len(names) > 1 and names[0].strip().casefold() in ("time", "time (s)")


def read_labels(
    path: Path, delimiter: str, fps: float, times_s: Sequence[float] | None = None, max_rows: int = MAX_FRAME_ROWS
) -> Annotation:
    """Read `Frame,Action`. `times_s`: what `frame_times` found. An empty action is a frame without a code.
    Raises UserError where frames jump."""
    header, rows = table_of(path, rows_of(path, delimiter, max_rows))
    frame, action = header.required("Frame"), header.required("Action")
    classes = [name.removesuffix(PROBABILITY) for name in header.names if name.endswith(PROBABILITY)]
    starts = array("q")
    events, count = _runs(_labels(rows, frame, action, starts), classes, fps)
    duration_s, trials = _duration_s(path, count, fps), len(starts)
    return Annotation("", events, fps, duration_s, counts_frames=True, trials=trials, frame_times_s=times_s)


def frame_times(path: Path, delimiter: str, max_rows: int = MAX_FRAME_ROWS) -> Sequence[float] | None:
    """The times of the frames of a table with a column Time, as predict writes it, and the end of the last one. None
    where there is none, where it has one row, or where times do not increase, as in trials that were joined."""
    header, rows = table_of(path, rows_of(path, delimiter, max_rows))
    at = header.index("Time")
    if at is None:
        return None
    times_s = array("d")
    for row in rows:
        time_s = check_time(row, number(row, at, "time"), "time")
        if times_s and time_s <= times_s[-1]:
            return None
        times_s.append(time_s)
    if len(times_s) < 2:
        return None
    times_s.append(2 * times_s[-1] - times_s[-2])
    return times_s


def mean_rate(times_s: Sequence[float] | None) -> float | None:
    """The frames a second of `frame_times`."""
    return None if times_s is None else (len(times_s) - 2) / (times_s[-2] - times_s[0])


def _labels(rows: Iterator[TableRow], frame: int, action: int, starts: array[int]) -> Iterator[str]:
    """The actions, while the frames are checked and the lines of first frames are noted."""
    expected = 0
    for row in rows:
        found = whole_number(row, frame, "frame")
        if found not in (expected, 0):
            do = "frames count from 0 in steps of 1, and start at 0 again where a new trial begins"
            row.fail(f"frame {found} where {expected} was expected", do)
        if found == 0:
            starts.append(row.line)
        expected = found + 1
        yield row.cells[action].strip()


def read_zero_one(path: Path, delimiter: str, fps: float, max_rows: int = MAX_FRAME_ROWS) -> Annotation:
    """Read 0/1 columns by frame. A row of -1 is a frame that nobody labelled. Raises UserError where frames jump, or
    for other values."""
    header, rows = table_of(path, rows_of(path, delimiter, max_rows))
    names = _behaviors(header, path)
    lines, unknown = array("q"), array("q")
    runs = _runs_by_column(_checked(rows, lines, unknown), names)
    events = sorted((Event(names[at], first / fps, stop / fps) for at, first, stop in runs), key=lambda e: e.start_s)
    duration_s = _duration_s(path, len(lines), fps)
    return Annotation("", tuple(events), fps, duration_s, counts_frames=True, unknown_frames=len(unknown))


def _checked(rows: Iterator[TableRow], lines: array[int], unknown: array[int]) -> Iterator[TableRow]:
    """The rows, while their numbers and frames are checked and their lines are noted. `unknown`: takes the frames that
    nobody labelled."""
    for expected, row in enumerate(rows):
        lines.append(row.line)
        if whole_number(row, 0, "frame") != expected:
            row.fail(f"frame {row.cells[0].strip()} where {expected} was expected", "frames count from 0 in steps of 1")
        cells = row.cells[1:]
        if all(cell.strip() == UNLABELLED for cell in cells):
            unknown.append(expected)
            row = TableRow(row.path, row.line, (row.cells[0], *("0" for _ in cells)))
        yield row


def read_binary_table(path: Path, delimiter: str, max_rows: int = MAX_FRAME_ROWS) -> Annotation:
    """Read a binary table. A behaviour is shown from the time of its first row to the time of the first row without it.
    A count of point events is taken as shown. Raises UserError where times are not at equal steps."""
    header, rows = table_of(path, rows_of(path, delimiter, max_rows))
    names = _behaviors(header, path)
    times = array("d")

    def timed() -> Iterator[TableRow]:
        for row in rows:
            times.append(check_time(row, number(row, 0, "time"), "time"))
            if len(times) > 1 and times[-1] <= times[-2]:
                row.fail(f"time {times[-1]:g} s is not after {times[-2]:g} s", "export the table again")
            if len(times) > 2:
                step, first = times[-1] - times[-2], times[1] - times[0]
                if abs(step - first) > SAME_STEP * max(first, 0.1):
                    row.fail(f"a step of {step:g} s after steps of {first:g} s", "export the table with one step")
            yield row

    kept = list(_runs_by_column(timed(), names))
    step_s = times[1] - times[0] if len(times) > 1 else 1.0
    if not times:
        raise UserError(asked(path), "no rows below the header", "export the table again")
    ends = array("d", [*times, times[-1] + step_s])
    events = [Event(names[at], ends[first], ends[stop]) for at, first, stop in kept]
    return Annotation("", tuple(sorted(events, key=lambda event: event.start_s)), None, ends[-1])


def _behaviors(header: Header, path: Path) -> tuple[str, ...]:
    names = header.names[1:]
    if not all(names):
        raise UserError(asked(path), "a column without a name", "name each column after its behaviour")
    return names


def _duration_s(path: Path, count: int, fps: float) -> float:
    if not count:
        raise UserError(asked(path), "no rows below the header", "give a file with one row a frame")
    if count / fps > MAX_TIME_S:
        raise UserError(asked(path), f"{count:,} frames at {fps:g} frames a second", "check the frame rate")
    return count / fps


def _runs(labels: Iterator[str], classes: Sequence[str], fps: float) -> tuple[tuple[Event, ...], int]:
    """One event for each run of frames that show a behaviour, and the number of labels. Empty labels are no event."""
    events: list[Event] = []
    since: dict[str, int] = {}
    current, at = "", -1
    for at, label in enumerate(labels):
        if label == current:
            continue
        current, shown = label, _behaviors_of(label, classes)
        for behavior in [behavior for behavior in since if behavior not in shown]:
            events.append(Event(behavior, since.pop(behavior) / fps, at / fps))
        for behavior in shown:
            since.setdefault(behavior, at)
    events += [Event(behavior, first / fps, (at + 1) / fps) for behavior, first in since.items()]
    return tuple(sorted(events, key=lambda event: event.start_s)), at + 1


def _behaviors_of(label: str, classes: Sequence[str]) -> tuple[str, ...]:
    """("lick", "shake") of "lick+shake", where both are classes. Their order in the label is that of `classes`."""
    if not label or label in classes:
        return (label,) if label else ()
    found: list[str] = []
    rest = f"{label}+"
    for name in classes:
        if name and rest.startswith(f"{name}+"):
            found.append(name)
            rest = rest[len(name) + 1 :]
    return (label,) if rest else tuple(found)


def _runs_by_column(rows: Iterator[TableRow], names: Sequence[str]) -> Iterator[tuple[int, int, int]]:
    """(column, first row, row after the last) of each run of values above 0. Raises UserError for other values."""
    since: list[int | None] = [None] * len(names)
    at = -1
    for at, row in enumerate(rows):
        for column, cell in enumerate(row.cells[1:]):
            text = cell.strip()
            shown = text != "0" and whole_number(row, column + 1, names[column]) > 0
            first = since[column]
            if shown and first is None:
                since[column] = at
            elif not shown and first is not None:
                yield column, first, at
                since[column] = None
    yield from ((column, first, at + 1) for column, first in enumerate(since) if first is not None)


def write_labels(path: Path, labels: Sequence[str], probabilities: Mapping[str, Sequence[float]] | None = None) -> None:
    """Write `Frame,Action`, and the probability of each class as `<class>_prob`. Raises UserError."""
    given = probabilities or {}
    names = ("Frame", "Action", *(f"{name}{PROBABILITY}" for name in given))
    rows = (
        {
            "Frame": str(at),
            "Action": label,
            **{f"{name}{PROBABILITY}": f"{values[at]:.6g}" for name, values in given.items()},
        }
        for at, label in enumerate(labels)
    )
    write_rows(path, names, rows, delimiter_for(path))


def write_zero_one(path: Path, names: Sequence[str], shown_NC: Sequence[Sequence[int]]) -> None:
    """Write 0/1 columns by frame. Raises UserError."""
    rows = (
        {"": str(at), **{name: str(int(value)) for name, value in zip(names, row, strict=True)}}
        for at, row in enumerate(shown_NC)
    )
    write_rows(path, ("", *names), rows, delimiter_for(path))


def write_binary_table(path: Path, annotation: Annotation, step_s: float) -> None:
    """Write the states at steps of `step_s`, from 0 to the end of the video or of the last event. Raises UserError."""
    names = tuple(dict.fromkeys(event.behavior for event in annotation.events))
    end_s = max([annotation.duration_s or 0.0, *(event.end_s for event in annotation.events)])
    if not step_s > 0 or end_s / step_s > MAX_FRAME_ROWS:
        raise UserError(f"to write {path}", f"a step of {step_s:g} s for {end_s:g} s", "give a larger step")

    def row_of(number: int) -> dict[str, str]:
        time_s = round(number * step_s, 9)
        shown = {event.behavior for event in annotation.events if _covers(event, time_s, step_s)}
        return {"time": number_text(time_s), **{name: str(int(name in shown)) for name in names}}

    count = int(end_s / step_s - 1e-9) + 1
    write_rows(path, ("time", *names), (row_of(number) for number in range(count)), delimiter_for(path))


def _covers(event: Event, time_s: float, step_s: float) -> bool:
    """Whether a state is shown at a time, or a point event in the step that starts there."""
    return event.start_s <= time_s < event.stop_s if event.stop_s is not None else 0 <= event.start_s - time_s < step_s

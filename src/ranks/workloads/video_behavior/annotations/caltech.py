"""Caltech annotations (`*_annot.txt`): frames from 1, both ends of a bout included.

    Caltech Behavior Annotator - Annotation File

    Configuration file:
    social  s
    base    b

    S1:  start  end  type
    -----------------------------
         1      594  base
         595    979  social

A file has one or more streams, S1, S2, ...: layers of annotation that are independent of each other. Their names
become the subjects of events.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from pathlib import Path

from ranks.bounded_file import open_file
from ranks.errors import UserError
from ranks.workloads.video_behavior.annotations.delimited import MAX_EVENT_ROWS, MAX_TIME_S, TableRow, asked, write_text
from ranks.workloads.video_behavior.annotations.events import Annotation, Event

FIRST_LINE = "Caltech Behavior Annotator - Annotation File"
STREAM = re.compile(r"(S\d+):\s*start\s+end\s+type", re.IGNORECASE | re.ASCII)
BOUT = re.compile(r"(\d{1,12})\s+(\d{1,12})\s+(\S.*)", re.ASCII)
KEYS = "abcdefghijklmnopqrstuvwxyz0123456789"


def is_caltech(head: str) -> bool:
    """Whether a text starts like a Caltech annotation."""
    return head.lstrip().lower().startswith(FIRST_LINE.lower())


def read_caltech(path: Path, fps: float) -> Annotation:
    """Read all streams. Raises UserError, also where two bouts of a stream overlap."""
    events: list[Event] = []
    stream, last = "", 0
    longest = 0
    with open_file(path, asked(path)) as file:
        text = io.TextIOWrapper(file, "utf-8-sig")
        try:
            for line, content in enumerate(text, 1):
                row = TableRow(path, line, (content.strip(),))
                header = STREAM.fullmatch(row.cells[0])
                if header:
                    stream, last = header[1].upper(), 0
                elif stream and row.cells[0].strip("-"):
                    event, last = _bout(row, stream, last, fps)
                    longest = max(longest, last)
                    events.append(event)
                if len(events) > MAX_EVENT_ROWS:
                    row.fail(f"more than {MAX_EVENT_ROWS:,} bouts", "give one file for each video")
        except UnicodeDecodeError:
            raise UserError(asked(path), "bytes that are not UTF-8 text", "save it as UTF-8 text") from None
    if not stream:
        raise UserError(asked(path), "no stream: no line 'S1: start end type'", "save it again in the annotator")
    return Annotation("", tuple(events), fps, longest / fps if longest else None, counts_frames=True)


def _bout(row: TableRow, stream: str, last: int, fps: float) -> tuple[Event, int]:
    """The event of a row and its last frame. `last`: the last frame of the bout before."""
    found = BOUT.fullmatch(row.cells[0])
    if found is None:
        row.fail(f"'{row.cells[0]}' is not 'start end type' in frames from 1", "save it again in the annotator")
    first, end = int(found[1]), int(found[2])
    if not 1 <= first <= end or end / fps > MAX_TIME_S:
        row.fail(f"frames {first} to {end}", "frames count from 1, and a bout ends where it starts or later")
    if first <= last:
        row.fail(
            f"frame {first} also belongs to the bout before it, which ends at {last}", "let one of them end earlier"
        )
    return Event(found[3].strip(), (first - 1) / fps, end / fps, stream), end


def write_caltech(path: Path, annotation: Annotation, fps: float) -> None:
    """Write the states, one stream for each subject. Raises UserError for what the format cannot hold: point events,
    and behaviours with blanks in their names."""
    to_write = f"to write {path}"
    behaviors = sorted({event.behavior for event in annotation.events})
    blank = next((name for name in behaviors if not name or re.search(r"\s", name)), None)
    if blank is not None:
        raise UserError(to_write, f"the behaviour '{blank}' has blanks in its name", "rename it, or write BORIS events")
    lines = [FIRST_LINE, "", "Configuration file:"]
    lines += [f"{name}\t{KEYS[at % len(KEYS)]}" for at, name in enumerate(behaviors)]
    subjects = list(dict.fromkeys(event.subject for event in annotation.events)) or [""]
    for number, subject in enumerate(subjects, 1):
        lines += ["", f"S{number}:\tstart\tend\ttype", "-" * 29]
        lines += _lines([event for event in annotation.events if event.subject == subject], fps, to_write)
    write_text(path, "\n".join(lines) + "\n")


def _lines(events: Sequence[Event], fps: float, to_write: str) -> list[str]:
    lines: list[str] = []
    last = 0
    for event in sorted(events, key=lambda event: event.start_s):
        if event.stop_s is None:
            found = f"the point event '{event.behavior}' at {event.start_s:g} s"
            raise UserError(to_write, f"{found}, and the format has bouts only", "write BORIS events")
        first, end = round(event.start_s * fps) + 1, round(event.stop_s * fps)
        if first <= last:
            found = f"'{event.behavior}' overlaps the bout before it at {event.start_s:g} s"
            raise UserError(to_write, found, "write BORIS events: a stream of this format has no overlaps")
        if first <= end:
            lines.append(f"\t{first}\t{end}\t{event.behavior}")
            last = end
    return lines

"""Reads any annotation file: the format is recognised by its content.

read_annotation(path)                       the only observation of a file, or an error that lists them
read_annotation(path, subject="m1", video="m1.mp4", fps=25.0)
read_annotations(path)                      all observations
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from ranks.errors import UserError, nearest
from ranks.workloads.video_behavior.annotations.aggregated import is_aggregated, read_aggregated
from ranks.workloads.video_behavior.annotations.boris_events import (
    is_boris_events,
    read_boris_events,
    read_old_boris_events,
)
from ranks.workloads.video_behavior.annotations.boris_project import read_boris_project, subjects_of
from ranks.workloads.video_behavior.annotations.caltech import is_caltech, read_caltech
from ranks.workloads.video_behavior.annotations.delimited import asked, delimiter_of, first_line, head_of
from ranks.workloads.video_behavior.annotations.events import Annotation, Event, same_file
from ranks.workloads.video_behavior.annotations.frame_tables import (
    is_binary_table,
    is_labels,
    is_zero_one,
    rate_of_times,
    read_binary_table,
    read_labels,
    read_zero_one,
)

FORMATS = (
    "BORIS events (tabular or aggregated), a BORIS project, a table Frame,Action, 0/1 columns by frame or by time, "
    "or a Caltech annotation"
)
Annotations: TypeAlias = tuple[Annotation, ...]


def read_annotations(path: Path, *, fps: float | None = None) -> Annotations:
    """All annotations of a file, or of a folder of `Frame,Action` files, the trials of one video.

    `fps`: for formats that count frames. Raises UserError where the format is not recognised, and for all damage.
    """
    if path.is_dir():
        return (_trials(path, fps),)
    return _by_content(path, fps)[0]


def read_annotation(
    path: Path, subject: str | None = None, *, video: str | None = None, fps: float | None = None
) -> Annotation:
    """The annotation of one video. Raises UserError.

    `subject`: only the events of this subject. `video`: which observation, by its media file or its id, where a file
    has several. `fps`: for formats that count frames.
    """
    if path.is_dir():
        return _of_subject(_trials(path, fps), subject, (), path)
    found, subjects = _by_content(path, fps, video)
    return _of_subject(_of_video(found, video, path), subject, subjects, path)


def _by_content(path: Path, fps: float | None, video: str | None = None) -> tuple[Annotations, Sequence[str]]:
    """The annotations, and the subjects that the file defines apart from its events."""
    head = head_of(path)
    if head.lstrip()[:1] == "{":
        project = read_boris_project(path, video)
        return project.annotations, subjects_of(project.document)
    if is_caltech(head):
        return (read_caltech(path, _required(fps, path)),), ()
    first = first_line(head, path)
    delimiter = delimiter_of(first)
    names = _cells(first, delimiter)
    if is_boris_events(names):
        return read_boris_events(path, delimiter).annotations, ()
    if is_aggregated(names):
        return read_aggregated(path, delimiter).annotations, ()
    if names and names[0].strip().casefold() == "observation id":
        return read_old_boris_events(path, delimiter).annotations, ()
    if is_labels(names):
        return (read_labels(path, delimiter, _required(fps or rate_of_times(path, delimiter), path)),), ()
    if is_zero_one(names):
        return (read_zero_one(path, delimiter, _required(fps, path)),), ()
    if is_binary_table(names):
        return (read_binary_table(path, delimiter),), ()
    found = f"a format that is not known: it starts with '{first[:80]}'"
    raise UserError(asked(path), found, f"give {FORMATS}; see docs/video-behavior-files.md")


def _cells(line: str, delimiter: str) -> list[str]:
    """The cells of a header line; none where its quotes are damaged."""
    try:
        return next(csv.reader([line[:100_000]], delimiter=delimiter), [])
    except csv.Error:
        return []


class RateUnknown(UserError):
    """A file counts frames, and nobody says how many there are in a second."""


def _required(fps: float | None, path: Path) -> float:
    if fps is None:
        do = "give the frame rate: the column fps of dataset.csv, or --fps"
        raise RateUnknown(asked(path), "it counts frames, and the frame rate is not known", do)
    return fps


def _trials(folder: Path, fps: float | None) -> Annotation:
    """The `Frame,Action` files of a folder, joined in time in the order of the numbers in their names."""
    files = sorted((path for path in folder.iterdir() if path.suffix.lower() == ".csv"), key=_natural)
    if not files:
        raise UserError(asked(folder), "a folder without .csv files", "give a file, or a folder of trials")
    end_s = 0.0
    events: list[Event] = []
    for path in files:
        (trial,), _ = _by_content(path, fps)
        events += shifted_events(trial, end_s).events
        end_s += trial.duration_s or 0.0
    return Annotation("", tuple(events), fps, end_s, counts_frames=True)


def _natural(path: Path) -> list[tuple[int, str]]:
    """Sorts trial_2 before trial_10."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", path.name)]


def _of_video(annotations: Annotations, video: str | None, path: Path) -> Annotation:
    if not annotations:
        return Annotation("" if video is None else video, ())
    if len(annotations) == 1:
        return annotations[0]
    named = [one.observation or one.video for one in annotations]
    listed = f"{len(annotations)} observations: {', '.join(named[:5])}" + (", ..." if len(named) > 5 else "")
    if video is None:
        raise UserError(asked(path), listed, "say which: name the media file or the observation")
    matches = [one for one in annotations if video in (one.observation, one.video) or same_file(one.video, video)]
    if len(matches) != 1:
        found = f"{'no observation' if not matches else f'{len(matches)} observations'} of {video} among {listed}"
        raise UserError(asked(path), found, "give a file with one observation of this video")
    return matches[0]


def _of_subject(annotation: Annotation, subject: str | None, defined: Sequence[str], path: Path) -> Annotation:
    if subject is None:
        return annotation
    subjects = sorted({event.subject for event in annotation.events} | set(defined))
    if annotation.events and subject not in subjects:
        do = nearest(
            subject, [name for name in subjects if name], f"it has {', '.join(subjects).strip(', ') or 'none'}"
        )
        raise UserError(asked(path), f"no events of the subject '{subject}'", do)
    return replace(annotation, events=tuple(event for event in annotation.events if event.subject == subject))


def shifted_events(annotation: Annotation, offset_s: float) -> Annotation:
    """The annotation with `offset_s` added to all times."""
    if offset_s == 0:
        return annotation
    return _with_events(
        annotation,
        lambda event: replace(
            event,
            start_s=event.start_s + offset_s,
            stop_s=None if event.stop_s is None else event.stop_s + offset_s,
        ),
    )


def merged(annotation: Annotation, names: Mapping[str, str]) -> Annotation:
    """The annotation with behaviours renamed: {"3": "1", "5": "1"} makes one behaviour of three."""
    return _with_events(annotation, lambda event: replace(event, behavior=names.get(event.behavior, event.behavior)))


def parse_merge(text: str) -> dict[str, str]:
    """'3->1,5->1' -> {"3": "1", "5": "1"}. Raises UserError."""
    pairs = [[name.strip() for name in part.split("->")] for part in text.split(",") if part.strip()]
    if not all(len(pair) == 2 and all(pair) for pair in pairs):
        raise UserError(f"to merge '{text}'", "not a list of OLD->NEW", "write, for example, 3->1,5->1")
    found = {old: new for old, new in pairs}
    chained = next((new for new in found.values() if new in found), None)
    if len(found) < len(pairs) or chained is not None:
        do = "name each behaviour once, and its final name right away"
        raise UserError(f"to merge '{text}'", "a behaviour that is renamed twice", do)
    return found


def _with_events(annotation: Annotation, change: Callable[[Event], Event]) -> Annotation:
    return replace(annotation, events=tuple(map(change, annotation.events)))

"""Reads any annotation file: the format is recognised by its content.

read_annotation(path)                       the only observation of a file, or an error that lists them
read_annotation(path, subject="m1", video="m1.mp4", fps=25.0)
read_annotations(path)                      all observations
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from ranks.errors import UserError, nearest
from ranks.workloads.video_behavior.annotations.aggregated import is_aggregated, read_aggregated
from ranks.workloads.video_behavior.annotations.boris_events import (
    BorisEvents,
    is_boris_events,
    read_boris_events,
    read_old_boris_events,
)
from ranks.workloads.video_behavior.annotations.boris_project import read_boris_project
from ranks.workloads.video_behavior.annotations.caltech import is_caltech, read_caltech
from ranks.workloads.video_behavior.annotations.delimited import asked, delimiter_of, first_line, head_of
from ranks.workloads.video_behavior.annotations.events import Annotation, Event, same_file
from ranks.workloads.video_behavior.annotations.frame_tables import (
    frame_times,
    is_binary_table,
    is_labels,
    is_zero_one,
    mean_rate,
    read_binary_table,
    read_labels,
    read_zero_one,
)

FORMATS = (
    "BORIS events (tabular or aggregated), a BORIS project, a table Frame,Action, 0/1 columns by frame or by time, "
    "or a Caltech annotation"
)
Annotations: TypeAlias = tuple[Annotation, ...]
EventReader: TypeAlias = Callable[[Path, str, str | None, list[UserError] | None], BorisEvents]


def read_annotations(path: Path, *, fps: float | None = None, damaged: list[UserError] | None = None) -> Annotations:
    """All annotations of a file, or of a folder of `Frame,Action` files, the trials of one video.

    `fps`: for formats that count frames. `damaged`: takes what is wrong with single observations of a file, which are
    left out; without it, that is raised. Raises UserError where the format is not recognised, and for all damage.
    """
    return (_trials(path, fps),) if path.is_dir() else _by_content(path, fps, None, damaged)


def read_annotation(
    path: Path,
    subject: str | None = None,
    *,
    video: str | None = None,
    fps: float | None = None,
    missing_ok: bool = False,
) -> Annotation:
    """The annotation of one video. Raises UserError.

    `subject`: only the events of this subject; all events of a file that names no subject at all. `missing_ok`: a file
    that names other subjects only has no event of this one; else that is an error. `video`: which observation, by its
    media file or its id, where a file has several. `fps`: for formats that count frames.
    """
    found = _trials(path, fps) if path.is_dir() else _of_video(_by_content(path, fps, video), video, path)
    if not missing_ok:
        check_subject(subject, [found], asked(path))
    if subject is None or not found.subjects:
        return found
    return replace(found, events=tuple(event for event in found.events if event.subject == subject))


def check_subject(subject: str | None, annotations: Sequence[Annotation], asked: str) -> None:
    """Raises UserError where the files of these annotations name subjects, but not this one."""
    subjects = sorted({name for annotation in annotations for name in annotation.subjects})
    if subject is not None and subjects and subject not in subjects:
        listed = f"it has {', '.join(subjects[:10])}" + (", ..." if len(subjects) > 10 else "")
        raise UserError(asked, f"no events of the subject '{subject}'", nearest(subject, subjects, listed))


def _by_content(
    path: Path, fps: float | None, video: str | None = None, damaged: list[UserError] | None = None
) -> Annotations:
    """The annotations of a file, with the subjects that it names. `video`: only its observations of this video."""
    head = head_of(path)
    if head.lstrip()[:1] == "{":
        project = read_boris_project(path, video, damaged)
        return tuple(replace(one, subjects=project.subjects) for one in project.annotations)
    return _of_text(path, head, fps, video, damaged)


def _with_subjects(annotations: Annotations, named: Iterable[str]) -> Annotations:
    """The annotations of a file that names these subjects."""
    subjects = tuple(sorted({*named} - {""}))
    return tuple(replace(one, subjects=subjects) for one in annotations)


def _of_text(
    path: Path, head: str, fps: float | None, video: str | None, damaged: list[UserError] | None
) -> Annotations:
    if is_caltech(head):
        found = read_caltech(path, _required(fps, path))
        return _with_subjects((found,), (event.subject for event in found.events))
    first = first_line(head, path)
    delimiter = delimiter_of(first)
    names = _cells(first, delimiter)
    read_events = _reader_of(names)
    if read_events is not None:
        table = read_events(path, delimiter, video, damaged)
        return _with_subjects(table.annotations, table.subjects)
    if is_labels(names):
        times_s = None if fps else frame_times(path, delimiter)
        return (read_labels(path, delimiter, _required(fps or mean_rate(times_s), path), times_s),)
    if is_zero_one(names):
        return (read_zero_one(path, delimiter, _required(fps, path)),)
    if is_binary_table(names):
        return (read_binary_table(path, delimiter),)
    found = f"a format that is not known: it starts with '{first[:80]}'"
    raise UserError(asked(path), found, f"give {FORMATS}; see docs/video-behavior-files.md")


def _reader_of(names: Sequence[str]) -> EventReader | None:
    """What reads a table of BORIS events with these columns; None where it is none."""
    if is_boris_events(names):
        return read_boris_events
    if is_aggregated(names):
        return read_aggregated
    return read_old_boris_events if names and names[0].strip().casefold() == "observation id" else None


def is_frame_table(path: Path) -> bool:
    """Whether a file is a table `Frame,Action`. Raises UserError where it is no text."""
    first = first_line(head_of(path), path)
    return is_labels(_cells(first, delimiter_of(first)))


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


def trial_files(folder: Path) -> list[Path]:
    """The .csv files of a folder of trials, in the order of the numbers in their names. Hidden ones do not count."""
    files = (path for path in folder.iterdir() if path.suffix.lower() == ".csv" and not path.name.startswith("."))
    return sorted(files, key=_natural)


def _trials(folder: Path, fps: float | None) -> Annotation:
    """The `Frame,Action` files of a folder, joined in time."""
    files = trial_files(folder)
    if not files:
        raise UserError(asked(folder), "a folder without .csv files", "give a file, or a folder of trials")
    end_s, count = 0.0, 0
    events: list[Event] = []
    for path in files:
        trial = _of_video(_by_content(path, fps), None, path)
        events += shifted_events(trial, end_s).events
        end_s += trial.duration_s or 0.0
        count += trial.trials
    joined = Annotation("", tuple(events), fps, end_s, counts_frames=True, trials=count)
    return _with_subjects((joined,), (event.subject for event in events))[0]


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

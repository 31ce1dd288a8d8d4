"""The files of predicted videos: tables by frame, BORIS events and projects, an ethogram, and an overlay.

    NAME.csv             Frame,Time,Action,<class>_prob...: one row for each decoded frame
    NAME.boris.tsv       the bouts as BORIS exports them: tabular events, of the subject of the run
    NAME.ethogram.png    the net's labels over time, above them a person's
    NAME.overlay.mp4     the video with the label in it (--overlay)
    predictions.boris    a project that BORIS opens, with an observation for each video; predictions-2.boris where a
                         person has changed it since (.predictions.boris.sha256 tells)
    least_certain.boris  the same with the bouts that the net is least sure of (--least-certain)

Legend: N frames, C classes, K least certain bouts.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ranks.workloads.video_behavior.annotations.boris_project_writer import (
    empty_project,
    with_annotations,
    write_boris_project,
)
from ranks.workloads.video_behavior.annotations.delimited import number_text, write_rows
from ranks.workloads.video_behavior.annotations.events import Annotation, Event
from ranks.workloads.video_behavior.annotations.frame_labels import end_of, events_of_labels
from ranks.workloads.video_behavior.metrics.frames import Ints
from ranks.workloads.video_behavior.prediction.stream_video import PredictedFrames

UNCERTAIN = "uncertain: "
"""Begins the comment of a bout that a person should look at."""


@dataclass(frozen=True)
class PredictedVideo:
    """`events`: of all classes but that of frames without a code. `certainty`: of each, the mean probability of its
    label."""

    name: str
    """Of its files, and of its observation in BORIS."""
    video: str
    """The path of the video."""
    events: tuple[Event, ...]
    certainty: tuple[float, ...]
    fps: float
    duration_s: float

    @property
    def annotation(self) -> Annotation:
        return Annotation(self.video, self.events, self.fps, self.duration_s, observation=self.name)


def predicted_video(
    name: str,
    video: Path,
    found: PredictedFrames,
    labels: Ints,
    classes: Sequence[str],
    background: int | None,
    *,
    subject: str = "",
) -> PredictedVideo:
    """The events of a video from its labels. `background`: the class that is no event, None where all are. `subject`:
    whose events they are, "" where the run has learned from those of all."""
    times_s_N, end_s = found.times_s_N.round(6), round(end_of(found.times_s_N), 6)
    kept = bouts_of_labels(labels, classes, times_s_N, background, subject=subject)
    certainty = list[float]()
    for event in kept:
        first, stop = (int(np.searchsorted(times_s_N, at_s - 1e-9)) for at_s in (event.start_s, event.end_s))
        certainty.append(float(found.probability_NC[first:stop, list(classes).index(event.behavior)].mean()))
    fps = (len(times_s_N) - 1) / float(times_s_N[-1] - times_s_N[0]) if len(times_s_N) > 1 else 25.0
    return PredictedVideo(name, str(video.absolute()), tuple(kept), tuple(certainty), round(fps, 6), end_s)


def bouts_of_labels(
    labels: Ints, classes: Sequence[str], times_s_N: NDArray[np.float64], background: int | None, *, subject: str = ""
) -> list[Event]:
    """The events of labels, int64[N], or [N, C] where behaviours overlap, in the order of time."""
    events = list[Event]()
    if labels.ndim == 1:
        events += events_of_labels(labels, classes, times_s_N)
    else:
        for c, behavior in enumerate(classes):
            shown = events_of_labels(labels[:, c], ("", behavior), times_s_N)
            events += [event for event in shown if event.behavior]
    kept = [event for event in events if background is None or event.behavior != classes[background]]
    kept = [replace(event, stop_s=round(event.end_s, 6), subject=subject) for event in kept]
    return sorted(kept, key=lambda event: (event.start_s, event.behavior))


def write_frames(path: Path, found: PredictedFrames, labels: Ints, classes: Sequence[str]) -> None:
    """The table by frame. With behaviours that may overlap, Action lists them with a +, in the order of the columns,
    and `read_labels` takes them apart again. Raises UserError."""
    names = ("Frame", "Time", "Action", *(f"{name}_prob" for name in classes))

    def action(row: NDArray[np.int64] | np.int64) -> str:
        if labels.ndim == 1:
            return classes[int(row)]
        return "+".join(classes[c] for c in np.flatnonzero(row).tolist())

    def rows() -> Iterator[dict[str, str]]:
        for at, (time_s, row, probability_C) in enumerate(
            zip(found.times_s_N, labels, found.probability_NC, strict=True)
        ):
            shown = {f"{name}_prob": f"{p:.5g}" for name, p in zip(classes, probability_C, strict=True)}
            yield {"Frame": str(at), "Time": number_text(round(float(time_s), 6)), "Action": action(row), **shown}

    write_rows(path, names, rows(), ",")


def least_certain(videos: Sequence[PredictedVideo], count: int) -> list[Annotation]:
    """The events with the lowest certainty over all videos, one annotation for each video that has some."""
    ranked = sorted((certainty, v, e) for v, video in enumerate(videos) for e, certainty in enumerate(video.certainty))
    chosen: dict[int, list[Event]] = {}
    for certainty, v, e in ranked[:count]:
        event = videos[v].events[e]
        comment = f"{UNCERTAIN}{certainty:.3f}"
        marked = Event(event.behavior, event.start_s, event.stop_s, event.subject, (), comment)
        chosen.setdefault(v, []).append(marked)
    return [
        replace(videos[v].annotation, events=tuple(sorted(events, key=lambda event: event.start_s)))
        for v, events in sorted(chosen.items())
    ]


def write_project(path: Path, title: str, annotations: Sequence[Annotation]) -> Path:
    """A project of BORIS with an observation for each annotation. Returns where it is: a file that has changed since a
    command wrote it is a person's work and stays, and the project gets the next free name. Raises UserError."""
    project = with_annotations(empty_project(title), annotations)
    free, number = path, 2
    while free.exists() and not _is_as_written(free):
        free, number = path.with_stem(f"{path.stem}-{number}"), number + 1
    write_boris_project(free, project)
    replace_text(_hash_file(free), hashlib.sha256(free.read_bytes()).hexdigest())
    return free


def _is_as_written(path: Path) -> bool:
    """Whether a file is still what `write_project` has written."""
    try:
        return _hash_file(path).read_text(encoding="utf-8").strip() == hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return False


def _hash_file(path: Path) -> Path:
    return path.with_name(f".{path.name}.sha256")


def replace_text(path: Path, text: str) -> None:
    """Write a small file whole or not at all. Raises OSError."""
    temporary = path.with_name(f".{path.name.lstrip('.')}.tmp-{os.getpid()}")
    temporary.write_text(f"{text}\n", encoding="utf-8")
    os.replace(temporary, path)

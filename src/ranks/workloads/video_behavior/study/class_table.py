"""How often each class occurs: bouts, frames, share and animals.

Legend: V videos, C classes, N frames.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ranks.workloads.video_behavior.annotations.events import Annotation
from ranks.workloads.video_behavior.annotations.frame_labels import Labels
from ranks.workloads.video_behavior.study.study import NOMINAL_FPS, Study, StudyVideo, annotation_of


@dataclass(frozen=True)
class ClassCounts:
    """Counts by video, int64[V, C] each."""

    bouts_VC: Labels
    frames_VC: Labels


@dataclass(frozen=True)
class ClassRow:
    """One line of a class table."""

    name: str
    bouts: int
    frames: int
    share: float
    """Of all frames with a label; 0 where there are none."""
    animals: int
    """How many animals show it."""


def units_of(videos: Sequence[StudyVideo]) -> list[str]:
    """What a split keeps together, for each video: the animal, or the video where the animal is not known. Videos have
    the names of their files, those of the same name their paths."""
    count = Counter(video.video.name for video in videos)
    names = [video.video.name if count[video.video.name] == 1 else video.path or str(video.video) for video in videos]
    return [video.animal or f"video {name}" for video, name in zip(videos, names, strict=True)]


def counts_of_events(
    study: Study, *, subject: str | None = None, merge: dict[str, str] | None = None, gaps: bool = True
) -> ClassCounts:
    """The counts of a study from its annotations alone, without the videos. `gaps`: whether time without a code counts,
    as background.

    Frames are counted at the frame rate that the row or the annotation names, up to the end that the annotation names
    or that of its last event. So they are exact only for annotations that give both.
    """
    shape = (len(study.videos), len(study.classes))
    counts = ClassCounts(np.zeros(shape, np.int64), np.zeros(shape, np.int64))
    for number, video in enumerate(study.videos):
        annotation = annotation_of(video, subject=subject, merge=merge, video_fps=NOMINAL_FPS)
        if annotation is not None:
            counts.bouts_VC[number], counts.frames_VC[number] = _of_annotation(annotation, video, study, gaps)
    return counts


def _of_annotation(annotation: Annotation, video: StudyVideo, study: Study, count_gaps: bool) -> tuple[Labels, Labels]:
    """int64[C] bouts and frames. Overlapping events count for each of their classes."""
    fps = video.fps or annotation.fps or NOMINAL_FPS
    bouts_C, frames_C = (np.zeros(len(study.classes), np.int64) for _ in range(2))
    covered_s, open_s, gaps = 0.0, 0.0, 0
    for event in sorted(annotation.events, key=lambda event: event.start_s):
        c = study.classes.index(event.behavior)
        bouts_C[c] += 1
        frames_C[c] += 1 if event.stop_s is None else round((event.stop_s - event.start_s) * fps)
        if event.start_s > covered_s + 0.5 / fps:
            open_s, gaps = open_s + event.start_s - covered_s, gaps + 1
        covered_s = max(covered_s, event.end_s)
    end_s = annotation.duration_s or covered_s
    if end_s > covered_s + 0.5 / fps:
        open_s, gaps = open_s + end_s - covered_s, gaps + 1
    if count_gaps:
        bouts_C[0] += gaps
        frames_C[0] += round(open_s * fps)
    return bouts_C, frames_C


def class_table(study: Study, counts: ClassCounts, split: str | None = None) -> list[ClassRow]:
    """The table of a study, or of one of its splits."""
    kept_V = np.array([split is None or video.split == split for video in study.videos], np.bool_)
    units, total = units_of(study.videos), int(counts.frames_VC[kept_V].sum())
    rows: list[ClassRow] = []
    for c, name in enumerate(study.classes):
        shown_V = kept_V & (counts.bouts_VC[:, c] > 0)
        frames = int(counts.frames_VC[kept_V, c].sum())
        animals = {unit for unit, shown in zip(units, shown_V, strict=True) if shown}
        bouts = int(counts.bouts_VC[kept_V, c].sum())
        rows.append(ClassRow(name, bouts, frames, frames / total if total else 0.0, len(animals)))
    return rows


def table_lines(rows: Sequence[ClassRow]) -> list[str]:
    """The table as text."""
    width = max(len("class"), *(len(row.name) for row in rows))
    return [
        f"{'class':<{width}}  {'bouts':>8}  {'frames':>10}  {'share':>7}  {'animals':>7}",
        *(
            f"{row.name:<{width}}  {row.bouts:>8,}  {row.frames:>10,}  {row.share:>7.1%}  {row.animals:>7,}"
            for row in rows
        ),
    ]

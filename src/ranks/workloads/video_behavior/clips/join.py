"""Joins the decoded frames of a study with its annotations.

Legend: N frames, V videos, C classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ranks.errors import UserError
from ranks.workloads.video_behavior.annotations.frame_labels import exclusive_labels, multi_labels
from ranks.workloads.video_behavior.annotations.read import parse_merge
from ranks.workloads.video_behavior.clips.labelled import LabelledFrames, LabelledVideo, StoredFrames
from ranks.workloads.video_behavior.config import Config
from ranks.workloads.video_behavior.metrics.bouts import multi_label_bouts
from ranks.workloads.video_behavior.study.class_table import ClassCounts, unit_of
from ranks.workloads.video_behavior.study.split import SplitStudy, split_study
from ranks.workloads.video_behavior.study.study import Study, StudyVideo, annotation_of


class DecodedVideo(Protocol):
    """Where the frames of a video are in a store, and their time stamps in seconds."""

    @property
    def first_frame(self) -> int: ...
    @property
    def num_frames(self) -> int: ...
    @property
    def times_s_N(self) -> npt.NDArray[np.float64]: ...


def join(
    study: Study,
    videos: Sequence[StudyVideo],
    decoded: Sequence[DecodedVideo],
    store: StoredFrames,
    store_sha256: str,
    cfg: Config,
) -> tuple[LabelledFrames, tuple[str, ...]]:
    """(the labelled frames of a study, warnings about its split). `videos`: the labelled ones, which `decoded` has in
    the same order.

    A class of the background that no frame shows is left out: with overlapping behaviours, and where frames without a
    code are ignored. Raises UserError where labels do not fit their video, or the study cannot be split.
    """
    labels = [labels_of(video, part, study, cfg) for video, part in zip(videos, decoded, strict=True)]
    label_NC = np.concatenate(labels)
    classes = study.classes
    counts = ClassCounts(*(np.zeros((len(videos), len(classes)), np.int64) for _ in range(2)))
    for number, label_nC in enumerate(labels):
        counts.frames_VC[number] = label_nC.sum(0)
        bouts_K3 = multi_label_bouts(label_nC.astype(np.int64))
        counts.bouts_VC[number] = np.bincount(bouts_K3[:, 0], minlength=len(classes))
    if not label_NC[:, 0].any():
        label_NC, classes = np.ascontiguousarray(label_NC[:, 1:]), classes[1:]
    if cfg.classes and cfg.classes != classes:
        found = f"the study has the classes {', '.join(classes)}"
        raise UserError(f"--classes {' '.join(cfg.classes)}", found, "leave --classes out, or use another --name")
    split = split_of(study, videos, counts, cfg.split)
    placed = tuple(
        LabelledVideo(
            row.video.name, unit_of(row), row.group, row.split, part.first_frame, part.num_frames, part.times_s_N
        )
        for row, part in zip(split.study.videos, decoded, strict=True)
    )
    data = LabelledFrames(store, label_NC, placed, classes, cfg.labels == "multi", store_sha256, study.background)
    return data, split.warnings


def split_of(study: Study, videos: Sequence[StudyVideo], counts: ClassCounts, kept: Sequence[str]) -> SplitStudy:
    """The split that dataset.csv has, or a new one by animal. It does not depend on the seed of a run.

    `kept`: of the animals that a run has seen, as m1:train; it comes before dataset.csv. An animal that dataset.csv
    gives no split then goes to the test: the run has not learned from it.
    """
    if not kept:
        return split_study(Study(tuple(videos), study.classes, study.background), counts)
    split_of_unit: dict[str, str] = {}
    for each in kept:
        unit, _, split_of_unit[unit] = each.rpartition(":")
    rows = [replace(video, split=split_of_unit.get(unit_of(video), video.split or "test")) for video in videos]
    found = split_study(Study(tuple(rows), study.classes, study.background), counts)
    moved = {
        f"{unit_of(video)} to {video.split}"
        for video, row in zip(videos, rows, strict=True)
        if video.split not in ("", row.split)
    }
    if not moved:
        return found
    warning = f"warning: dataset.csv moved {', '.join(sorted(moved)[:5])}: the run keeps the split that it learned from"
    return replace(found, warnings=(*found.warnings, warning))


def labels_of(video: StudyVideo, part: DecodedVideo, study: Study, cfg: Config) -> npt.NDArray[np.uint8]:
    """uint8[N, C]: 1 where a frame shows a class. Raises UserError."""
    times_s_N = part.times_s_N
    mean_s = float(np.diff(times_s_N).mean()) if len(times_s_N) > 1 else 0.0
    annotation = annotation_of(
        video, subject=cfg.subject, merge=parse_merge(cfg.merge), video_fps=1 / mean_s if mean_s > 0 else None
    )
    assert annotation is not None  # only labelled videos are decoded
    if cfg.labels == "multi":
        return multi_labels(annotation, study.classes, times_s_N)
    class_N = exclusive_labels(annotation, study.classes, times_s_N, unlabelled=cfg.unlabelled)
    return (class_N[:, None] == np.arange(len(study.classes))).astype(np.uint8)

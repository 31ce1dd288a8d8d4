"""Joins the decoded frames of a study with its annotations.

Legend: N frames, V videos, C classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ranks.errors import UserError
from ranks.workloads.video_behavior.annotations.events import Annotation
from ranks.workloads.video_behavior.annotations.frame_labels import IGNORED, Floats, exclusive_labels, multi_labels
from ranks.workloads.video_behavior.annotations.read import parse_merge
from ranks.workloads.video_behavior.clips.labelled import LabelledFrames, LabelledVideo, StoredFrames
from ranks.workloads.video_behavior.config import Config
from ranks.workloads.video_behavior.metrics.bouts import multi_label_bouts
from ranks.workloads.video_behavior.study.class_table import ClassCounts, units_of
from ranks.workloads.video_behavior.study.kept_split import KeptSplit
from ranks.workloads.video_behavior.study.split import SplitStudy, split_study
from ranks.workloads.video_behavior.study.study import BACKGROUND, Study, StudyVideo, annotation_of


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
    """(the labelled frames of a study, warnings about its labels and its split). `videos`: the labelled ones, which
    `decoded` has in the same order.

    A class of the background that no frame shows is left out: with overlapping behaviours, and where frames without a
    code are ignored. Raises UserError where labels do not fit their video, or the study cannot be split.
    """
    joined = [
        JoinedVideo(video, annotation_in(video, part.times_s_N, cfg), part.times_s_N)
        for video, part in zip(videos, decoded, strict=True)
    ]
    study, warnings = background_of_frames(study, joined, cfg)
    labels = [labels_of(one, study, cfg) for one in joined]
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
    split = split_of(study, videos, counts, KeptSplit.of(cfg.split, cfg.video_split))
    placed = tuple(
        LabelledVideo(
            row.video.name,
            unit,
            row.group,
            row.split,
            part.first_frame,
            part.num_frames,
            part.times_s_N,
            one.annotation.trials,
            row.path,
            row.video,
        )
        for row, unit, part, one in zip(split.study.videos, units_of(videos), decoded, joined, strict=True)
    )
    is_behaviour = study.background_is_coded and study.background != BACKGROUND
    uncoded = "" if is_behaviour else study.background
    data = LabelledFrames(
        store, label_NC, placed, classes, cfg.labels == "multi", store_sha256, study.background, uncoded
    )
    return data, (*study.warnings, *warnings, *length_warnings(joined), *split.warnings)


@dataclass(frozen=True)
class JoinedVideo:
    """A labelled video, its annotation, and the time stamps of its frames in seconds."""

    row: StudyVideo
    annotation: Annotation
    times_s_N: Floats


def annotation_in(video: StudyVideo, times_s_N: Floats, cfg: Config) -> Annotation:
    """The annotation of a labelled video. Raises UserError."""
    mean_s = float(np.diff(times_s_N).mean()) if len(times_s_N) > 1 else 0.0
    fps = 1 / mean_s if mean_s > 0 else None
    found = annotation_of(video, subject=cfg.subject, merge=parse_merge(cfg.merge), video_fps=fps)
    assert found is not None  # only labelled videos are decoded
    return found


def background_of_frames(study: Study, videos: Sequence[JoinedVideo], cfg: Config) -> tuple[Study, tuple[str, ...]]:
    """(the study, warnings). Codes may cover all time that annotations know of, so that a behaviour is the background
    by default, and still not all frames of the videos. The frames without a code then are a class of their own."""
    by_default = study.background_is_coded and not cfg.background and study.background != BACKGROUND
    if not by_default or cfg.labels == "multi" or cfg.unlabelled == "ignore":
        return study, ()
    uncoded = {one.row.name: _uncoded_frames(one, study) for one in videos}
    uncoded = {name: count for name, count in uncoded.items() if count}
    if not uncoded:
        return study, ()
    shown = ", ".join(f"{name}: {count:,}" for name, count in list(uncoded.items())[:3])
    warning = (
        f"warning: frames without a code in {len(uncoded)} of {len(videos)} videos ({shown}): they are the class "
        f"'{BACKGROUND}'. --unlabelled ignore leaves them out, and --background {study.background} calls them so"
    )
    classes = (BACKGROUND, *sorted(study.classes))
    return replace(study, classes=classes, background=BACKGROUND, background_is_coded=False), (warning,)


def _uncoded_frames(video: JoinedVideo, study: Study) -> int:
    """Frames without a code, where two or more of them lie side by side: one may be lost in rounding."""
    class_N = exclusive_labels(video.annotation, study.classes, video.times_s_N, unlabelled="ignore")
    uncoded_N = class_N == IGNORED
    return int(uncoded_N.sum()) if (uncoded_N[1:] & uncoded_N[:-1]).any() else 0


def length_warnings(videos: Sequence[JoinedVideo]) -> tuple[str, ...]:
    """One warning where annotations that count frames have another number of them than their videos."""
    differ: list[str] = []
    for one in videos:
        annotation, num_frames = one.annotation, len(one.times_s_N)
        if annotation.counts_frames and annotation.fps and annotation.duration_s and not one.row.offset_s:
            counted = round(annotation.duration_s * annotation.fps)
            if counted != num_frames:
                differ.append(f"{one.row.name}: {counted:,} of {num_frames:,}")
    if not differ:
        return ()
    shown = ", ".join(differ[:3]) + (", ..." if len(differ) > 3 else "")
    what = f"annotations of {len(differ)} videos end at another frame than the video ({shown})"
    return (f"warning: {what}: check that they belong together and that no frame is missing",)


def split_of(study: Study, videos: Sequence[StudyVideo], counts: ClassCounts, kept: KeptSplit) -> SplitStudy:
    """The split that dataset.csv has, or a new one by animal. It does not depend on the seed of a run.

    `kept`: of the animals and videos that a run has seen; it comes before dataset.csv. An animal that dataset.csv gives
    no split then goes to the test: the run has not learned from it.
    """
    if not kept.animals and not kept.videos:
        return split_study(replace(study, videos=tuple(videos)), counts)
    rows, warnings = kept.applied(videos)
    found = split_study(replace(study, videos=rows), counts)
    return replace(found, warnings=(*found.warnings, *warnings))


def labels_of(video: JoinedVideo, study: Study, cfg: Config) -> npt.NDArray[np.uint8]:
    """uint8[N, C]: 1 where a frame shows a class. Raises UserError, also for frames that nobody labelled, where they
    would be taken for the background."""
    if (unknown := video.annotation.unknown_frames) and cfg.unlabelled == "background":
        found = f"frames with -1 in every column, which nobody labelled: {unknown:,}"
        do = "give --unlabelled ignore, or label them" if cfg.labels == "exclusive" else "label them"
        raise UserError(f"the annotation {video.row.annotation}", found, do)
    if cfg.labels == "multi":
        return multi_labels(video.annotation, study.classes, video.times_s_N)
    class_N = exclusive_labels(video.annotation, study.classes, video.times_s_N, unlabelled=cfg.unlabelled)
    return (class_N[:, None] == np.arange(len(study.classes))).astype(np.uint8)

"""Scores of predicted labels: by frame and by bout, with intervals over animals.

Legend: N frames of a video, C classes, A animals.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from ranks.workloads.video_behavior.clips.labelled import LabelledFrames
from ranks.workloads.video_behavior.metrics.bootstrap import AnimalInterval, interval_over_animals
from ranks.workloads.video_behavior.metrics.bouts import (
    BoutCounts,
    BoutMetrics,
    bout_counts,
    bout_metrics,
    bouts_of,
    multi_label_bouts,
)
from ranks.workloads.video_behavior.metrics.frames import (
    FrameMetrics,
    confusion_counts,
    frame_metrics,
    multi_label_counts,
    multi_label_metrics,
)
from ranks.workloads.video_behavior.metrics.scores import (
    average_precision,
    calibration_counts,
    decisions,
    reliability,
    score_counts,
)

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
IOUS = (0.3, 0.5)


@dataclass(frozen=True)
class VideoPrediction:
    """Labels and probabilities of the frames of one video. `truth`: int64[N], or int64[N, C] where behaviours
    overlap."""

    name: str
    animal: str
    truth: Ints
    probability_NC: Floats
    frame_us: int = 40_000
    """The mean length of a frame in microseconds."""


def by_video(data: LabelledFrames, split: str, probability_nC: Floats) -> list[VideoPrediction]:
    """The probabilities of `data.all_frames_of(split)`, video by video."""
    truth = data.label_NC.astype(np.int64) if data.multi else data.class_N
    found: list[VideoPrediction] = []
    at = 0
    for video in data.videos_of(split):
        rows = slice(video.first_frame, video.first_frame + video.num_frames)
        part_NC = probability_nC[at : at + video.num_frames]
        steps_s = np.diff(video.times_s_N)
        frame_us = round(1e6 * float(steps_s.mean())) if len(steps_s) else 40_000
        found.append(VideoPrediction(video.name, video.animal or video.name, truth[rows], part_NC, frame_us))
        at += video.num_frames
    return found


@dataclass(frozen=True)
class BehaviorScores:
    """Scores of a split. Intervals are 95 %, by a bootstrap over animals. `excluded`: classes that the means over bouts
    leave out."""

    frames: FrameMetrics
    macro_f1: AnimalInterval
    f1_C: tuple[AnimalInterval, ...]
    average_precision_C: Floats
    ece: float
    """Expected calibration error of the probabilities."""
    bouts: dict[float, BoutMetrics]
    """By the least IoU of a match."""
    event_f1: dict[float, AnimalInterval]
    count_error: AnimalInterval
    excluded: tuple[int, ...]


def score(videos: Sequence[VideoPrediction], labels: Sequence[Ints], excluded: tuple[int, ...]) -> BehaviorScores:
    """The scores of predicted labels, of the shape of the truth, for each video."""
    num_classes = videos[0].probability_NC.shape[1]
    multi = videos[0].truth.ndim == 2
    animals = list(dict.fromkeys(video.animal for video in videos))
    pairs = [(video, _ignored_as_truth(video.truth, found)) for video, found in zip(videos, labels, strict=True)]

    def by_animal(count: Callable[[VideoPrediction, Ints], Ints]) -> Ints:
        """The counts of each animal, added up over its videos."""
        counts = [(video.animal, count(video, found)) for video, found in pairs]
        return np.stack([sum_of(part for animal, part in counts if animal == each) for each in animals])

    def frame_counts(video: VideoPrediction, found: Ints) -> Ints:
        if multi:
            return multi_label_counts(video.truth.astype(np.uint8), found.astype(np.uint8))
        return confusion_counts(video.truth, found, num_classes)

    def event_counts(video: VideoPrediction, found: Ints, iou: float) -> Ints:
        runs = multi_label_bouts if multi else bouts_of
        return bout_counts(runs(video.truth), runs(found), num_classes, iou, video.frame_us).stacked()

    measure = multi_label_metrics if multi else frame_metrics
    frames_A = by_animal(frame_counts)
    events = {iou: by_animal(partial(event_counts, iou=iou)) for iou in IOUS}

    def bouts_by(stacked_7C: Ints) -> BoutMetrics:
        return bout_metrics(BoutCounts.of(stacked_7C), excluded)

    def of_all_classes(found: FrameMetrics | BoutMetrics, whole: FrameMetrics | BoutMetrics) -> float:
        """The mean over classes; NaN for a sample without a class that the whole split shows."""
        return found.macro_f1 if (found.support_C[whole.support_C > 0] > 0).all() else math.nan

    frames = measure(sum_of(frames_A))
    bouts = {iou: bouts_by(sum_of(counts_A)) for iou, counts_A in events.items()}

    def macro_f1(counts: Ints) -> float:
        return of_all_classes(measure(counts), frames)

    def event_f1(stacked_7C: Ints) -> float:
        return of_all_classes(bouts_by(stacked_7C), bouts[IOUS[0]])

    def f1_of(counts: Ints, c: int) -> float:
        return float(measure(counts).f1_C[c])

    probability_NC, truth = _scored_frames(pairs, multi)
    truth_NC = truth if multi else np.eye(num_classes, dtype=np.int64)[truth]
    return BehaviorScores(
        frames=frames,
        macro_f1=interval_over_animals(frames_A, macro_f1),
        f1_C=tuple(interval_over_animals(frames_A, partial(f1_of, c=c)) for c in range(num_classes)),
        average_precision_C=average_precision(score_counts(probability_NC, truth_NC)),
        ece=reliability(calibration_counts(*decisions(probability_NC, truth))).ece,
        bouts=bouts,
        event_f1={iou: interval_over_animals(counts_A, event_f1) for iou, counts_A in events.items()},
        count_error=interval_over_animals(events[IOUS[0]], lambda counts: bouts_by(counts).count_error),
        excluded=excluded,
    )


def sum_of(counts: Iterable[Ints]) -> Ints:
    """The sum of arrays of one shape."""
    return np.sum(list(counts), axis=0)


def _ignored_as_truth(truth: Ints, found: Ints) -> Ints:
    """The predicted labels, with those frames ignored that the truth ignores."""
    return found if truth.ndim == 2 else np.where(truth < 0, truth, found)


def _scored_frames(pairs: Sequence[tuple[VideoPrediction, Ints]], multi: bool) -> tuple[Floats, Ints]:
    """(probabilities, labels) of all frames that count."""
    probability_NC = np.concatenate([video.probability_NC for video, _ in pairs])
    truth = np.concatenate([video.truth for video, _ in pairs])
    return (probability_NC, truth) if multi else (probability_NC[truth >= 0], truth[truth >= 0])


def score_lines(title: str, scores: BehaviorScores, classes: Sequence[str]) -> list[str]:
    """A table of the classes and the means, as text."""
    bouts, width = scores.bouts[IOUS[0]], max(len("class"), *map(len, classes))
    head = f"{'class':<{width}}  {'F1 (95 % over animals)':<24} precision  recall     AP   frames"
    lines = [title, f"{head}  event F1 0.3  event F1 0.5  count error  latency s   bouts"]
    for c, name in enumerate(classes):
        f1, frames = scores.f1_C[c], scores.frames
        lines.append(
            f"{name:<{width}}  {with_range(f1):<24} {frames.precision_C[c]:>9.3f}"
            f"  {frames.recall_C[c]:>6.3f}  {scores.average_precision_C[c]:>5.3f}  {int(frames.support_C[c]):>7,}"
            f"  {bouts.f1_C[c]:>12.3f}  {scores.bouts[IOUS[1]].f1_C[c]:>12.3f}  {bouts.count_error_C[c]:>11.1%}"
            f"  {bouts.latency_s_C[c]:>9.2f}  {int(bouts.support_C[c]):>6,}"
        )
    kept = f" without {', '.join(classes[c] for c in scores.excluded)}" if scores.excluded else ""
    lines += [
        f"macro-F1 {with_range(scores.macro_f1)}, animals: {scores.macro_f1.animals}; balanced accuracy "
        f"{scores.frames.balanced_accuracy:.3f}, accuracy {scores.frames.accuracy:.3f}, MCC {scores.frames.mcc:.3f}, "
        f"calibration error {scores.ece:.3f}",
        f"event F1{kept}: {with_range(scores.event_f1[0.3])} at IoU 0.3, {with_range(scores.event_f1[0.5])} at 0.5; "
        f"count error {with_range(scores.count_error, '.1%')}",
    ]
    absent = [classes[c] for c in scores.frames.without_support]
    if absent:
        lines.append(f"not counted, since no frame shows it: {', '.join(absent)}")
    return lines


def with_range(interval: AnimalInterval, form: str = ".3f") -> str:
    """'0.812 (0.790 to 0.840)'; one animal has no interval."""
    value, low, high = (format(number, form) for number in (interval.value, interval.low, interval.high))
    return value if interval.animals < 2 else f"{value} ({low} to {high})"


def score_values(scores: BehaviorScores, classes: Sequence[str]) -> dict[str, float]:
    """The scores as numbers with names, for a log or JSON; without those that are not defined."""
    values = {
        "macro_f1": scores.macro_f1.value,
        "macro_f1_low": scores.macro_f1.low,
        "macro_f1_high": scores.macro_f1.high,
        "balanced_accuracy": scores.frames.balanced_accuracy,
        "accuracy": scores.frames.accuracy,
        "mcc": scores.frames.mcc,
        "calibration_error": scores.ece,
        "event_f1_iou_0.3": scores.event_f1[0.3].value,
        "event_f1_iou_0.5": scores.event_f1[0.5].value,
        "count_error": scores.count_error.value,
    }
    values |= {f"f1/{name}": float(f1) for name, f1 in zip(classes, scores.frames.f1_C.tolist(), strict=True)}
    return {name: value for name, value in values.items() if not math.isnan(value)}

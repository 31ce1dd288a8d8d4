"""Smoothing of predictions: a filter over time, then thresholds by class, then a least bout length by class.

    choice = choose_smoothing(validation_probabilities, validation_labels, training_labels, num_classes)
    print("\\n".join(choice.lines()))                         the metrics before and after each step
    labels_N = smoothed_labels(choice.smoothing, probability_NC)

Each step is chosen on the validation videos, with the steps before it fixed, and is left out where it does not help.
Behaviours that may overlap are smoothed one by one, each as two classes, not shown and shown.

Legend: N frames, C classes.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from ranks.workloads.video_behavior.annotations.frame_labels import IGNORED
from ranks.workloads.video_behavior.metrics.bouts import bout_counts, bout_metrics, bouts_of, summed
from ranks.workloads.video_behavior.metrics.frames import (
    Floats,
    Ints,
    confusion_counts,
    frame_metrics,
)
from ranks.workloads.video_behavior.smoothing.filters import (
    median_filtered,
    transition_counts,
    viterbi,
    weighted_labels,
    without_short_bouts,
)

Criterion: TypeAlias = Literal["event", "frame"]
"""event: macro event F1 at IoU 0.3. frame: macro-F1 by frame. Ties are decided by the other one."""

MOST_F1_LOST = 0.01
"""Of macro-F1, by all steps together: event F1 alone could be raised at the cost of rare frames."""
EVENT_IOU = 0.3
WINDOWS = (3, 5, 9, 15, 25)
"""Frames of the median filters that are tried."""
FACTORS = (0.35, 0.5, 0.7, 1.4, 2.0, 2.8)
"""By which the threshold of a class is tried to be changed."""
ROUNDS = 2
SHORT_BOUTS = (0.01, 0.05, 0.1)
"""Quantiles of a class's bout lengths in the training labels that are tried as its least length."""
MAX_MIN_FRAMES = 50


@dataclass(frozen=True)
class Smoothing:
    """What is done to the probabilities of a video. It is made of plain numbers, so it can be written as JSON."""

    threshold_C: tuple[float, ...]
    """The class with the largest probability / threshold is predicted."""
    filter: Literal["none", "median", "hmm"] = "none"
    window: int = 1
    """Frames of the median filter."""
    transitions: tuple[tuple[int, ...], ...] = ()
    """[C][C], counted in the training labels, for the HMM."""
    prior_C: tuple[float, ...] = ()
    """The shares of the classes that the net has learned with, for the HMM; empty for those of the training labels."""
    min_frames_C: tuple[int, ...] = ()
    """The least frames of a bout by class; empty for none."""

    @classmethod
    def nothing(cls, num_classes: int) -> Smoothing:
        """The most probable class of each frame."""
        return cls((1.0,) * num_classes)


@dataclass(frozen=True)
class SmoothingRow:
    """One line of the table before and after: metrics of the validation videos."""

    step: str
    macro_f1: float
    event_f1: float
    """Macro event F1 at IoU 0.3."""
    event_f1_half: float
    """At IoU 0.5."""
    count_error: float


@dataclass(frozen=True)
class SmoothingChoice:
    """The smoothing that was chosen, and the metrics after each step."""

    smoothing: Smoothing
    criterion: Criterion
    rows: tuple[SmoothingRow, ...]

    def lines(self, title: str = "validation") -> list[str]:
        """The table as text."""
        width = max(len(title), *(len(row.step) for row in self.rows))
        return [
            f"{title:<{width}}  macro-F1  event F1 0.3  event F1 0.5  count error",
            *(
                f"{row.step:<{width}}  {row.macro_f1:>8.3f}  {row.event_f1:>12.3f}  {row.event_f1_half:>12.3f}  "
                f"{row.count_error:>11.1%}"
                for row in self.rows
            ),
        ]

    @property
    def rule(self) -> str:
        """When a step is kept, in words."""
        chosen = "macro event F1 at IoU 0.3" if self.criterion == "event" else "macro-F1"
        least = f" and costs at most {MOST_F1_LOST:g} of macro-F1" if self.criterion == "event" else ""
        return f"each step is kept where it raises {chosen} of the validation videos{least}"


def smoothed_labels(smoothing: Smoothing, probability_NC: Floats) -> Ints:
    """int64[N]: the labels of one video."""
    is_median = smoothing.filter == "median"
    return _labels_of(smoothing, median_filtered(probability_NC, smoothing.window) if is_median else probability_NC)


def _labels_of(smoothing: Smoothing, probability_NC: Floats) -> Ints:
    """int64[N]: the labels of one video, whose probabilities are median filtered already where they are to be."""
    if smoothing.filter == "hmm" and len(probability_NC):
        weighted_NC = probability_NC / np.asarray(smoothing.threshold_C)
        share_NC = weighted_NC / weighted_NC.sum(1, keepdims=True)
        labels_N = viterbi(share_NC, np.asarray(smoothing.transitions, np.int64), smoothing.prior_C)
    else:
        labels_N = weighted_labels(probability_NC, smoothing.threshold_C)
    return without_short_bouts(labels_N, smoothing.min_frames_C) if smoothing.min_frames_C else labels_N


def shown_or_not(probability_N: Floats) -> Floats:
    """float64[N, 2]: the probabilities that a behaviour is not shown, and that it is."""
    return np.stack([1 - probability_N, probability_N], 1)


def choose_smoothing(
    probabilities: Sequence[Floats],
    truths: Sequence[Ints],
    training: Sequence[Ints],
    num_classes: int,
    *,
    criterion: Criterion = "event",
    excluded: Sequence[int] = (),
    prior_C: Sequence[float] = (),
) -> SmoothingChoice:
    """Choose the steps on validation videos, for classes that exclude each other.

    `probabilities`: float64[N, C] of each validation video; `truths`: its labels; `training`: the labels of the
    training videos, for transitions and bout lengths. `excluded`: classes that event F1 leaves out. `prior_C`: the
    shares of the classes that the net has learned with, by default those of the training labels.
    """

    @functools.cache
    def filtered(window: int) -> list[Floats]:
        return [median_filtered(probability_NC, window) for probability_NC in probabilities]

    def row_of(step: str, smoothing: Smoothing) -> SmoothingRow:
        predicted = [_labels_of(smoothing, probability_NC) for probability_NC in filtered(smoothing.window)]
        return _row(step, truths, predicted, num_classes, excluded)

    def better(row: SmoothingRow, than: SmoothingRow) -> bool:
        costs_frames = row.macro_f1 < rows[0].macro_f1 - MOST_F1_LOST  # false where one of them is nan
        return not costs_frames and _score(row, criterion) > _score(than, criterion)

    def best_of(
        candidates: Iterable[tuple[str, Smoothing]], now: Smoothing, row: SmoothingRow
    ) -> tuple[Smoothing, SmoothingRow]:
        for step, candidate in candidates:
            tried = row_of(step, candidate)
            if better(tried, row):
                now, row = candidate, tried
        return now, row

    now = Smoothing.nothing(num_classes)
    rows = [row_of("no smoothing", now)]
    counts = tuple(tuple(int(n) for n in row_C) for row_C in transition_counts(training, num_classes))
    filters = [(f"median of {window} frames", replace(now, filter="median", window=window)) for window in WINDOWS]
    hmm = replace(now, filter="hmm", transitions=counts, prior_C=tuple(float(share) for share in prior_C))
    now, row = best_of([*filters, ("HMM", hmm)], now, rows[0])
    rows.append(row if now.filter != "none" else replace(row, step="no filter"))
    if now.filter != "hmm":  # which weighs the classes itself
        now, row = _thresholds(now, row, row_of, better)
        rows.append(replace(row, step="thresholds by class"))
    lengths = [(q, min_frames(training, num_classes, q)) for q in SHORT_BOUTS]
    bouts = [(f"bouts of {min(m)} to {max(m)} frames or more", replace(now, min_frames_C=m)) for _, m in lengths]
    now, row = best_of(bouts, now, row)
    rows.append(row if now.min_frames_C else replace(row, step="no least bout length"))
    return SmoothingChoice(now, criterion, tuple(rows))


def _score(row: SmoothingRow, criterion: Criterion) -> tuple[float, float]:
    """What is compared, rounded, so that the order of sums decides nothing. An undefined metric is worst."""
    event, frame = (-1.0 if math.isnan(value) else round(value, 9) for value in (row.event_f1, row.macro_f1))
    return (event, frame) if criterion == "event" else (frame, event)


def _thresholds(
    now: Smoothing,
    row: SmoothingRow,
    row_of: Callable[[str, Smoothing], SmoothingRow],
    better: Callable[[SmoothingRow, SmoothingRow], bool],
) -> tuple[Smoothing, SmoothingRow]:
    """Change one class's threshold after the other while that helps."""
    for _ in range(ROUNDS):
        before = now
        for c in range(len(now.threshold_C)):
            start = now.threshold_C
            for factor in FACTORS:
                changed = (*start[:c], start[c] * factor, *start[c + 1 :])
                tried = replace(now, threshold_C=changed)
                tried_row = row_of("thresholds by class", tried)
                if better(tried_row, row):
                    now, row = tried, tried_row
        if now is before:
            break
    return now, row


def min_frames(training: Sequence[Ints], num_classes: int, quantile: float) -> tuple[int, ...]:
    """The least bout length of each class: a quantile of its bouts in the training labels, at most MAX_MIN_FRAMES; 1
    for a class without bouts."""
    bouts_K3 = np.concatenate([np.zeros((0, 3), np.int64), *map(bouts_of, training)])
    length_K = bouts_K3[:, 2] - bouts_K3[:, 1]
    lengths = [length_K[bouts_K3[:, 0] == c] for c in range(num_classes)]
    return tuple(min(MAX_MIN_FRAMES, max(1, int(np.quantile(one, quantile)))) if len(one) else 1 for one in lengths)


def _row(
    step: str, truths: Sequence[Ints], predicted: Sequence[Ints], num_classes: int, excluded: Sequence[int]
) -> SmoothingRow:
    pairs = [
        (truth_N, np.where(truth_N == IGNORED, IGNORED, predicted_N))
        for truth_N, predicted_N in zip(truths, predicted, strict=True)
    ]
    counts_CC = sum(
        (confusion_counts(truth_N, predicted_N, num_classes) for truth_N, predicted_N in pairs),
        np.zeros((num_classes,) * 2, np.int64),
    )
    bouts = [(bouts_of(truth_N), bouts_of(predicted_N)) for truth_N, predicted_N in pairs]
    event, half = (
        bout_metrics(
            summed(bout_counts(truth_K3, predicted_K3, num_classes, iou) for truth_K3, predicted_K3 in bouts), excluded
        )
        for iou in (EVENT_IOU, 0.5)
    )
    return SmoothingRow(step, frame_metrics(counts_CC).macro_f1, event.macro_f1, half.macro_f1, event.count_error)

"""Metrics by bout: a bout is a run of equal labels.

Bouts are matched one to one. All pairs of a true and a predicted bout of one class in one video are taken in the order
of their IoU (frames in both / frames in either), the largest first and the earlier bout first among equals. A pair is
a match if its IoU reaches the threshold and neither bout is matched yet. Above an IoU of 0.5 no bout has two partners,
so the order decides nothing there.

Legend: N frames, C classes, K bouts.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass, fields

import numpy as np

from ranks.workloads.video_behavior.metrics.frames import Floats, Ints, f1_of, mean_of


def bouts_of(labels_N: Ints) -> Ints:
    """int64[K, 3]: (class, first frame, frame after the last) of each run of equal labels. Negative labels are in no
    bout."""
    if len(labels_N) == 0:
        return np.zeros((0, 3), np.int64)
    edges = np.flatnonzero(np.diff(labels_N)) + 1
    first, stop = np.append(0, edges), np.append(edges, len(labels_N))
    bouts_K3 = np.stack([labels_N[first], first, stop], 1).astype(np.int64)
    return bouts_K3[bouts_K3[:, 0] >= 0]


def multi_label_bouts(shown_NC: Ints) -> Ints:
    """int64[K, 3]: the bouts of each class on its own, class by class."""
    found = [bouts_of(np.where(shown_N > 0, c, -1)) for c, shown_N in enumerate(shown_NC.T)]
    return np.concatenate([*found, np.zeros((0, 3), np.int64)])


def matches(truth_K2: Ints, predicted_K2: Ints, min_iou: float) -> list[tuple[int, int]]:
    """(true bout, predicted bout) of each match. The bouts of one class, [first, stop), in the order of time."""
    pairs: list[tuple[float, int, int]] = []
    at = 0
    for number, (first, stop) in enumerate(truth_K2.tolist()):
        while at < len(predicted_K2) and predicted_K2[at, 1] <= first:
            at += 1
        other = at
        while other < len(predicted_K2) and predicted_K2[other, 0] < stop:
            other_first, other_stop = predicted_K2[other].tolist()
            iou = (min(stop, other_stop) - max(first, other_first)) / (max(stop, other_stop) - min(first, other_first))
            if iou >= min_iou:
                pairs.append((-iou, number, other))
            other += 1
    found: list[tuple[int, int]] = []
    taken: tuple[set[int], set[int]] = (set(), set())
    for _, number, other in sorted(pairs):
        if number not in taken[0] and other not in taken[1]:
            taken[0].add(number)
            taken[1].add(other)
            found.append((number, other))
    return found


@dataclass(frozen=True)
class BoutCounts:
    """Counts of bouts by class, int64[C] each, that ranks and videos add up."""

    truth_C: Ints
    predicted_C: Ints
    matched_C: Ints
    count_difference_C: Ints
    """Sum over videos of |predicted bouts - true bouts|."""
    onset_C: Ints
    """Sum over matches of |predicted first frame - true first frame|."""
    latency_us_C: Ints
    """Sum over videos of |start of the first predicted bout - that of the first true bout|, where both exist, in
    microseconds."""
    latency_videos_C: Ints
    """The number of those videos."""

    def __add__(self, other: BoutCounts) -> BoutCounts:
        return BoutCounts.of(self.stacked() + other.stacked())

    def stacked(self) -> Ints:
        """int64[7, C], for an all-reduce."""
        return np.stack([getattr(self, field.name) for field in fields(self)])

    @classmethod
    def of(cls, stacked_7C: Ints) -> BoutCounts:
        """The counts of what `stacked` returned."""
        return cls(*stacked_7C)


def bout_counts(
    truth_K3: Ints, predicted_K3: Ints, num_classes: int, min_iou: float, frame_us: int = 40_000
) -> BoutCounts:
    """The counts of one video. Bouts as from `bouts_of` or `multi_label_bouts`. `frame_us`: the mean length of its
    frames in microseconds."""
    counts_7C = np.zeros((len(fields(BoutCounts)), num_classes), np.int64)
    for c in range(num_classes):
        truth_K2, predicted_K2 = (bouts_K3[bouts_K3[:, 0] == c, 1:] for bouts_K3 in (truth_K3, predicted_K3))
        found = matches(truth_K2, predicted_K2, min_iou)
        onset = sum(abs(int(predicted_K2[other, 0] - truth_K2[number, 0])) for number, other in found)
        both = len(truth_K2) > 0 and len(predicted_K2) > 0
        latency_us = frame_us * abs(int(predicted_K2[0, 0] - truth_K2[0, 0])) if both else 0
        difference = abs(len(predicted_K2) - len(truth_K2))
        counts_7C[:, c] = (len(truth_K2), len(predicted_K2), len(found), difference, onset, latency_us, both)
    return BoutCounts.of(counts_7C)


@dataclass(frozen=True)
class BoutMetrics:
    """Metrics by bout. Arrays are float64[C], NaN where a class has no true bout."""

    macro_f1: float
    """The mean event F1 of the classes that have true bouts, without the excluded ones."""
    f1_C: Floats
    """2 matches / (true bouts + predicted bouts)."""
    count_error_C: Floats
    """Sum over videos of |predicted - true| bouts, divided by the true bouts."""
    count_error: float
    """The same over all classes that are not excluded."""
    onset_frames_C: Floats
    """The mean distance between the starts of matched bouts."""
    latency_s_C: Floats
    """The mean distance between the starts of the first bouts of a video, true and predicted, in seconds."""
    support_C: Ints
    """The number of true bouts."""


def bout_metrics(counts: BoutCounts, excluded: Collection[int] = ()) -> BoutMetrics:
    """The metrics of bout counts. `excluded`: classes that the means leave out, such as the background."""
    f1_C = f1_of(counts.truth_C, counts.predicted_C, counts.matched_C)
    kept_C = np.array([c not in excluded for c in range(len(f1_C))], np.bool_)
    true_bouts = int(counts.truth_C[kept_C].sum())
    difference = int(counts.count_difference_C[kept_C].sum())
    return BoutMetrics(
        macro_f1=mean_of(f1_C[kept_C]),
        f1_C=f1_C,
        count_error_C=_ratio(counts.count_difference_C, counts.truth_C),
        count_error=difference / true_bouts if true_bouts else math.nan,
        onset_frames_C=_ratio(counts.onset_C, counts.matched_C),
        latency_s_C=_ratio(counts.latency_us_C, counts.latency_videos_C) / 1e6,
        support_C=counts.truth_C,
    )


def summed(counts: Iterable[BoutCounts]) -> BoutCounts:
    """The sum over videos, of at least one."""
    return BoutCounts.of(np.sum([one.stacked() for one in counts], axis=0))


def _ratio(above_C: Ints, below_C: Ints) -> Floats:
    return np.where(below_C > 0, above_C / np.maximum(below_C, 1), np.nan)

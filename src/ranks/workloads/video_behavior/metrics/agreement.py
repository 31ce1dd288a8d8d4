"""Agreement of two raters, or of a rater and a net: Cohen's kappa, F1 by class, bouts.

F1 and the F1 of bouts do not change when the raters are exchanged. A class counts that either of them used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ranks.workloads.video_behavior.metrics.bouts import BoutCounts, bout_counts, bouts_of
from ranks.workloads.video_behavior.metrics.frames import Floats, Ints, confusion_counts

BOUT_IOU = 0.5


@dataclass(frozen=True)
class RaterAgreement:
    """How two raters agree. Arrays are [C]; NaN for a class that neither used."""

    kappa: float
    agreement: float
    """The share of frames with the same label."""
    f1_C: Floats
    frames_C: tuple[Ints, Ints]
    """The frames of each class, of the first and of the second rater."""
    bouts: BoutCounts
    """With the first rater as the truth, at IoU 0.5."""
    bout_f1_C: Floats
    counts_CC: Ints
    """[class of the first rater, class of the second]."""


def cohen_kappa(counts_CC: Ints) -> float:
    """(observed - expected agreement) / (1 - expected) (Cohen 1960). NaN where both used one class only."""
    total = int(counts_CC.sum())
    if not total:
        return math.nan
    expected = sum(int(a) * int(b) for a, b in zip(counts_CC.sum(0), counts_CC.sum(1), strict=True)) / total**2
    observed = int(np.trace(counts_CC)) / total
    return (observed - expected) / (1 - expected) if expected < 1 else math.nan


def agreement_of(first_N: Ints, second_N: Ints, num_classes: int) -> RaterAgreement:
    """The agreement of two labellings of the same frames. Frames that either leaves open are not counted."""
    open_N = (first_N < 0) | (second_N < 0)
    first_N, second_N = np.where(open_N, -1, first_N), np.where(open_N, -1, second_N)
    counts_CC = confusion_counts(first_N, second_N, num_classes)
    bouts = bout_counts(bouts_of(first_N), bouts_of(second_N), num_classes, BOUT_IOU)
    frames_C = (counts_CC.sum(1), counts_CC.sum(0))
    total = int(counts_CC.sum())
    return RaterAgreement(
        kappa=cohen_kappa(counts_CC),
        agreement=int(np.trace(counts_CC)) / total if total else math.nan,
        f1_C=_dice(np.diag(counts_CC), frames_C[0] + frames_C[1]),
        frames_C=frames_C,
        bouts=bouts,
        bout_f1_C=_dice(bouts.matched_C, bouts.truth_C + bouts.predicted_C),
        counts_CC=counts_CC,
    )


def _dice(shared_C: Ints, sizes_C: Ints) -> Floats:
    return np.where(sizes_C > 0, 2 * shared_C / np.maximum(sizes_C, 1), np.nan)

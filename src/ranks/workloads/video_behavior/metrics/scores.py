"""Average precision and calibration from probabilities, by counts that ranks add up.

Probabilities are counted in bins, so the result does not depend on how frames are spread over ranks. Average precision
takes the probabilities of one bin as equal: with 4,096 bins it differs from that of the exact probabilities by less
than the third decimal.

Legend: N frames, C classes, B bins.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ranks.workloads.video_behavior.metrics.frames import Floats, Ints

SCORE_BINS = 4096
CALIBRATION_BINS = 15
UNIT = 1 << 24
"""Sums of confidences are counted in units of 2**-24."""


def score_counts(probability_NC: npt.NDArray[np.floating], truth_NC: npt.NDArray[np.integer]) -> Ints:
    """int64[C, 2, B]: how many frames without (0) and with (1) the class have a probability in each bin.

    `truth_NC`: 1 where the class is true, 0 where it is not. Leave out ignored frames."""
    bin_NC = np.clip((probability_NC.astype(np.float64) * SCORE_BINS).astype(np.int64), 0, SCORE_BINS - 1)
    at_NC = truth_NC.astype(np.int64) * SCORE_BINS + bin_NC
    return np.stack([np.bincount(at_N, minlength=2 * SCORE_BINS).reshape(2, SCORE_BINS) for at_N in at_NC.T]).astype(
        np.int64
    )


def average_precision(counts_C2B: Ints) -> Floats:
    """float64[C]: sum over thresholds of (recall_i - recall_{i-1}) * precision_i, from the highest bin down; NaN for a
    class without a true frame."""
    false_CB, true_CB = counts_C2B[:, 0, ::-1].cumsum(1), counts_C2B[:, 1, ::-1].cumsum(1)
    precision_CB = true_CB / np.maximum(true_CB + false_CB, 1)
    gained_CB = np.diff(true_CB, axis=1, prepend=0)
    support_C = true_CB[:, -1]
    return np.where(support_C > 0, (gained_CB * precision_CB).sum(1) / np.maximum(support_C, 1), np.nan)


def decisions(
    probability_NC: npt.NDArray[np.floating], truth: Ints
) -> tuple[npt.NDArray[np.floating], npt.NDArray[np.bool_]]:
    """(confidence, whether it is right) of the likeliest class of each frame; with overlapping behaviours, where
    `truth` is int64[N, C], of each decision whether a behaviour is shown."""
    if truth.ndim == 1:
        return probability_NC.max(1), probability_NC.argmax(1) == truth
    confidence_NC = np.maximum(probability_NC, 1 - probability_NC)
    return confidence_NC.ravel(), ((probability_NC > 0.5) == (truth > 0)).ravel()


def calibration_counts(confidence_N: npt.NDArray[np.floating], right_N: npt.NDArray[np.bool_]) -> Ints:
    """int64[B, 3]: frames, right frames and the sum of confidences (in units of 2**-24) in bins of equal width.

    `confidence_N`: the probability of the predicted class."""
    bin_N = np.clip((confidence_N.astype(np.float64) * CALIBRATION_BINS).astype(np.int64), 0, CALIBRATION_BINS - 1)
    units_N = np.rint(confidence_N.astype(np.float64) * UNIT)  # sums of whole numbers below 2**53 are exact
    columns = (np.ones(len(bin_N)), right_N.astype(np.float64), units_N)
    sums_3B = [np.bincount(bin_N, weights=column_N, minlength=CALIBRATION_BINS) for column_N in columns]
    return np.stack(sums_3B, axis=1).astype(np.int64)


@dataclass(frozen=True)
class Reliability:
    """How confidence and accuracy agree. Arrays are [B]; NaN in a bin without frames."""

    confidence_B: Floats
    accuracy_B: Floats
    count_B: Ints
    ece: float
    """Expected calibration error (Naeini et al. 2015): the mean of |accuracy - confidence|, weighted by frames."""


def reliability(counts_B3: Ints) -> Reliability:
    """The reliability of calibration counts."""
    count_B, right_B, sum_B = counts_B3.T
    frames_B = np.where(count_B > 0, count_B, np.nan)
    confidence_B, accuracy_B = sum_B / UNIT / frames_B, right_B / frames_B
    total = int(count_B.sum())
    ece = float(np.nansum(count_B * np.abs(accuracy_B - confidence_B))) / total if total else math.nan
    return Reliability(confidence_B, accuracy_B, count_B, ece)

"""Filters that turn the probabilities of one video into labels.

Legend: N frames, C classes, W frames of a window.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ranks.workloads.video_behavior.metrics.bouts import bouts_of
from ranks.workloads.video_behavior.metrics.frames import Floats, Ints

LEAST = 1e-6
"""Probabilities below it count as this, so that no logarithm is infinite."""
PART = 1 << 12
"""Frames that are filtered at once, so that memory is bounded."""


def weighted_labels(probability_NC: Floats, threshold_C: Sequence[float]) -> Ints:
    """int64[N]: the class with the largest probability / threshold. Equal thresholds give the most probable class."""
    return np.argmax(probability_NC / np.asarray(threshold_C), axis=1).astype(np.int64)


def median_filtered(probability_NC: Floats, window: int) -> Floats:
    """float64[N, C]: the median of each class over a window of W frames, an odd number. The first and the last frame
    are repeated at the edges."""
    if window == 1:
        return probability_NC
    half = window // 2
    padded = np.pad(probability_NC, ((half, half), (0, 0)), mode="edge")
    parts = [
        np.median(
            np.lib.stride_tricks.sliding_window_view(padded[at : at + PART + window - 1], window, axis=0), axis=-1
        )
        for at in range(0, len(probability_NC), PART)
    ]
    return np.concatenate(parts) if parts else probability_NC


def transition_counts(labels: Sequence[Ints], num_classes: int) -> Ints:
    """int64[C, C]: how often class i is followed by class j in the labels of several videos."""
    counts_CC = np.zeros((num_classes, num_classes), np.int64)
    for labels_N in labels:
        now_N, next_N = labels_N[:-1], labels_N[1:]
        counted = (now_N >= 0) & (next_N >= 0)
        pair = now_N[counted] * num_classes + next_N[counted]
        counts_CC += np.bincount(pair, minlength=num_classes**2).reshape(num_classes, num_classes)
    return counts_CC


def viterbi(probability_NC: Floats, transitions_CC: Ints, prior_C: Sequence[float] = ()) -> Ints:
    """int64[N]: the most probable sequence of classes of a hidden Markov model (Viterbi 1967; Rabiner 1989).

    Transitions are those counted in training labels, plus one each. A net's probabilities are posteriors, so they are
    divided by their prior to stand for emissions. `prior_C`: the shares of the classes that the net has learned with,
    where rare classes were sampled more often or weighed more; by default those of the training labels. The first class
    is as probable as its share of these labels.
    """
    num_frames, num_classes = probability_NC.shape
    counts_CC = transitions_CC + 1.0
    share_C = counts_CC.sum(1) / counts_CC.sum()
    step_CC = np.log(counts_CC / counts_CC.sum(1, keepdims=True))
    prior = np.maximum(prior_C, LEAST) if len(prior_C) else share_C
    emission_NC = np.log(np.maximum(probability_NC, LEAST)) - np.log(prior)
    score_C = emission_NC[0] + np.log(share_C)
    from_NC = np.zeros((num_frames, num_classes), np.int64)
    columns = np.arange(num_classes)
    for n in range(1, num_frames):
        path_CC = score_C[:, None] + step_CC
        from_NC[n] = path_CC.argmax(0)
        score_C = path_CC[from_NC[n], columns] + emission_NC[n]
    labels_N = np.empty(num_frames, np.int64)
    labels_N[-1] = int(score_C.argmax())
    for n in range(num_frames - 1, 0, -1):
        labels_N[n - 1] = from_NC[n, labels_N[n]]
    return labels_N


def without_short_bouts(labels_N: Ints, min_frames_C: Sequence[int]) -> Ints:
    """int64[N]: bouts shorter than their class allows become part of the longer neighbour, the earlier one of equals.
    The shortest bouts go first, and the earliest of those. A bout that fills the video stays."""
    bouts = bouts_of(labels_N).tolist()
    for length in range(1, max(min_frames_C, default=1)):
        kept: list[list[int]] = []
        for at, (c, first, stop) in enumerate(bouts):
            before, after = kept[-1] if kept else None, bouts[at + 1] if at + 1 < len(bouts) else None
            if before is not None and before[0] == c:  # what lay between the two is gone
                before[2] = stop
            elif stop - first != length or length >= min_frames_C[c] or before is after is None:
                kept.append([c, first, stop])
            elif after is None or (before is not None and before[2] - before[1] >= after[2] - after[1]):
                kept[-1][2] = stop
            else:
                after[1] = first
        bouts = kept
    smoothed_N = labels_N.copy()
    for c, first, stop in bouts:
        smoothed_N[first:stop] = c
    return smoothed_N

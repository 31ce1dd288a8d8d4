"""Metrics by frame, from counts that ranks add up: integers, so the sum is the same in any order.

Legend: N frames, C classes. A confusion matrix is int64[C, C], [true class, predicted class].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Ints: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]


def confusion_counts(truth_N: Ints, predicted_N: Ints, num_classes: int) -> Ints:
    """int64[C, C]: how often each class was predicted for each true class. Frames with a negative label are left out,
    on either side."""
    counted_N = (truth_N >= 0) & (predicted_N >= 0)
    pair_N = truth_N[counted_N] * num_classes + predicted_N[counted_N]
    return np.bincount(pair_N, minlength=num_classes**2).astype(np.int64).reshape(num_classes, num_classes)


def multi_label_counts(truth_NC: npt.NDArray[np.uint8], shown_NC: npt.NDArray[np.uint8]) -> Ints:
    """int64[C, 2, 2]: the confusion matrix [not shown, shown] of each class on its own."""
    return np.stack(
        [
            confusion_counts(truth_NC[:, c].astype(np.int64), shown_NC[:, c].astype(np.int64), 2)
            for c in range(truth_NC.shape[1])
        ]
    )


@dataclass(frozen=True)
class FrameMetrics:
    """Metrics by frame. Arrays are float64[C], NaN for a class without a true frame, which no mean counts."""

    macro_f1: float
    """The mean F1 of the classes that have true frames."""
    precision_C: Floats
    """Of the frames predicted as this class, the share that is right; 0 where it was never predicted."""
    recall_C: Floats
    f1_C: Floats
    support_C: Ints
    """The number of true frames."""
    balanced_accuracy: float
    """The mean recall of the classes that have true frames."""
    accuracy: float
    mcc: float
    """Matthews' correlation coefficient; for more than two classes that of Gorodkin 2004, "Comparing two K-category
    assignments by a K-category correlation coefficient". 0 where it is not defined."""

    @property
    def without_support(self) -> tuple[int, ...]:
        """The classes that have no true frame."""
        return tuple(int(c) for c in np.flatnonzero(self.support_C == 0))


def frame_metrics(counts_CC: Ints) -> FrameMetrics:
    """The metrics of a confusion matrix, for classes that exclude each other."""
    support_C, predicted_C, right_C = counts_CC.sum(1), counts_CC.sum(0), np.diag(counts_CC)
    precision_C, recall_C, f1_C = _by_class(support_C, predicted_C, right_C)
    total, right = int(counts_CC.sum()), int(right_C.sum())
    return FrameMetrics(
        macro_f1=mean_of(f1_C),
        precision_C=precision_C,
        recall_C=recall_C,
        f1_C=f1_C,
        support_C=support_C,
        balanced_accuracy=mean_of(recall_C),
        accuracy=right / total if total else math.nan,
        mcc=_mcc(counts_CC),
    )


def multi_label_metrics(counts_C22: Ints) -> FrameMetrics:
    """The metrics of classes that may overlap. Balanced accuracy and MCC are means over the classes with true frames;
    accuracy is the share of right decisions, one for each frame and class."""
    support_C, predicted_C = counts_C22[:, 1].sum(1), counts_C22[:, :, 1].sum(1)
    precision_C, recall_C, f1_C = _by_class(support_C, predicted_C, counts_C22[:, 1, 1])
    has_support = support_C > 0
    alone = [frame_metrics(counts_22) for counts_22 in counts_C22[has_support]]
    total = int(counts_C22.sum())
    return FrameMetrics(
        macro_f1=mean_of(f1_C),
        precision_C=precision_C,
        recall_C=recall_C,
        f1_C=f1_C,
        support_C=support_C,
        balanced_accuracy=mean_of(np.array([one.balanced_accuracy for one in alone])),
        accuracy=int(counts_C22[:, [0, 1], [0, 1]].sum()) / total if total else math.nan,
        mcc=mean_of(np.array([one.mcc for one in alone])),
    )


def f1_of(truth_C: Ints, predicted_C: Ints, right_C: Ints) -> Floats:
    """float64[C]: 2 right / (true + predicted); NaN where nothing is true."""
    return np.where(truth_C > 0, 2 * right_C / np.maximum(truth_C + predicted_C, 1), np.nan)


def mean_of(values_C: Floats) -> float:
    """The mean without NaN; NaN where nothing is left."""
    values = values_C[~np.isnan(values_C)]
    return float(values.mean()) if len(values) else math.nan


def _by_class(support_C: Ints, predicted_C: Ints, right_C: Ints) -> tuple[Floats, Floats, Floats]:
    has_support = support_C > 0
    precision_C = np.where(has_support, right_C / np.maximum(predicted_C, 1), np.nan)
    recall_C = np.where(has_support, right_C / np.maximum(support_C, 1), np.nan)
    return precision_C, recall_C, f1_of(support_C, predicted_C, right_C)


def _mcc(counts_CC: Ints) -> float:
    """In whole numbers of Python, since the products exceed 64 bits."""
    truth, predicted = ([int(n) for n in counts_CC.sum(axis)] for axis in (1, 0))
    total, right = sum(truth), int(np.trace(counts_CC))
    covariance = right * total - sum(t * p for t, p in zip(truth, predicted, strict=True))
    spread = (total**2 - sum(n * n for n in truth)) * (total**2 - sum(n * n for n in predicted))
    return covariance / math.sqrt(spread) if spread else 0.0

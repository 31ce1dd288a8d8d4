"""Metrics against slow loops, hand-worked cases, and scikit-learn where it is installed."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ranks.workloads.video_behavior.metrics.agreement import agreement_of, cohen_kappa
from ranks.workloads.video_behavior.metrics.bootstrap import drawn_animals, interval_over_animals
from ranks.workloads.video_behavior.metrics.bouts import (
    BoutCounts,
    bout_counts,
    bout_metrics,
    bouts_of,
    matches,
    multi_label_bouts,
    summed,
)
from ranks.workloads.video_behavior.metrics.frames import (
    confusion_counts,
    frame_metrics,
    multi_label_counts,
    multi_label_metrics,
)
from ranks.workloads.video_behavior.metrics.scores import (
    SCORE_BINS,
    average_precision,
    calibration_counts,
    reliability,
    score_counts,
)

RNG = np.random.default_rng(0)
TRUTH_N = RNG.integers(-1, 4, 500)
PREDICTED_N = np.where(RNG.random(500) < 0.6, np.maximum(TRUTH_N, 0), RNG.integers(0, 4, 500))


def f1_by_loop(truth: list[int], predicted: list[int], c: int) -> float:
    tp = sum(t == c == p for t, p in zip(truth, predicted, strict=True))
    fp = sum(t != c == p for t, p in zip(truth, predicted, strict=True))
    fn = sum(t == c != p for t, p in zip(truth, predicted, strict=True))
    return 2 * tp / (2 * tp + fp + fn)


def counted() -> tuple[list[int], list[int]]:
    kept = TRUTH_N >= 0
    return TRUTH_N[kept].tolist(), PREDICTED_N[kept].tolist()


def test_frame_metrics_equal_a_loop_and_add_up_over_ranks() -> None:
    counts_CC = confusion_counts(TRUTH_N, PREDICTED_N, 5)
    parts = sum(confusion_counts(TRUTH_N[at::3], PREDICTED_N[at::3], 5) for at in range(3))
    assert np.array_equal(counts_CC, parts)
    truth, predicted = counted()
    found = frame_metrics(counts_CC)
    by_class = [f1_by_loop(truth, predicted, c) for c in range(4)]
    assert found.f1_C[:4] == pytest.approx(by_class)
    assert math.isnan(found.f1_C[4])
    assert found.without_support == (4,)
    assert found.macro_f1 == pytest.approx(np.mean(by_class))
    assert found.support_C.tolist() == [truth.count(c) for c in range(5)]
    one_hot = np.eye(5)
    x, y = one_hot[truth], one_hot[predicted]  # Gorodkin's coefficient is a correlation of the two
    covariance = ((x - x.mean(0)) * (y - y.mean(0))).sum()
    spread = math.sqrt(((x - x.mean(0)) ** 2).sum() * ((y - y.mean(0)) ** 2).sum())
    assert found.mcc == pytest.approx(covariance / spread)


def test_a_class_that_is_never_predicted_counts_as_zero() -> None:
    """Truth 0 0 1 1, always 0: F1 of 0 is 2/3, of 1 is 0. Class 2 has no support and is in no mean."""
    found = frame_metrics(confusion_counts(np.array([0, 0, 1, 1]), np.zeros(4, np.int64), 3))
    assert found.macro_f1 == pytest.approx(1 / 3)
    assert found.balanced_accuracy == 0.5
    assert found.accuracy == 0.5
    assert found.mcc == 0.0
    assert math.isnan(frame_metrics(np.zeros((2, 2), np.int64)).macro_f1)


def test_overlapping_classes_are_counted_one_by_one() -> None:
    truth_NC, shown_NC = (RNG.integers(0, 2, (200, 3)).astype(np.uint8) for _ in range(2))
    truth_NC[:, 2] = 0
    found = multi_label_metrics(multi_label_counts(truth_NC, shown_NC))
    by_class = [f1_by_loop(truth_NC[:, c].tolist(), shown_NC[:, c].tolist(), 1) for c in range(2)]
    assert found.f1_C[:2] == pytest.approx(by_class)
    assert found.macro_f1 == pytest.approx(np.mean(by_class))
    assert found.without_support == (2,)
    assert found.accuracy == pytest.approx((truth_NC == shown_NC).mean())


def average_precision_by_loop(scores: np.ndarray, truth: np.ndarray) -> float:
    total, last_recall = 0.0, 0.0
    for threshold in sorted(set(scores.tolist()), reverse=True):
        chosen = scores >= threshold
        recall = truth[chosen].sum() / truth.sum()
        total += (recall - last_recall) * truth[chosen].mean()
        last_recall = recall
    return total


def test_average_precision_equals_a_loop_over_thresholds() -> None:
    truth_NC = (RNG.random((300, 3)) < (0.5, 0.1, 0.0)).astype(np.int64)
    probability_NC = np.clip(truth_NC * 0.2 + RNG.random((300, 3)), 0, 1)
    counts_C2B = score_counts(probability_NC, truth_NC)
    found = average_precision(counts_C2B)
    binned_NC = np.minimum(np.floor(probability_NC * SCORE_BINS), SCORE_BINS - 1)
    for c in range(2):
        assert found[c] == pytest.approx(average_precision_by_loop(binned_NC[:, c], truth_NC[:, c]))
        assert found[c] == pytest.approx(average_precision_by_loop(probability_NC[:, c], truth_NC[:, c]), abs=2e-3)
    assert math.isnan(found[2])
    parts = score_counts(probability_NC[:100], truth_NC[:100]) + score_counts(probability_NC[100:], truth_NC[100:])
    assert np.array_equal(parts, counts_C2B)


def test_calibration_by_hand() -> None:
    """Ten frames at 0.95 with 8 right, ten at 0.55 with 5 right: ECE is (10 * 0.15 + 10 * 0.05) / 20 = 0.1."""
    confidence_N = np.array([0.95] * 10 + [0.55] * 10, np.float32)
    right_N = np.array([True] * 8 + [False] * 2 + [True] * 5 + [False] * 5)
    counts_B3 = calibration_counts(confidence_N, right_N)
    found = reliability(counts_B3)
    assert found.ece == pytest.approx(0.1, abs=1e-6)
    assert found.count_B.sum() == 20
    assert sorted(found.accuracy_B[found.count_B > 0]) == [0.5, 0.8]
    assert math.isnan(reliability(np.zeros_like(counts_B3)).ece)


def labels(text: str) -> np.ndarray:
    """'..aab' -> [0, 0, 1, 1, 2]; '-' is ignored."""
    return np.array(["-.ab".index(letter) - 1 for letter in text])


def test_bouts_are_runs() -> None:
    assert bouts_of(labels("..aab-b")).tolist() == [[0, 0, 2], [1, 2, 4], [2, 4, 5], [2, 6, 7]]
    assert bouts_of(labels("")).shape == (0, 3)
    shown_NC = np.array([[1, 0], [1, 1], [0, 1], [1, 0]])
    assert multi_label_bouts(shown_NC).tolist() == [[0, 0, 2], [0, 3, 4], [1, 1, 3]]


def test_bouts_match_the_largest_overlap_first() -> None:
    """The true bout 0..10 meets 0..4 (IoU 0.4) and 4..10 (0.6), which takes it. A bout of another class is none."""
    assert matches(np.array([[0, 10]]), np.array([[0, 4], [4, 10]]), 0.3) == [(0, 1)]
    counts = bout_counts(bouts_of(labels("aaaaaaaaaa..")), bouts_of(labels("aaab.aaaaaa.")), 3, 0.3)
    assert (counts.truth_C[1], counts.predicted_C[1], counts.matched_C[1]) == (1, 2, 1)
    assert counts.onset_C[1] == 5
    assert counts.latency_us_C[1] == 0
    assert counts.count_difference_C.tolist() == [1, 1, 1]  # the background is twice predicted, once true
    found = bout_metrics(counts, excluded=(0,))
    assert found.f1_C[1] == pytest.approx(2 / 3)
    assert math.isnan(found.f1_C[2])
    assert found.macro_f1 == pytest.approx(2 / 3)
    assert found.count_error == 2.0


def matched_by_loop(truth: list[list[int]], predicted: list[list[int]], min_iou: float) -> int:
    def iou(a: list[int], b: list[int]) -> float:
        return len(set(range(*a)) & set(range(*b))) / len(set(range(*a)) | set(range(*b)))

    pairs = sorted((-iou(a, b), i, j) for i, a in enumerate(truth) for j, b in enumerate(predicted))
    left, right, count = set(), set(), 0
    for negative, i, j in pairs:
        if -negative >= min_iou and -negative > 0 and i not in left and j not in right:
            left.add(i)
            right.add(j)
            count += 1
    return count


def test_bout_counts_equal_a_loop_and_add_up_over_videos() -> None:
    for min_iou in (0.3, 0.5):
        parts: list[BoutCounts] = []
        for _ in range(20):
            truth_N, predicted_N = (np.repeat(RNG.integers(0, 3, 12), RNG.integers(1, 6, 12)) for _ in range(2))
            size = min(len(truth_N), len(predicted_N))
            truth_K3, predicted_K3 = bouts_of(truth_N[:size]), bouts_of(predicted_N[:size])
            counts = bout_counts(truth_K3, predicted_K3, 3, min_iou)
            for c in range(3):
                of_c = [bouts[bouts[:, 0] == c, 1:].tolist() for bouts in (truth_K3, predicted_K3)]
                assert counts.matched_C[c] == matched_by_loop(of_c[0], of_c[1], min_iou)
            parts.append(counts)
        assert np.array_equal(summed(parts).stacked(), (parts[0] + summed(parts[1:])).stacked())


def test_the_bootstrap_takes_animals_and_covers_a_known_mean() -> None:
    weight_SA = drawn_animals(7, 3000, seed=3)
    assert (weight_SA.sum(1) == 7).all()
    assert weight_SA.mean(0) == pytest.approx(np.ones(7), abs=0.08)
    assert weight_SA.var(0) == pytest.approx(np.full(7, 6 / 7), abs=0.12)  # binomial
    assert np.array_equal(drawn_animals(7, 50, seed=3), weight_SA[:50])
    counts_A2 = np.stack([RNG.integers(0, 100, 30), np.full(30, 100)], 1)
    found = interval_over_animals(counts_A2, lambda counts_2: counts_2[0] / counts_2[1], seed=1)
    error = counts_A2[:, 0].std() / 100 / math.sqrt(30)
    assert found.value == pytest.approx(counts_A2[:, 0].mean() / 100)
    assert found.high - found.low == pytest.approx(2 * 1.96 * error, rel=0.1)
    assert found == interval_over_animals(counts_A2, lambda counts_2: counts_2[0] / counts_2[1], seed=1)
    assert math.isnan(interval_over_animals(counts_A2[:1], lambda counts_2: counts_2[0] / counts_2[1]).low)


def test_agreement_by_hand_and_in_either_order() -> None:
    """Two raters of 10 frames, 8 alike: observed 0.8, expected 0.5 * 0.5 + 0.5 * 0.5, kappa 0.6."""
    first, second = labels("aaaaa....."), labels("aaaa..a...")
    assert cohen_kappa(confusion_counts(first, second, 2)) == pytest.approx(0.6)
    found, back = agreement_of(first, second, 3), agreement_of(second, first, 3)
    assert found.kappa == pytest.approx(0.6)
    assert found.agreement == 0.8
    assert found.f1_C[:2] == pytest.approx([0.8, 0.8])
    assert found.bout_f1_C[1] == pytest.approx(2 / 3)
    assert math.isnan(found.bout_f1_C[2])
    assert np.array_equal(found.f1_C, back.f1_C, equal_nan=True)
    assert np.array_equal(found.bout_f1_C, back.bout_f1_C, equal_nan=True)
    assert math.isnan(agreement_of(labels("--"), labels("ab"), 3).kappa)
    assert math.isnan(cohen_kappa(confusion_counts(labels("aa"), labels("aa"), 2)))


def test_metrics_equal_those_of_scikit_learn() -> None:
    sklearn = pytest.importorskip("sklearn.metrics", reason="scikit-learn is in the extra video-behavior-proof")
    truth, predicted = counted()
    found = frame_metrics(confusion_counts(TRUTH_N, PREDICTED_N, 4))
    precision, recall, f1, support = sklearn.precision_recall_fscore_support(truth, predicted)
    assert found.precision_C == pytest.approx(precision)
    assert found.recall_C == pytest.approx(recall)
    assert found.f1_C == pytest.approx(f1)
    assert found.support_C.tolist() == support.tolist()
    assert found.mcc == pytest.approx(sklearn.matthews_corrcoef(truth, predicted))
    assert found.balanced_accuracy == pytest.approx(sklearn.balanced_accuracy_score(truth, predicted))
    kappa = cohen_kappa(confusion_counts(TRUTH_N, PREDICTED_N, 4))
    assert kappa == pytest.approx(sklearn.cohen_kappa_score(truth, predicted))
    scores = np.floor(RNG.random((400, 1)) * SCORE_BINS) / SCORE_BINS
    shown = (RNG.random((400, 1)) < scores).astype(np.int64)
    wanted = sklearn.average_precision_score(shown[:, 0], scores[:, 0])
    assert average_precision(score_counts(scores, shown))[0] == pytest.approx(wanted)

"""Filters against slow rules, and the choice on validation videos."""

from __future__ import annotations

import itertools
import json
from dataclasses import asdict, replace

import numpy as np
import pytest

from ranks.workloads.video_behavior.metrics.bouts import bouts_of
from ranks.workloads.video_behavior.metrics.frames import confusion_counts, frame_metrics
from ranks.workloads.video_behavior.smoothing import smoothing
from ranks.workloads.video_behavior.smoothing.filters import (
    median_filtered,
    transition_counts,
    viterbi,
    weighted_labels,
    without_short_bouts,
)
from ranks.workloads.video_behavior.smoothing.label_rule import LabelRule
from ranks.workloads.video_behavior.smoothing.smoothing import (
    Smoothing,
    SmoothingChoice,
    choose_smoothing,
    min_frames,
    shown_or_not,
    smoothed_labels,
)

RNG = np.random.default_rng(0)


def test_the_median_repeats_the_edges_and_runs_in_parts() -> None:
    probability_NC = RNG.random((40, 3))
    padded = np.concatenate([probability_NC[:1]] * 2 + [probability_NC] + [probability_NC[-1:]] * 2)
    wanted = np.array([np.median(padded[n : n + 5], axis=0) for n in range(40)])
    assert np.array_equal(median_filtered(probability_NC, 5), wanted)
    long_N1 = RNG.random((70_000, 1))
    assert median_filtered(long_N1, 3)[65_530:65_545, 0] == pytest.approx(
        [np.median(long_N1[n - 1 : n + 2]) for n in range(65_530, 65_545)]
    )
    assert np.array_equal(median_filtered(probability_NC, 1), probability_NC)


def test_viterbi_finds_the_best_of_all_sequences() -> None:
    counts_CC = np.array([[8, 2, 0], [1, 5, 3], [2, 0, 4]])
    prior = (counts_CC + 1.0) / (counts_CC + 1.0).sum(1, keepdims=True)
    share = (counts_CC + 1.0).sum(1) / (counts_CC + 1.0).sum()
    for _ in range(5):
        probability_NC = RNG.dirichlet(np.ones(3), 6)

        def score(path: tuple[int, ...], p: np.ndarray = probability_NC) -> float:
            steps = sum(np.log(prior[a, b]) for a, b in itertools.pairwise(path))
            return np.log(share[path[0]]) + steps + sum(np.log(p[n, c] / share[c]) for n, c in enumerate(path))

        best = max(itertools.product(range(3), repeat=6), key=score)
        assert viterbi(probability_NC, counts_CC).tolist() == list(best)
        # a net that learned with other shares of the classes says this of the same frames
        learned_C = np.array([0.2, 0.3, 0.5])
        shifted_NC = probability_NC * learned_C / share
        shifted_NC /= shifted_NC.sum(1, keepdims=True)
        assert viterbi(shifted_NC, counts_CC, learned_C.tolist()).tolist() == list(best)


def test_transitions_are_counted_within_videos() -> None:
    counts = transition_counts([np.array([0, 0, 1, -1, 1]), np.array([1, 0])], 2)
    assert counts.tolist() == [[1, 1], [1, 0]]


def short_bouts_by_loop(labels: list[int], least: list[int]) -> list[int]:
    while True:
        bouts = bouts_of(np.array(labels)).tolist()
        short = [(stop - first, at) for at, (c, first, stop) in enumerate(bouts) if stop - first < least[c]]
        if not short or len(bouts) == 1:
            return labels
        _, at = min(short)
        sides = [side for side in (at - 1, at + 1) if 0 <= side < len(bouts)]
        into = max(sides, key=lambda side: (bouts[side][2] - bouts[side][1], -side))
        labels = [bouts[into][0] if bouts[at][1] <= n < bouts[at][2] else c for n, c in enumerate(labels)]


def test_short_bouts_go_to_the_longer_neighbour_shortest_first() -> None:
    assert without_short_bouts(np.array([0, 0, 0, 1, 2, 2]), (1, 3, 1)).tolist() == [0, 0, 0, 0, 2, 2]
    assert without_short_bouts(np.array([1]), (1, 9)).tolist() == [1]
    for _ in range(200):
        labels_N = np.repeat(RNG.integers(0, 3, 15), RNG.integers(1, 5, 15))
        least = RNG.integers(1, 6, 3).tolist()
        assert without_short_bouts(labels_N, least).tolist() == short_bouts_by_loop(labels_N.tolist(), least)


def video(frames: int) -> np.ndarray:
    """Bouts of 8 to 60 frames of three classes."""
    parts = [[c] * int(RNG.integers(8, 60)) for c in RNG.choice(3, frames // 8, p=[0.6, 0.3, 0.1])]
    return np.array([label for part in parts for label in part][:frames])


def test_smoothing_is_chosen_on_validation_and_helps_elsewhere() -> None:
    def probabilities(truth_N: np.ndarray) -> np.ndarray:
        score_NC = np.exp(1.2 * np.eye(3)[truth_N] + 0.7 * RNG.gumbel(size=(len(truth_N), 3)))
        return score_NC / score_NC.sum(1, keepdims=True)

    training, validation, test_N = [video(600), video(600)], [video(600), video(500)], video(600)
    found = choose_smoothing([probabilities(truth_N) for truth_N in validation], validation, training, 3)
    events = [row.event_f1 for row in found.rows]
    assert events == sorted(events)
    assert events[-1] > events[0] + 0.3
    assert len(found.lines()) == len(found.rows) + 1
    assert "macro event F1 at IoU 0.3" in found.rule
    probability_NC = probabilities(test_N)

    def macro_f1(labels_N: np.ndarray) -> float:
        return frame_metrics(confusion_counts(test_N, labels_N, 3)).macro_f1

    before = macro_f1(weighted_labels(probability_NC, (1, 1, 1)))
    assert macro_f1(smoothed_labels(found.smoothing, probability_NC)) > before + 0.1
    again = Smoothing(**json.loads(json.dumps(asdict(found.smoothing))))
    assert np.array_equal(smoothed_labels(again, probability_NC), smoothed_labels(found.smoothing, probability_NC))
    by_frame = choose_smoothing([np.eye(3)[validation[0]]], validation[:1], training, 3, criterion="frame")
    assert by_frame.smoothing == Smoothing.nothing(3)  # nothing to gain


def test_a_step_that_costs_too_many_frames_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """One class is cut in pieces by single frames, the other is a single frame now and then: a filter joins the one and
    removes the other."""
    truth_N = np.zeros(900, np.int64)
    truth_N[20::60] = 2
    for begin in range(30, 900, 60):
        truth_N[begin : begin + 25] = 1
    seen_N = truth_N.copy()
    for begin in range(30, 900, 60):
        seen_N[begin + 6 : begin + 25 : 6] = 0
    probability_NC = np.eye(3)[seen_N] * 0.9 + 0.1 / 3
    probability_NC[seen_N == 2] = [0.44, 0.02, 0.54]

    def chosen(least_loss: float) -> SmoothingChoice:
        monkeypatch.setattr(smoothing, "MOST_F1_LOST", least_loss)
        return choose_smoothing([probability_NC], [truth_N], [truth_N], 3, excluded=[2], prior_C=(1.0, 1.0, 1.0))

    free, guarded = chosen(1.0), chosen(0.01)
    assert free.rows[-1].event_f1 > free.rows[0].event_f1
    assert free.rows[-1].macro_f1 < free.rows[0].macro_f1 - 0.01
    assert all(row.macro_f1 >= guarded.rows[0].macro_f1 - 0.01 for row in guarded.rows)
    assert "costs at most 0.01" in guarded.rule


def test_an_hmm_smooths_what_it_is_given() -> None:
    truth_N = np.repeat([0, 1, 0], 20)
    probability_NC = np.eye(2)[truth_N] * 0.6 + 0.2
    probability_NC[[5, 30]] = probability_NC[[5, 30]][:, ::-1]
    smoothing = Smoothing((1.0, 1.0), "hmm", transitions=((38, 1), (1, 19)))
    assert np.array_equal(smoothed_labels(smoothing, probability_NC), truth_N)


def test_an_hmm_knows_with_which_shares_the_net_has_learned() -> None:
    """Frames of which nothing is known: a net says of them the shares that it has learned with."""
    learned_C = (0.4, 0.6)
    probability_NC = np.tile(learned_C, (50, 1))
    smoothing = Smoothing((1.0, 1.0), "hmm", transitions=((900, 20), (20, 60)))
    assert smoothed_labels(replace(smoothing, prior_C=learned_C), probability_NC).tolist() == [0] * 50
    assert smoothed_labels(smoothing, probability_NC).tolist() == [1] * 50, "the rare class twice made up for"


def test_the_least_bout_length_is_a_quantile_of_training() -> None:
    labels_N = np.repeat([0, 1, 0, 1, 0], [10, 3, 20, 5, 100])
    assert min_frames([labels_N], 3, 0.0) == (10, 3, 1)
    assert min_frames([labels_N], 3, 1.0) == (50, 5, 1)


def test_a_behaviour_that_may_overlap_is_smoothed_as_shown_or_not() -> None:
    """Noise of single frames, and a bout whose probabilities are too low: the median and the threshold correct both."""
    truth_N = np.repeat([0, 1, 0, 1, 0], [60, 40, 60, 40, 60])
    probability_N = 0.1 + 0.3 * truth_N
    probability_N[::9] = 0.95 - probability_N[::9]
    chosen = choose_smoothing([shown_or_not(probability_N)], [truth_N], [truth_N], 2, excluded=(0,))
    assert chosen.rows[0].event_f1 < 0.5
    assert chosen.rows[-1].event_f1 == 1
    rule = LabelRule((chosen.smoothing, Smoothing.nothing(2)), multi=True)
    labels_NC = rule.labels(np.stack([probability_N, probability_N], 1))
    assert (labels_NC[:, 0] == truth_N).mean() > 0.97
    assert (labels_NC[:, 1] == (probability_N > 0.5)).all()

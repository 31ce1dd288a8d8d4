"""Pictures of agreement: the confusion matrix, precision and recall, calibration, and the learning curve.

Legend: n frames, C classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ranks.watch.report.figures import INK, line, panels, percent, percent_below, save
from ranks.workloads.video_behavior.metrics.bootstrap import AnimalInterval
from ranks.workloads.video_behavior.metrics.frames import Ints, confusion_counts, multi_label_counts
from ranks.workloads.video_behavior.metrics.scores import (
    average_precision,
    calibration_counts,
    decisions,
    reliability,
    score_counts,
)
from ranks.workloads.video_behavior.report.seen import SeenSplit

COLUMNS = 3


def confusion_of(seen: SeenSplit) -> Ints:
    """int64[C, C], or with overlapping behaviours int64[C, 2, 2]: [true, predicted] frames."""
    _, truth, labels = seen.counted()
    if seen.multi:
        return multi_label_counts(truth.astype(np.uint8), labels.astype(np.uint8))
    return confusion_counts(truth, labels, len(seen.classes))


def draw_confusion(seen: SeenSplit, path: Path) -> None:
    """Rows add up to 100 %. With overlapping behaviours a matrix for each."""
    counts, classes = confusion_of(seen), seen.classes
    if not seen.multi:
        side = 1.6 + 0.72 * len(classes)
        figure, (panel,) = panels(1, 1, (side, side - 0.6))
        _matrix(panel, counts, classes)
    else:
        rows = -(-len(classes) // COLUMNS)
        figure, axes = panels(rows, COLUMNS, (9, 3.0 * rows))
        for panel, counts_22, name in zip(axes, counts, classes, strict=False):
            _matrix(panel, counts_22, ("not shown", "shown"))
            panel.set_title(name, fontsize=9)
        for panel in axes[len(classes) :]:
            panel.set_axis_off()
    save(figure, path)


def _matrix(panel: Any, counts_CC: Ints, names: Sequence[str]) -> None:
    total_C = counts_CC.sum(1, keepdims=True)
    share_CC = counts_CC / np.maximum(total_C, 1)
    panel.grid(visible=False)
    panel.imshow(share_CC, cmap="Blues", vmin=0, vmax=1)
    for (true, predicted), count in np.ndenumerate(counts_CC):
        share = share_CC[true, predicted]
        text = f"{share:.1%}\n{count:,}" if count else "0"
        panel.text(
            predicted, true, text, ha="center", va="center", fontsize=8, color="white" if share > 0.55 else "#222222"
        )
    panel.set_xticks(range(len(names)), names, rotation=30, ha="right")
    panel.set_yticks(range(len(names)), names)
    panel.set_xlabel("the net")
    panel.set_ylabel("the person")


def draw_precision_recall(seen: SeenSplit, path: Path) -> None:
    """A curve for each class, from probabilities without smoothing; the dotted line is the share of the class."""
    probability_nC, truth, _ = seen.counted()
    truth_nC = truth if seen.multi else np.eye(len(seen.classes), dtype=np.int64)[truth]
    counts_C2B = score_counts(probability_nC, truth_nC)
    average_C = average_precision(counts_C2B)
    rows = -(-len(seen.classes) // COLUMNS)
    figure, axes = panels(rows, COLUMNS, (9, 2.8 * rows))
    for c, (panel, name) in enumerate(zip(axes, seen.classes, strict=False)):
        false_B, true_B = (side[::-1].cumsum() for side in counts_C2B[c])
        chosen = true_B + false_B > 0
        support = int(true_B[-1])
        if support:
            panel.step(true_B[chosen] / support, true_B[chosen] / (true_B + false_B)[chosen], where="post", color=INK)
            panel.axhline(support / len(truth_nC), color=INK, linestyle=":", linewidth=1)
        title = f"{name}: AP {average_C[c]:.3f}, {support:,} frames" if support else f"{name}: no frame"
        panel.set_title(title, fontsize=9)
        panel.set_xlim(-0.03, 1.03)
        panel.set_ylim(-0.03, 1.03)
        panel.set_xlabel("recall", fontsize=8)
        panel.set_ylabel("precision", fontsize=8)
    for panel in axes[len(seen.classes) :]:
        panel.set_axis_off()
    save(figure, path)


def draw_reliability(seen: SeenSplit, path: Path) -> None:
    """Accuracy over confidence of the likeliest class, and the number of frames; with overlapping behaviours of every
    decision whether a behaviour is shown."""
    probability_nC, truth, _ = seen.counted()
    found = reliability(calibration_counts(*decisions(probability_nC, truth)))
    figure, (left, right_panel) = panels(1, 2, (9, 3.4))
    known = found.count_B > 0
    left.plot([0, 1], [0, 1], color="#999999", linestyle=":", linewidth=1)
    line(left, found.confidence_B[known], found.accuracy_B[known], color=INK)
    percent(left, "right")
    percent_below(left, "confidence of the net")
    left.set_title(f"expected calibration error {found.ece:.3f}", fontsize=9)
    bins = len(found.count_B)
    right_panel.bar((np.arange(bins) + 0.5) / bins, found.count_B, width=0.9 / bins, color=INK)
    percent_below(right_panel, "confidence of the net")
    right_panel.set_ylabel("frames" if not seen.multi else "decisions")
    save(figure, path)


@dataclass(frozen=True)
class LearningPoint:
    """One run: how much of its training video was labelled, and its macro-F1 on the animals of the page."""

    run: str
    labelled_minutes: float
    macro_f1: AnimalInterval


def draw_learning_curve(
    validations: Sequence[tuple[float, float]], points: Sequence[LearningPoint], split: str, path: Path
) -> None:
    """Left: macro-F1 of the validation animals while the run trained, over the minutes of labelled frames that it was
    shown, repeats included. Right: a point for each run, over the minutes of labelled video that it had."""
    figure, (left, right) = panels(1, 2, (9, 3.4))
    line(left, [minutes for minutes, _ in validations], [f1 for _, f1 in validations], color=INK)
    left.xaxis.get_major_locator().set_params(integer=False)
    left.set_xlabel("minutes of labelled frames shown to the net", fontsize=8)
    left.set_title("this run, validation animals, no smoothing", fontsize=9)
    left.set_ylim(-0.03, 1.03)
    left.set_ylabel("macro-F1")
    ordered = sorted(points, key=lambda point: point.labelled_minutes)
    x = [point.labelled_minutes for point in ordered]
    y = np.array([point.macro_f1.value for point in ordered])
    low_high = np.array(
        [[p.macro_f1.low, p.macro_f1.high] if p.macro_f1.animals > 1 else [p.macro_f1.value] * 2 for p in ordered]
    )
    right.errorbar(x, y, yerr=np.abs(low_high.T - y), fmt="o-", color=INK, capsize=3, markersize=4, linewidth=1.3)
    for point in ordered:
        at = (point.labelled_minutes, point.macro_f1.value)
        right.annotate(point.run, at, textcoords="offset points", xytext=(5, 5), fontsize=7)
    right.set_ylim(-0.03, 1.03)
    right.xaxis.get_major_locator().set_params(integer=False)
    right.set_xlim(0, 1.25 * max(x))
    right.set_xlabel("minutes of labelled video to train on", fontsize=8)
    right.set_title(f"{len(ordered)} run{'s' if len(ordered) > 1 else ''}, {split} animals, smoothed", fontsize=9)
    save(figure, path)

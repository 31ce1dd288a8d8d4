"""Gradient-boosted trees on distances and speeds of the rats, with the splits, labels and scores of the net.

Legend: N frames of all videos, n frames of a split, F features, C classes.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from sklearn.ensemble import HistGradientBoostingClassifier

from ranks.workloads.video_behavior.clips.labelled import LabelledFrames
from ranks.workloads.video_behavior.metrics.frames import confusion_counts, frame_metrics
from ranks.workloads.video_behavior.scoring import by_video
from ranks.workloads.video_behavior.smoothing.smoothing import choose_smoothing, smoothed_labels
from ranks.workloads.video_behavior.tables.baselines import split_by_clip
from ranks.workloads.video_behavior.validation import frame_scores

Floats = npt.NDArray[np.float32]
STRIDE = 4
"""Every so many training frames: neighbours are near duplicates."""
WEIGHTS = (None, "balanced")
"""Class weights that are tried; the one with the better macro-F1 on the validation videos is taken."""
PIECE_FRAMES = 345


def fitted(features_NF: Floats, data: LabelledFrames, seed: int) -> HistGradientBoostingClassifier:
    """Trees on the training split. Their class weights are chosen on the validation split."""
    train_n, val_n = data.frames_of("train", STRIDE), data.frames_of("val", STRIDE)
    found: list[tuple[float, HistGradientBoostingClassifier]] = []
    for weight in WEIGHTS:
        trees = HistGradientBoostingClassifier(max_iter=300, class_weight=weight, random_state=seed)
        trees.fit(features_NF[train_n], data.class_N[train_n])
        found.append((frame_scores(data, val_n, trees.predict_proba(features_NF[val_n])).macro_f1, trees))
    return max(found, key=lambda pair: pair[0])[1]


def scores_of_trees(features_NF: Floats, data: LabelledFrames, seed: int) -> dict[str, float]:
    """Macro-F1 of the test frames, smoothed as those of the net are (chosen on the validation videos), and raw."""
    trees = fitted(features_NF, data, seed)
    videos = {
        split: by_video(data, split, trees.predict_proba(features_NF[data.all_frames_of(split)]))
        for split in ("val", "test")
    }
    choice = choose_smoothing(
        [video.probability_NC for video in videos["val"]],
        [video.truth for video in videos["val"]],
        [data.class_N[v.first_frame : v.first_frame + v.num_frames] for v in data.videos_of("train")],
        len(data.classes),
        excluded=data.excluded,
    )
    truth_n = np.concatenate([video.truth for video in videos["test"]])
    raw_n = np.concatenate([video.probability_NC.argmax(1) for video in videos["test"]])
    smoothed_n = np.concatenate([smoothed_labels(choice.smoothing, video.probability_NC) for video in videos["test"]])
    f1 = {
        name: frame_metrics(confusion_counts(truth_n, labels_n, len(data.classes))).macro_f1
        for name, labels_n in (("macro_f1", smoothed_n), ("raw/macro_f1", raw_n))
    }
    return {**f1, "frames": int((truth_n >= 0).sum())}


def trees_table(features: Mapping[str, Floats], data: LabelledFrames, seed: int) -> dict[str, dict[str, float]]:
    """The scores of the trees on each kind of features, and of the first kind with the split by clip: the leak."""
    table = {name: scores_of_trees(features_NF, data, seed) for name, features_NF in features.items()}
    first = next(iter(features))
    leaky = split_by_clip(data, PIECE_FRAMES, seed)
    test_n = leaky.frames_of("test")
    trees = fitted(features[first], leaky, seed)
    probability_nC = trees.predict_proba(features[first][test_n])
    table[f"{first}, split by clip"] = {"raw/macro_f1": frame_scores(leaky, test_n, probability_nC).macro_f1}
    return table

"""How training makes up for rare classes, by one of three ways.

    balanced            rare classes are sampled more often
    weights             they weigh more in the loss
    logit-adjustment    their logits are lowered in the loss, so that the net must raise them (Menon et al. 2021,
                        "Long-tail learning via logit adjustment", arXiv 2007.07314)

The shares s of the classes are those of the training split alone. With the power p of the settings, a class counts as
s**(1 - p): by its share with 0, like every other class with 1.

Legend: C classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ranks.errors import UserError
from ranks.workloads.video_behavior.clips.labelled import ClipBouts, LabelledFrames
from ranks.workloads.video_behavior.config import SPLITS

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ClassBalance:
    """For each class of the bouts: training frames, bouts, share of the frames, share of the sampled clips, weight in
    the loss (1 on average over the sampled clips), and what the loss adds to the logit."""

    frames_C: npt.NDArray[np.int64]
    bouts_C: npt.NDArray[np.int64]
    share_C: Floats
    sampled_C: Floats
    weight_C: Floats
    offset_C: Floats

    @property
    def prior_C(self) -> Floats:
        """The shares of the classes for which the probabilities of a trained net are right: those of the frames where
        nothing helps rare classes, else nearer to one another."""
        prior_C = self.sampled_C * self.weight_C * np.exp(-self.offset_C)
        return prior_C / prior_C.sum()


def class_balance(bouts: ClipBouts, classes: Sequence[str], imbalance: str, power: float) -> ClassBalance:
    """What the training split says of its classes. Raises UserError where a class has no frame."""
    # with multi, the last class of the bouts are frames without a behaviour
    num_classes = max(len(classes), int(bouts.class_K.max(initial=-1)) + 1)
    frames_C = np.bincount(bouts.class_K, bouts.length_K, num_classes).astype(np.int64)
    bouts_C = np.bincount(bouts.class_K, minlength=num_classes)
    absent = [name for name, count in zip(classes, frames_C.tolist(), strict=False) if not count]
    if absent:
        found = f"no frame of the training split shows {', '.join(absent)}"
        raise UserError("to train", found, "give these classes a training video, or remove them from the annotations")
    share_C = frames_C / frames_C.sum()
    wanted_C = share_C ** (1 - power)
    wanted_C /= wanted_C.sum()
    sampled_C = wanted_C if imbalance == "balanced" else share_C
    weight_C = wanted_C / share_C if imbalance == "weights" else np.ones(num_classes)
    offset_C = power * np.log(share_C) if imbalance == "logit-adjustment" else np.zeros(num_classes)
    return ClassBalance(frames_C, bouts_C, share_C, sampled_C, weight_C, offset_C)


def study_lines(data: LabelledFrames, balance: ClassBalance) -> list[str]:
    """What a training starts with: videos, trials, animals and frames of each split, and a table of the classes."""
    lines = list[str]()
    for split in SPLITS:
        videos = data.videos_of(split)
        animals = len({video.animal for video in videos})
        trials, frames = sum(video.trials for video in videos), len(data.frames_of(split))
        lines.append(f"{split:5}  {len(videos)} videos ({trials} trials) of {animals} animals, {frames:,} frames")
    rows: list[Sequence[Any]] = [
        ("class", *(f"{split} frames" for split in SPLITS), "bouts", "share", "sampled", "weight")
    ]
    counts_SC = [data.label_NC[data.frames_of(split)].sum(0, dtype=np.int64).tolist() for split in SPLITS]
    for number, name in enumerate(data.classes):
        shares = (
            f"{balance.share_C[number]:.1%}",
            f"{balance.sampled_C[number]:.1%}",
            f"{balance.weight_C[number]:.3g}",
        )
        counts = (f"{counts[number]:,}" for counts in counts_SC)
        rows.append((name, *counts, f"{balance.bouts_C[number]:,}", *shares))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        numbers = (f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True))
        lines.append("  ".join((f"{row[0]:<{widths[0]}}", *numbers)))
    return lines

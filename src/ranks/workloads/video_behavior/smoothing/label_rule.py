"""How probabilities become labels, as it was chosen on the validation videos of a run, and the file that keeps it.

    runs/NAME/label_rule.json        {"weights_sha256": ..., "smoothing": {...}} or {..., "threshold_C": [...]}

Legend: N frames, C classes.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from ranks.engine.files.regular import DamagedFile
from ranks.engine.files.strict_json import read_object
from ranks.workloads.video_behavior.metrics.frames import Floats, Ints
from ranks.workloads.video_behavior.smoothing.smoothing import Smoothing, smoothed_labels

FILE = "label_rule.json"


@dataclass(frozen=True)
class LabelRule:
    """`smoothing`: of behaviours that exclude each other. `threshold_C`: of behaviours that may overlap, without a
    smoothing."""

    smoothing: Smoothing | None = None
    threshold_C: tuple[float, ...] = ()

    @classmethod
    def plain(cls, num_classes: int, multi: bool) -> LabelRule:
        """The likeliest class, or every behaviour that is likelier than not."""
        return cls(threshold_C=(0.5,) * num_classes) if multi else cls(Smoothing.nothing(num_classes))

    def labels(self, probability_NC: Floats) -> Ints:
        """int64[N], or int64[N, C] with behaviours that may overlap: the labels of one video."""
        if self.smoothing is None:
            return (probability_NC >= np.array(self.threshold_C)).astype(np.int64)
        return smoothed_labels(self.smoothing, probability_NC)

    def write(self, folder: Path, weights_sha256: str) -> None:
        """Keep the rule with the weights that it was chosen for."""
        content: dict[str, Any] = {"weights_sha256": weights_sha256}
        content |= (
            {"threshold_C": self.threshold_C} if self.smoothing is None else {"smoothing": asdict(self.smoothing)}
        )
        temporary = folder / f".{FILE}.tmp-{os.getpid()}"
        temporary.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
        os.replace(temporary, folder / FILE)


def read_rule(folder: Path, weights_sha256: str, num_classes: int, multi: bool) -> LabelRule | None:
    """The rule that a run keeps; None where there is none for these weights, or where the file is damaged."""
    try:
        content = read_object(folder / FILE)
        if content.get("weights_sha256") != weights_sha256:
            return None
        if multi:
            return LabelRule(threshold_C=_numbers(content["threshold_C"], num_classes))
        return LabelRule(_smoothing(cast("dict[str, Any]", content["smoothing"]), num_classes))
    except (DamagedFile, OSError, KeyError, TypeError, ValueError, AttributeError):
        return None


def _smoothing(given: dict[str, Any], num_classes: int) -> Smoothing:
    if given["filter"] not in ("none", "median", "hmm"):
        raise ValueError(given["filter"])
    transitions = tuple(tuple(int(n) for n in _numbers(row, num_classes)) for row in given["transitions"])
    if given["filter"] == "hmm" and len(transitions) != num_classes:
        raise ValueError("transitions")
    least = tuple(int(n) for n in _numbers(given["min_frames_C"], num_classes)) if given["min_frames_C"] else ()
    prior = _numbers(given["prior_C"], num_classes) if given["prior_C"] else ()
    window = int(given["window"])
    if not 1 <= window <= 10_001 or window % 2 == 0:
        raise ValueError("window")
    return Smoothing(_numbers(given["threshold_C"], num_classes), given["filter"], window, transitions, prior, least)


def _numbers(given: Any, count: int) -> tuple[float, ...]:
    """Finite numbers, not negative. Raises ValueError, TypeError."""
    found = tuple(float(n) for n in given)
    if len(found) != count or not all(math.isfinite(n) and n >= 0 for n in found):
        raise ValueError("numbers")
    return found

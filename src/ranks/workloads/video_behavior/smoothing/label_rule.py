"""How probabilities become labels, as it was chosen on the validation videos of a run, and the file that keeps it.

    runs/NAME/label_rule.json        {"weights_sha256": ..., "multi": ..., "smoothings": [{...}, ...]}

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
from ranks.workloads.video_behavior.smoothing.smoothing import Smoothing, shown_or_not, smoothed_labels

FILE = "label_rule.json"


@dataclass(frozen=True)
class LabelRule:
    """`smoothings`: one of all behaviours, which exclude each other. With `multi` one of each behaviour, of the two
    classes not shown and shown."""

    smoothings: tuple[Smoothing, ...]
    multi: bool = False

    @classmethod
    def plain(cls, num_classes: int, multi: bool) -> LabelRule:
        """The likeliest class, or every behaviour that is likelier than not."""
        return cls((Smoothing.nothing(2),) * num_classes if multi else (Smoothing.nothing(num_classes),), multi)

    def labels(self, probability_NC: Floats) -> Ints:
        """int64[N], or int64[N, C] with behaviours that may overlap: the labels of one video."""
        if not self.multi:
            return smoothed_labels(self.smoothings[0], probability_NC)
        columns = zip(self.smoothings, probability_NC.T, strict=True)
        return np.stack([smoothed_labels(one, shown_or_not(probability_N)) for one, probability_N in columns], 1)

    def write(self, folder: Path, weights_sha256: str) -> None:
        """Keep the rule with the weights that it was chosen for."""
        content = {"weights_sha256": weights_sha256, **asdict(self)}
        temporary = folder / f".{FILE}.tmp-{os.getpid()}"
        temporary.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
        os.replace(temporary, folder / FILE)


def read_rule(folder: Path, weights_sha256: str, num_classes: int, multi: bool) -> LabelRule | None:
    """The rule that a run keeps; None where there is none for these weights, or where the file is damaged."""
    try:
        content = read_object(folder / FILE)
        given = cast("list[dict[str, Any]]", content["smoothings"])
        if (content["weights_sha256"], content["multi"]) != (weights_sha256, multi):
            return None
        if len(given) != (num_classes if multi else 1):
            return None
        return LabelRule(tuple(_smoothing(one, 2 if multi else num_classes) for one in given), multi)
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

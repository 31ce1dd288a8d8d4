"""Labels of frames from events.

A state labels the frames whose time stamps t have start_s <= t < stop_s. A point event labels the one frame that
contains it: the last frame with t <= start_s.

Legend: N frames, C classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from ranks.workloads.video_behavior.annotations.events import Annotation

IGNORED = -1
"""The label of a frame that neither training nor a metric counts."""

Unlabelled: TypeAlias = Literal["background", "ignore"]
"""What a frame without a code becomes: the background class, or IGNORED."""

Floats: TypeAlias = npt.NDArray[np.float64]
Labels: TypeAlias = npt.NDArray[np.int64]


def exclusive_labels(
    annotation: Annotation, classes: Sequence[str], times_s_N: Floats, *, unlabelled: Unlabelled
) -> Labels:
    """int64[N]: the class of each frame, for behaviours that exclude each other. The background is class 0."""
    raise NotImplementedError


def multi_labels(annotation: Annotation, classes: Sequence[str], times_s_N: Floats) -> npt.NDArray[np.uint8]:
    """uint8[N, C]: 1 where a behaviour is shown, for behaviours that may overlap."""
    raise NotImplementedError

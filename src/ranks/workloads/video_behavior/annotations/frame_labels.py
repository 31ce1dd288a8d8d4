"""Labels of frames from events.

A state labels the frames whose time stamps t have start_s <= t < stop_s. A point event labels the one frame that
contains it, the last frame with t <= start_s, also where a state ends in that frame before it.

Where the annotation counts frames, frame n of the annotation is frame n of the video, also with a variable frame rate
and where 29.97 frames a second are called 30.

BORIS rounds times to milliseconds, so both sides are compared with a tolerance: half a millisecond, or a quarter of the
frame in which the event's time lies where that is less. Without it, 30 frames a second would shift one edge in three by
a frame.

Legend: N frames, C classes, E events.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from ranks.errors import UserError, nearest
from ranks.workloads.video_behavior.annotations.events import Annotation, Event

IGNORED = -1
"""The label of a frame that neither training nor a metric counts."""

ROUNDING_S = 0.0005
SAME_RATE = 0.01
"""Frame rates may differ by 1 %: 29.97 is called 30."""

Unlabelled: TypeAlias = Literal["background", "ignore"]
"""What a frame without a code becomes: the background class, or IGNORED."""

Floats: TypeAlias = npt.NDArray[np.float64]
Labels: TypeAlias = npt.NDArray[np.int64]


def exclusive_labels(
    annotation: Annotation, classes: Sequence[str], times_s_N: Floats, *, unlabelled: Unlabelled
) -> Labels:
    """int64[N]: the class of each frame, for behaviours that exclude each other. The background is class 0.

    Raises UserError where two events of different behaviours label the same frame, for behaviours that are no class,
    and where the events do not fit the video.
    """
    owner_N = np.full(len(times_s_N), -1, np.int64)
    class_E = np.array([_class_of(event, classes, annotation) for event in annotation.events], np.int64)
    frames = list(enumerate(_frames(annotation, times_s_N)))
    for number, (event, first, stop) in sorted(frames, key=lambda frame: frame[1][0].stop_s is None):
        owners = owner_N[first:stop]
        for other in np.unique(owners[owners >= 0]).tolist():
            if class_E[other] != class_E[number] and not _ends_before(annotation.events[other], event):
                _refuse_overlap(annotation, annotation.events[other], event)
        owner_N[first:stop] = number
    if not len(class_E):
        return np.full(len(times_s_N), 0 if unlabelled == "background" else IGNORED, np.int64)
    return np.where(owner_N >= 0, class_E[owner_N], 0 if unlabelled == "background" else IGNORED)


def multi_labels(annotation: Annotation, classes: Sequence[str], times_s_N: Floats) -> npt.NDArray[np.uint8]:
    """uint8[N, C]: 1 where a behaviour is shown, for behaviours that may overlap.

    Raises UserError for behaviours that are no class, and where the events do not fit the video.
    """
    labels_NC = np.zeros((len(times_s_N), len(classes)), np.uint8)
    for event, first, stop in _frames(annotation, times_s_N):
        labels_NC[first:stop, _class_of(event, classes, annotation)] = 1
    return labels_NC


def events_of_labels(
    labels_N: Labels, classes: Sequence[str], times_s_N: Floats, *, subject: str = ""
) -> tuple[Event, ...]:
    """One state for each run of equal labels. IGNORED frames are in no event. A state ends where the next frame begins;
    the last frame of a video is as long as the one before it."""
    if len(labels_N) == 0:
        return ()
    ends_s = np.append(times_s_N, end_of(times_s_N))
    edges = np.flatnonzero(np.diff(labels_N)) + 1
    firsts, stops = np.append(0, edges), np.append(edges, len(labels_N))
    return tuple(
        Event(classes[int(labels_N[first])], float(ends_s[first]), float(ends_s[stop]), subject)
        for first, stop in zip(firsts, stops, strict=True)
        if labels_N[first] != IGNORED
    )


def nominal_times(num_frames: int, fps: float) -> Floats:
    """float64[N]: the time stamps of a video with a constant frame rate."""
    return np.arange(num_frames) / fps


def annotated_times(times_s_N: Floats, annotation: Annotation) -> Floats:
    """float64[N]: the times of the frames as the annotation counts them."""
    if annotation.counts_frames and annotation.fps is not None:
        return nominal_times(len(times_s_N), annotation.fps)
    return times_s_N


def end_of(times_s_N: Floats) -> float:
    """The end of a video in seconds: its last frame is as long as the one before it, or 0.04 s if it is alone."""
    last_s = float(times_s_N[-1] - times_s_N[-2]) if len(times_s_N) > 1 else 0.04
    return float(times_s_N[-1]) + last_s


def check_times(times_s_N: Floats, annotation: Annotation) -> None:
    """Raises UserError where the annotation has another frame rate than the video, or an event outside of it. Its first
    frames may be missing: times count from 0."""
    asked, end_s = _asked(annotation), end_of(times_s_N)
    mean_s = (end_s - float(times_s_N[0])) / len(times_s_N)
    if len(times_s_N) > 1 and annotation.fps is not None and abs(annotation.fps * mean_s - 1) > SAME_RATE:
        found = f"{annotation.fps:g} frames a second in the annotation, {1 / mean_s:g} in the video"
        raise UserError(
            asked, found, "check that it is the same video; the column fps of dataset.csv replaces a wrong rate"
        )
    times_s_N = annotated_times(times_s_N, annotation)
    end_s, mean_s = end_of(times_s_N), (end_of(times_s_N) - float(times_s_N[0])) / len(times_s_N)
    for event in annotation.events:
        if event.start_s < -mean_s or event.end_s > end_s + mean_s + ROUNDING_S:
            found = f"{described(event)} outside the video, which has {len(times_s_N)} frames and ends at {end_s:g} s"
            raise UserError(asked, found, "check that it is the same video, its fps and its offset_s")


def _frames(annotation: Annotation, times_s_N: Floats) -> list[tuple[Event, int, int]]:
    """(event, first frame, frame after the last) of each event. Raises UserError where the events do not fit."""
    if len(times_s_N) == 0:
        raise UserError(_asked(annotation), "a video without frames", "check the video")
    check_times(times_s_N, annotation)
    times_s_N = annotated_times(times_s_N, annotation)
    first_E, at_E = _frames_at(np.array([event.start_s for event in annotation.events]), times_s_N)
    stop_E, _ = _frames_at(np.array([event.end_s for event in annotation.events]), times_s_N)
    frames: list[tuple[Event, int, int]] = []
    for number, event in enumerate(annotation.events):
        is_point = event.stop_s is None
        first = int(at_E[number]) if is_point else int(first_E[number])
        frames.append((event, first, first + 1 if is_point else int(stop_E[number])))
    return frames


def _frames_at(edge_s_E: Floats, times_s_N: Floats) -> tuple[Labels, Labels]:
    """int64[E] each: the first frame at or after each time, N where there is none, and the frame that contains it. A
    time that is a little behind the start of a frame, or a little before that of the next one, counts as on it."""
    before_E = np.searchsorted(times_s_N, edge_s_E, side="right") - 1  # -1: before the first frame
    start_s_E = np.append(times_s_N, -np.inf)[before_E]
    next_s_E = np.append(times_s_N, np.inf)[before_E + 1]
    length_s_E = np.append(np.diff(times_s_N, append=end_of(times_s_N)), np.inf)[before_E]
    tolerance_s_E = np.minimum(ROUNDING_S, 0.25 * length_s_E) + 1e-9  # of floating point
    first_E = before_E + (edge_s_E - start_s_E > tolerance_s_E)
    at_E = before_E + (next_s_E - edge_s_E <= tolerance_s_E)
    return first_E, np.maximum(at_E, 0)


def _class_of(event: Event, classes: Sequence[str], annotation: Annotation) -> int:
    if event.behavior not in classes:
        found = f"{described(event)}: '{event.behavior}' is no class"
        raise UserError(_asked(annotation), found, nearest(event.behavior, classes, f"there is {', '.join(classes)}"))
    return classes.index(event.behavior)


def _ends_before(state: Event, point: Event) -> bool:
    """Whether a state ends before a point event in the same frame. The frame then belongs to the point event."""
    return point.stop_s is None and state.stop_s is not None and state.stop_s <= point.start_s


def _refuse_overlap(annotation: Annotation, first: Event, second: Event) -> NoReturn:
    do = "correct one of them, choose one --subject, or give --labels multi, which lets behaviours overlap"
    raise UserError(_asked(annotation), f"{described(first)} and {described(second)} label the same frame", do)


def _asked(annotation: Annotation) -> str:
    observation = f", observation '{annotation.observation}'" if annotation.observation else ""
    return f"the labels of {annotation.video or 'a video'}{observation}"


def described(event: Event) -> str:
    """Event("lick", 1.0, 2.5, "m1") -> "'lick' of 'm1' from 1 to 2.5 s"."""
    when = (
        f"at {event.start_s:.10g} s" if event.stop_s is None else f"from {event.start_s:.10g} to {event.stop_s:.10g} s"
    )
    return f"'{event.behavior}'" + (f" of '{event.subject}' " if event.subject else " ") + when

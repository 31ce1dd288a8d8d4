"""The events of a video, as a person or a net has scored them.

Times are seconds from the start of the video. A state covers start_s <= t < stop_s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath, PureWindowsPath


@dataclass(frozen=True)
class Event:
    """One behaviour of one subject: a state (start_s <= t < stop_s), or a point event (stop_s is None)."""

    behavior: str
    start_s: float
    stop_s: float | None
    subject: str = ""
    modifiers: tuple[str, ...] = ()
    comment_start: str = ""
    comment_stop: str = ""

    @property
    def end_s(self) -> float:
        """Where the event ends: stop_s, or start_s for a point event."""
        return self.start_s if self.stop_s is None else self.stop_s


@dataclass(frozen=True)
class Annotation:
    """The events of one video. fps and duration_s: as the file says, None where it says nothing."""

    video: str
    """Name of the media file, as in the file."""
    events: tuple[Event, ...]
    fps: float | None = None
    duration_s: float | None = None
    observation: str = ""
    """The observation id of BORIS."""
    counts_frames: bool = False
    """Whether the file counts frames. Frame n is then at n / fps seconds, whatever its time stamp."""
    unknown_frames: int = 0
    """Frames of which the file says that nobody labelled them."""
    trials: int = 1
    """Recordings that were joined in time."""
    subjects: tuple[str, ...] = field(default=(), compare=False)
    """All that the file names, also those without an event here. Reading a file fills it in."""
    media: tuple[str, ...] = field(default=(), compare=False)
    """The media files of the observation: of all its cameras, as in the file. Reading a file fills it in."""
    frame_times_s: Sequence[float] | None = field(default=None, compare=False, repr=False)
    """The times of the frames that the file counts, and the end of the last one; None where it has none."""


def at_frame_times(annotation: Annotation) -> Annotation:
    """An annotation that counts frames with its events at the times of its frames, which matter where the rate varies.
    Others stay as they are."""
    times_s, fps = annotation.frame_times_s, annotation.fps
    if times_s is None or fps is None:
        return annotation

    def time_of(at_s: float) -> float:
        return times_s[min(round(at_s * fps), len(times_s) - 1)]

    events = tuple(
        replace(event, start_s=time_of(event.start_s), stop_s=None if event.stop_s is None else time_of(event.stop_s))
        for event in annotation.events
    )
    return replace(annotation, events=events, duration_s=times_s[-1], counts_frames=False, frame_times_s=None)


def same_file(first: str, second: str) -> bool:
    """Whether two paths, of any system, end in the same file name."""
    return bool(first) and file_name(first) == file_name(second)


def file_name(path: str) -> str:
    """'C:\\\\videos\\\\m1.mp4' -> 'm1.mp4'."""
    return PureWindowsPath(PurePosixPath(path).name).name

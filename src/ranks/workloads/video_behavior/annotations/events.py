"""The events of a video, as a person or a net has scored them.

Times are seconds from the first frame of the video. A state covers start_s <= t < stop_s.
"""

from __future__ import annotations

from dataclasses import dataclass


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

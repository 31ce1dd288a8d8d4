"""The times of a video's frames, in seconds, from the time stamps of its file."""

from __future__ import annotations

from typing import Any

STAMPED_AS_DECODED = ("avi", "asf", "mxf")
"""Formats that may stamp frames in the order of decoding, which is another one where there are B-frames."""
DELAY_FRAMES = 8
"""A first time stamp may be so late without damage: an AVI file counts the frames that its decoder waits for."""


class FrameTimes:
    """Times in seconds from the time stamp `start_s`, or from the first frame on."""

    def __init__(self, fps: float, start_s: float | None) -> None:
        self._step_s = 1 / fps
        self._origin_s = start_s
        self._last_s = -self._step_s
        self.first_s: float | None = None
        self.without_time = 0

    @property
    def end_s(self) -> float:
        """Where the last frame ends, at the mean rate."""
        return self._last_s + self._step_s

    def time_of(self, stamp_s: float | None) -> float:
        """The time of the next frame, whose time stamp is `stamp_s`, None where it has none."""
        if stamp_s is not None and self._origin_s is None:
            self._origin_s = stamp_s - (self._last_s + self._step_s)
        time_s = None if stamp_s is None or self._origin_s is None else stamp_s - self._origin_s
        if time_s is None or time_s <= self._last_s:
            self.without_time += 1
            time_s = self._last_s + self._step_s
        self._last_s = time_s
        if self.first_s is None:
            self.first_s = time_s
        return time_s


def seconds_of(ticks: int | None, source: Any) -> float | None:
    """A time stamp of a stream, a packet or a frame of PyAV in seconds."""
    return None if ticks is None or source.time_base is None else float(ticks * source.time_base)

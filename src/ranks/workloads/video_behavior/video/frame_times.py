"""The times of a video's frames, in seconds, from the time stamps of its file.

A frame without a time stamp follows the frame before it at the mean rate. One whose time stamp does not increase, as
where two frames have the same, comes right behind the frame before it, so that later frames have the times of the file.
Where time stamps jump far back, as in files that were joined, the mean rate counts again.
"""

from __future__ import annotations

from typing import Any

STAMPED_AS_DECODED = ("avi", "asf", "mxf")
"""Formats that may stamp frames in the order of decoding, which is another one where there are B-frames."""
DELAY_FRAMES = 8
"""A first time stamp may be so late without damage: an AVI file counts the frames that its decoder waits for."""
MOST_BACK_FRAMES = 16
"""Time stamps that lie further back are no mistake of a few frames: codecs reorder so many at most."""
BEHIND = 0.01
"""How far behind the frame before it a frame is whose time stamp does not increase, as a share of a frame."""


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
            is_near = time_s is not None and self._last_s - time_s <= MOST_BACK_FRAMES * self._step_s
            time_s = self._last_s + (BEHIND if is_near else 1) * self._step_s
        self._last_s = time_s
        if self.first_s is None:
            self.first_s = time_s
        return time_s


def seconds_of(ticks: int | None, source: Any) -> float | None:
    """A time stamp of a stream, a packet or a frame of PyAV in seconds."""
    return None if ticks is None or source.time_base is None else float(ticks * source.time_base)

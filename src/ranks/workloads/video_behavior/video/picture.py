"""Which part of a frame is kept, and how large it becomes.

First the crop is cut out. Then the rest is scaled to the size with its aspect ratio:

    letterbox   all of it is kept, and black bars fill what is missing (the default: no animal is cut off)
    crop        its centre is kept, as much as has the aspect ratio of the size

Shrinking averages the pixels (area); enlarging is bilinear. Sides are in pixels of the frame as a person sees it, after
its rotation tag. Pixels count as square.

Legend: H, W pixels of the result; h, w of a frame.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ranks.errors import UserError

Grey = NDArray[np.uint8]
Fit: TypeAlias = Literal["letterbox", "crop"]
SMALLEST_SIDE, LARGEST_SIDE = 16, 8192


class Crop(NamedTuple):
    """A rectangle of a frame, in pixels from its upper left corner."""

    x: int
    y: int
    width: int
    height: int

    @classmethod
    def parse(cls, text: str) -> Crop:
        """'10,20,640,480' -> Crop. Raises UserError."""
        found = re.fullmatch(r"(\d{1,5}),(\d{1,5}),(\d{1,5}),(\d{1,5})", text.replace(" ", ""))
        if found is None or int(found[3]) == 0 or int(found[4]) == 0:
            raise UserError(
                f"--crop {text}", "not a rectangle", "give x,y,width,height in pixels, such as 100,0,640,480"
            )
        return cls(*map(int, found.groups()))


@dataclass(frozen=True)
class Picture:
    """What a frame becomes. `size`: (height, width), None for the size that it has."""

    size: tuple[int, int] | None = None
    fit: Fit = "letterbox"
    crop: Crop | None = None

    def shape(self, height: int, width: int) -> tuple[int, int]:
        """(H, W) of a frame of height x width. Raises UserError where the crop lies outside of it."""
        rows, columns = self.window(height, width)
        return self.size or (rows.stop - rows.start, columns.stop - columns.start)

    def window(self, height: int, width: int) -> tuple[slice, slice]:
        """The rows and columns of a frame that are kept. Raises UserError where the crop lies outside of it."""
        x, y, w, h = self.crop or Crop(0, 0, width, height)
        if x + w > width or y + h > height:
            found = f"a frame has {width} x {height} pixels"
            raise UserError(f"--crop {x},{y},{w},{h}", found, "give a rectangle inside the frame: x,y,width,height")
        if self.size is not None and self.fit == "crop":
            target_height, target_width = self.size
            kept_h = min(h, max(1, round(w * target_height / target_width)))
            kept_w = min(w, max(1, round(h * target_width / target_height)))
            x, y, w, h = x + (w - kept_w) // 2, y + (h - kept_h) // 2, kept_w, kept_h
        return slice(y, y + h), slice(x, x + w)

    def apply(self, frame_hw: Grey) -> Grey:
        """uint8[H, W] of a grey frame. It may share the memory of the frame."""
        kept = frame_hw[self.window(*frame_hw.shape)]
        if self.size is None or kept.shape == self.size:
            return kept
        target_height, target_width = self.size
        scale = min(target_height / kept.shape[0], target_width / kept.shape[1])
        inner = max(1, round(kept.shape[0] * scale)), max(1, round(kept.shape[1] * scale))
        if self.fit == "crop":
            inner = self.size
        scaled = resize(kept, *inner)
        if inner == self.size:
            return scaled
        result_HW = np.zeros(self.size, np.uint8)
        top, left = (target_height - inner[0]) // 2, (target_width - inner[1]) // 2
        result_HW[top : top + inner[0], left : left + inner[1]] = scaled
        return result_HW


def resize(frame_hw: Grey, height: int, width: int) -> Grey:
    """uint8[height, width]: a grey frame, scaled by FFmpeg with exact rounding."""
    if frame_hw.shape == (height, width):
        return frame_hw
    import av
    from av.video.reformatter import Interpolation

    shrinks = height * width < frame_hw.size
    way = Interpolation.AREA if shrinks else Interpolation.BILINEAR
    flags: Any = int(way | Interpolation.ACCURATE_RND | Interpolation.BITEXACT)
    frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(frame_hw), "gray")
    scaled = frame.reformat(width=width, height=height, interpolation=flags)
    return plane_of(scaled)


def plane_of(frame: Any) -> Grey:
    """uint8[h, w]: the first plane of a frame of PyAV, without the padding of its lines. A view, not a copy."""
    plane = frame.planes[0]
    return np.frombuffer(plane, np.uint8).reshape(-1, plane.line_size)[: frame.height, : frame.width]

"""Small real videos, written by PyAV."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np

from ranks.workloads.video_behavior.video.write import write_mp4


def moving_square(num_frames: int, height: int = 48, width: int = 64) -> np.ndarray:
    """uint8[N, H, W]: a bright square that moves a pixel a frame over a dark ramp."""
    frames_NHW = np.tile(np.linspace(20, 90, width).astype(np.uint8), (num_frames, height, 1))
    for i in range(num_frames):
        left = i % (width - 12)
        frames_NHW[i, 10:22, left : left + 12] = 220
    return frames_NHW


def write_square(path: Path, num_frames: int = 40, height: int = 48, width: int = 64) -> np.ndarray:
    """Write the square as mp4; its frames."""
    frames_NHW = moving_square(num_frames, height, width)
    write_mp4(path, [frames_NHW], 25.0, quality=0, threads=1)
    return frames_NHW


def write_frames(
    path: Path, frames: Iterable[np.ndarray], pts: Sequence[int] | None = None, codec: str = "libx264"
) -> None:
    """Write colour frames, uint8[H, W, 3], with time stamps in milliseconds, by default every 40."""
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream(codec, rate=25)
        stream.pix_fmt = "yuv420p"
        stream.time_base = stream.codec_context.time_base = Fraction(1, 1000)
        for i, frame in enumerate(frames):
            if i == 0:
                stream.height, stream.width = frame.shape[:2]
            picture = av.VideoFrame.from_ndarray(frame, "rgb24")
            picture.pts, picture.time_base = (40 * i if pts is None else pts[i]), Fraction(1, 1000)
            container.mux(stream.encode(picture))
        container.mux(stream.encode(None))

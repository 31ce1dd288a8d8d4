"""Small real videos, written by PyAV."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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


def write_no_frames(path: Path, format_name: str) -> None:
    """Write a container that has a video stream, and not one frame."""
    with av.open(str(path), "w", format=format_name) as container:
        stream: Any = container.add_stream("libx264", rate=25)
        stream.pix_fmt, stream.height, stream.width = "yuv420p", 48, 64
        container.start_encoding()


def damage(path: Path, at: float, num_bytes: int = 600) -> None:
    """Overwrite a part of a file with zeros. `at`: where it begins, 0 to 1."""
    content = bytearray(path.read_bytes())
    first = int(at * len(content))
    content[first : first + num_bytes] = bytes(num_bytes)
    path.write_bytes(content)


def lose_packets(path: Path, count: int) -> None:
    """Overwrite the first packets of a video with zeros."""
    content = bytearray(path.read_bytes())
    with av.open(str(path)) as container:
        for packet in list(container.demux(video=0))[:count]:
            first = content.index(bytes(packet))
            content[first : first + packet.size] = bytes(packet.size)
    path.write_bytes(content)


def write_frames(
    path: Path,
    frames: Iterable[np.ndarray],
    pts: Sequence[int] | None = None,
    codec: str = "libx264",
    options: Mapping[str, str] | None = None,
) -> None:
    """Write colour frames, uint8[H, W, 3], 25 a second, or with time stamps `pts` in milliseconds. `options`: of
    the codec."""
    tick = Fraction(1, 25) if pts is None else Fraction(1, 1000)
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream(codec, rate=25, options=dict(options or {}))
        stream.pix_fmt = "yuv420p"
        stream.time_base = stream.codec_context.time_base = tick
        for i, frame in enumerate(frames):
            if i == 0:
                stream.height, stream.width = frame.shape[:2]
            picture = av.VideoFrame.from_ndarray(frame, "rgb24")
            picture.pts, picture.time_base = (i if pts is None else pts[i]), tick
            container.mux(stream.encode(picture))
        container.mux(stream.encode(None))


def write_ramp(path: Path, pixels: str, color_range: int | None = None, codec: str = "libx264") -> np.ndarray:
    """Write the greys from 0 to 255 without loss as three frames of a pixel format, with a tag of their range or none;
    a row of them. Other formats than grey get them as FFmpeg converts grey."""
    row_W = np.linspace(0, 255, 64).round().astype(np.uint8)
    options = {"libx264": {"qp": "0"}, "libx265": {"x265-params": "lossless=1:log-level=none"}}.get(codec, {})
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream(codec, rate=25, options=options)
        stream.pix_fmt, stream.height, stream.width = pixels, 48, 64
        if color_range is not None:
            stream.codec_context.color_range = color_range
        for i in range(3):
            picture = av.VideoFrame.from_ndarray(np.tile(row_W, (48, 1)), "gray")
            picture.pts, picture.time_base = i, Fraction(1, 25)
            container.mux(stream.encode(picture))
        container.mux(stream.encode(None))
    return row_W

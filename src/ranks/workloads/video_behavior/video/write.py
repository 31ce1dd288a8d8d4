"""Writes frames as an mp4 file (H.264), a block at a time.

Grey frames are written as full-range luma, so that every grey survives (up to the loss of the codec).

Legend: N frames, H, W pixels, 3 colours (red, green, blue).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import av
import numpy as np
from numpy.typing import NDArray

from ranks.engine.files.disk import NOTHING_SAVED, remove, writing

FULL_RANGE = 2
"""AVCOL_RANGE_JPEG of FFmpeg."""


def write_mp4(
    path: Path, blocks: Iterable[NDArray[np.uint8]], fps: float, *, quality: int = 18, threads: int = 0
) -> int:
    """Write blocks of uint8[N, H, W] (grey) or uint8[N, H, W, 3] frames; return the number of frames.

    The file appears when it is complete. H.264 needs even sides: the last row or column of an odd frame is repeated.
    `quality`: x264's constant rate factor, 0 (lossless) to 51. `threads`: of the encoder, 0 for all cores. Raises
    UserError where the disk is full, ValueError where there are no frames.
    """
    asked = f"to write {path}"
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with writing(asked, path.parent, NOTHING_SAVED):
            count = _encode(temporary, blocks, Fraction(fps).limit_denominator(100_000), quality, threads)
            os.replace(temporary, path)
    finally:
        remove(temporary)
    return count


def _encode(path: Path, blocks: Iterable[NDArray[np.uint8]], fps: Fraction, quality: int, threads: int) -> int:
    options = {"crf": str(quality), "preset": "veryfast"}
    count = 0
    with av.open(str(path), "w", format="mp4") as container:
        stream = None
        for block in blocks:
            frames = even_sides(block)
            if stream is None:
                stream = container.add_stream("libx264", rate=fps, options=options)
                stream.height, stream.width = frames.shape[1:3]
                stream.pix_fmt = "yuvj420p" if frames.ndim == 3 else "yuv420p"
                stream.codec_context.thread_count = threads
                if frames.ndim == 3:
                    stream.codec_context.color_range = FULL_RANGE
            for frame in frames:
                picture = av.VideoFrame.from_ndarray(
                    np.ascontiguousarray(frame), "gray" if frame.ndim == 2 else "rgb24"
                )
                picture.pts, picture.time_base = count, 1 / fps
                container.mux(stream.encode(picture))
                count += 1
        if stream is None:
            raise ValueError("a video needs at least one frame")
        container.mux(stream.encode(None))
    return count


def even_sides(frames: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Frames whose height and width are even: the last row or column is repeated where it must be."""
    odd = [(0, 0), *[(0, side % 2) for side in frames.shape[1:3]], *[(0, 0)] * (frames.ndim - 3)]
    return np.pad(frames, cast(Any, odd), mode="edge") if any(map(max, odd)) else frames

"""Decodes a video from its first to its last frame, as grey pictures with time stamps.

    with open_video(path) as video:
        for block in video.blocks(Picture(size=(256, 256))):        # at most 64 frames in memory
            block.frames_NHW, block.times_s_N

Greys. 8-bit luma is read directly from plane 0; other formats are converted by FFmpeg. All greys are full range: luma
of limited range is stretched (`luma_range.py`).

Times count from the first frame and come from the time stamps of the file, so a variable frame rate is right. Where the
first frames cannot be decoded, times count from the start of the stream, as in a player. `frame_times.py` says what the
time of a frame is whose time stamp is missing or does not increase.

Legend: N frames of a block, H, W pixels.
"""

from __future__ import annotations

import heapq
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import av
import numpy as np
from numpy.typing import NDArray

from ranks.bounded_file import check_regular
from ranks.errors import UserError
from ranks.workloads.video_behavior.video.frame_times import DELAY_FRAMES, STAMPED_AS_DECODED, FrameTimes, seconds_of
from ranks.workloads.video_behavior.video.luma_range import (
    FULL_FROM_LIMITED,
    LUMA_IN_PLANE_0,
    is_full_range,
    is_monochrome_h264,
)
from ranks.workloads.video_behavior.video.picture import Grey, Picture, plane_of

BLOCK_FRAMES = 64
DEFAULT_FPS = 25.0
"""Where neither the file nor its time stamps say one."""
MISSING_S = 1.0
"""A video that ends so much earlier than its header says is warned of: sound may last a little longer."""
SHIFTED = "behind a missing frame, labels that count frames do not fit"
DO = "check that the file plays, or convert it: ffmpeg -i FILE -c:v libx264 NEW.mp4"


@dataclass(frozen=True)
class VideoFacts:
    """What the header and the first frame of a video say. `height`, `width`: after the rotation tag."""

    height: int
    width: int
    rotation: int
    """Degrees counterclockwise by which frames are turned: 0, 90, 180 or 270."""
    fps: float
    """The mean frame rate."""
    promised_frames: int | None
    """Frames by the header; None where it says nothing."""
    duration_s: float | None
    codec: str
    pixel_format: str

    @property
    def expected_frames(self) -> int | None:
        """By the header, or by duration and frame rate; None where both are unknown."""
        if self.promised_frames or self.duration_s is None:
            return self.promised_frames
        return max(1, round(self.duration_s * self.fps))


@dataclass(frozen=True)
class FrameBlock:
    """Consecutive frames and their times."""

    frames_NHW: Grey
    times_s_N: NDArray[np.float64]


class StampedFrame(NamedTuple):
    """A decoded picture of PyAV, and its time stamp in seconds; None where the file has none."""

    picture: Any
    stamp_s: float | None


class VideoFile:
    """An open video. `warnings` and `missing_frames` are complete when all blocks were read."""

    def __init__(self, path: Path, container: Any) -> None:
        """Decodes the first frame. Raises UserError where there is none."""
        self.path, self.warnings, self.missing_frames = path, list[str](), 0
        self._asked = f"the video {path}"
        self._container = container
        self._stream = container.streams.video[0]
        self._damaged = 0
        self._frames = self._decode()
        first = next(self._frames, None)
        if first is None:
            raise UserError(self._asked, "not one frame can be decoded", DO)
        self._first, self._damaged_start = first, self._damaged > 0
        self._monochrome = is_monochrome_h264(self._stream.codec_context)
        self.facts = self._facts(first.picture)

    def blocks(self, picture: Picture | None = None, block_frames: int = BLOCK_FRAMES) -> Iterator[FrameBlock]:
        """All frames in order, up to `block_frames` at a time. May be called once.

        A video that ends early, or has damaged frames, gives what can be decoded, and `warnings` says how much is
        missing. Raises UserError where the crop lies outside of the frames, or where frames change their size in the
        middle and `picture` has none.
        """
        picture = picture or Picture()
        shape = picture.shape(self.facts.height, self.facts.width)
        frames_NHW, times_s_N = np.empty((block_frames, *shape), np.uint8), np.empty(block_frames)
        times = FrameTimes(self.facts.fps, self._start_s())
        filled = total = 0
        for frame, stamp_s in self._all_frames():
            grey = picture.apply(upright(frame))
            if grey.shape != shape:
                found = (
                    f"frame {total} has {grey.shape[1]} x {grey.shape[0]} pixels, the first has {shape[1]} x {shape[0]}"
                )
                raise UserError(self._asked, found, "give --size, so that all frames get the same size")
            frames_NHW[filled] = grey if is_full_range(frame, self._monochrome) else FULL_FROM_LIMITED[grey]
            times_s_N[filled] = times.time_of(stamp_s)
            filled, total = filled + 1, total + 1
            if filled == block_frames:
                yield FrameBlock(frames_NHW, times_s_N)
                frames_NHW, times_s_N, filled = np.empty_like(frames_NHW), np.empty_like(times_s_N), 0
        if filled:
            yield FrameBlock(frames_NHW[:filled], times_s_N[:filled])
        self._warn(total, times)

    def _all_frames(self) -> Iterator[StampedFrame]:
        yield self._first
        yield from self._frames

    def _decode(self) -> Iterator[StampedFrame]:
        """The good frames. Damaged packets and frames are left out and counted."""
        packets = self._container.demux(self._stream)
        as_decoded = self._container.format.name in STAMPED_AS_DECODED
        pending: list[float] = []  # a heap: frames come out in the order of their times, so each gets the earliest
        while True:
            try:
                packet = next(packets, None)
            except (av.FFmpegError, OSError):
                self._damaged += 1
                packet = None
            if packet is None:
                return
            if packet.is_corrupt:
                self._damaged += 1
                continue
            try:
                frames = packet.decode()
            except (av.FFmpegError, OSError):
                self._damaged += 1
                continue
            if as_decoded and packet.size and (stamp_s := seconds_of(packet.pts, packet)) is not None:
                heapq.heappush(pending, stamp_s)
            for frame in frames:
                stamp_s = heapq.heappop(pending) if pending else seconds_of(frame.pts, frame)
                if frame.is_corrupt:
                    self._damaged += 1
                else:
                    yield StampedFrame(frame, stamp_s)

    def _facts(self, first: Any) -> VideoFacts:
        stream = self._stream
        rotation = first.rotation % 360
        if rotation % 90:
            self.warnings.append(f"{self.path}: its rotation of {rotation} degrees is ignored")
            rotation = 0
        height, width = (first.width, first.height) if rotation % 180 else (first.height, first.width)
        rate = stream.average_rate or stream.guessed_rate
        duration_s = float(stream.duration * stream.time_base) if stream.duration and stream.time_base else None
        if duration_s is None and self._container.duration is not None:
            duration_s = self._container.duration / 1e6  # FFmpeg's AV_TIME_BASE
        return VideoFacts(
            height=height,
            width=width,
            rotation=rotation,
            fps=float(rate) if rate else DEFAULT_FPS,
            promised_frames=stream.frames or None,
            duration_s=duration_s,
            codec=stream.codec_context.name,
            pixel_format=first.format.name,
        )

    def _start_s(self) -> float | None:
        """The time stamp from which times count; None for that of the first frame."""
        start_s, first_s = seconds_of(self._stream.start_time, self._stream), self._first.stamp_s
        if start_s is None or first_s is None or start_s >= first_s:
            return None
        return start_s if self._damaged_start or first_s - start_s > DELAY_FRAMES / self.facts.fps else None

    def _warn(self, total: int, times: FrameTimes) -> None:
        promised, duration_s = self.facts.promised_frames, self.facts.duration_s
        self.missing_frames = max(self._damaged, (promised or 0) - total)
        shifted = f"; {SHIFTED}" if self.missing_frames else ""
        if promised is not None and promised != total:
            found = f"the header promises {promised:,} frames, {total:,} can be decoded"
            self.warnings.append(f"{self.path}: {found}{shifted}")
        elif self._damaged:
            self.warnings.append(f"{self.path}: {self._damaged:,} damaged packets or frames are left out{shifted}")
        if promised is None and duration_s is not None and times.end_s < duration_s - MISSING_S:
            found = f"the header promises {duration_s:.1f} s, and the last frame ends at {times.end_s:.1f} s"
            self.warnings.append(f"{self.path}: {found}")
        if times.first_s:
            self.warnings.append(f"{self.path}: its first {times.first_s:.2f} s cannot be decoded")
        if times.without_time:
            self.warnings.append(f"{self.path}: {times.without_time:,} frames have no time stamp that increases")


@contextmanager
def open_video(path: Path, *, threads: int = 0) -> Generator[VideoFile]:
    """Open a video and decode its first frame. `threads`: of the decoder, 0 for all cores.

    Raises UserError for what is no video: a missing or unreadable file, a file of another kind, one without a video
    stream or without a frame. Other files that it names, and the network, are never opened.
    """
    asked = f"the video {path}"
    try:
        check_regular(path, asked)
    except (OSError, ValueError) as error:
        found = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise UserError(asked, found, "give a video file that can be read") from None
    try:
        container = av.open(f"file:{path}", options={"protocol_whitelist": "file"})
    except (av.FFmpegError, OSError, ValueError) as error:
        found = f"no video, or damaged: {getattr(error, 'strerror', None) or error}"
        raise UserError(asked, found, DO) from None
    with container:
        if not container.streams.video:
            kinds = ", ".join(sorted({stream.type for stream in container.streams})) or "nothing"
            raise UserError(asked, f"no video stream; it holds {kinds}", "give a video file")
        stream = container.streams.video[0]
        stream.thread_type = "AUTO"
        stream.codec_context.thread_count = threads
        yield VideoFile(path, container)


def probe(path: Path) -> VideoFacts:
    """What a video's header and first frame say. Raises UserError as `open_video`."""
    with open_video(path, threads=1) as video:
        return video.facts


def count_frames(path: Path) -> int:
    """The packets of a video stream, at least 1, for files whose header says nothing. Decodes nothing."""
    count = 0
    try:
        with av.open(f"file:{path}", options={"protocol_whitelist": "file"}) as container:
            for packet in container.demux(container.streams.video[0]):
                count += packet.size > 0
    except (av.FFmpegError, OSError):
        pass  # damaged from here on: what was counted is the least
    return max(1, count)


def upright(frame: Any) -> Grey:
    """uint8[h, w]: the luma of a frame, turned by its rotation tag. A view where plane 0 holds it."""
    has_luma = frame.format.name in LUMA_IN_PLANE_0
    grey_hw = plane_of(frame if has_luma else frame.reformat(format="gray", dst_color_range="JPEG"))
    turns, rest = divmod(frame.rotation % 360, 90)
    return grey_hw if rest or not turns else np.rot90(grey_hw, turns)

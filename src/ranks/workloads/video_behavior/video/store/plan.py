"""What a store is to have, and which videos have to be decoded for it.

Time and disk are estimated from the headers first. Only then are videos and frames read whole: new videos for their
sha256, frames for their checksum.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from ranks.bounded_file import check_regular
from ranks.data.prepared.say import say
from ranks.engine.distributed.rendezvous.process_env import available_cores
from ranks.engine.files.disk import NOTHING_SAVED, writing
from ranks.engine.liveness.heartbeat import heartbeat
from ranks.errors import UserError
from ranks.workloads.video_behavior.video.decode import count_frames, probe
from ranks.workloads.video_behavior.video.picture import Picture
from ranks.workloads.video_behavior.video.store.checksums import damaged_parts, unread_parts
from ranks.workloads.video_behavior.video.store.decoding import named_together
from ranks.workloads.video_behavior.video.store.file_hashes import CHECKED_FILE, SOURCES_FILE, FileHashes, reading
from ranks.workloads.video_behavior.video.store.frame_store import key_of, words_of
from ranks.workloads.video_behavior.video.store.part import DamagedPart, StorePart

PIXELS_A_SECOND = 2e8
FRAMES_A_SECOND = 5000.0
"""A guess of the speed of one core: of large frames the pixels count, of small ones their number."""
SPARE_BYTES = 64 * 2**20
"""Free space that is left on the disk."""
T = TypeVar("T")


@dataclass(frozen=True)
class VideoLength:
    """How much there is to decode, by the header of a video. `pixels`: of one frame."""

    frames: int
    pixels: int


@dataclass(frozen=True)
class Wanted:
    """A video of the store. `key`: empty until its content is read. `length`: None where the store has its frames."""

    name: str
    path: Path
    key: str
    length: VideoLength | None


class StorePlan:
    """Plans the store of some videos. The caller holds the lock of the folder."""

    def __init__(self, folder: Path, picture: Picture, workers: int | None, *, verify: bool) -> None:
        """`verify`: read all frames, also those that have not changed since their checksum was compared."""
        self.folder, self.picture, self.workers, self.verify = folder, picture, workers, verify
        self.checked = FileHashes(folder / CHECKED_FILE)
        self._sources = FileHashes(folder / SOURCES_FILE)

    def wanted(self, videos: Sequence[tuple[str, Path]]) -> list[Wanted]:
        """What the store is to have. Raises UserError for all bad videos together, and where the disk is too small."""
        by_header = _all_of(self._by_header, videos)
        lacking = lengths_of(by_header)
        self._say_estimate(lacking)
        self._check_disk(lacking, sum(path.stat().st_size for path in self.folder.glob("*.npy")))
        unread = [one.path for one in by_header if not one.key]
        try:
            with reading("read the videos", unread) as advance:
                wanted = _all_of(lambda one: one if one.key else self._by_content(one, advance), by_header)
        finally:
            with writing(f"the store {self.folder}", self.folder, NOTHING_SAVED):
                self._sources.write()
        wanted = self._compared(wanted)
        missing = lengths_of(wanted)
        if missing != lacking:
            self._say_estimate(missing)
        self._check_disk(missing)
        return wanted

    def _by_header(self, video: tuple[str, Path]) -> Wanted:
        name, path = video
        asked = f"the video {path}"
        try:
            check_regular(path, asked)
            sha256 = self._sources.remembered(path)
        except (OSError, ValueError) as error:
            raise unreadable(asked, error) from None
        key = "" if sha256 is None else key_of(sha256, words_of(self.picture))
        return Wanted(name, path, key, None if key and self._has(name, key) else self._length(path))

    def _by_content(self, one: Wanted, advance: Callable[[int], object]) -> Wanted:
        try:
            key = key_of(self._sources.sha256_of(one.path, advance), words_of(self.picture))
        except OSError as error:
            raise unreadable(f"the video {one.path}", error) from None
        return replace(one, key=key, length=None if self._has(one.name, key) else one.length)

    def _compared(self, wanted: Sequence[Wanted]) -> list[Wanted]:
        """Those whose frames do not have their checksum have to be decoded again."""
        there = {one.key: StorePart.read(self.folder, one.key).sha256 for one in wanted if one.length is None}
        unread = list(there) if self.verify else unread_parts(self.folder, there, self.checked)
        damaged = damaged_parts(self.folder, {key: there[key] for key in unread}, self.checked)
        for one in wanted:
            if one.key in damaged:
                self._say_damaged(one.name, damaged[one.key])
        return [replace(one, length=self._length(one.path)) if one.key in damaged else one for one in wanted]

    def _has(self, name: str, key: str) -> bool:
        """Whether the store has the files of a video. A damaged one is named."""
        try:
            StorePart.read(self.folder, key)
            return True
        except DamagedPart as damage:
            if (self.folder / f"{key}.json").exists():
                self._say_damaged(name, str(damage))
            return False

    def _say_damaged(self, name: str, damage: str) -> None:
        say(f"warning: {self.folder}: {damage}; {name} is decoded again")

    def _length(self, path: Path) -> VideoLength:
        facts = probe(path)
        try:
            self.picture.shape(facts.height, facts.width)
        except UserError as outside:
            raise UserError(f"the video {path}", f"{outside.asked}: {outside.found}", outside.do) from None
        return VideoLength(facts.expected_frames or count_frames(path), facts.height * facts.width)

    def _say_estimate(self, missing: Sequence[VideoLength]) -> None:
        if missing:
            time_s = decode_s(missing) / decoders(len(missing), self.workers)
            videos = "1 video" if len(missing) == 1 else f"{len(missing):,} videos"
            say(
                f"{videos} to decode, about {sum(one.frames for one in missing):,} frames: "
                f"{self._needed(missing) / 1e9:.2f} GB in {self.folder}, some {max(1, round(time_s / 60))} min"
            )

    def _check_disk(self, missing: Sequence[VideoLength], held_bytes: int = 0) -> None:
        """`held_bytes`: of frames that are there. They may be those of a video that is not read yet, which needs no
        room then."""
        needed, free = self._needed(missing), shutil.disk_usage(self.folder).free
        if missing and needed - (held_bytes and held_bytes + SPARE_BYTES) > free:
            found = f"{needed / 1e9:.2f} GB are needed, {free / 1e9:.2f} GB are free"
            do = "free disk space, give a smaller --size, or another folder"
            raise UserError(f"the store {self.folder}", found, do)

    def _needed(self, missing: Sequence[VideoLength]) -> int:
        assert self.picture.size is not None
        return sum(one.frames for one in missing) * math.prod(self.picture.size) + SPARE_BYTES


def lengths_of(wanted: Sequence[Wanted]) -> list[VideoLength]:
    """Of the videos that have to be decoded."""
    return [one.length for one in wanted if one.length is not None]


def decode_s(lengths: Sequence[VideoLength]) -> float:
    """About how long one core decodes, in seconds."""
    return sum(one.frames * (1 / FRAMES_A_SECOND + one.pixels / PIXELS_A_SECOND) for one in lengths)


def decoders(num_videos: int, workers: int | None) -> int:
    """How many processes decode so many videos. `workers`: at most, by default one for each core."""
    return max(1, min(num_videos, workers or available_cores()))


def _all_of(plan: Callable[[T], Wanted], given: Iterable[T]) -> list[Wanted]:
    """Raises UserError for all bad videos together."""
    wanted, bad = list[Wanted](), list[UserError]()
    for one in given:
        try:
            wanted.append(plan(one))
        except UserError as error:
            bad.append(error)
        heartbeat.beat()
    if bad:
        raise named_together(bad)
    return wanted


def unreadable(asked: str, error: OSError | ValueError) -> UserError:
    """The error for a video that cannot be read."""
    found = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return UserError(asked, found, "give a video file that can be read")

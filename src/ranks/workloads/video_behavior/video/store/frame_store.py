"""A store: the grey frames of some videos, decoded once, in one file for each video.

    store/
        8c1e...f2.npy     uint8[n, H, W], the frames of one video
        8c1e...f2.json    where they come from, their cut, their time stamps, the sha256 of the .npy; written last
        store.json        what `ranks video-behavior cache` wrote last: how frames are cut, and which videos, in order
        sources.json      the sha256 of each video file, so that it is read only when it has changed
        checked.json      the same of each .npy whose frames were compared with their sha256

The name of a video's files is a hash of the content of the video and of how frames are cut and scaled, so a video that
has changed is decoded again, and only that one. The folder may hold frames that store.json does not list: of other
videos, and of the same videos cut otherwise.

Legend: N frames of all videos, n frames of one, H, W pixels.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ranks.engine.files.disk import replace_durably
from ranks.errors import UserError
from ranks.workloads.video_behavior.video.picture import Crop, Fit, Picture
from ranks.workloads.video_behavior.video.store.part import DamagedPart, Grey, StorePart

FORMAT = 2
BLOCK_BYTES = 2**26
"""Most bytes of a block of frames."""
STORE_FILE = "store.json"
DO = "run ranks video-behavior cache again: it decodes what is missing or damaged"


@dataclass(frozen=True)
class StoredVideo:
    """One video of a store. `times_s_N`: float64[n], the time stamps of its frames."""

    name: str
    """As the study names the video."""
    key: str
    first_frame: int
    num_frames: int
    times_s_N: NDArray[np.float64]
    sha256: str
    warnings: tuple[str, ...]
    missing_frames: int
    """Frames that were left out, because they are damaged or the file lacks them."""


@dataclass(frozen=True)
class FrameStore:
    """The frames of all videos, one video after another. They are read from disk when they are used."""

    folder: Path
    size: tuple[int, int]
    videos: tuple[StoredVideo, ...]

    def __getstate__(self) -> dict[str, Any]:
        """For pickle: without the memory maps, whose content would be copied."""
        return {"folder": self.folder, "size": self.size, "videos": self.videos}

    @property
    def shape(self) -> tuple[int, int, int]:
        """(N, H, W)."""
        return sum(video.num_frames for video in self.videos), *self.size

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape)

    @property
    def sha256(self) -> str:
        """Of all frames and time stamps."""
        digest = hashlib.sha256(repr((FORMAT, self.size)).encode())
        for video in self.videos:
            digest.update(video.sha256.encode() + video.times_s_N.tobytes())
        return digest.hexdigest()

    @cached_property
    def _maps(self) -> list[Grey]:
        return [np.load(self.folder / f"{video.key}.npy", mmap_mode="r") for video in self.videos]

    @cached_property
    def _first_frames(self) -> NDArray[np.int64]:
        return np.array([video.first_frame for video in self.videos], np.int64)

    def frames_of(self, video: int) -> Grey:
        """uint8[n, H, W]: the memory map of one video, by its index."""
        return self._maps[video]

    def take_clips(self, frames_BT: NDArray[np.int64], out: Grey) -> None:
        """Copy frames of the store into `out`, uint8[B, T, H, W]. Each row lies in one video."""
        owner_B = np.searchsorted(self._first_frames, frames_BT[:, 0], side="right") - 1
        for row, owner in enumerate(owner_B.tolist()):
            np.take(self._maps[owner], frames_BT[row] - self._first_frames[owner], axis=0, out=out[row], mode="clip")

    def unmap(self) -> None:
        """Give the pages that were read back to the system; the files are mapped again when they are used."""
        vars(self).pop("_maps", None)

    def blocks(self) -> Iterator[Grey]:
        """uint8[n, H, W]: copies of all frames, some at a time, in order."""
        length = max(1, BLOCK_BYTES // math.prod(self.size))
        for part in self._maps:
            yield from (np.array(part[at : at + length]) for at in range(0, len(part), length))


@dataclass(frozen=True)
class StoreList:
    """What store.json says: how frames are cut and scaled, and (name, key) of each video, in order."""

    picture: Picture
    videos: tuple[tuple[str, str], ...]

    def write(self, folder: Path) -> None:
        """Raises OSError."""
        picture = {"size": self.picture.size, "fit": self.picture.fit, "crop": self.picture.crop}
        content = {"format": FORMAT, **picture, "videos": self.videos}
        replace_durably(folder / STORE_FILE, json.dumps(content, indent=1).encode())

    @classmethod
    def read(cls, folder: Path) -> StoreList | None:
        """None where there is none of this version, or it is damaged: it is written again then."""
        try:
            content = json.loads((folder / STORE_FILE).read_bytes())
            (height, width), crop = content["size"], content["crop"]
            fit: Fit = "crop" if content["fit"] == "crop" else "letterbox"
            picture = Picture((int(height), int(width)), fit, None if crop is None else Crop(*map(int, crop)))
            videos = tuple((str(name), str(key)) for name, key in content["videos"])
            return cls(picture, videos) if content["format"] == FORMAT else None
        except (OSError, ValueError, TypeError, LookupError):
            return None

    def opened(self, folder: Path) -> FrameStore:
        """The store in `folder`. Raises UserError as `open_store`."""
        assert self.picture.size is not None
        parts: list[StorePart] = []
        for name, key in self.videos:
            try:
                part = StorePart.read(folder, key)
            except DamagedPart as damage:
                found = f"the frames of {name} are missing or damaged: {damage}"
                raise UserError(f"the store {folder}", found, DO) from None
            if part.size != self.picture.size:
                found = f"the frames of {name} are missing or damaged: {key}.json has another size"
                raise UserError(f"the store {folder}", found, DO)
            parts.append(part)
        return FrameStore(folder, self.picture.size, tuple(_placed([name for name, _ in self.videos], parts)))


def _placed(names: Sequence[str], parts: Sequence[StorePart]) -> list[StoredVideo]:
    """The videos one after another."""
    placed: list[StoredVideo] = []
    first = 0
    for name, part in zip(names, parts, strict=True):
        about = part.sha256, part.warnings, part.missing_frames
        placed.append(StoredVideo(name, part.key, first, part.shape[0], part.times_s_N, *about))
        first += part.shape[0]
    return placed


def open_store(folder: Path) -> FrameStore:
    """Open a store. Raises UserError, which names the file, where one is missing, damaged or has another size.
    Checksums are not compared."""
    listed = StoreList.read(folder)
    if listed is None:
        raise UserError(f"the store {folder}", f"no {STORE_FILE} of this version, or it is damaged", DO)
    return listed.opened(folder)


def words_of(picture: Picture) -> str:
    """How frames are cut and scaled, in words."""
    assert picture.size is not None
    cut = "whole" if picture.crop is None else ",".join(map(str, picture.crop))
    return f"{cut}/{picture.fit}/{picture.size[0]}x{picture.size[1]}"


def key_of(video_sha256: str, picture: str) -> str:
    """The name of a video's files in a store. `picture`: as `words_of` says it."""
    return hashlib.sha256(f"{FORMAT}/{picture}/{video_sha256}".encode()).hexdigest()[:24]

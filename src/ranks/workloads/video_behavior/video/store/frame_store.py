"""A store: the grey frames of some videos, decoded once, in one file for each video.

    store/
        8c1e...f2.npy     uint8[n, H, W], the frames of one video
        8c1e...f2.json    its number of frames, its time stamps, the sha256 of the .npy; written last
        store.json        which videos the store has, in order

The name of a video's files is a hash of the file that it was decoded from and of how frames are cut and scaled, so a
video that has changed is decoded again, and only that one.

Legend: N frames of all videos, n frames of one, H, W pixels.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ranks.errors import UserError

FORMAT = 1
STORE_FILE = "store.json"
Grey = NDArray[np.uint8]
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


@dataclass(frozen=True)
class FrameStore:
    """The frames of all videos, one video after another. They are read from disk when they are used."""

    folder: Path
    size: tuple[int, int]
    videos: tuple[StoredVideo, ...]

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

    def read_all(self) -> Grey:
        """uint8[N, H, W]: a copy of all frames in memory."""
        result_NHW = np.empty(self.shape, np.uint8)
        for video, part in zip(self.videos, self._maps, strict=True):
            result_NHW[video.first_frame : video.first_frame + video.num_frames] = part
        return result_NHW


def open_store(folder: Path, *, verify: bool = False) -> FrameStore:
    """Open a store. Raises UserError where something is missing or has another size; with `verify`, where a checksum
    is wrong too, which reads all frames."""
    asked = f"the store {folder}"
    listed = read_json(folder / STORE_FILE)
    if listed is None or listed.get("format") != FORMAT:
        raise UserError(asked, f"no {STORE_FILE} of this version", DO)
    size: tuple[int, int] = (listed["size"][0], listed["size"][1])
    videos: list[StoredVideo] = []
    first = 0
    for name, key in listed["videos"]:
        part = part_of(folder, key, size, verify=verify)
        if part is None:
            raise UserError(asked, f"the frames of {name} are missing or damaged", DO)
        times_s_N = np.array(part["times_s"], np.float64)
        videos.append(StoredVideo(name, key, first, len(times_s_N), times_s_N, part["sha256"]))
        first += len(times_s_N)
    return FrameStore(folder, size, tuple(videos))


def part_of(folder: Path, key: str, size: tuple[int, int] | None, *, verify: bool = False) -> dict[str, Any] | None:
    """What the .json of a video says, where its frames are whole; None otherwise. `verify`: read them, too."""
    facts, path = read_json(folder / f"{key}.json"), folder / f"{key}.npy"
    if facts is None or not path.is_file() or (size is not None and tuple(facts["size"]) != tuple(size)):
        return None
    if path.stat().st_size != facts["file_bytes"]:
        return None
    if verify and sha256_of(np.load(path, mmap_mode="r")) != facts["sha256"]:
        return None
    return facts


def sha256_of(frames_NHW: Grey, block: int = 1024) -> str:
    """Of the greys, in bounded memory."""
    digest = hashlib.sha256()
    for first in range(0, len(frames_NHW), block):
        digest.update(np.ascontiguousarray(frames_NHW[first : first + block]).data)
    return digest.hexdigest()


def read_json(path: Path) -> dict[str, Any] | None:
    """None where the file is missing or damaged: it is made again then."""
    try:
        found: Any = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None  # pyright: ignore[reportUnknownVariableType]


def key_of(video: Path, picture: str) -> str:
    """The name of a video's files in a store. `picture`: how frames are cut and scaled, in words.

    It covers the size of the video file and its first and last MiB. Raises OSError.
    """
    digest = hashlib.sha256(f"{FORMAT}/{picture}/{video.stat().st_size}/".encode())
    with video.open("rb") as file:
        digest.update(file.read(2**20))
        file.seek(max(0, video.stat().st_size - 2**20))
        digest.update(file.read())
    return digest.hexdigest()[:24]

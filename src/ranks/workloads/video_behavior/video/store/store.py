"""A store: the frames of several videos, decoded once to one size, in a file that is mapped into memory.

    frames.bin      uint8[N, H, W], all videos one after another
    times.npy       float64[N], the time stamps of the frames, from the first frame of each video
    store.json      height, width, the videos, and the sha256 of both files

Legend: N frames, H height, W width.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ranks.engine.files.disk import writing
from ranks.engine.liveness.heartbeat import heartbeat
from ranks.errors import UserError

FORMAT = 1
FRAMES, TIMES, MANIFEST = "frames.bin", "times.npy", "store.json"
READ_BYTES = 1 << 24


@dataclass(frozen=True)
class StoredVideo:
    """Which frames of the store are those of a video, and their time stamps."""

    name: str
    first_frame: int
    num_frames: int
    times_s_N: npt.NDArray[np.float64]


@dataclass(frozen=True)
class FrameStore:
    """An open store. `frames_NHW` is a memory map. `sha256`: of the frames and the time stamps."""

    frames_NHW: npt.NDArray[np.uint8]
    videos: tuple[StoredVideo, ...]
    sha256: str


def build_store(
    videos: Sequence[Path], folder: Path, size: int, each: Callable[[str, Sequence[str]], None] | None = None
) -> FrameStore:
    """Decode videos, in order, to frames of size x size. The folder appears when it is complete.

    `each`: called after each video with its name and the warnings of its decoder. Raises UserError where a video cannot
    be decoded or the disk is full.
    """
    from ranks.workloads.video_behavior.video.decode import open_video
    from ranks.workloads.video_behavior.video.picture import Picture

    work = folder.with_name(f".{folder.name}.{os.getpid()}")
    picture = Picture(size=(size, size))
    entries: list[dict[str, str | int]] = []
    times: list[npt.NDArray[np.float64]] = []
    try:
        with writing(f"to store frames in {folder}", folder.parent, "no frames are stored"):
            work.mkdir(parents=True)
            with (work / FRAMES).open("wb") as file:
                for path in videos:
                    first = sum(len(part) for part in times)
                    with open_video(path) as video:
                        for block in video.blocks(picture):
                            file.write(block.frames_NHW.tobytes())
                            times.append(block.times_s_N.copy())
                            heartbeat.beat()
                        warnings = list(video.warnings)
                    num_frames = sum(len(part) for part in times) - first
                    entries.append({"name": path.name, "first_frame": first, "num_frames": num_frames})
                    if each is not None:
                        each(path.name, warnings)
            np.save(work / TIMES, np.concatenate(times))
            manifest = {"format": FORMAT, "size": size, "videos": entries, "sha256": _sha256_of(work)}
            (work / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")
            shutil.rmtree(folder, ignore_errors=True)
            work.rename(folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return open_store(folder)


def open_store(folder: Path) -> FrameStore:
    """Open a store and check its checksum. Raises UserError where a file is missing or damaged."""
    asked = f"the frames in {folder}"
    do = "delete the folder; the next training decodes the videos again"
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        sha256 = _sha256_of(folder)
        times_s_N = np.load(folder / TIMES)
        if manifest["format"] != FORMAT or manifest["sha256"] != sha256:
            raise UserError(asked, "not what its store.json says", do)
        frames_NHW = np.memmap(folder / FRAMES, np.uint8, "r").reshape(-1, manifest["size"], manifest["size"])
        videos = tuple(
            StoredVideo(
                entry["name"],
                entry["first_frame"],
                entry["num_frames"],
                times_s_N[entry["first_frame"] : entry["first_frame"] + entry["num_frames"]],
            )
            for entry in manifest["videos"]
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(asked, f"cannot be read: {error}", do) from None
    return FrameStore(frames_NHW, videos, sha256)


def _sha256_of(folder: Path) -> str:
    digest = hashlib.sha256()
    for name in (FRAMES, TIMES):
        with (folder / name).open("rb") as file:
            while part := file.read(READ_BYTES):
                digest.update(part)
                heartbeat.beat()
    return digest.hexdigest()

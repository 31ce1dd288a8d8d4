"""Small stores for tests."""

from __future__ import annotations

from pathlib import Path

from ranks.workloads.video_behavior.video.picture import Picture
from ranks.workloads.video_behavior.video.store.frame_store import FrameStore
from tests.video_behavior.video.videos import write_square

PICTURE = Picture((24, 32))


def videos_in(folder: Path, *lengths: int) -> list[tuple[str, Path]]:
    found = [(f"v{i}.mp4", folder / f"v{i}.mp4") for i in range(len(lengths))]
    for (_, path), length in zip(found, lengths, strict=True):
        write_square(path, length)
    return found


def modified(store: FrameStore) -> list[int]:
    return [(store.folder / f"{video.key}.npy").stat().st_mtime_ns for video in store.videos]

"""The command `ranks video-behavior cache`: decode the videos of a study once."""

from __future__ import annotations

import time
from pathlib import Path

from ranks.errors import UserError

FITS = ("letterbox", "crop")


def cache(
    study: Path,
    /,
    *,
    out: Path | None = None,
    size: str = "256",
    fit: str = "letterbox",
    crop: str | None = None,
    workers: int | None = None,
    verify: bool = False,
) -> int:
    """Decode the videos of a study once into a store that training maps into memory.

    Args:
        study: A dataset.csv, or the folder that holds it.
        out: The folder of the store; by default store-SIZE in the folder of dataset.csv.
        size: Height and width of the frames: 256, or 240x320.
        fit: letterbox keeps the whole frame with black bars; crop keeps its centre.
        crop: Keep only this rectangle of each frame, before it is scaled: x,y,width,height in pixels.
        workers: Decoder processes; by default one for each core.
        verify: Read the whole store afterwards and compare the checksums.
    """
    from ranks.workloads.video_behavior.study.study import read_dataset_csv
    from ranks.workloads.video_behavior.video.picture import Crop, Picture, parse_size
    from ranks.workloads.video_behavior.video.store.cache import cache_videos
    from ranks.workloads.video_behavior.video.store.frame_store import open_store

    if fit not in FITS:
        raise UserError(f"--fit {fit}", "there is no such rule", "give letterbox or crop")
    if workers is not None and workers < 1:
        raise UserError(f"--workers {workers}", "a store needs at least one", "give --workers 1 or more")
    path = study / "dataset.csv" if study.is_dir() else study
    picture = Picture(
        parse_size(size), "crop" if fit == "crop" else "letterbox", None if crop is None else Crop.parse(crop)
    )
    folder = out or path.parent / f"store-{size}"
    began_s = time.monotonic()
    videos = [(video.video.name, video.video) for video in read_dataset_csv(path)]
    store = cache_videos(videos, folder, picture, workers=workers)
    if verify:
        store = open_store(folder, verify=True)
    num, height, width = store.shape
    took_s = time.monotonic() - began_s
    held = f"{num:,} frames of {width} x {height}, {store.nbytes / 1e9:.2f} GB"
    print(f"{folder}: {len(store.videos)} videos, {held}, {took_s:.0f} s")
    print(f"sha256 {store.sha256}")
    return 0

"""The command `ranks video-behavior cache`: decode the videos of a study once."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Literal

from ranks.errors import UserError


def cache(
    study: Path,
    /,
    *,
    out: Path | None = None,
    size: int = 256,
    fit: Literal["letterbox", "crop"] = "letterbox",
    crop: str | None = None,
    workers: int | None = None,
    verify: bool = False,
) -> int:
    """Decode the videos of a study once into a store that training maps into memory.

    Args:
        study: A dataset.csv, or the folder that holds it.
        out: The folder of the store, for --store of the training; by default store-SIZE in the
            folder of dataset.csv.
        size: Height and width of the frames, as --clips.size of the training.
        fit: letterbox keeps the whole frame with black bars; crop keeps its centre.
        crop: Keep only this rectangle of each frame, before it is scaled: x,y,width,height in pixels.
        workers: Decoder processes; by default one for each core.
        verify: Compare the checksums of the whole store, and decode damaged videos again.
    """
    from ranks.workloads.video_behavior.study.study import read_dataset_csv
    from ranks.workloads.video_behavior.video.picture import LARGEST_SIDE, SMALLEST_SIDE, Crop, Picture
    from ranks.workloads.video_behavior.video.store.cache import cache_videos

    if not SMALLEST_SIDE <= size <= LARGEST_SIDE:
        do = f"give {SMALLEST_SIDE} to {LARGEST_SIDE} pixels"
        raise UserError(f"--size {size}", "clips do not have this size", do)
    if workers is not None and workers < 1:
        raise UserError(f"--workers {workers}", "a store needs at least one", "give --workers 1 or more")
    path = study / "dataset.csv" if study.is_dir() else study
    picture = Picture((size, size), fit, None if crop is None else Crop.parse(crop))
    folder = out or path.parent / f"store-{size}"
    began_s = time.monotonic()
    videos = [(video.video.name, video.video) for video in read_dataset_csv(path)]
    store = cache_videos(videos, folder, picture, workers=workers, verify=verify, update_list=True)
    num, height, width = store.shape
    took_s = time.monotonic() - began_s
    held = f"{num:,} frames of {width} x {height}, {store.nbytes / 1e9:.2f} GB"
    missing = sum(video.missing_frames for video in store.videos)
    if missing:
        held = f"{held}, {missing:,} damaged or missing frames left out"
    print(f"{folder}: {len(store.videos)} videos, {held}, {took_s:.0f} s")
    print(f"sha256 {store.sha256}")
    return 0

"""Fills a store: decodes the videos that it lacks.

A video that is in the store already is kept, so an interrupted command continues where it was. What earlier commands
left behind is deleted: their temporary files, and the frames of videos that have changed or are gone.
"""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ranks.bounded_file import check_regular
from ranks.data.prepared.file_lock import file_lock
from ranks.data.prepared.say import say
from ranks.engine.distributed.process_env import available_cores
from ranks.engine.files.disk import NOTHING_SAVED, remove, writing
from ranks.engine.liveness.heartbeat import heartbeat
from ranks.errors import UserError
from ranks.workloads.video_behavior.video.decode import count_frames, probe
from ranks.workloads.video_behavior.video.picture import Picture
from ranks.workloads.video_behavior.video.store.decode_part import PartTask
from ranks.workloads.video_behavior.video.store.decoding import decode_all, named_together
from ranks.workloads.video_behavior.video.store.frame_store import FrameStore, StoreList, key_of, open_store
from ranks.workloads.video_behavior.video.store.part import DamagedPart, StorePart
from ranks.workloads.video_behavior.video.store.sources import Sources

SILENT_S = 60.0
"""A decoder that shows no progress for so long hangs."""
FRAMES_A_SECOND = 1500.0
"""A guess of the speed of one core, for the estimate before anything is decoded."""
SPARE_BYTES = 64 * 2**20
"""Free space that is left on the disk."""


@dataclass(frozen=True)
class Wanted:
    """A video of the store. `frames`: by its header, where it has to be decoded; 0 where the store has it."""

    path: Path
    name: str
    key: str
    missing: bool
    frames: int


def cache_videos(
    videos: Sequence[tuple[str, Path]],
    folder: Path,
    picture: Picture,
    *,
    workers: int | None = None,
    silent_s: float = SILENT_S,
) -> FrameStore:
    """The store of these videos (name, path) in `folder`; what is missing is decoded now.

    `picture`: its size must be given. `workers`: processes, by default one for each core. Raises UserError, which names
    up to ten bad videos, and where the disk is too small.
    """
    assert picture.size is not None
    with writing(f"the store {folder}", folder.parent, NOTHING_SAVED):
        folder.mkdir(parents=True, exist_ok=True)
    whole = _whole_store(videos, folder, picture)
    if whole is not None:
        return whole
    with file_lock(folder / ".lock", f"the store {folder}"):
        for leftover in folder.glob(".*.tmp"):  # nobody else writes here while we hold the lock
            remove(leftover)
        wanted = _plan(videos, folder, picture)
        missing = [one for one in wanted if one.missing]
        if missing:
            num_workers = max(1, min(len(missing), workers or available_cores()))
            _check_disk(missing, folder, picture.size, num_workers)
            tasks = [_task(one, folder, picture, max(1, available_cores() // num_workers)) for one in missing]
            decode_all(tasks, sum(one.frames for one in missing), num_workers, silent_s)
        listed = StoreList(picture, tuple((one.name, one.key) for one in wanted))
        with writing(f"the store {folder}", folder, NOTHING_SAVED):
            listed.write(folder)
        _delete_old_parts(folder, wanted)
        return open_store(folder)


def words_of(picture: Picture) -> str:
    """How frames are cut and scaled, as a part of a video's key."""
    assert picture.size is not None
    cut = "whole" if picture.crop is None else ",".join(map(str, picture.crop))
    return f"{cut}/{picture.fit}/{picture.size[0]}x{picture.size[1]}"


def _whole_store(videos: Sequence[tuple[str, Path]], folder: Path, picture: Picture) -> FrameStore | None:
    """The store, where it has all videos and none has changed: so ranks that start together need no lock."""
    listed, sources = StoreList.read(folder), Sources(folder)
    keys: list[tuple[str, str]] = []
    for name, path in videos:
        try:
            sha256 = sources.remembered(path)
        except OSError:
            return None
        if sha256 is None:
            return None
        keys.append((name, key_of(sha256, words_of(picture))))
    if listed is None or (listed.videos, listed.picture) != (tuple(keys), picture):
        return None
    try:
        return listed.opened(folder)
    except UserError:
        return None


def _plan(videos: Sequence[tuple[str, Path]], folder: Path, picture: Picture) -> list[Wanted]:
    """What the store is to have. Raises UserError for all bad videos together."""
    sources, wanted, bad = Sources(folder), list[Wanted](), list[UserError]()
    for name, path in videos:
        try:
            wanted.append(_wanted(name, path, folder, picture, sources))
        except UserError as error:
            bad.append(error)
        heartbeat.beat()
    with writing(f"the store {folder}", folder, NOTHING_SAVED):
        sources.write()
    if bad:
        raise named_together(bad)
    return wanted


def _wanted(name: str, path: Path, folder: Path, picture: Picture, sources: Sources) -> Wanted:
    asked = f"the video {path}"
    try:
        check_regular(path, asked)
        key = key_of(sources.sha256_of(path), words_of(picture))
    except (OSError, ValueError) as error:
        found = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise UserError(asked, found, "give a video file that can be read") from None
    try:
        StorePart.read(folder, key)
        return Wanted(path, name, key, missing=False, frames=0)
    except DamagedPart as damage:
        if (folder / f"{key}.json").exists():
            say(f"warning: {folder}: {damage}; {name} is decoded again")
    facts = probe(path)
    try:
        picture.shape(facts.height, facts.width)
    except UserError as outside:
        raise UserError(asked, f"{outside.asked}: {outside.found}", outside.do) from None
    return Wanted(path, name, key, missing=True, frames=facts.expected_frames or count_frames(path))


def _check_disk(missing: Sequence[Wanted], folder: Path, size: tuple[int, int], workers: int) -> None:
    frames = sum(one.frames for one in missing)
    needed, free = frames * math.prod(size) + SPARE_BYTES, shutil.disk_usage(folder).free
    time_s = frames / (FRAMES_A_SECOND * workers)
    say(
        f"{len(missing):,} videos to decode, about {frames:,} frames: {needed / 1e9:.2f} GB in {folder}, "
        f"some {max(1, round(time_s / 60))} min"
    )
    if needed > free:
        found = f"{needed / 1e9:.2f} GB are needed, {free / 1e9:.2f} GB are free"
        raise UserError(f"the store {folder}", found, "free disk space, give a smaller --size, or another folder")


def _task(one: Wanted, folder: Path, picture: Picture, threads: int) -> PartTask:
    assert picture.size is not None
    video = str(one.path.absolute())
    return PartTask(video, str(folder), one.key, picture.size, picture.fit, picture.crop, threads, os.getpid())


def _delete_old_parts(folder: Path, wanted: Sequence[Wanted]) -> None:
    """Delete the frames of videos that have changed or are gone, and parts that are not whole. What other commands have
    cached of other videos stays."""
    keys, paths = {one.key for one in wanted}, {one.path.absolute() for one in wanted}
    for path in [*folder.glob("*.npy"), *folder.glob("*.json")]:
        key = path.stem
        if key in keys or not _is_key(key):
            continue
        try:
            source = StorePart.read(folder, key).source
            outdated = source in paths or not source.exists()
        except DamagedPart:
            outdated = True
        if outdated:
            remove(path)


def _is_key(name: str) -> bool:
    """Whether a file is a part by its name."""
    return len(name) == 24 and set(name) <= set("0123456789abcdef")

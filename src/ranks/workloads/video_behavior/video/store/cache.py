"""Fills a store: decodes the videos that it lacks.

A video that is in the store already is kept, so an interrupted command continues where it was. Frames that do not have
their checksum are decoded again. What earlier commands left behind is deleted: their temporary files, and the frames of
videos that have changed or are gone.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ranks.data.prepared.file_lock import file_lock
from ranks.data.prepared.say import say
from ranks.engine.distributed.process_env import available_cores
from ranks.engine.files.disk import NOTHING_SAVED, remove, writing
from ranks.errors import UserError
from ranks.workloads.video_behavior.video.picture import Picture
from ranks.workloads.video_behavior.video.store.checksums import damaged_parts, unread_parts
from ranks.workloads.video_behavior.video.store.decode_part import PartTask
from ranks.workloads.video_behavior.video.store.decoding import MAX_NAMED, decode_all
from ranks.workloads.video_behavior.video.store.file_hashes import CHECKED_FILE, SOURCES_FILE, FileHashes
from ranks.workloads.video_behavior.video.store.frame_store import FrameStore, StoreList, key_of, open_store
from ranks.workloads.video_behavior.video.store.part import DamagedPart, StorePart
from ranks.workloads.video_behavior.video.store.plan import StorePlan, Wanted, decoders, words_of

SILENT_S = 60.0
"""A decoder that shows no progress for so long hangs."""


def cache_videos(
    videos: Sequence[tuple[str, Path]],
    folder: Path,
    picture: Picture,
    *,
    workers: int | None = None,
    verify: bool = False,
    silent_s: float = SILENT_S,
) -> FrameStore:
    """The store of these videos (name, path) in `folder`; what is missing or damaged is decoded now.

    Frames are compared with their checksum where their file has changed since that was done last, by one process while
    the others wait; with `verify` all of them. Warnings about the videos are printed each time.

    `picture`: its size must be given. `workers`: processes, by default one for each core. Raises UserError, which names
    up to ten bad videos, and where the disk is too small.
    """
    store = _whole_store(videos, folder, picture, verify) or _filled(videos, folder, picture, workers, verify, silent_s)
    warnings = [warning for video in store.videos for warning in video.warnings]
    for warning in warnings[:MAX_NAMED]:
        say(f"warning: {warning}")
    if len(warnings) > MAX_NAMED:
        say(f"warning: {len(warnings) - MAX_NAMED:,} more, in the .json files of {folder}")
    return store


def _filled(
    videos: Sequence[tuple[str, Path]],
    folder: Path,
    picture: Picture,
    workers: int | None,
    verify: bool,
    silent_s: float,
) -> FrameStore:
    with writing(f"the store {folder}", folder.parent, NOTHING_SAVED):
        folder.mkdir(parents=True, exist_ok=True)
    with file_lock(folder / ".lock", f"the store {folder}"):
        for leftover in folder.glob(".*.tmp"):  # nobody else writes here while we hold the lock
            remove(leftover)
        plan = StorePlan(folder, picture, workers, verify=verify)
        wanted = plan.wanted(videos)
        missing = [one for one in wanted if one.length is not None]
        if missing:
            num_workers = decoders(len(missing), workers)
            tasks = [_task(one, folder, picture, max(1, available_cores() // num_workers)) for one in missing]
            decode_all(tasks, sum(one.length.frames for one in missing if one.length), num_workers, silent_s)
        with writing(f"the store {folder}", folder, NOTHING_SAVED):
            StoreList(picture, tuple((one.name, one.key) for one in wanted)).write(folder)
            store = open_store(folder)
            decoded = {one.key for one in missing}
            for video in store.videos:
                if video.key in decoded:
                    plan.checked.remember(folder / f"{video.key}.npy", video.sha256)
            plan.checked.write()
        _delete_old_parts(folder, wanted)
        return store


def _whole_store(videos: Sequence[tuple[str, Path]], folder: Path, picture: Picture, verify: bool) -> FrameStore | None:
    """The store, where it has all videos, none has changed, and the checksums are compared: so ranks that start
    together need no lock. A folder that cannot be written is compared here. Raises UserError where that one is damaged.
    """
    listed, sources = StoreList.read(folder), FileHashes(folder / SOURCES_FILE)
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
        store = listed.opened(folder)
    except UserError:
        return None
    checked = FileHashes(folder / CHECKED_FILE)
    sha256_of_key = {video.key: video.sha256 for video in store.videos}
    unread = list(sha256_of_key) if verify else unread_parts(folder, sha256_of_key, checked)
    if not unread:
        return store
    if os.access(folder, os.W_OK):
        return None
    damaged = damaged_parts(folder, {key: sha256_of_key[key] for key in unread}, checked)
    if damaged:
        found = f"it cannot be written, and is damaged: {', '.join(damaged.values())}"
        raise UserError(f"the store {folder}", found, "make it writable, and run ranks video-behavior cache again")
    return store


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

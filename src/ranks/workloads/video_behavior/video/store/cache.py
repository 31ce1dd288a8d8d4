"""Fills a store: decodes the videos that it lacks.

A video that is in the store already is kept, so an interrupted command continues where it was. Frames that do not have
their checksum are decoded again. What earlier commands left behind is deleted: their temporary files, and the old
frames of videos that have changed. Other frames stay, because another command may be reading them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from ranks.data.prepared.file_lock import file_lock
from ranks.data.prepared.say import say
from ranks.engine.distributed.rendezvous.process_env import available_cores
from ranks.engine.files.disk import NOTHING_SAVED, remove, writing
from ranks.workloads.video_behavior.video.picture import Picture
from ranks.workloads.video_behavior.video.store.decode_part import PartTask
from ranks.workloads.video_behavior.video.store.decoding import MAX_NAMED, decode_all
from ranks.workloads.video_behavior.video.store.frame_store import FrameStore, StoreList, words_of
from ranks.workloads.video_behavior.video.store.part import DamagedPart, StorePart
from ranks.workloads.video_behavior.video.store.plan import StorePlan, Wanted, decoders
from ranks.workloads.video_behavior.video.store.whole import whole_store

SILENT_S = 60.0
"""A decoder that shows no progress for so long hangs."""


def cache_videos(
    videos: Sequence[tuple[str, Path]],
    folder: Path,
    picture: Picture,
    *,
    workers: int | None = None,
    verify: bool = False,
    update_list: bool = False,
    silent_s: float = SILENT_S,
) -> FrameStore:
    """The store of these videos (name, path) in `folder`; what is missing or damaged is decoded now.

    Frames are compared with their checksum where their file has changed since that was done last, by one process while
    the others wait; with `verify` all of them. Warnings about the videos are printed each time.

    `picture`: its size must be given. `workers`: processes, by default one for each core. `update_list`: store.json is
    to list these videos and this picture, which later trainings use by default. Without it, a store.json of another
    picture stays as it is. Raises UserError, which names up to ten bad videos, and where the disk is too small or the
    folder cannot be written.
    """
    store = whole_store(videos, folder, picture, verify=verify, update_list=update_list)
    if store is None:
        store = _filled(videos, folder, picture, workers, verify, update_list, silent_s)
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
    update_list: bool,
    silent_s: float,
) -> FrameStore:
    with writing(f"the store {folder}", folder.parent, NOTHING_SAVED):
        folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as locked:
        with writing(f"the store {folder}", folder, NOTHING_SAVED):
            locked.enter_context(file_lock(folder / ".lock", f"the store {folder}"))
        for leftover in folder.glob(".*.tmp*"):  # nobody else writes here while we hold the lock
            remove(leftover)
        plan = StorePlan(folder, picture, workers, verify=verify)
        wanted = plan.wanted(videos)
        missing = [one for one in wanted if one.length is not None]
        if missing:
            num_workers = decoders(len(missing), workers)
            tasks = [_task(one, folder, picture, max(1, available_cores() // num_workers)) for one in missing]
            decode_all(tasks, sum(one.length.frames for one in missing if one.length), num_workers, silent_s)
        with writing(f"the store {folder}", folder, NOTHING_SAVED):
            listed, found = StoreList.read(folder), StoreList(picture, tuple((one.name, one.key) for one in wanted))
            if update_list or listed is None or listed.picture == picture:
                found.write(folder)
            store = found.opened(folder)
            decoded = {one.key for one in missing}
            for video in store.videos:
                if video.key in decoded:
                    plan.checked.remember(folder / f"{video.key}.npy", video.sha256)
            plan.checked.write()
        _delete_old_parts(folder, wanted, picture)
        return store


def _task(one: Wanted, folder: Path, picture: Picture, threads: int) -> PartTask:
    assert picture.size is not None
    video = str(one.path.absolute())
    return PartTask(video, str(folder), one.key, picture.size, picture.fit, picture.crop, threads, os.getpid())


def _delete_old_parts(folder: Path, wanted: Sequence[Wanted], picture: Picture) -> None:
    """Delete the old frames of videos that have changed, and parts that are not whole.

    All other parts stay, because another command may read them now or later: those of other videos, of the same videos
    cut otherwise, of videos that are gone (their disk may not be mounted), and of older versions, which do not say how
    frames were cut.
    """
    keys, paths = {one.key for one in wanted}, {one.path.absolute() for one in wanted}
    found = {path.stem for path in [*folder.glob("*.npy"), *folder.glob("*.json")]}
    for key in sorted(key for key in found - keys if _is_key(key)):
        try:
            part = StorePart.read(folder, key)
            is_old = part.picture == words_of(picture) and part.source in paths
        except DamagedPart:
            is_old = True
        if is_old:
            remove(folder / f"{key}.json")
            remove(folder / f"{key}.npy")


def _is_key(name: str) -> bool:
    """Whether a file is a part by its name."""
    return len(name) == 24 and set(name) <= set("0123456789abcdef")

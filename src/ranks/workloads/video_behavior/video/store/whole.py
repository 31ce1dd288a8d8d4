"""Opens a store that has the frames of all videos already: without its lock, and without writing a file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ranks.bounded_file import check_regular
from ranks.errors import UserError
from ranks.workloads.video_behavior.video.picture import Picture
from ranks.workloads.video_behavior.video.store.checksums import damaged_parts, unread_parts
from ranks.workloads.video_behavior.video.store.decoding import named_together
from ranks.workloads.video_behavior.video.store.file_hashes import CHECKED_FILE, SOURCES_FILE, FileHashes, reading
from ranks.workloads.video_behavior.video.store.frame_store import FrameStore, StoreList, key_of, words_of
from ranks.workloads.video_behavior.video.store.plan import unreadable

DO = "make it writable, and run ranks video-behavior cache again"


def whole_store(
    videos: Sequence[tuple[str, Path]], folder: Path, picture: Picture, *, verify: bool, update_list: bool
) -> FrameStore | None:
    """The store of these videos, where it has their frames, none has changed, and the checksums are compared: so ranks
    that start together need no lock. It may have other frames too. None where something has to be decoded or written.

    Of a folder that cannot be written, new videos are read and checksums are compared here, each time. Raises UserError
    where that one lacks frames or is damaged, and where one of the videos cannot be read.

    `verify`: compare all checksums. `update_list`: store.json has to list these videos and this picture.
    """
    read_only = folder.is_dir() and not os.access(folder, os.W_OK)
    keys = _keys_of(videos, folder, picture, read_new=read_only)
    if keys is None:
        return None
    found, listed = StoreList(picture, keys), StoreList.read(folder)
    if update_list:
        is_listed = listed == found or (read_only and listed is not None and listed.picture == picture)
    else:
        is_listed = read_only or listed is not None
    if not is_listed:
        return None
    try:
        store = found.opened(folder)
    except UserError as lacking:
        if read_only:
            raise UserError(lacking.asked, f"it cannot be written, and {lacking.found}", DO) from None
        return None
    checked = FileHashes(folder / CHECKED_FILE)
    sha256_of_key = {video.key: video.sha256 for video in store.videos}
    unread = list(sha256_of_key) if verify else unread_parts(folder, sha256_of_key, checked)
    if unread and not read_only:
        return None
    damaged = damaged_parts(folder, {key: sha256_of_key[key] for key in unread}, checked)
    if damaged:
        what = f"it cannot be written, and is damaged: {', '.join(damaged.values())}"
        raise UserError(f"the store {folder}", what, DO)
    return store


def _keys_of(
    videos: Sequence[tuple[str, Path]], folder: Path, picture: Picture, *, read_new: bool
) -> tuple[tuple[str, str], ...] | None:
    """(name, key) of each video. Where the store does not know the content of a video: None, or with `read_new` the
    video is read. Raises UserError for all bad videos together, where they are read."""
    sources = FileHashes(folder / SOURCES_FILE)
    known = {path: _remembered(path, sources) for _, path in videos}
    new = [path for path, sha256 in known.items() if sha256 is None]
    if new and not read_new:
        return None
    keys, bad = list[tuple[str, str]](), list[UserError]()
    with reading("read the videos", new) as advance:
        for name, path in videos:
            asked = f"the video {path}"
            try:
                sha256 = known[path]
                if sha256 is None:
                    check_regular(path, asked)
                    sha256 = sources.sha256_of(path, advance)
                keys.append((name, key_of(sha256, words_of(picture))))
            except UserError as error:
                bad.append(error)
            except (OSError, ValueError) as error:
                bad.append(unreadable(asked, error))
    if bad:
        raise named_together(bad)
    return tuple(keys)


def _remembered(path: Path, sources: FileHashes) -> str | None:
    """None also for a video that cannot be read."""
    try:
        return sources.remembered(path)
    except OSError:
        return None

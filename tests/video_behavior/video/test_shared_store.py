"""A store that several commands use: with other videos, another picture, or without the right to write it."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ranks import UserError
from ranks.workloads.video_behavior.clips.prepare import frames_of_study, labelled_frames
from ranks.workloads.video_behavior.config import ClipConfig
from ranks.workloads.video_behavior.video.picture import Crop
from ranks.workloads.video_behavior.video.store.cache import cache_videos
from ranks.workloads.video_behavior.video.store.command import cache as cache_study
from ranks.workloads.video_behavior.video.store.frame_store import FrameStore, StoreList
from tests.video_behavior.example_frames import SMALL, pixels_of
from tests.video_behavior.study.example_study import FRAMES, ROWS, lab
from tests.video_behavior.video.stores import PICTURE, modified, videos_in
from tests.video_behavior.video.videos import write_square

OTHER_PICTURES = (replace(PICTURE, fit="crop"), replace(PICTURE, crop=Crop(4, 0, 40, 40)))


def keys_in(folder: Path) -> set[str]:
    return {path.stem for path in folder.glob("*.npy")}


def keys_of(*stores: FrameStore) -> set[str]:
    return {video.key for store in stores for video in store.videos}


def block_lock(folder: Path) -> None:
    """Put a folder in the place of the lock: then root cannot open it either."""
    (folder / ".lock").unlink(missing_ok=True)
    (folder / ".lock").mkdir(parents=True)


def refuse_writes(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Make the store one that cannot be written, also for root."""
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    block_lock(folder)


def test_frames_that_are_cut_otherwise_stay(tmp_path: Path) -> None:
    """A training that reads them maps the files again and again."""
    videos, folder = videos_in(tmp_path, 5, 6), tmp_path / "store"
    store = cache_videos(videos, folder, PICTURE, workers=1)
    pixels_NHW = pixels_of(store)
    others = [cache_videos(videos, folder, picture, workers=1) for picture in OTHER_PICTURES]
    store.unmap()
    assert np.array_equal(pixels_of(store), pixels_NHW)
    assert keys_in(folder) == keys_of(store, *others)
    before = modified(store)
    assert modified(cache_videos(videos, folder, PICTURE, workers=1)) == before, "nothing is decoded twice"


def test_old_frames_of_a_changed_video_are_deleted_where_they_are_of_the_same_cut(tmp_path: Path) -> None:
    videos, folder = videos_in(tmp_path, 5, 6), tmp_path / "store"
    old, other = (cache_videos(videos, folder, picture, workers=1) for picture in (PICTURE, OTHER_PICTURES[0]))
    write_square(videos[0][1], 8)
    new = cache_videos(videos, folder, PICTURE, workers=1)
    assert old.videos[0].key != new.videos[0].key
    assert keys_in(folder) == keys_of(new, other)
    assert not (folder / f"{old.videos[0].key}.json").exists()


def test_frames_of_a_video_that_is_gone_stay(tmp_path: Path) -> None:
    """Its disk may not be mounted now."""
    videos, folder = videos_in(tmp_path, 5, 6), tmp_path / "store"
    store = cache_videos(videos, folder, PICTURE, workers=1)
    videos[1][1].unlink()
    write_square(videos[0][1], 8)
    new = cache_videos(videos[:1], folder, PICTURE, workers=1)
    assert keys_in(folder) == keys_of(new) | {store.videos[1].key}


def test_frames_of_older_versions_which_do_not_say_their_cut_are_used_and_stay(tmp_path: Path) -> None:
    videos, folder = videos_in(tmp_path, 5), tmp_path / "store"
    old = cache_videos(videos, folder, PICTURE, workers=1)
    part = folder / f"{old.videos[0].key}.json"
    content = json.loads(part.read_bytes())
    assert content.pop("picture") == "whole/letterbox/24x32"
    part.write_text(json.dumps(content))
    assert modified(cache_videos(videos, folder, PICTURE, workers=1)) == modified(old)
    write_square(videos[0][1], 8)
    new = cache_videos(videos, folder, PICTURE, workers=1)
    assert keys_in(folder) == keys_of(old, new)


def test_some_videos_of_a_store_need_neither_its_lock_nor_a_new_list(tmp_path: Path) -> None:
    """In another order too."""
    videos, folder = videos_in(tmp_path, 5, 6, 7), tmp_path / "store"
    for _, path in videos:
        os.utime(path, ns=(10**18, 10**18))
    store = cache_videos(videos, folder, PICTURE, workers=1)
    listed = (folder / "store.json").read_bytes()
    block_lock(folder)
    some = cache_videos([videos[2], videos[0]], folder, PICTURE)
    assert [(video.name, video.first_frame, video.num_frames) for video in some.videos] == [
        ("v2.mp4", 0, 7),
        ("v0.mp4", 7, 5),
    ]
    assert np.array_equal(pixels_of(some), np.concatenate([store.frames_of(2), store.frames_of(0)]))
    assert (folder / "store.json").read_bytes() == listed


def test_a_store_that_cannot_be_written_serves_the_labelled_videos_of_a_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`cache` has decoded all of them. The store does not remember the content of videos that have a new time."""
    study, folder = tmp_path / "study", tmp_path / "store"
    study.mkdir()
    table = lab(study) / "dataset.csv"
    write_square(study / "m5.mp4", 9, 32, 32)
    table.write_text(table.read_text() + "m5.mp4,,m5,,,,\n")
    cache_study(study, out=folder, size=16, fit="crop", workers=1)
    refuse_writes(monkeypatch, folder)
    os.utime(study / "m2.mp4", ns=(10**18, 10**18))
    cfg = replace(SMALL, data=study, store=folder, clips=ClipConfig(frames=5, size=16))
    assert labelled_frames(cfg).store.shape == (4 * FRAMES, 16, 16)
    half = study / "half.csv"
    half.write_text(
        ROWS + "".join(f"m{i}.mp4,m{i}.tsv,m{i},,,,{split}\n" for i, split in ((2, "train"), (3, "val"), (4, "test")))
    )
    assert labelled_frames(replace(cfg, data=half)).store.shape == (3 * FRAMES, 16, 16)
    listed = StoreList.read(folder)
    assert listed is not None
    assert (len(listed.videos), listed.picture.fit) == (5, "crop")


def test_what_a_store_that_cannot_be_written_lacks_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    videos, folder = videos_in(tmp_path, 5, 6), tmp_path / "store"
    cache_videos(videos[:1], folder, PICTURE, workers=1)
    refuse_writes(monkeypatch, folder)
    with pytest.raises(
        UserError, match=r"it cannot be written, and the frames of v1.mp4 are missing[\s\S]*make it writable"
    ):
        cache_videos(videos, folder, PICTURE)
    videos[0][1].unlink()
    with pytest.raises(UserError, match=r"v0.mp4\nfound: No such file"):
        cache_videos(videos[:1], folder, PICTURE)


def test_a_folder_that_cannot_be_written_is_an_error_that_names_it(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    block_lock(folder)
    with pytest.raises(UserError, match=r"store[\s\S]*nothing was saved[\s\S]*make the folder writable"):
        cache_videos(videos_in(tmp_path, 5), folder, PICTURE, workers=1)


def test_only_the_command_cache_changes_the_cut_that_later_trainings_use(tmp_path: Path) -> None:
    """Also where all frames are there already."""
    study, folder = lab(tmp_path), tmp_path / "store-16"

    def listed_fit() -> str:
        listed = StoreList.read(folder)
        assert listed is not None
        return listed.picture.fit

    for video in study.glob("*.mp4"):
        os.utime(video, ns=(10**18, 10**18))
    cache_study(study, size=16, workers=1)
    cfg = replace(SMALL, data=study, clips=ClipConfig(frames=5, size=16))
    letterbox = labelled_frames(cfg)
    crop = replace(cfg, clips=replace(cfg.clips, fit="crop", crop="0,0,20,30"))
    for _ in range(2):  # decoded, then found
        frames_of_study.cache_clear()
        labelled_frames(crop)
        assert listed_fit() == "letterbox"
    cache_study(study, size=16, fit="crop", crop="0,0,20,30", workers=1)
    assert listed_fit() == "crop"
    cache_study(study, size=16, workers=1)
    assert listed_fit() == "letterbox"
    assert letterbox.store_sha256 != labelled_frames(crop).store_sha256

"""A store that is damaged is repaired; what its videos lack is said each time."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from ranks.cli.main import main
from ranks.data.prepared.file_lock import file_lock
from ranks.errors import UserError
from ranks.workloads.video_behavior.video.store.cache import cache_videos
from ranks.workloads.video_behavior.video.store.frame_store import open_store
from tests.video_behavior.example_frames import pixels_of
from tests.video_behavior.study.example_study import lab
from tests.video_behavior.video.stores import PICTURE, modified, videos_in
from tests.video_behavior.video.videos import damage, write_square


def flip(path: Path, *, keep_time: bool = False) -> None:
    """Change one bit of the frames."""
    before = path.stat()
    content = bytearray(path.read_bytes())
    content[500] ^= 1
    path.write_bytes(content)
    later_ns = before.st_mtime_ns if keep_time else before.st_mtime_ns + 10**6
    os.utime(path, ns=(later_ns, later_ns))


def test_only_what_changed_or_is_damaged_is_decoded_again(tmp_path: Path) -> None:
    videos = videos_in(tmp_path, 8, 9, 10)
    store = cache_videos(videos, tmp_path / "store", PICTURE, workers=1)
    before, old = modified(store), store.sha256
    write_square(videos[1][1], 12)
    damaged = store.folder / f"{store.videos[2].key}.npy"
    damaged.write_bytes(damaged.read_bytes()[:-1])
    with pytest.raises(UserError, match=r"v2.mp4 are missing or damaged"):
        open_store(tmp_path / "store")
    repaired = cache_videos(videos, tmp_path / "store", PICTURE, workers=1)
    assert [a == b for a, b in zip(modified(repaired), before, strict=True)] == [True, False, False]
    assert [video.num_frames for video in repaired.videos] == [8, 12, 10]
    assert repaired.sha256 != old
    assert modified(cache_videos(videos, tmp_path / "store", PICTURE, verify=True)) == modified(repaired)


def test_frames_that_do_not_have_their_checksum_are_decoded_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the next command that uses the store, such as a training."""
    videos = videos_in(tmp_path, 8, 9)
    store = cache_videos(videos, tmp_path / "store", PICTURE, workers=1)
    before, pixels_NHW = modified(store), pixels_of(store)
    flip(store.folder / f"{store.videos[1].key}.npy")
    assert not np.array_equal(pixels_of(open_store(store.folder)), pixels_NHW)
    repaired = cache_videos(videos, tmp_path / "store", PICTURE, workers=1)
    assert "has other frames than" in (said := capsys.readouterr().err)
    assert "v1.mp4 is decoded again" in said
    assert np.array_equal(pixels_of(repaired), pixels_NHW)
    assert modified(repaired)[0] == before[0]
    assert repaired.sha256 == store.sha256
    assert modified(cache_videos(videos, tmp_path / "store", PICTURE)) == modified(repaired)
    assert "damaged" not in capsys.readouterr().err


def test_cache_verify_reads_all_frames_and_decodes_damaged_videos_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where the disk has damaged a file without a new time."""
    command = ["video-behavior", "cache", str(lab(tmp_path)), "--size", "16", "--workers", "1", "--verify"]
    assert main(command) == 0
    store = open_store(tmp_path / "store-16")
    pixels_NHW = pixels_of(store)
    flip(store.folder / f"{store.videos[2].key}.npy", keep_time=True)
    capsys.readouterr()
    assert main(command) == 0
    assert "m3.mp4 is decoded again" in capsys.readouterr().err
    assert np.array_equal(pixels_of(open_store(store.folder)), pixels_NHW)
    assert main(command) == 0
    assert "decoded again" not in capsys.readouterr().err


def test_checksums_are_compared_once_while_nothing_changes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The first process compares under the lock. The others then need neither the lock nor the frames."""
    videos = videos_in(tmp_path, 3, 4)
    for _, path in videos:
        os.utime(path, ns=(10**18, 10**18))
    folder = tmp_path / "store"
    store = cache_videos(videos, folder, PICTURE, workers=1)
    part = folder / f"{store.videos[0].key}.npy"
    os.utime(part, ns=(10**18, 10**18))
    cache_videos(videos, folder, PICTURE)
    with file_lock(folder / ".lock", "the store"):
        flip(part)
        os.utime(part, ns=(10**18, 10**18))
        assert cache_videos(videos, folder, PICTURE).sha256 == store.sha256
    (folder / "checked.json").unlink()
    cache_videos(videos, folder, PICTURE, workers=1)
    assert "v0.mp4 is decoded again" in capsys.readouterr().err


def test_a_damaged_store_that_cannot_be_written_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A whole one is used, though nobody can remember that its checksums were compared."""
    videos = videos_in(tmp_path, 3)
    os.utime(videos[0][1], ns=(10**18, 10**18))
    folder = tmp_path / "store"
    store = cache_videos(videos, folder, PICTURE, workers=1)
    (folder / "checked.json").unlink()
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with file_lock(folder / ".lock", "the store"):
        assert cache_videos(videos, folder, PICTURE).sha256 == store.sha256
        flip(folder / f"{store.videos[0].key}.npy")
        with pytest.raises(UserError, match=r"has other frames than[\s\S]*run ranks video-behavior cache again"):
            cache_videos(videos, folder, PICTURE)


def test_damaged_frames_of_a_video_are_warned_of_whenever_its_store_is_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (_, path), *_ = videos = videos_in(tmp_path, 40, 5)
    damage(path, 0.33)
    os.utime(path, ns=(10**18, 10**18))
    for _ in range(2):
        store = cache_videos(videos, tmp_path / "store", PICTURE, workers=1)
        num_frames = store.videos[0].num_frames
        found = f"warning: {path}: the header promises 40 frames, {num_frames} can be decoded; behind a missing frame,"
        assert capsys.readouterr().err.count(found) == 1
        assert [video.missing_frames for video in store.videos] == [40 - num_frames, 0]


def test_damaged_files_of_a_store_are_named_and_made_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    videos = videos_in(tmp_path, 3)
    store = cache_videos(videos, tmp_path / "store", PICTURE, workers=1)
    before = modified(store)
    for content in ("{}", '{"format": 2}', '{"format": 2, "size": [1], "videos": [[]]}', "[", "3"):
        (store.folder / "store.json").write_text(content)
        (store.folder / "sources.json").write_text(content)
        with pytest.raises(UserError, match=r"no store.json of this version, or it is damaged"):
            open_store(store.folder)
        assert modified(cache_videos(videos, store.folder, PICTURE)) == before
    name = f"{store.videos[0].key}.json"
    nothing = '{"source": "", "sha256": "", "warnings": [], "missing_frames": 0, "size": [24, 32], "times_s": []}'
    wrong = '{"size": 3, "times_s": 4, "sha256": 5, "source": 6, "warnings": 7}'
    for content in ("[]", "", '{"size": [24, 32]}', nothing, wrong, "{}"):
        (store.folder / name).write_text(content)
        with pytest.raises(UserError, match=rf"the frames of v0.mp4 are missing or damaged: {name}"):
            open_store(store.folder)
    assert cache_videos(videos, store.folder, PICTURE, workers=1).sha256 == store.sha256
    assert f"{name} is not what ranks wrote" in capsys.readouterr().err

"""The store: decoded once, continued after a kill, repaired where it is damaged."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from ranks.errors import UserError
from ranks.workloads.video_behavior.video.picture import Picture
from ranks.workloads.video_behavior.video.store.cache import cache_videos
from ranks.workloads.video_behavior.video.store.decode_part import HEAD_BYTES, npy_head
from ranks.workloads.video_behavior.video.store.frame_store import FrameStore, open_store

from .videos import write_square

PICTURE = Picture((24, 32))
CACHE = """
import json, sys
from pathlib import Path
from types import SimpleNamespace
from ranks.workloads.video_behavior.video.picture import Picture
from ranks.workloads.video_behavior.video.store.cache import cache_videos
videos = [(name, Path(path)) for name, path in json.loads(sys.argv[1])]
cache_videos(videos, Path(sys.argv[2]), Picture((24, 32)), workers=1)
"""


def videos_in(folder: Path, *lengths: int) -> list[tuple[str, Path]]:
    found = [(f"v{i}.mp4", folder / f"v{i}.mp4") for i in range(len(lengths))]
    for (_, path), length in zip(found, lengths, strict=True):
        write_square(path, length)
    return found


def modified(store: FrameStore) -> list[int]:
    return [(store.folder / f"{video.key}.npy").stat().st_mtime_ns for video in store.videos]


def test_frames_times_and_clips(tmp_path: Path) -> None:
    videos = videos_in(tmp_path, 10, 30)
    store = cache_videos(videos, tmp_path / "store", PICTURE, workers=2)
    assert store.shape == (40, 24, 32)
    assert store.nbytes == 40 * 24 * 32
    assert [video.first_frame for video in store.videos] == [0, 10]
    assert np.allclose(store.videos[1].times_s_N, np.arange(30) / 25)
    all_NHW = store.read_all()
    assert np.array_equal(all_NHW[10:], store.frames_of(1))
    clips = np.zeros((2, 3, 24, 32), np.uint8)
    store.take_clips(np.array([[8, 9, 9], [10, 11, 39]]), clips)
    assert np.array_equal(clips[0], all_NHW[[8, 9, 9]])
    assert np.array_equal(clips[1], all_NHW[[10, 11, 39]])
    again = cache_videos(videos, tmp_path / "store", PICTURE)
    assert modified(again) == modified(store), "nothing is decoded twice"
    assert again.sha256 == store.sha256


def test_only_what_changed_or_is_damaged_is_decoded_again(tmp_path: Path) -> None:
    videos = videos_in(tmp_path, 8, 9, 10)
    store = cache_videos(videos, tmp_path / "store", PICTURE, workers=1)
    before, old = modified(store), store.sha256
    write_square(videos[1][1], 12)
    damaged = store.folder / f"{store.videos[2].key}.npy"
    content = bytearray(damaged.read_bytes())
    content[500] ^= 1
    damaged.write_bytes(content)
    with pytest.raises(UserError, match=r"v2.mp4 are missing or damaged"):
        open_store(tmp_path / "store", verify=True)
    damaged.write_bytes(content[:-1])
    with pytest.raises(UserError, match=r"v2.mp4 are missing or damaged"):
        open_store(tmp_path / "store")
    repaired = cache_videos(videos, tmp_path / "store", PICTURE, workers=1)
    assert [a == b for a, b in zip(modified(repaired), before, strict=True)] == [True, False, False]
    assert [video.num_frames for video in repaired.videos] == [8, 12, 10]
    assert repaired.sha256 != old
    open_store(tmp_path / "store", verify=True)


def test_a_killed_command_continues(tmp_path: Path) -> None:
    """Killed when the first video is whole: that one stays."""
    videos = videos_in(tmp_path, 5, 2000)
    argv = [sys.executable, "-c", CACHE, json.dumps([(n, str(p)) for n, p in videos]), str(tmp_path / "store")]
    process = subprocess.Popen(argv, start_new_session=True, stderr=subprocess.DEVNULL)
    while not list((tmp_path / "store").glob("*.json")):
        assert process.poll() is None
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    whole = min((tmp_path / "store").glob("*.json"), key=lambda path: path.stat().st_mtime_ns).with_suffix(".npy")
    before = whole.stat().st_mtime_ns
    store = cache_videos(videos, tmp_path / "store", PICTURE, workers=1)
    assert whole.stat().st_mtime_ns == before
    assert [video.num_frames for video in store.videos] == [5, 2000]
    open_store(tmp_path / "store", verify=True)


def test_a_bad_video_is_named(tmp_path: Path) -> None:
    videos = videos_in(tmp_path, 5, 5)
    videos[1][1].write_text("no video")
    with pytest.raises(UserError, match=r"v1.mp4"):
        cache_videos(videos, tmp_path / "store", PICTURE, workers=1)
    assert not (tmp_path / "store" / "store.json").exists()


def test_a_decoder_that_hangs_is_started_again_and_then_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The decoder here is a program that sleeps."""
    (tmp_path / "python").write_text("#!/bin/sh\nexec sleep 60\n")
    (tmp_path / "python").chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(UserError, match=r"v0.mp4[\s\S]*hung after 0 frames for 0.2 s, 2 times"):
        cache_videos(videos_in(tmp_path, 5), tmp_path / "store", PICTURE, workers=1, silent_s=0.2)
    assert "it is decoded once more" in capsys.readouterr().err


def test_a_disk_that_is_too_small_is_refused_before_anything_is_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = SimpleNamespace(total=10**9, used=10**9 - 10**6, free=10**6)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(UserError, match=r"0.00 GB are free"):
        cache_videos(videos_in(tmp_path, 50), tmp_path / "store", PICTURE)
    assert not list((tmp_path / "store").glob("*.npy"))


def test_the_head_is_numpy_s_own(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    path.write_bytes(npy_head((3, 4, 5)) + bytes(range(60)))
    assert path.stat().st_size == HEAD_BYTES + 60
    assert np.array_equal(np.load(path).ravel(), np.arange(60))

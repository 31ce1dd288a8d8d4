"""The store: decoded once, continued after a kill, estimated before."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest

from ranks.data.prepared.file_lock import file_lock
from ranks.errors import UserError
from ranks.workloads.video_behavior.video.store.cache import cache_videos
from ranks.workloads.video_behavior.video.store.part import HEAD_BYTES, npy_head
from ranks.workloads.video_behavior.video.store.plan import VideoLength, decode_s
from tests.video_behavior.example_frames import pixels_of
from tests.video_behavior.video.stores import PICTURE, modified, videos_in
from tests.video_behavior.video.videos import write_ramp

PYTHON = sys.executable
CACHE = """
import json, sys
from pathlib import Path
from types import SimpleNamespace
from ranks.workloads.video_behavior.video.picture import Picture
from ranks.workloads.video_behavior.video.store.cache import cache_videos
videos = [(name, Path(path)) for name, path in json.loads(sys.argv[1])]
cache_videos(videos, Path(sys.argv[2]), Picture((24, 32)), workers=1)
"""


def test_frames_times_and_clips(tmp_path: Path) -> None:
    videos = videos_in(tmp_path, 10, 30)
    store = cache_videos(videos, tmp_path / "store", PICTURE, workers=2)
    assert store.shape == (40, 24, 32)
    assert store.nbytes == 40 * 24 * 32
    assert [video.first_frame for video in store.videos] == [0, 10]
    assert np.allclose(store.videos[1].times_s_N, np.arange(30) / 25)
    all_NHW = pixels_of(store)
    assert np.array_equal(all_NHW[10:], store.frames_of(1))
    clips = np.zeros((2, 3, 24, 32), np.uint8)
    store.take_clips(np.array([[8, 9, 9], [10, 11, 39]]), clips)
    assert np.array_equal(clips[0], all_NHW[[8, 9, 9]])
    assert np.array_equal(clips[1], all_NHW[[10, 11, 39]])
    assert str(tmp_path) in Path("/proc/self/maps").read_text()
    store.unmap()
    assert str(tmp_path) not in Path("/proc/self/maps").read_text()
    store.take_clips(np.array([[10, 11, 39]]), clips[:1])
    assert np.array_equal(clips[0], clips[1])
    again = cache_videos(videos, tmp_path / "store", PICTURE)
    assert modified(again) == modified(store), "nothing is decoded twice"
    assert again.sha256 == store.sha256


def test_a_killed_command_continues(tmp_path: Path) -> None:
    """Killed when the first video is whole: that one stays."""
    videos = videos_in(tmp_path, 5, 2000)
    argv = [sys.executable, "-c", CACHE, json.dumps([(n, str(p)) for n, p in videos]), str(tmp_path / "store")]
    process = subprocess.Popen(argv, start_new_session=True, stderr=subprocess.DEVNULL)
    while not (done := [path for path in (tmp_path / "store").glob("*.json") if len(path.stem) == 24]):
        assert process.poll() is None
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    whole = done[0].with_suffix(".npy")
    before = whole.stat().st_mtime_ns
    store = cache_videos(videos, tmp_path / "store", PICTURE, workers=1)
    assert whole.stat().st_mtime_ns == before
    assert [video.num_frames for video in store.videos] == [5, 2000]
    assert not list(store.folder.glob(".*.tmp"))
    assert cache_videos(videos, tmp_path / "store", PICTURE, verify=True).sha256 == store.sha256


def test_up_to_ten_bad_videos_are_named_with_their_reasons(tmp_path: Path) -> None:
    videos = videos_in(tmp_path, *[2] * 3)
    videos[1][1].write_text("no video")
    with pytest.raises(UserError, match=r"v1.mp4\nfound: no video, or damaged"):
        cache_videos(videos, tmp_path / "store", PICTURE, workers=1)
    videos += [(f"gone{i}.mp4", tmp_path / f"gone{i}.mp4") for i in range(10)]
    with pytest.raises(UserError) as raised:
        cache_videos(videos, tmp_path / "store", PICTURE, workers=1)
    assert raised.value.asked == "11 videos"
    lines = raised.value.found.splitlines()[1:]
    assert "v1.mp4: no video, or damaged" in lines[0]
    assert [f"gone{i}.mp4: No such file" in lines[1 + i] for i in range(9)] == [True] * 9
    assert lines[10:] == ["  and 1 more"]
    assert not (tmp_path / "store" / "store.json").exists()


@pytest.fixture
def decoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program in place of the decoder; its argument 4 is the task."""
    program = tmp_path / "python"
    monkeypatch.setattr(sys, "executable", str(program))
    program.touch(0o755)
    return program


def test_videos_whose_decoder_fails_do_not_keep_the_others_from_being_decoded(tmp_path: Path, decoder: Path) -> None:
    """The decoder is killed once over v1, and each time over v0 and v2."""
    decoder.write_text(f"""#!/bin/sh
case "$3" in
    *v1.mp4*) [ -e {tmp_path}/killed ] || {{ touch {tmp_path}/killed; kill -9 $$; }};;
    *) kill -9 $$;;
esac
exec {PYTHON} "$@"
""")
    with pytest.raises(UserError) as raised:
        cache_videos(videos_in(tmp_path, 3, 4, 5), tmp_path / "store", PICTURE, workers=1)
    lines = raised.value.found.splitlines()[1:]
    ended = "its decoder ended after 0 frames (killed by signal 9), 2 times"
    assert [f"v{i}.mp4: {ended}" in line for i, line in zip((0, 2), lines, strict=True)] == [True, True]
    assert (tmp_path / "killed").exists()
    assert len(list((tmp_path / "store").glob("*.npy"))) == 1, "v1 is there"


def test_the_store_after_a_kill_of_the_decoder_is_that_of_an_undisturbed_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    videos = videos_in(tmp_path, 3000)
    undisturbed = cache_videos(videos, tmp_path / "undisturbed", PICTURE, workers=1)

    def kill_first() -> None:
        """Kill the decoder while it writes its first frames."""
        deadline_s = time.monotonic() + 60
        while time.monotonic() < deadline_s:
            for child in psutil.Process().children():
                if list((tmp_path / "store").glob(f".*.{child.pid}.tmp")):
                    child.kill()
                    return
            time.sleep(0.002)

    killer = threading.Thread(target=kill_first)
    killer.start()
    store = cache_videos(videos, tmp_path / "store", PICTURE, workers=1)
    killer.join()
    assert "(killed by signal 9); it is decoded once more" in capsys.readouterr().err
    assert store.sha256 == undisturbed.sha256
    assert np.array_equal(pixels_of(store), pixels_of(undisturbed))


def test_a_decoder_that_hangs_is_started_again_and_then_named(
    tmp_path: Path, decoder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The decoder here is a program that sleeps."""
    decoder.write_text("#!/bin/sh\nexec sleep 60\n")
    with pytest.raises(UserError, match=r"v0.mp4[\s\S]*hung after 0 frames for 0.2 s, 2 times"):
        cache_videos(videos_in(tmp_path, 5), tmp_path / "store", PICTURE, workers=1, silent_s=0.2)
    assert "it is decoded once more" in capsys.readouterr().err


def test_a_disk_that_is_too_small_is_refused_before_any_video_is_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = SimpleNamespace(total=10**9, used=10**9 - 10**6, free=10**6)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(UserError, match=r"0.00 GB are free"):
        cache_videos(videos_in(tmp_path, 50), tmp_path / "store", PICTURE)
    assert not list((tmp_path / "store").glob("*.npy"))
    assert not (tmp_path / "store" / "sources.json").exists(), "no sha256 of a video"


def test_a_full_disk_is_no_error_where_nothing_has_to_be_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The videos have to be read to find that the store has their frames."""
    videos = videos_in(tmp_path, 50)
    store = cache_videos(videos, tmp_path / "store", PICTURE, workers=1)
    (store.folder / "sources.json").unlink()
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(total=10**9, used=10**9, free=0))
    assert cache_videos(videos, tmp_path / "store", PICTURE).sha256 == store.sha256


def test_the_estimate_comes_before_the_bars_of_reading_and_decoding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    videos, terminal = videos_in(tmp_path, 5, 6), Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    cache_videos(videos, tmp_path / "store", PICTURE, workers=1)
    said = terminal.getvalue()
    size = sum(path.stat().st_size for _, path in videos)
    estimate, read = said.index("2 videos to decode, about 11 frames"), said.index(f"{size:,} of {size:,} bytes")
    assert estimate < read < said.index("11 of 11 frames")
    assert said.count("videos to decode") == 1


def test_the_estimate_grows_with_the_size_of_the_frames() -> None:
    small, large = (decode_s([VideoLength(10_000, height * width)]) for height, width in ((480, 640), (1080, 1920)))
    assert 4 < large / small < 7


def test_a_stream_without_a_length_counts_in_the_estimate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_ramp(tmp_path / "a.h264", "yuv420p")
    cache_videos([("a", tmp_path / "a.h264")], tmp_path / "store", PICTURE, workers=1)
    assert "1 video to decode, about 3 frames" in capsys.readouterr().err


def test_what_a_killed_command_left_is_deleted(tmp_path: Path) -> None:
    """Temporary files, and frames of which nobody knows where they come from."""
    videos = videos_in(tmp_path, 3)
    (tmp_path / "store").mkdir()
    left = [tmp_path / "store" / name for name in (".abc.17.tmp", ".store.json.tmp", f"{'0' * 24}.npy")]
    for path in left:
        path.write_bytes(b"x" * 1000)
    (tmp_path / "store" / "notes.json").write_text("of the user")
    cache_videos(videos, tmp_path / "store", PICTURE, workers=1)
    assert [path.exists() for path in left] == [False] * 3
    assert (tmp_path / "store" / "notes.json").exists()


def test_a_change_in_the_middle_of_a_video_is_noticed_and_its_old_frames_are_deleted(tmp_path: Path) -> None:
    """Neither its size nor its first and last MiB change."""
    videos = videos_in(tmp_path, 4, 5)
    with videos[0][1].open("ab") as file:
        file.write(bytes(3 * 2**20))
    cached = cache_videos(videos, tmp_path / "store", PICTURE, workers=1)
    with videos[0][1].open("r+b") as file:
        file.seek(3 * 2**19)
        file.write(b"changed")
    again = cache_videos(videos[:1], tmp_path / "store", PICTURE, workers=1)
    assert again.videos[0].key != cached.videos[0].key
    kept = {path.stem for path in again.folder.glob("*.npy")}
    assert kept == {again.videos[0].key, cached.videos[1].key}, "the second video is still there"
    assert {path.stem for path in again.folder.glob("*.json")} - {"store", "sources", "checked"} == kept


def test_a_store_that_is_whole_needs_neither_its_lock_nor_its_videos(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ranks that start together wait for nobody. The content of a video is not read again."""
    videos = videos_in(tmp_path, 3, 4)
    for _, path in videos:
        os.utime(path, ns=(10**18, 10**18))
    folder = tmp_path / "store"
    cached = cache_videos(videos, folder, PICTURE, workers=1)
    capsys.readouterr()
    with file_lock(folder / ".lock", "the store"):
        videos[0][1].write_bytes(b"x" * videos[0][1].stat().st_size)
        os.utime(videos[0][1], ns=(10**18, 10**18))
        assert cache_videos(videos, folder, PICTURE).sha256 == cached.sha256
    assert capsys.readouterr().err == ""


def test_the_head_is_numpy_s_own(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    path.write_bytes(npy_head((3, 4, 5)) + bytes(range(60)))
    assert path.stat().st_size == HEAD_BYTES + 60
    assert np.array_equal(np.load(path).ravel(), np.arange(60))

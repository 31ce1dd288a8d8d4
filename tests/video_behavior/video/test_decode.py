"""Real files: greys, times, odd sizes, and everything that is no video."""

from __future__ import annotations

import struct
import wave
from pathlib import Path

import numpy as np
import pytest

from ranks.errors import UserError
from ranks.workloads.video_behavior.video.decode import count_frames, open_video, probe
from ranks.workloads.video_behavior.video.picture import Crop, Picture
from tests.video_behavior.video.videos import (
    damage,
    lose_packets,
    moving_square,
    write_frames,
    write_no_frames,
    write_ramp,
    write_square,
)


def decoded(path: Path, picture: Picture | None = None) -> tuple[np.ndarray, np.ndarray, list[str]]:
    with open_video(path, threads=1) as video:
        blocks = list(video.blocks(picture, 16))
        assert all(len(one.frames_NHW) <= 16 for one in blocks)
        frames_NHW = np.concatenate([one.frames_NHW for one in blocks])
        return frames_NHW, np.concatenate([one.times_s_N for one in blocks]), video.warnings


def colours(num_frames: int) -> list[np.ndarray]:
    return [np.repeat(frame[..., None], 3, 2) for frame in moving_square(num_frames)]


def test_greys_frames_and_times_survive(tmp_path: Path) -> None:
    written_NHW = write_square(tmp_path / "a square.mp4.mp4")
    found_NHW, times_s_N, warnings = decoded(tmp_path / "a square.mp4.mp4")
    assert found_NHW.shape == written_NHW.shape
    assert np.abs(found_NHW.astype(int) - written_NHW).max() <= 1
    assert np.allclose(times_s_N, np.arange(40) / 25)
    assert warnings == []


def test_limited_and_full_range_show_the_same_scene(tmp_path: Path) -> None:
    write_frames(tmp_path / "limited.mp4", colours(3))
    write_square(tmp_path / "full.mp4", 3)
    limited, full = (decoded(tmp_path / name)[0] for name in ("limited.mp4", "full.mp4"))
    assert np.abs(limited.astype(int) - full).mean() < 2
    assert limited.max() > 210


@pytest.mark.parametrize(
    ("name", "pixels", "color_range", "codec"),
    [
        ("gray.mp4", "gray", None, "libx264"),
        ("gray.mkv", "gray", None, "libx264"),
        ("gray.avi", "gray", None, "libx264"),
        ("gray.h264", "gray", None, "libx264"),
        ("full.mp4", "gray", 2, "libx264"),
        ("hevc.mp4", "gray", None, "libx265"),
        ("ffv1.mkv", "gray", None, "ffv1"),
        ("yuvj.mp4", "yuvj420p", None, "libx264"),
        ("limited.mp4", "yuv420p", None, "libx264"),
        ("tagged.mp4", "yuv420p", 1, "libx264"),
    ],
)
def test_every_grey_survives_in_full_and_in_limited_range(
    tmp_path: Path, name: str, pixels: str, color_range: int | None, codec: str
) -> None:
    """H.264 without colour has no tag and full range; its frames are decoded as yuv420p, as those of limited range."""
    row_W = write_ramp(tmp_path / name, pixels, color_range, codec)
    found_NHW = decoded(tmp_path / name)[0]
    assert np.abs(found_NHW[:, 24].astype(int) - row_W).max() <= (1 if pixels == "yuv420p" else 0)


def test_colour_of_full_range_is_read_as_its_tag_says(tmp_path: Path) -> None:
    """The same luma, 16 to 235, without a tag and with one."""
    for color_range, (black, white) in ((None, (0, 255)), (2, (16, 235))):
        write_ramp(tmp_path / "a.mp4", "yuv420p", color_range)
        greys = decoded(tmp_path / "a.mp4")[0]
        assert (int(greys.min()), int(greys.max())) == (black, white)


def test_a_variable_frame_rate_has_the_times_of_the_file(tmp_path: Path) -> None:
    write_frames(tmp_path / "v.mkv", colours(4), [0, 40, 140, 150])
    assert np.allclose(decoded(tmp_path / "v.mkv")[1], [0, 0.04, 0.14, 0.15], atol=1e-3)


def test_odd_sizes_crop_and_size(tmp_path: Path) -> None:
    path = tmp_path / "odd.mp4"
    write_square(path, 3, height=47, width=63)
    assert decoded(path)[0].shape == (3, 48, 64), "H.264 has even sides"
    boxed_NHW = decoded(path, Picture((32, 32)))[0]
    assert boxed_NHW[:, :3].max() == 0, "black bars above a wide frame"
    assert boxed_NHW[:, 16].min() > 10
    assert decoded(path, Picture((32, 32), "crop"))[0][:, :3].min() > 10
    assert decoded(path, Picture(None, crop=Crop(8, 4, 20, 10)))[0].shape == (3, 10, 20)
    with pytest.raises(UserError, match="64 x 48"):
        decoded(path, Picture(None, crop=Crop(60, 0, 20, 10)))


def test_a_truncated_file_gives_its_good_frames(tmp_path: Path) -> None:
    write_frames(tmp_path / "whole.mkv", colours(100), codec="mpeg4")
    content = (tmp_path / "whole.mkv").read_bytes()
    (tmp_path / "cut.mkv").write_bytes(content[: len(content) * 6 // 10])
    frames_NHW, times_s_N, warnings = decoded(tmp_path / "cut.mkv")
    assert 10 < len(frames_NHW) < 75
    assert f"promises 4.0 s, and the last frame ends at {times_s_N[-1] + 0.04:.1f} s" in warnings[-1]
    assert not decoded(tmp_path / "whole.mkv")[2]


def test_damaged_frames_are_left_out_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "broken.mp4"
    write_square(path)
    damage(path, 0.33)
    with open_video(path, threads=1) as video:
        num_frames = sum(len(block.frames_NHW) for block in video.blocks())
    assert 10 < num_frames < 40
    assert video.missing_frames == 40 - num_frames
    (warning,) = video.warnings
    assert f"broken.mp4: the header promises 40 frames, {num_frames} can be decoded" in warning
    assert "labels that count frames do not fit" in warning


def test_damage_at_the_start_shifts_no_times(tmp_path: Path) -> None:
    """The first ten frames are lost, and the next one is a key frame."""
    path = tmp_path / "start.mkv"
    write_frames(path, colours(40), codec="mpeg4", options={"g": "10"})
    whole_NHW, whole_s_N, _ = decoded(path)
    lose_packets(path, 10)
    frames_NHW, times_s_N, warnings = decoded(path)
    assert len(frames_NHW) == 30
    np.testing.assert_allclose(times_s_N, whole_s_N[10:])
    np.testing.assert_array_equal(frames_NHW, whole_NHW[10:])
    assert "its first 0.40 s cannot be decoded" in warnings[-1]


@pytest.mark.parametrize("codec", ["libx264", "mpeg4"])
@pytest.mark.parametrize("name", ["b.avi", "b.asf", "b.mkv", "b.mp4"])
def test_frames_that_are_decoded_in_another_order_have_their_times(tmp_path: Path, name: str, codec: str) -> None:
    """B-frames. AVI and ASF stamp frames in the order of decoding, and begin with those that the decoder waits for."""
    write_frames(tmp_path / name, colours(30), codec=codec, options={"bf": "2"})
    frames_NHW, times_s_N, warnings = decoded(tmp_path / name)
    np.testing.assert_allclose(times_s_N, np.arange(30) / 25, atol=1e-3)
    assert (frames_NHW[:, 16].argmax(1)[:20] >= np.arange(20)).all()
    assert not warnings


@pytest.mark.parametrize(("promised", "missing"), [(5, 2), (2, 0)])
def test_a_header_that_promises_another_number_of_frames_is_warned_of(
    tmp_path: Path, promised: int, missing: int
) -> None:
    """An AVI file has the number in its stream header, 32 bytes behind the name and the size of that."""
    path = tmp_path / "v.avi"
    write_ramp(path, "yuv420p", codec="mpeg4")
    content = bytearray(path.read_bytes())
    at = content.index(b"strh") + 8 + 32
    assert struct.unpack_from("<I", content, at) == (3,)
    struct.pack_into("<I", content, at, promised)
    path.write_bytes(content)
    with open_video(path, threads=1) as video:
        assert sum(len(block.frames_NHW) for block in video.blocks()) == 3
    assert video.missing_frames == missing
    (warning,) = video.warnings
    assert f"v.avi: the header promises {promised} frames, 3 can be decoded" in warning
    assert ("labels that count frames do not fit" in warning) == (missing > 0)


def test_what_is_no_video_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.mp4").write_text("not a video\n" * 100)
    (tmp_path / "empty.mp4").touch()
    with wave.open(str(tmp_path / "sound.wav"), "wb") as sound:
        sound.setparams((1, 2, 8000, 0, "NONE", ""))
        sound.writeframes(bytes(1600))
    write_square(tmp_path / "whole.mp4")
    (tmp_path / "head.mp4").write_bytes((tmp_path / "whole.mp4").read_bytes()[:200])
    write_no_frames(tmp_path / "nothing.avi", "avi")
    write_no_frames(tmp_path / "nothing.mp4", "mp4")
    cases = {
        "text.mp4": "no video",
        "empty.mp4": "no video",
        "sound.wav": "no video stream; it holds audio",
        "head.mp4": "no video|one frame",
        "nothing.avi": "not one frame can be decoded",
        "nothing.mp4": "no video stream; it holds nothing",
        "missing.mp4": "No such file",
    }
    for name, found in cases.items():
        with pytest.raises(UserError, match=found):
            probe(tmp_path / name)


def test_frames_are_counted_where_the_header_has_no_length(tmp_path: Path) -> None:
    path = tmp_path / "stream.h264"
    write_ramp(path, "yuv420p")
    assert probe(path).expected_frames is None
    assert count_frames(path) == len(decoded(path)[0]) == 3


def test_facts_of_the_header(tmp_path: Path) -> None:
    write_square(tmp_path / "a.mp4", 10)
    facts = probe(tmp_path / "a.mp4")
    assert (facts.height, facts.width, facts.expected_frames, facts.codec) == (48, 64, 10, "h264")
    assert facts.fps == pytest.approx(25)

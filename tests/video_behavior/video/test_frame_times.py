"""Times of frames whose time stamps are missing, repeat or jump."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ranks.workloads.video_behavior.video.frame_times import FrameTimes


def times(stamps: Sequence[float | None], fps: float = 25.0) -> tuple[list[float], int]:
    """(the times, frames without a time stamp that increases)."""
    found = FrameTimes(fps, None)
    return [found.time_of(stamp) for stamp in stamps], found.without_time


@pytest.mark.parametrize("fps", [25.0, 30.0])
def test_a_repeated_stamp_shifts_no_later_frame(fps: float) -> None:
    found, without = times([0.0, 0.04, 0.04, 0.08, 0.12], fps)
    assert found == pytest.approx([0.0, 0.04, 0.04 + 0.01 / fps, 0.08, 0.12])
    assert without == 1


def test_stamps_in_another_order_shift_no_later_frame() -> None:
    found, without = times([0.0, 0.16, 0.08, 0.04, 0.12, 0.20, 0.24])
    assert found == pytest.approx([0.0, 0.16, 0.1604, 0.1608, 0.1612, 0.20, 0.24])
    assert without == 3


def test_a_missing_stamp_is_a_whole_frame_and_shifts_none() -> None:
    assert times([0.0, None, None, 0.12, 0.2])[0] == pytest.approx([0.0, 0.04, 0.08, 0.12, 0.2])
    assert times([None, None, 5.0, 5.04])[0] == pytest.approx([0.0, 0.04, 0.08, 0.12])


def test_stamps_that_start_again_are_frames_at_the_mean_rate() -> None:
    """Two recordings in one file, each with time stamps from 0 on. One wrong time stamp shifts no later frame."""
    once = [n / 25 for n in range(50)]
    found, without = times([*once, *once])
    assert found == pytest.approx([n / 25 for n in range(100)])
    assert without == 50
    assert times([*once, 0.0, 2.04, 2.08])[0][-3:] == pytest.approx([2.0, 2.04, 2.08])

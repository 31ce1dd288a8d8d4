"""The numbers and pictures of `ranks video-behavior report`. A whole page: test_training.py.

Legend: N frames, C classes.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ranks.errors import UserError
from ranks.workloads.video_behavior.config import ClipConfig
from ranks.workloads.video_behavior.metrics.bouts import bouts_of
from ranks.workloads.video_behavior.report.agreement_pictures import (
    confusion_of,
    draw_confusion,
    draw_precision_recall,
    draw_reliability,
)
from ranks.workloads.video_behavior.report.command import report
from ranks.workloads.video_behavior.report.contact_sheet import draw_contact_sheet, worst_confusions
from ranks.workloads.video_behavior.report.raster import budgets, draw_ethogram_raster, draw_time_budget
from ranks.workloads.video_behavior.report.seen import SeenSplit, SeenVideo
from ranks.workloads.video_behavior.report.write import labelled_minutes, learned_from
from ranks.workloads.video_behavior.scoring import by_video, score
from ranks.workloads.video_behavior.validation import likeliest
from tests.video_behavior.example_frames import example_frames

SURE, LESS_SURE = 0.9, 0.8


def seen_split(*, multi: bool = False) -> tuple[SeenSplit, tuple[int, int]]:
    """Test animals whose net is right, except in one bout of class 1 of the first video: class 2 there, surest in its
    second frame. With overlapping behaviours it is right everywhere. (The split, the bout.)"""
    data = example_frames(multi=multi)
    probability_nC = data.label_NC[data.all_frames_of("test")].astype(np.float64)
    first, stop = 0, 0
    if not multi:
        truth = data.class_N[data.all_frames_of("test")][: data.videos_of("test")[0].num_frames]
        first, stop = next((f, s) for c, f, s in bouts_of(truth).tolist() if c == 1)
        probability_nC[first:stop] = (0.0, 1 - LESS_SURE, LESS_SURE)
        probability_nC[first + 1] = (0.0, 1 - SURE, SURE)
    predicted = by_video(data, "test", probability_nC)
    labels = [likeliest(video.probability_NC, multi) for video in predicted]
    videos = tuple(
        SeenVideo(video, one.truth, found, one.probability_NC)
        for video, one, found in zip(data.videos_of("test"), predicted, labels, strict=True)
    )
    return SeenSplit(data, videos, score(predicted, labels, (0,))), (first, stop)


def test_the_worst_confusion_is_the_surest_frame_of_the_bout_that_is_wrong() -> None:
    seen, (first, stop) = seen_split()
    counts_CC = confusion_of(seen)
    assert counts_CC[1, 2] == stop - first
    assert counts_CC.sum() == np.trace(counts_CC) + stop - first == sum(one.video.num_frames for one in seen.videos)
    (found,) = worst_confusions(seen)
    names = seen.classes
    assert (found.true, found.named, found.frame, found.probability) == (names[1], names[2], first + 1, SURE)
    assert found.seen is seen.videos[0]


def test_the_budget_of_an_animal_adds_up_and_moves_with_the_bout() -> None:
    seen, (first, stop) = seen_split()
    found = budgets(seen)
    assert list(found) == [("", "m4"), ("", "m5")]
    for share_2C in found.values():
        np.testing.assert_allclose(share_2C.sum(1), 1)
    person_C, net_C = found["", "m4"]
    moved = (stop - first) / seen.videos[0].video.num_frames
    np.testing.assert_allclose(net_C - person_C, (0, -moved, moved), atol=1e-12)
    np.testing.assert_array_equal(*found["", "m5"])


def test_a_net_that_has_learned_from_an_animal_is_found() -> None:
    data = example_frames()
    assert learned_from(data, [data.videos[number] for number in (0, 3, 4, 5)], "test") == ["m0", "m3"]
    assert learned_from(data, [data.videos[number] for number in (3, 4)], "val") == []
    assert labelled_minutes(data) == pytest.approx(3 * 48 / 25 / 60)


def test_overlapping_behaviours_have_pictures_too(tmp_path: Path) -> None:
    seen, _ = seen_split(multi=True)
    assert confusion_of(seen)[:, [0, 1], [1, 0]].sum() == 0
    assert worst_confusions(seen) == []
    for draw in (draw_confusion, draw_precision_recall, draw_reliability, draw_ethogram_raster, draw_time_budget):
        draw(seen, tmp_path / f"{draw.__name__}.png")
        assert (tmp_path / f"{draw.__name__}.png").stat().st_size > 2000


def test_overlapping_behaviours_are_missed_or_named_wrongly(tmp_path: Path) -> None:
    """The net never names the first behaviour, and names the second one in one frame too many."""
    seen, _ = seen_split(multi=True)
    video = seen.videos[0]
    labels, probability_NC = video.labels.copy(), video.probability_NC.copy()
    labels[:, 0], probability_NC[:, 0] = 0, 0.5 - 0.4 * video.truth[:, 0]
    wrong = int(np.flatnonzero(video.truth[:, 1] == 0)[0])
    labels[wrong, 1], probability_NC[wrong, 1] = 1, SURE
    seen = replace(seen, videos=(replace(video, labels=labels, probability_NC=probability_NC),))
    first, second = seen.classes
    found = worst_confusions(seen)
    assert {(one.true, one.named) for one in found} == {(first, f"no {first}"), (f"no {second}", second)}
    assert [one.frame for one in found if one.named == second] == [wrong]
    missed = [one for one in found if one.true == first]
    assert missed
    assert all(video.truth[one.frame, 0] == 1 and one.probability == pytest.approx(0.9) for one in missed)
    assert draw_contact_sheet(seen, ClipConfig(frames=5, size=16), tmp_path / "sheet.png")


def test_a_run_that_does_not_exist_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no run nothing"):
        report("nothing", runs_dir=tmp_path)

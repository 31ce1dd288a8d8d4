"""Frames without a code: which class they get, and whether it is a behaviour."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ranks import UserError
from ranks.cli.main import main
from ranks.workloads.video_behavior.annotations.events import Event
from ranks.workloads.video_behavior.annotations.frame_tables import write_labels
from ranks.workloads.video_behavior.clips.prepare import kept_settings, labelled_frames
from ranks.workloads.video_behavior.config import Config
from tests.video_behavior.example_frames import SMALL
from tests.video_behavior.study.example_study import FRAMES, LICK, ROWS, annotate, lab

REST, WALK = ["rest"] * 12, ["walk"] * 6


def study_of_tables(folder: Path, *tables: list[str]) -> Config:
    """The settings of a study whose annotations are tables Frame,Action, one for each of four videos."""
    lab(folder)
    rows = [ROWS]
    for number, (labels, split) in enumerate(zip(tables, ("train", "train", "val", "test"), strict=True), 1):
        write_labels(folder / f"m{number}.csv", labels)
        rows.append(f"m{number}.mp4,m{number}.csv,m{number},,,,{split}\n")
    (folder / "dataset.csv").write_text("".join(rows))
    return replace(SMALL, data=folder, iterations=1, eval_every=1, epoch_clips=16)


def test_frames_behind_the_end_of_a_table_are_no_behaviour(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The tables cover all time that they know of, and six frames of the videos less."""
    cfg = study_of_tables(tmp_path, *[REST + WALK] * 4)
    data = labelled_frames(cfg)
    assert data.classes == ("background", "rest", "walk")
    assert data.class_N.tolist() == ([1] * 12 + [2] * 6 + [0] * 6) * 4
    said = capfd.readouterr().err
    assert "frames without a code in 4 of 4 videos (m1.mp4: 6, m2.mp4: 6, m3.mp4: 6): they are the class 'backg" in said
    assert "annotations of 4 videos end at another frame than the video (m1.mp4: 18 of 24, " in said
    kept = kept_settings(cfg, data)
    assert (kept.background, kept.uncoded) == ("background", "background")
    assert np.array_equal(labelled_frames(kept).class_N, data.class_N)


def test_a_frame_lost_in_rounding_is_no_class(tmp_path: Path) -> None:
    cfg = study_of_tables(tmp_path, *[(REST + WALK + REST)[: FRAMES - 1]] * 4)
    data = labelled_frames(cfg)
    assert data.classes == ("rest", "walk")
    kept = kept_settings(cfg, data)
    assert (kept.background, kept.uncoded) == ("rest", "")


def test_a_background_that_nobody_codes_is_no_behaviour(tmp_path: Path) -> None:
    lab(tmp_path)
    cfg = replace(SMALL, data=tmp_path, iterations=1, eval_every=1, epoch_clips=16)
    for background, uncoded in (("other", "other"), ("lick", ""), ("", "background")):
        given = replace(cfg, background=background)
        assert kept_settings(given, labelled_frames(given)).uncoded == uncoded


def test_gaps_of_one_animal_need_no_animals_where_they_are_ignored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One video of four has time without a code, so the background cannot be in every split."""
    lab(tmp_path, [""] * 4)
    for number in range(1, 5):
        annotate(tmp_path, number, LICK, Event("walk", 0.0, 0.2), Event("walk", 0.6, 0.96 if number < 4 else 0.8))
    asked = ["video-behavior", "dataset", str(tmp_path)]
    assert main(asked) == 2
    said = capsys.readouterr().err
    assert "'background' is shown only by m4" in said
    assert "(--background NAME), or leave frames without a code out (--unlabelled ignore)" in said
    assert main([*asked, "--labels", "multi"]) == 0
    assert main([*asked, "--unlabelled", "ignore"]) == 0


def test_a_given_split_that_lacks_a_rare_class_is_not_told_to_be_emptied(tmp_path: Path) -> None:
    """A new split would be refused for the same reason."""
    lab(tmp_path)
    annotate(tmp_path, 1, LICK, Event("shake", 0.6, 0.8))
    with pytest.raises(UserError) as refused:
        labelled_frames(replace(SMALL, data=tmp_path))
    assert "shows 'shake'; m1 do" in refused.value.found
    assert refused.value.do == "label more animals, or join the class with another (--merge 'shake->NAME')"

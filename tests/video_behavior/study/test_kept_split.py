"""A run keeps the split of its animals and of its videos: no video that its net has learned from enters its test."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ranks import UserError
from ranks.workloads.video_behavior.annotations.boris_events import write_boris_events
from ranks.workloads.video_behavior.annotations.events import Annotation
from ranks.workloads.video_behavior.clips.prepare import frames_of_study, kept_settings, labelled_frames
from ranks.workloads.video_behavior.config import Config
from ranks.workloads.video_behavior.report.write import learned_from
from ranks.workloads.video_behavior.study.class_table import units_of
from ranks.workloads.video_behavior.study.kept_split import KeptSplit, kept_split_of
from ranks.workloads.video_behavior.study.study import StudyVideo
from tests.video_behavior.example_frames import SMALL, example_frames
from tests.video_behavior.study.example_study import FPS, FRAMES, LICK, ROWS, lab
from tests.video_behavior.video.videos import write_square


def row(path: str, animal: str = "", split: str = "") -> StudyVideo:
    return StudyVideo(Path("study") / path, Path("a.tsv"), animal, "", None, 0.0, split, path)


def applied(kept: KeptSplit, *videos: StudyVideo) -> tuple[list[str], tuple[str, ...]]:
    """The split of each video, and the warnings."""
    rows, warnings = kept.applied(videos)
    return [video.split for video in rows], warnings


def splits_of(cfg: Config) -> dict[str, str]:
    frames_of_study.cache_clear()
    return {video.path: video.split for video in labelled_frames(cfg).videos}


@pytest.mark.parametrize("animal", ["", "m{}"])
def test_animals_that_get_their_names_later_or_other_names_stay_where_they_were(animal: str, tmp_path: Path) -> None:
    lab(tmp_path, [""] * 6)
    for name in (animal, "mouse {}", "r{}"):
        rows = "".join(f"m{n}.mp4,m{n}.tsv,{name.format(n)},,,,\n" for n in range(1, 7))
        (tmp_path / "dataset.csv").write_text(ROWS + rows)
        if name == animal:
            cfg = replace(SMALL, data=tmp_path)
            before = splits_of(cfg)
            kept = kept_settings(cfg, labelled_frames(cfg))
            old = replace(kept, video_split=())  # of a run of an earlier version
        assert splits_of(kept) == before
        if animal == "":
            assert splits_of(old) == before
    with pytest.raises(UserError, match="--video-split m1:dev"):
        replace(kept, video_split=("m1:dev",))


def test_an_animal_of_training_and_test_videos_counts_as_one_of_training() -> None:
    videos = ("a.mp4:train", "b.mp4:test", "c.mp4:val", "d.mp4:test", "e.mp4:test")
    kept = KeptSplit.of([f"video {each}" for each in videos], videos)
    rows = (row("a.mp4", "m1"), row("b.mp4", "m1"), row("c.mp4", "m2"), row("d.mp4", "m2"), row("e.mp4", "m3"))
    splits, (warning,) = applied(kept, *rows)
    assert splits == ["train", "train", "val", "val", "test"]
    assert "now of one animal (m1: train, test, m2: val, test)" in warning

    named = KeptSplit.of(("m1:train", "m2:test"), ("a.mp4:train", "b.mp4:test"))
    splits, (warning,) = applied(named, row("a.mp4", "m2"), row("b.mp4", "m3"))
    assert splits == ["train", "test"], "the name of an animal of the test does not hide a video of training"
    assert "m2: train, test" in warning


def test_a_run_that_kept_names_alone_says_when_one_is_gone() -> None:
    old = KeptSplit.of(("m1:train", "m2:val", "m3:test"))
    _, (warning,) = applied(old, row("a.mp4", "mouse1"), row("b.mp4", "m2"))
    assert "no longer has m1, from which the run has learned: if mouse1 is the same animal" in warning
    assert applied(old, row("a.mp4", "m1"), row("b.mp4", "m2"), row("d.mp4", "m4"))[1] == ()
    assert applied(old, row("b.mp4", "m2"))[1] == ()


def test_unknown_animals_in_files_of_the_same_name_are_not_one(tmp_path: Path) -> None:
    rows = [ROWS]
    for number, split in enumerate(("train", "train", "val", "test"), 1):
        folder = tmp_path / f"mouse{number}"
        folder.mkdir()
        write_square(folder / "video.mp4", FRAMES, 32, 32)
        write_boris_events(folder / "a.tsv", [Annotation("video.mp4", (LICK,), FPS, FRAMES / FPS, "o")])
        rows.append(f"mouse{number}/video.mp4,mouse{number}/a.tsv,,,,,{split}\n")
    (tmp_path / "dataset.csv").write_text("".join(rows))
    cfg = replace(SMALL, data=tmp_path)
    data = labelled_frames(cfg)
    assert len({video.animal for video in data.videos}) == 4
    before, kept = splits_of(cfg), kept_settings(cfg, data)
    assert list(before.values()) == ["train", "train", "val", "test"]
    (tmp_path / "dataset.csv").write_text("".join(rows).replace("train", "").replace("val", "").replace("test", ""))
    assert splits_of(kept) == before


def test_a_video_without_a_namesake_is_called_by_its_file_name() -> None:
    """As before: names of units are in the identity of runs."""
    videos = (row("day1/a.mp4"), row("day1/b.mp4"), row("day2/b.mp4"), row("day2/c.mp4", "m1"))
    assert units_of(videos) == ["video a.mp4", "video day1/b.mp4", "video day2/b.mp4", "m1"]
    old = KeptSplit.of(("video b.mp4:test", "video b.mp4:train", "video a.mp4:val"))
    assert applied(old, *videos)[0] == ["val", "train", "train", "test"], (
        "of a name with two splits, the one that the net has learned from"
    )
    new = KeptSplit.of(("video a.mp4:train",), ("day1/a.mp4:train",))
    assert applied(new, row("day1/a.mp4"), row("day2/a.mp4"))[0] == ["train", "test"]
    assert kept_split_of(row("day1/a.mp4", "m1"), (), ("day1/a.mp4:train",)) == "train"
    assert kept_split_of(row("day2/a.mp4", "m1"), ("m2:val",), ("day1/a.mp4:train",)) == ""


def test_a_report_knows_the_videos_of_an_animal_with_another_name() -> None:
    data = example_frames()
    files = tuple(replace(video, file=Path(video.name)) for video in data.videos)
    named = [replace(video, animal=f"mouse {number}") for number, video in enumerate(files)]
    assert learned_from(replace(data, videos=files), named, "test") == [f"mouse {number}" for number in range(4)]
    assert learned_from(data, named, "test") == []

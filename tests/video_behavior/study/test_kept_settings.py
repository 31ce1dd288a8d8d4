"""What a run keeps of its study: the background, the split of its animals, and how frames are cut."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from ranks import RunConfig, UserError, World
from ranks.workloads.video_behavior.annotations.events import Event
from ranks.workloads.video_behavior.clips.prepare import frames_of_study, kept_settings, labelled_frames
from ranks.workloads.video_behavior.config import ClipConfig, Config
from ranks.workloads.video_behavior.prediction.trained_net import load_net
from ranks.workloads.video_behavior.training import train
from ranks.workloads.video_behavior.video.picture import Crop, Picture
from ranks.workloads.video_behavior.video.store.command import cache as cache_study
from tests.video_behavior.example_frames import SMALL
from tests.video_behavior.study.example_study import FPS, FRAMES, LICK, ROWS, annotate, lab
from tests.video_behavior.video.videos import write_square


def config_of(study: Path) -> Config:
    return replace(SMALL, data=study, iterations=1, eval_every=1, epoch_clips=16)


def splits_of(cfg: Config) -> dict[str, str]:
    return {video.animal: video.split for video in labelled_frames(cfg).videos}


def test_no_behaviour_becomes_the_background_where_frames_without_a_code_are_ignored(tmp_path: Path) -> None:
    lab(tmp_path)
    for number in range(1, 5):
        annotate(tmp_path, number, LICK, Event("groom", 0.6, 0.8))
    cfg = config_of(tmp_path)
    data = labelled_frames(cfg)
    assert (data.classes, data.background, data.excluded) == (("background", "groom", "lick"), "background", (0,))
    ignored = labelled_frames(replace(cfg, unlabelled="ignore"))
    assert (ignored.classes, ignored.background, ignored.excluded) == (("groom", "lick"), "background", ())
    named = labelled_frames(replace(cfg, background="lick"))
    assert (named.classes, named.excluded) == (("lick", "groom"), (0,))
    for data in (ignored, named):
        kept = kept_settings(replace(cfg, unlabelled="ignore" if data is ignored else "background"), data)
        again = labelled_frames(kept)
        assert (again.classes, again.excluded) == (data.classes, data.excluded)


def test_a_run_keeps_its_split_when_the_study_grows_or_its_table_is_edited(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """An animal that the net has learned from never enters the test."""
    lab(tmp_path, [""] * 6)
    cfg = config_of(tmp_path)
    kept, before = kept_settings(cfg, labelled_frames(cfg)), splits_of(cfg)
    assert sorted(before.values()) == ["test"] + ["train"] * 4 + ["val"]
    write_square(tmp_path / "m7.mp4", FRAMES, 32, 32)
    annotate(tmp_path, 7, LICK)
    table = (tmp_path / "dataset.csv").read_text() + "m7.mp4,m7.tsv,m7,,,,\n"
    (tmp_path / "dataset.csv").write_text(table)
    frames_of_study.cache_clear()
    assert any(splits_of(cfg)[animal] != split for animal, split in before.items())  # as a new run would split it
    assert splits_of(kept) == before | {"m7": "test"}

    trained = next(animal for animal, split in before.items() if split == "train")
    given = before | {"m7": "val", trained: "test"}
    rows = "".join(f"{animal}.mp4,{animal}.tsv,{animal},,,,{split}\n" for animal, split in given.items())
    (tmp_path / "dataset.csv").write_text(ROWS + rows)
    frames_of_study.cache_clear()
    capfd.readouterr()
    assert splits_of(kept) == before | {"m7": "val"}
    assert f"dataset.csv moved {trained} to test: the run keeps the split" in capfd.readouterr().err
    assert splits_of(cfg)[trained] == "test"


def test_a_run_keeps_how_frames_were_cut(tmp_path: Path) -> None:
    study = tmp_path / "study"
    study.mkdir()
    lab(study)
    cache_study(study, size=16, fit="crop", crop="4,0,20,30", workers=1)
    cfg = config_of(study)
    world = World.join(
        RunConfig(runs_dir=tmp_path / "runs", name="r", threads=1), device="cpu", workload="video-behavior"
    )
    try:
        train(cfg, world)
    finally:
        world.leave()
    cut = Picture((16, 16), "crop", Crop(4, 0, 20, 30))
    cache_study(study, size=16, workers=1)  # another picture, after the training
    trained = load_net("r", tmp_path / "runs", torch.device("cpu"))
    assert trained.picture == cut
    frames_of_study.cache_clear()
    assert labelled_frames(cfg).store_sha256 != labelled_frames(trained.cfg).store_sha256


def test_a_store_elsewhere_serves_a_study_that_cannot_be_written(tmp_path: Path) -> None:
    study, store = tmp_path / "study", tmp_path / "store"
    study.mkdir()
    lab(study)
    cache_study(study, out=store, size=16, workers=1)
    study.chmod(0o555)
    data = labelled_frames(replace(config_of(study), store=store))
    study.chmod(0o755)
    assert data.store.shape == (4 * FRAMES, 16, 16)
    assert not list(study.glob("store-*"))
    with pytest.raises(UserError, match="frames of 16 x 16 pixels"):
        labelled_frames(replace(config_of(study), store=store, clips=ClipConfig(frames=5, size=32)))


def test_the_column_fps_replaces_a_wrong_rate_of_an_annotation(tmp_path: Path) -> None:
    lab(tmp_path)
    annotate(tmp_path, 4, LICK, fps=30.0)
    cfg = config_of(tmp_path)
    with pytest.raises(UserError, match="30 frames a second in the annotation, 25 in the video"):
        labelled_frames(cfg)
    table = (tmp_path / "dataset.csv").read_text()
    (tmp_path / "dataset.csv").write_text(table.replace("m4,,,", f"m4,,{FPS:g},"))
    data = labelled_frames(cfg)
    assert np.array_equal(data.class_N[3 * FRAMES :], data.class_N[:FRAMES])

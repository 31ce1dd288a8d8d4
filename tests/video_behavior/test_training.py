"""Training on small frames: it learns, on any number of ranks, and its run can be used again."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ranks import OptimConfig, RunConfig, UserError, World
from ranks.engine.export.load_export import load_export
from ranks.engine.files.jsonl import read_rows
from ranks.workloads import video_behavior as workload
from ranks.workloads.video_behavior.clips.prepare import labelled_frames
from ranks.workloads.video_behavior.config import ClipConfig, Config, RenderedConfig, VideoNetConfig
from ranks.workloads.video_behavior.net.r2plus1d import R2Plus1DNet
from ranks.workloads.video_behavior.renderer.schedule import CLASSES as CLASSES_RENDERED
from ranks.workloads.video_behavior.renderer.schedule import SHARES
from ranks.workloads.video_behavior.report.command import report
from ranks.workloads.video_behavior.training import BestScore, train
from ranks.workloads.video_behavior.video.store.command import cache as cache_study
from ranks.workloads.video_behavior.video.store.frame_store import open_store
from tests.engine.group import run_ranks
from tests.video_behavior.example_frames import CLASSES, SMALL, example_frames

LEARNS = replace(SMALL, iterations=60, eval_every=30, global_batch=32, optim=OptimConfig(lr=1e-2))


def run(tmp_path: Path, cfg: Config = LEARNS, exact: bool = False) -> tuple[Path, list[dict[str, float]]]:
    """The folder and the rows of a training on one rank."""
    config = RunConfig(runs_dir=tmp_path / "runs", name="r", threads=1, exact=exact)
    world = World.join(config, device="cpu", workload="video-behavior")
    try:
        summary = train(cfg, world, example_frames(multi=cfg.labels == "multi"))
    finally:
        world.leave()
    return summary.folder, read_rows(summary.folder / "metrics.jsonl")


def test_it_learns_what_moves_and_what_blinks(tmp_path: Path) -> None:
    folder, rows = run(tmp_path)
    first, last = (sum(row["train/loss"] for row in part) / 5 for part in (rows[:5], rows[-5:]))
    assert last < 0.6 * first
    assert rows[-1]["val/macro_f1"] > 0.7
    notes = [event["text"] for event in read_rows(folder / "events.jsonl") if event["event"] == "note"]
    assert sum(note.startswith("epoch ") for note in notes) == 2
    assert any(note.startswith("train  3 videos (3 trials) of 3 animals") for note in notes)
    assert any(note.endswith("; saved best") for note in notes)
    net, _ = load_export(folder / "export" / "model.safetensors", R2Plus1DNet, "the export")
    assert net.classes == list(CLASSES)


def test_overlapping_behaviours_have_a_sigmoid_each(tmp_path: Path) -> None:
    multi = replace(LEARNS, iterations=120, labels="multi", imbalance="weights", imbalance_power=1.0)
    _, rows = run(tmp_path, multi)
    assert rows[-1]["val/macro_f1"] > 0.6


def test_with_exact_one_and_two_ranks_end_with_the_same_bits(tmp_path: Path) -> None:
    exact = RunConfig(runs_dir=tmp_path / "runs", threads=1, exact=True, shards=8)
    alone = run_ranks(1, fingerprint_of, config=replace(exact, name="one"), tmp_path=tmp_path)
    both = run_ranks(2, fingerprint_with_workers, config=replace(exact, name="two"), tmp_path=tmp_path)
    assert {*alone, *both} == {alone[0]}


def fingerprint_of(world: World) -> str:
    return train(SMALL, world, example_frames()).fingerprint


def fingerprint_with_workers(world: World) -> str:
    return train(replace(SMALL, workers=1), world, example_frames()).fingerprint


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for rendered studies and decoded frames."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "ranks" / "video-behavior"


RENDERED = replace(
    SMALL, rendered=RenderedConfig(animals=5, seconds=10.0, size=16), clips=ClipConfig(frames=5, size=16), eval_stride=8
)


def test_a_study_is_rendered_decoded_trained_on_and_evaluated(
    cache: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = run_workload(tmp_path, RENDERED)
    (study,) = cache.glob("study-*")
    (store,) = study.glob("store-*")
    data = labelled_frames(RENDERED)
    assert data.store.shape == (5 * 300, 16, 16)
    assert sorted(data.classes) == sorted(CLASSES_RENDERED)
    share_C = data.label_NC.mean(0)[[data.classes.index(name) for name in CLASSES_RENDERED]]
    np.testing.assert_allclose(share_C, SHARES, atol=0.05)

    # the folder of the study is a user's folder too; other frames of it are ignored with --unlabelled ignore
    mine = replace(RENDERED, data=study, unlabelled="ignore")
    assert (labelled_frames(mine).class_N == data.class_N).all()
    assert list(study.glob("store-*")) == [store]
    cache_study(study, size=16, crop="0,0,8,16")  # training takes the pictures that the user has cached
    cut = labelled_frames(replace(mine, subject="mouse"))
    assert cut.store_sha256 != data.store_sha256
    assert cut.store_sha256 == open_store(store).sha256

    world = World.join(RunConfig(threads=1), device="cpu", workload="video-behavior")
    try:
        net, _ = load_export(folder / "export" / "model.safetensors", R2Plus1DNet, "the export")
        values = workload.evaluate(net, RENDERED, world)
    finally:
        world.leave()
    assert {"macro_f1", "event_f1_iou_0.3", "count_error", "f1/withdraw", "mcc", "raw/macro_f1"} <= values.keys()
    assert "test animals, smoothed" in capfd.readouterr().err

    assert report(str(folder), str(folder), split="val") == 0
    page = (folder / "report" / "behavior.html").read_text()
    assert not re.search(r"(?:src|href)=\"(?!data:)|@import|url\(", page), "the page needs a network"
    assert page.count('src="data:image/png;base64,') >= 6
    assert "behaviour of 1 validation animals" in page


def run_workload(tmp_path: Path, cfg: Config) -> Path:
    """The folder of a training that finds its data itself."""
    world = World.join(
        RunConfig(runs_dir=tmp_path / "runs", name="r", threads=1), device="cpu", workload="video-behavior"
    )
    try:
        return workload.train(cfg, world).folder
    finally:
        world.leave()


def test_exact_rejects_the_batch_norm_of_mouse3d_and_takes_its_group_norm(tmp_path: Path) -> None:
    clips = replace(SMALL.clips, frames=9)
    mouse3d = replace(SMALL, clips=clips, iterations=1, net=VideoNetConfig(name="mouse3d"))
    with pytest.raises(UserError, match="BatchNorm"):
        run(tmp_path, mouse3d, exact=True)
    _, rows = run(tmp_path / "group", replace(mouse3d, net=replace(mouse3d.net, norm="group")), exact=True)
    assert len(rows) == 1


def test_the_best_score_survives_a_checkpoint() -> None:
    best = BestScore()
    assert [best.update(f1) for f1 in (0.2, 0.1, 0.3, 0.3)] == [True, False, True, False]
    resumed = BestScore()
    resumed.load_state_dict(best.state_dict())
    assert not resumed.update(0.29)
    assert resumed.update(0.31)

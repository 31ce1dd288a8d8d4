"""Weights that a run keeps: written once, named by later checkpoints, read again by iteration."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import nn

from ranks import Run, RunConfig, UserError, World
from ranks.engine.files.jsonl import read_rows
from ranks.engine.runs.checkpoints.manifest import read_manifest
from ranks.selfplay import Snapshots
from ranks.selfplay.snapshots import weights_of


@dataclass(frozen=True)
class Config:
    """A run without settings."""


def train(folder: Path, iterations: int, every: int = 2) -> Path:
    """A net whose weights are the number of finished iterations; it is also a part of the state."""
    config = RunConfig(name="r", runs_dir=folder / "runs", threads=1, save_every="1")
    world = World.join(config, device="cpu", workload="test")
    try:
        net = nn.Linear(2, 1)
        snapshots = Snapshots(net, every, world)
        with Run.open(Config(), world, keep=dict(snapshots=snapshots)) as run:
            for iteration in run.iterations(iterations, long=True):
                nn.init.constant_(net.weight, iteration + 1)
                snapshots.take(iteration)
        run.finish()
    finally:
        world.leave()
    return folder / "runs" / "r"


def test_the_weights_of_every_second_iteration_stay_through_a_resume(tmp_path: Path) -> None:
    train(tmp_path, 5)
    run = train(tmp_path, 8)
    files = sorted((run / "kept" / "snapshots").iterdir())
    assert [int(file.name[:8]) for file in files] == [1, 3, 5, 7]
    assert len(read_manifest(run / "checkpoints" / "00000008").kept) == 4
    for iteration in (2, 4, 6, 8):
        weights = weights_of(run, iteration, "x")
        assert weights.keys() == {"weight", "bias"}
        assert torch.equal(weights["weight"], torch.full((1, 2), float(iteration)))


def test_missing_and_damaged_snapshots_are_named(tmp_path: Path) -> None:
    run = train(tmp_path, 4)
    with pytest.raises(UserError, match="no weights of iteration 1, but those of 2, 3, 4"):
        weights_of(run, 1, "x")
    first = min((run / "kept" / "snapshots").iterdir())
    content = bytearray(first.read_bytes())
    content[-1] ^= 1
    first.write_bytes(content)
    with pytest.raises(UserError, match=first.name):
        weights_of(run, 2, "x")
    assert weights_of(run, 4, "x")
    with pytest.raises(UserError, match="1 or more"):
        train(tmp_path / "other", 1, every=0)


def test_a_run_continues_without_a_snapshot_that_is_gone_and_says_so(tmp_path: Path) -> None:
    straight = train(tmp_path / "straight", 8)
    run = train(tmp_path, 5)
    gone = min((run / "kept" / "snapshots").iterdir())
    gone.unlink()
    assert train(tmp_path, 8) == run
    (warning,) = [row["text"] for row in read_rows(run / "events.jsonl") if row["event"] == "warning"]
    assert warning == f"1 kept file missing or damaged, not needed to train: snapshots/{gone.name}"
    ends = [read_manifest(folder / "checkpoints" / "00000008") for folder in (run, straight)]
    assert ends[0].fingerprint == ends[1].fingerprint
    with pytest.raises(UserError, match=gone.name):
        weights_of(run, 2, "x")
    assert weights_of(run, 8, "x")

"""The rendered task: nets trained on it, and their scores on animals that no training saw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from torch import nn

from ranks.data.prepared.say import say
from ranks.engine.config import RunConfig
from ranks.engine.distributed.rendezvous.process_env import available_cores
from ranks.engine.distributed.world import World
from ranks.engine.export.load_export import load_export
from ranks.engine.files.jsonl import iter_rows
from ranks.engine.runs.folder import METRICS_FILE
from ranks.engine.runs.metrics_rows import RowTotals
from ranks.workloads.video_behavior.clips.cut import ClipCutter
from ranks.workloads.video_behavior.clips.labelled import LabelledFrames
from ranks.workloads.video_behavior.config import Config
from ranks.workloads.video_behavior.net.r2plus1d import R2Plus1DNet
from ranks.workloads.video_behavior.scoring import BehaviorScores
from ranks.workloads.video_behavior.training import train
from ranks.workloads.video_behavior.validation import (
    LabelChoice,
    choose_labels,
    frame_scores,
    predict_frames,
    score_split,
)


@dataclass(frozen=True)
class TrainedNet:
    """A net after its training, and the seconds of all its iterations, validation and saves with them."""

    net: nn.Module
    cfg: Config
    seconds: float


def table_world(folder: Path, name: str, seed: int) -> World:
    """A world of one rank with all cores, whose run is in `folder`."""
    config = RunConfig(seed=seed, runs_dir=folder, name=name, threads=available_cores(), save_every="5m")
    return World.join(config, device="cpu", workload="video-behavior")


def trained(cfg: Config, data: LabelledFrames, folder: Path, name: str, seed: int) -> TrainedNet:
    """Train a net as `ranks train` does. A run of this name in the folder goes on, with the same number of cores, and a
    finished one is kept, with any number."""
    run = folder / name
    if not (run / "export" / "model.safetensors").exists():
        say(f"train {name}, {cfg.iterations:,} updates; ranks watch {run} shows its progress")
        world = table_world(folder, name, seed)
        try:
            train(cfg, world, data)
        finally:
            world.leave()
    net, _ = load_export(run / "export" / "model.safetensors", R2Plus1DNet, f"the net {name}")
    return TrainedNet(net, replace(cfg, classes=data.classes), training_s(run))


def chosen_labels(found: TrainedNet, data: LabelledFrames, folder: Path) -> LabelChoice:
    """How the probabilities of a net become labels, chosen on the validation animals of its training."""
    world = table_world(folder, "scores", 0)
    try:
        return choose_labels(found.net, ClipCutter(data, found.cfg.clips, world.device), found.cfg, world)
    finally:
        world.leave()


def training_s(folder: Path) -> float:
    """Seconds of all iterations of a run, over all its sessions."""
    totals = RowTotals()
    for row in iter_rows(folder / METRICS_FILE):
        totals.add(row)
    return totals.iterations_s


def scores_on(
    found: TrainedNet, choice: LabelChoice, data: LabelledFrames, folder: Path
) -> tuple[BehaviorScores, BehaviorScores]:
    """Scores of the test split before and after smoothing."""
    world = table_world(folder, "scores", 0)
    try:
        return score_split(found.net, ClipCutter(data, found.cfg.clips, world.device), "test", world, choice)
    finally:
        world.leave()


def f1_without_smoothing(found: TrainedNet, data: LabelledFrames, split: str, folder: Path) -> float:
    """Macro-F1 of a split by frame."""
    world = table_world(folder, "scores", 0)
    try:
        frames_n = data.frames_of(split)
        cutter = ClipCutter(data, found.cfg.clips, world.device)
        probability_nC = predict_frames(found.net, cutter, frames_n, world)
    finally:
        world.leave()
    return frame_scores(data, frames_n, probability_nC).macro_f1


def mean_and_range(values: Sequence[float]) -> str:
    """[0.8, 0.9] -> '0.850 (0.800 to 0.900)'."""
    return f"{np.mean(values):.3f} ({min(values):.3f} to {max(values):.3f})"

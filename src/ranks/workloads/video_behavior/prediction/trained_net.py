"""The trained net of a run, what its clips look like, and how its probabilities become labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import torch

from ranks.engine.config import RunConfig
from ranks.engine.config_file import overlay
from ranks.engine.distributed.world import World
from ranks.engine.export.load_export import load_export
from ranks.engine.runs.find_run import find_folder
from ranks.engine.runs.folder import RunFolder
from ranks.errors import UserError
from ranks.progress import ProgressBar
from ranks.workloads.video_behavior.clips.cut import ClipCutter
from ranks.workloads.video_behavior.clips.prepare import labelled_frames, picture_of
from ranks.workloads.video_behavior.config import Config
from ranks.workloads.video_behavior.net.mouse3d import Mouse3DNet
from ranks.workloads.video_behavior.net.nets import VideoNet
from ranks.workloads.video_behavior.net.r2plus1d import R2Plus1DNet
from ranks.workloads.video_behavior.net.x3d import X3DNet
from ranks.workloads.video_behavior.smoothing.label_rule import LabelRule, read_rule
from ranks.workloads.video_behavior.validation import choose_labels
from ranks.workloads.video_behavior.video.picture import Picture

NETS: dict[str, type[VideoNet]] = {"r2plus1d-s": R2Plus1DNet, "x3d-s": X3DNet, "mouse3d": Mouse3DNet}


@dataclass(frozen=True)
class TrainedVideoNet:
    """`cfg`: as the run keeps it. `sha256`: of the weights."""

    folder: Path
    cfg: Config
    engine: RunConfig
    net: VideoNet
    sha256: str
    device: torch.device

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes, the background first where training showed it."""
        return tuple(self.net.classes)

    @property
    def picture(self) -> Picture:
        """How frames are cut and scaled: as those of the training were."""
        return picture_of(self.cfg.clips, None)


def load_net(run: str, runs_dir: Path, device: torch.device) -> TrainedVideoNet:
    """The exported net of a run. Raises UserError where it is no run of video-behavior, or has no export."""
    asked = f"the run {run}"
    folder = find_folder(run, runs_dir, asked)
    content = RunFolder(folder).read_settings()
    if content["workload"] != "video-behavior":
        raise UserError(asked, f"a run of {content['workload']}", "name a run of video-behavior")
    if not (folder / "export").is_dir():
        raise UserError(asked, "it has no export yet", f"wait until it has finished, or run: ranks export {run}")
    cfg = overlay(Config(), content["config"], asked, "config")
    engine = overlay(RunConfig(), content["engine"], asked, "engine")
    net, sha256 = load_export(folder / "export" / "model.safetensors", NETS[cfg.net.name], asked)
    return TrainedVideoNet(folder, cfg, engine, net.to(device), sha256, device)


def rule_of(trained: TrainedVideoNet, bar: ProgressBar) -> LabelRule:
    """The rule that the run keeps for these weights. Where it keeps none, it is chosen on the validation videos, and
    kept; without the study, labels are not smoothed, and a line says so."""
    multi, num_classes = trained.cfg.labels == "multi", len(trained.classes)
    kept = read_rule(trained.folder, trained.sha256, num_classes, multi)
    if kept is not None:
        return kept
    bar.line("choosing the smoothing on the validation videos of the run, once")
    try:
        data = labelled_frames(trained.cfg)
    except UserError as error:
        bar.line(f"warning: labels are not smoothed: the study of the run cannot be read ({error.found})")
        return LabelRule.plain(num_classes, multi)
    world = World.join(replace(trained.engine, shares=None), device=str(trained.device), workload="video-behavior")
    try:
        choice = choose_labels(trained.net, ClipCutter(data, trained.cfg.clips, world.device), trained.cfg, world)
    finally:
        world.leave()
    for line in choice.lines:
        bar.line(line)
    choice.rule.write(trained.folder, trained.sha256)
    return choice.rule

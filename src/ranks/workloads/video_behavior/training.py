"""Training: name what the animal does in the centre frame of a clip.

The first command of a study renders or reads its videos, decodes them once, and keeps the frames.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import nn

from ranks.engine.distributed.world import World
from ranks.engine.runs.run import Run
from ranks.engine.runs.summary import Summary
from ranks.engine.update.learner import Learner
from ranks.engine.update.loss import Loss
from ranks.engine.update.step import StepStats
from ranks.workloads.video_behavior.clips.balance import study_lines
from ranks.workloads.video_behavior.clips.cut import ClipCutter, ReadClips
from ranks.workloads.video_behavior.clips.labelled import LabelledFrames
from ranks.workloads.video_behavior.clips.prepare import classes_of, kept_settings, labelled_frames
from ranks.workloads.video_behavior.clips.stream import ClipStream
from ranks.workloads.video_behavior.config import Config
from ranks.workloads.video_behavior.net.layout import choose_layout
from ranks.workloads.video_behavior.net.losses import BehaviorLossSettings, behavior_loss
from ranks.workloads.video_behavior.net.nets import VideoNet, make_net
from ranks.workloads.video_behavior.validation import validate


def build(cfg: Config) -> VideoNet:
    """The untrained network, for the classes of the study."""
    return make_net(cfg, cfg.classes or classes_of(cfg))


def train(cfg: Config, world: World, data: LabelledFrames | None = None) -> Summary:
    """Train a network on the clips of a study. `data`: by default the frames that the settings name."""
    data = data or labelled_frames(cfg)
    cfg = kept_settings(cfg, data)
    cutter = ClipCutter(data, cfg.clips, world.device)
    clips = ClipStream(cutter, cfg, world)
    net = build(cfg)
    layout = choose_layout(net, cfg.clips, cfg.global_batch // world.size, world)
    learner = Learner(net, cfg.optim, world, global_batch=cfg.global_batch, updates=cfg.iterations)
    settings = BehaviorLossSettings.of(clips.balance, len(data.classes), data.multi, world.device)

    def loss(net: nn.Module, read: ReadClips) -> Loss:
        return behavior_loss(net, clips.augmented(read), settings=settings)

    best, epoch = BestScore(), list[StepStats]()
    with Run.open(cfg, world, keep=dict(learner=learner, best=best), data=data.sha256) as run:
        for line in (
            *study_lines(data, clips.balance),
            clips.mirrors,
            f"{learner.num_parameters:,} parameters; {layout}",
        ):
            world.session.note(line)
        for iteration in run.iterations(cfg.iterations):
            epoch.append(learner.step(loss, clips.at(iteration)))
            run.log(epoch[-1])
            if run.every(cfg.eval_every):
                learned, epoch = means(epoch), list[StepStats]()
                found = validate(learner.model, cutter, "val", cfg.eval_stride, world)
                is_best = best.update(found["macro_f1"])
                run.log(found, prefix="val")
                run.save(score=-found["macro_f1"])
                world.session.note(epoch_line((iteration + 1) / cfg.updates_per_epoch, learned, found, is_best))
    return run.finish(export=learner.model)


class BestScore:
    """The best macro-F1 of the validations so far; a run keeps it."""

    def __init__(self) -> None:
        self.macro_f1 = -1.0

    def update(self, macro_f1: float) -> bool:
        """Whether this one is the best."""
        is_best = macro_f1 > self.macro_f1
        self.macro_f1 = max(self.macro_f1, macro_f1) if is_best else self.macro_f1
        return is_best

    def state_dict(self) -> dict[str, Any]:
        return {"macro_f1": self.macro_f1}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.macro_f1 = float(state["macro_f1"])


def means(steps: Sequence[StepStats]) -> dict[str, float]:
    """The mean loss and accuracy of some updates, whose votes have been read."""
    votes = [step.read().values for step in steps]
    return {name: sum(values[name] for values in votes) / len(votes) for name in ("loss", "accuracy")}


def epoch_line(epochs: float, learned: Mapping[str, float], found: Mapping[str, float], is_best: bool) -> str:
    """What the person who watches sees after each validation."""
    training = f"train loss {learned['loss']:.3f}, accuracy {learned['accuracy']:.1%}"
    validation = f"loss {found['loss']:.3f}, accuracy {found['accuracy']:.1%}, macro-F1 {found['macro_f1']:.3f}"
    return f"epoch {epochs:.3g}: {training}; validation {validation}{'; saved best' if is_best else ''}"

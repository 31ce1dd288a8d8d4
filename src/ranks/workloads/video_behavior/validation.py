"""Evaluation: probabilities of frames, each computed once on one rank, and metrics from those of all ranks.

Every rank gets the probabilities of all frames in order, and computes the same metrics from them. So the results do not
depend on the number of ranks, and no frame counts twice.

Legend: N frames, C classes, B clips.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from ranks.engine.distributed.world import World
from ranks.engine.update.evaluate import eval_mode
from ranks.workloads.video_behavior.clips.augment import scaled
from ranks.workloads.video_behavior.clips.balance import class_balance
from ranks.workloads.video_behavior.clips.cut import ClipCutter
from ranks.workloads.video_behavior.clips.labelled import LabelledFrames, split_bouts
from ranks.workloads.video_behavior.clips.prepare import labelled_frames
from ranks.workloads.video_behavior.config import Config
from ranks.workloads.video_behavior.metrics.frames import (
    FrameMetrics,
    confusion_counts,
    frame_metrics,
    multi_label_counts,
    multi_label_metrics,
)
from ranks.workloads.video_behavior.net.losses import probabilities
from ranks.workloads.video_behavior.scoring import (
    BehaviorScores,
    VideoPrediction,
    by_video,
    score,
    score_lines,
    score_values,
)
from ranks.workloads.video_behavior.smoothing.label_rule import LabelRule
from ranks.workloads.video_behavior.smoothing.smoothing import Smoothing, choose_smoothing, shown_or_not

MAX_CLIPS = 64
"""Clips of one forward pass."""
Ints = npt.NDArray[np.int64]
Probabilities = npt.NDArray[np.float64]


def predict_frames(model: nn.Module, cutter: ClipCutter, frames_n: Ints, world: World) -> Probabilities:
    """float64[n, C]: the probabilities of these frames, on every rank. Every rank calls it.

    With --exact a pass covers frames of one shard, so the result is the same bits on any number of ranks.
    """
    frames = torch.from_numpy(frames_n)
    num_classes = len(cutter.data.classes)
    mine = [torch.empty(0, num_classes, device=world.device)]
    with world.session.timed("evaluation"), eval_mode(model, world):
        passes = _passes(world, len(frames))
        for number, ids in enumerate(passes):
            world.check_stop()
            world.session.progress("evaluation", number, len(passes))
            clips_BTHW = scaled(cutter.cut(frames[ids.start : ids.stop], torch.arange(ids.start, ids.stop)).clips_BTHW)
            mine.append(probabilities(model(clips_BTHW).float(), cutter.data.multi))
        return world.gather_rows(torch.cat(mine), len(frames)).cpu().numpy().astype(np.float64)


def _passes(world: World, num_frames: int) -> list[range]:
    """The frames of each pass of this rank, in order."""
    parts = [part for _, part in world.shard_items(num_frames)] if world.exact else [world.items(num_frames)]
    return [part[i : i + MAX_CLIPS] for part in parts for i in range(0, len(part), MAX_CLIPS)]


def frame_scores(data: LabelledFrames, frames_n: Ints, probability_nC: Probabilities) -> FrameMetrics:
    """Metrics by frame of the likeliest class, or with overlapping behaviours of each class above one half."""
    if data.multi:
        return multi_label_metrics(multi_label_counts(data.label_NC[frames_n], shown(probability_nC)))
    return frame_metrics(confusion_counts(data.class_N[frames_n], probability_nC.argmax(1), len(data.classes)))


def shown(probability_nC: Probabilities) -> npt.NDArray[np.uint8]:
    """uint8[n, C]: the behaviours that are more likely than not."""
    return (probability_nC > 0.5).astype(np.uint8)


def log_loss(data: LabelledFrames, frames_n: Ints, probability_nC: Probabilities) -> float:
    """The mean negative log-likelihood of the labels, of one class in the mean with overlapping behaviours."""
    truth_nC = data.label_NC[frames_n].astype(np.float64)
    safe_nC = np.clip(probability_nC, 1e-12, 1.0)
    if not data.multi:
        return float(-(np.log(safe_nC) * truth_nC).sum(1).mean())
    return float(
        -(np.log(safe_nC) * truth_nC + np.log(np.clip(1 - probability_nC, 1e-12, 1.0)) * (1 - truth_nC)).mean()
    )


def validate(model: nn.Module, cutter: ClipCutter, split: str, stride: int, world: World) -> dict[str, float]:
    """Loss, accuracy and macro-F1 over every so many frames of a split. Every rank calls it."""
    frames_n = cutter.data.frames_of(split, stride)
    probability_nC = predict_frames(model, cutter, frames_n, world)
    scores = frame_scores(cutter.data, frames_n, probability_nC)
    loss = log_loss(cutter.data, frames_n, probability_nC)
    return {"loss": loss, "accuracy": scores.accuracy, "macro_f1": scores.macro_f1}


@dataclass(frozen=True)
class LabelChoice:
    """How probabilities become labels, chosen on the validation videos. `lines`: the metrics there before and after."""

    rule: LabelRule
    lines: tuple[str, ...]


def likeliest(probability_NC: Probabilities, multi: bool) -> Ints:
    """int64[N], or with overlapping behaviours int64[N, C]: labels without smoothing."""
    return shown(probability_NC).astype(np.int64) if multi else probability_NC.argmax(1)


def choose_labels(model: nn.Module, cutter: ClipCutter, cfg: Config, world: World) -> LabelChoice:
    """Smoothing, with overlapping behaviours of each behaviour by itself, chosen on the split "val". `cfg`: of the
    training. Every rank calls it and gets the same."""
    data = cutter.data
    videos = by_video(data, "val", predict_frames(model, cutter, data.all_frames_of("val"), world))
    if data.multi:
        return _choose_one_by_one(data, videos)
    training = [data.class_N[v.first_frame : v.first_frame + v.num_frames] for v in data.videos_of("train")]
    balance = class_balance(split_bouts(data, "train"), data.classes, cfg.imbalance, cfg.imbalance_power)
    chosen = choose_smoothing(
        [video.probability_NC for video in videos],
        [video.truth for video in videos],
        training,
        len(data.classes),
        excluded=data.excluded,
        prior_C=balance.prior_C.tolist(),
    )
    return LabelChoice(LabelRule((chosen.smoothing,)), (*chosen.lines(), chosen.rule))


def _choose_one_by_one(data: LabelledFrames, videos: Sequence[VideoPrediction]) -> LabelChoice:
    """The smoothing of each behaviour, as two classes: not shown, and shown."""
    training = [data.label_NC[v.first_frame : v.first_frame + v.num_frames] for v in data.videos_of("train")]
    smoothings, lines, rule = list[Smoothing](), list[str](), ""
    for c, name in enumerate(data.classes):
        chosen = choose_smoothing(
            [shown_or_not(video.probability_NC[:, c]) for video in videos],
            [video.truth[:, c] for video in videos],
            [label_NC[:, c].astype(np.int64) for label_NC in training],
            2,
            excluded=(0,),
        )
        smoothings.append(chosen.smoothing)
        lines += chosen.lines(f"validation, {name}")
        rule = chosen.rule
    return LabelChoice(LabelRule(tuple(smoothings), multi=True), (*lines, rule))


def score_split(
    model: nn.Module, cutter: ClipCutter, split: str, world: World, choice: LabelChoice
) -> tuple[BehaviorScores, BehaviorScores]:
    """The scores of a split before and after smoothing. Every rank calls it and gets the same."""
    data = cutter.data
    videos = by_video(data, split, predict_frames(model, cutter, data.all_frames_of(split), world))
    raw = score(videos, [likeliest(video.probability_NC, data.multi) for video in videos], data.excluded)
    return raw, score(videos, [choice.rule.labels(video.probability_NC) for video in videos], data.excluded)


def evaluate(model: nn.Module, cfg: Config, world: World) -> dict[str, float]:
    """The scores of the test split, printed as tables: by frame and by bout, with intervals over animals, before and
    after smoothing. The values are those after smoothing, and as `raw/...` those before."""
    data = labelled_frames(cfg)
    cutter = ClipCutter(data, cfg.clips, world.device)
    choice = choose_labels(model, cutter, cfg, world)
    raw, smoothed = score_split(model, cutter, "test", world, choice)
    if world.rank == 0:
        lines = score_lines("test animals, no smoothing", raw, data.classes)
        lines += [*choice.lines, *score_lines("test animals, smoothed", smoothed, data.classes)]
        print("\n".join(lines), file=sys.stderr, flush=True)
    before = {f"raw/{name}": value for name, value in score_values(raw, data.classes).items()}
    return score_values(smoothed, data.classes) | before

"""What the net of a run says about the animals of a split: the numbers behind all pictures of a report.

Legend: N frames of a video, n frames of all videos, C classes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ranks.engine.distributed.world import World
from ranks.workloads.video_behavior.clips.cut import ClipCutter
from ranks.workloads.video_behavior.clips.labelled import LabelledFrames, LabelledVideo
from ranks.workloads.video_behavior.metrics.bouts import bouts_of, multi_label_bouts
from ranks.workloads.video_behavior.metrics.frames import Floats, Ints
from ranks.workloads.video_behavior.prediction.trained_net import TrainedVideoNet
from ranks.workloads.video_behavior.scoring import BehaviorScores, VideoPrediction, by_video, score
from ranks.workloads.video_behavior.smoothing.label_rule import LabelRule
from ranks.workloads.video_behavior.validation import predict_frames


@dataclass(frozen=True)
class SeenVideo:
    """One video: the labels of the person and of the net after smoothing, int64[N] or int64[N, C] where behaviours
    overlap, and the probabilities of the net."""

    video: LabelledVideo
    truth: Ints
    labels: Ints
    probability_NC: Floats

    @property
    def animal(self) -> str:
        """Its animal, or the video where that is unknown."""
        return self.video.animal or self.video.name

    @property
    def frame_s(self) -> float:
        """Seconds from one frame to the next, on average."""
        return float(np.diff(self.video.times_s_N).mean()) if self.video.num_frames > 1 else 0.0

    def bouts(self, labels: Ints) -> Ints:
        """int64[K, 3]: class, first frame and frame after the last of each bout."""
        return multi_label_bouts(labels) if labels.ndim == 2 else bouts_of(labels)


@dataclass(frozen=True)
class SeenSplit:
    """All videos of a split, and the scores of the labels after smoothing."""

    data: LabelledFrames
    videos: tuple[SeenVideo, ...]
    scores: BehaviorScores

    @property
    def classes(self) -> tuple[str, ...]:
        """The background first, where frames show it."""
        return self.data.classes

    @property
    def multi(self) -> bool:
        """Whether behaviours overlap."""
        return self.data.multi

    def counted(self) -> tuple[Floats, Ints, Ints]:
        """(probabilities [n, C], true labels, labels of the net) of the frames that metrics count."""
        probability, truth, labels = (
            np.concatenate([getattr(seen, name) for seen in self.videos])
            for name in ("probability_NC", "truth", "labels")
        )
        kept = np.ones(len(truth), np.bool_) if self.multi else truth >= 0
        return probability[kept], truth[kept], labels[kept]


def see_split(trained: TrainedVideoNet, data: LabelledFrames, split: str, rule: LabelRule) -> SeenSplit:
    """Label the videos of a split with a net, and score the labels. Raises UserError."""
    world = World.join(replace(trained.engine, shares=None), device=str(trained.device), workload="video-behavior")
    try:
        cutter = ClipCutter(data, trained.cfg.clips, world.device)
        probability_nC = predict_frames(trained.net, cutter, data.all_frames_of(split), world)
    finally:
        world.leave()
    predicted: list[VideoPrediction] = by_video(data, split, probability_nC)
    labels = [rule.labels(video.probability_NC) for video in predicted]
    scores = score(predicted, labels, data.excluded)
    videos = zip(data.videos_of(split), predicted, labels, strict=True)
    return SeenSplit(data, tuple(SeenVideo(v, p.truth, found, p.probability_NC) for v, p, found in videos), scores)

"""What must lose against the net: the most frequent class, the energy of frame differences, one frame.

Legend: N frames, T frames of a clip, C classes, F features.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from ranks.engine.sharding import rng
from ranks.workloads.video_behavior.clips.cut import ClipCutter
from ranks.workloads.video_behavior.clips.labelled import Ints, LabelledFrames, LabelledVideo
from ranks.workloads.video_behavior.validation import frame_scores

PASS_FRAMES = 256
MAX_STEPS = 200
PENALTY = 1e-4
"""Factor of the squared weights of the logistic regression."""


def majority_f1(training: LabelledFrames, data: LabelledFrames, split: str) -> float:
    """Macro-F1 of always predicting the most frequent class of the training split."""
    frequent = np.bincount(training.class_N[training.frames_of("train")], minlength=len(training.classes)).argmax()
    frames_n = data.frames_of(split)
    return frame_scores(data, frames_n, np.tile(np.eye(len(data.classes))[frequent], (len(frames_n), 1))).macro_f1


def difference_energies(cutter: ClipCutter, frames_n: Ints) -> Tensor:
    """float64[n, F]: the logarithms of the mean absolute and squared differences between consecutive frames of each
    clip, then their means and largest values."""
    frames = torch.from_numpy(frames_n)
    parts: list[Tensor] = []
    for some in frames.split(PASS_FRAMES):
        clips_BTHW = cutter.cut(some, some).clips_BTHW.double()
        change_BTHW = clips_BTHW.diff(dim=1)
        energies = torch.cat([change_BTHW.abs().mean((2, 3)), change_BTHW.square().mean((2, 3))], 1)
        energies = torch.cat([energies, energies.mean(1, keepdim=True), energies.amax(1, keepdim=True)], 1)
        parts.append((energies + 1e-3).log().cpu())
    return torch.cat(parts)


def fit_logistic(features_NF: Tensor, class_N: Tensor, num_classes: int) -> Tensor:
    """float64[F + 1, C]: the weights of a multinomial logistic regression in which all classes count the same, with a
    small penalty, by L-BFGS."""
    share_C = torch.bincount(class_N, minlength=num_classes) / len(class_N)
    weight_C = 1 / (share_C.double() * num_classes).clamp(min=1e-9)
    weights = torch.zeros(features_NF.shape[1] + 1, num_classes, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([weights], max_iter=MAX_STEPS, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(with_one(features_NF) @ weights, class_N, weight_C)
        loss = loss + PENALTY * weights[:-1].square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)  # pyright: ignore[reportArgumentType]
    return weights.detach()


def with_one(features_NF: Tensor) -> Tensor:
    """float64[N, F + 1]: the features and a 1."""
    return torch.cat([features_NF, features_NF.new_ones(len(features_NF), 1)], 1)


def energy_f1(training: ClipCutter, cutter: ClipCutter, split: str, stride: int) -> float:
    """Macro-F1 of a logistic regression on the energies of frame differences, fitted on every so many frames of the
    training split of `training`, and scored on a split of `cutter`."""
    train_n, split_n = training.data.frames_of("train", stride), cutter.data.frames_of(split)
    train_NF, split_NF = difference_energies(training, train_n), difference_energies(cutter, split_n)
    mean_F, deviation_F = train_NF.mean(0), train_NF.std(0) + 1e-9
    class_n = torch.from_numpy(training.data.class_N[train_n])
    weights = fit_logistic((train_NF - mean_F) / deviation_F, class_n, len(training.data.classes))
    probability_nC = (with_one((split_NF - mean_F) / deviation_F) @ weights).softmax(1).numpy()
    return frame_scores(cutter.data, split_n, probability_nC).macro_f1


def split_by_clip(data: LabelledFrames, piece_frames: int, seed: int) -> LabelledFrames:
    """The same frames, split as the origin did: every video is cut into pieces, and the pieces are split at random in
    the shares of the videos. So each animal is on all sides."""
    pieces = [piece for video in data.videos for piece in _pieces(video, piece_frames)]
    counts = {split: len(data.videos_of(split)) for split in ("train", "val", "test")}
    edges = np.cumsum(list(counts.values())) / sum(counts.values()) * len(pieces)
    rank_V = np.empty(len(pieces), np.int64)
    rank_V[rng.permutation(rng.key(seed, "split by clip", 0), len(pieces)).numpy()] = np.arange(len(pieces))
    names = list(counts)
    splits = [names[int(np.searchsorted(edges, rank, side="right"))] for rank in rank_V.tolist()]
    return replace(data, videos=tuple(replace(piece, split=split) for piece, split in zip(pieces, splits, strict=True)))


def _pieces(video: LabelledVideo, piece_frames: int) -> list[LabelledVideo]:
    starts = range(0, video.num_frames, piece_frames)
    return [
        replace(
            video,
            name=f"{video.name} from frame {start}",
            first_frame=video.first_frame + start,
            num_frames=min(piece_frames, video.num_frames - start),
            times_s_N=video.times_s_N[start : start + piece_frames],
        )
        for start in starts
    ]

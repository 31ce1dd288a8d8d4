"""The contact sheet of the worst confusions: what the net saw where it was surest and wrong.

Legend: N frames, C classes, H, W pixels.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ranks.watch.report.figures import panels, save
from ranks.workloads.video_behavior.config import ClipConfig
from ranks.workloads.video_behavior.report.agreement_pictures import confusion_of
from ranks.workloads.video_behavior.report.seen import SeenSplit, SeenVideo

MOST_PAIRS, CLIPS_OF_A_PAIR, FRAMES_SHOWN = 5, 2, 7


@dataclass(frozen=True)
class Confusion:
    """A frame of a bout that the net names wrongly. `probability`: of the class that the net names."""

    seen: SeenVideo
    frame: int
    true: int
    named: int
    probability: float


def worst_confusions(seen: SeenSplit) -> list[Confusion]:
    """Of the pairs of classes that are confused most often, by the share of the true class: the frames where the net is
    surest, at most one of a bout. Only of behaviours that exclude each other."""
    counts_CC = confusion_of(seen)
    share_CC = counts_CC / np.maximum(counts_CC.sum(1, keepdims=True), 1)
    np.fill_diagonal(share_CC, 0.0)
    order = np.argsort(-share_CC, axis=None, kind="stable")[:MOST_PAIRS]
    found: list[Confusion] = []
    for true, named in (divmod(int(at), len(seen.classes)) for at in order):
        if share_CC[true, named] > 0:
            of_pair = [one for video in seen.videos for one in _of_video(video, true, named)]
            found += sorted(of_pair, key=lambda one: -one.probability)[:CLIPS_OF_A_PAIR]
    return found


def _of_video(seen: SeenVideo, true: int, named: int) -> list[Confusion]:
    """The surest frame of each bout of the class `true` in which the net names `named`."""
    found: list[Confusion] = []
    for c, first, stop in seen.bouts(seen.truth).tolist():
        wrong_n = first + np.flatnonzero(seen.labels[first:stop] == named) if c == true else np.zeros(0, np.int64)
        if len(wrong_n):
            frame = int(wrong_n[seen.probability_NC[wrong_n, named].argmax()])
            found.append(Confusion(seen, frame, true, named, float(seen.probability_NC[frame, named])))
    return found


def draw_contact_sheet(seen: SeenSplit, clips: ClipConfig, path: Path) -> bool:
    """A row of frames for each of the worst confusions, the labelled frame in the middle. False where nothing is
    confused."""
    found = worst_confusions(seen)
    if not found:
        return False
    figure, axes = panels(len(found), FRAMES_SHOWN, (9, 1.62 * len(found)))
    reach = clips.stride * (clips.frames // 2)
    offsets = np.linspace(-reach, reach, FRAMES_SHOWN).round().astype(np.int64)
    for row, one in enumerate(found):
        video = one.seen.video
        frames_T = video.first_frame + np.clip(one.frame + offsets, 0, video.num_frames - 1)
        shown_THW = np.empty((1, FRAMES_SHOWN, clips.size, clips.size), np.uint8)
        seen.data.store.take_clips(frames_T[None], shown_THW)
        for column, (panel, frame_HW) in enumerate(
            zip(axes[row * FRAMES_SHOWN :][:FRAMES_SHOWN], shown_THW[0], strict=True)
        ):
            panel.grid(visible=False)
            panel.imshow(frame_HW, cmap="gray", vmin=0, vmax=255)
            panel.set_xticks([])
            panel.set_yticks([])
            panel.set_xlabel("labelled frame" if offsets[column] == 0 else f"{offsets[column]:+d}", fontsize=7)
        text = f"{seen.classes[one.true]}, named {seen.classes[one.named]} with {one.probability:.0%}"
        time_s = float(video.times_s_N[one.frame])
        middle = axes[row * FRAMES_SHOWN + FRAMES_SHOWN // 2]  # a long title in the middle widens no panel
        middle.set_title(f"{text}: {video.name} at {time_s:.2f} s", fontsize=8)
    save(figure, path)
    return True

"""The contact sheet of the worst confusions: what the net saw where it was surest and wrong.

Legend: N frames, C classes, H, W pixels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ranks.watch.report.figures import panels, save
from ranks.workloads.video_behavior.config import ClipConfig
from ranks.workloads.video_behavior.metrics.frames import Floats, Ints
from ranks.workloads.video_behavior.report.agreement_pictures import confusion_of
from ranks.workloads.video_behavior.report.seen import SeenSplit, SeenVideo

MOST_PAIRS, CLIPS_OF_A_PAIR, FRAMES_SHOWN = 5, 2, 7


@dataclass(frozen=True)
class Confusion:
    """A frame of a bout that the net names wrongly."""

    seen: SeenVideo
    frame: int
    true: str
    named: str
    probability: float
    """Of what the net says."""


def worst_confusions(seen: SeenSplit) -> list[Confusion]:
    """Of what is confused most often: the frames where the net is surest, at most one of a bout.

    Of behaviours that exclude each other these are pairs, by the share of the true class. Of behaviours that may
    overlap: one that is missed, by its share of the true frames, or named where it is not, by its share of the named.
    """
    found: list[Confusion] = []
    for _, of_pair in sorted(_pairs(seen), key=lambda pair: -pair[0])[:MOST_PAIRS]:
        found += sorted(of_pair(), key=lambda one: -one.probability)[:CLIPS_OF_A_PAIR]
    return found


def _pairs(seen: SeenSplit) -> Iterator[tuple[float, Callable[[], list[Confusion]]]]:
    """(share, the confused frames) of everything that is confused."""
    counts, names = confusion_of(seen), seen.classes
    for c, name in enumerate(names):
        if seen.multi:
            of_true, of_named = counts[c, 1].sum(), counts[c, :, 1].sum()
            if counts[c, 1, 0]:
                yield counts[c, 1, 0] / of_true, partial(_missed, seen, c, name)
            if counts[c, 0, 1]:
                yield counts[c, 0, 1] / of_named, partial(_named_wrongly, seen, c, name)
            continue
        for other, count in enumerate(counts[c].tolist()):
            if count and other != c:
                yield count / counts[c].sum(), partial(_exchanged, seen, c, other)


def _exchanged(seen: SeenSplit, true: int, named: int) -> list[Confusion]:
    """The surest frame of each bout of the class `true` in which the net names `named`."""
    return [
        Confusion(video, frame, seen.classes[true], seen.classes[named], float(video.probability_NC[frame, named]))
        for video in seen.videos
        for frame in _surest(video.bouts(video.truth), true, video.labels == named, video.probability_NC[:, named])
    ]


def _missed(seen: SeenSplit, c: int, name: str) -> list[Confusion]:
    return [
        Confusion(video, frame, name, f"no {name}", float(1 - video.probability_NC[frame, c]))
        for video in seen.videos
        for frame in _surest(video.bouts(video.truth), c, video.labels[:, c] == 0, 1 - video.probability_NC[:, c])
    ]


def _named_wrongly(seen: SeenSplit, c: int, name: str) -> list[Confusion]:
    return [
        Confusion(video, frame, f"no {name}", name, float(video.probability_NC[frame, c]))
        for video in seen.videos
        for frame in _surest(video.bouts(video.labels), c, video.truth[:, c] == 0, video.probability_NC[:, c])
    ]


def _surest(bouts_K3: Ints, c: int, wrong_N: npt.NDArray[np.bool_], probability_N: Floats) -> Iterator[int]:
    """The wrong frame with the largest probability in each bout of a class."""
    for _, first, stop in bouts_K3[bouts_K3[:, 0] == c].tolist():
        wrong_n = first + np.flatnonzero(wrong_N[first:stop])
        if len(wrong_n):
            yield int(wrong_n[probability_N[wrong_n].argmax()])


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
        text = f"{one.true}, named {one.named} with {one.probability:.0%}"
        time_s = float(video.times_s_N[one.frame])
        middle = axes[row * FRAMES_SHOWN + FRAMES_SHOWN // 2]  # a long title in the middle widens no panel
        middle.set_title(f"{text}: {video.name} at {time_s:.2f} s", fontsize=8)
    save(figure, path)
    return True

"""The ethogram of a video, and the video with the label in it.

Legend: N frames, H, W pixels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ranks.workloads.video_behavior.annotations.events import Event
from ranks.workloads.video_behavior.metrics.frames import Ints
from ranks.workloads.video_behavior.video.decode import FrameBlock

COLORS = ("#9e9e9e", "#4878cf", "#ee854a", "#6acc65", "#d65f5f", "#956cb4", "#8c613c", "#dc7ec0", "#d5bb67", "#82c6e2")
BAR = 0.08
"""Height of the coloured bar of the overlay, as a share of the frame."""
LEAST_SIDE = 256
"""Smaller frames are enlarged for the overlay, so that its text can be read."""


def color_of(index: int) -> str:
    """The colour of a class."""
    return COLORS[index % len(COLORS)]


def draw_ethogram(
    path: Path, title: str, classes: Sequence[str], net: Sequence[Event], person: Sequence[Event] | None, end_s: float
) -> None:
    """Write a picture: a row for each behaviour, its bouts over time; a person's above the net's in each row."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(12, 0.6 + 0.45 * len(classes)), layout="constrained")
    try:
        for row, behavior in enumerate(classes):
            for source, (events, low, height) in {
                "net": (net, -0.4, 0.38),
                "person": (person or (), 0.02, 0.38),
            }.items():
                bouts = [(e.start_s, max(e.end_s - e.start_s, end_s / 2000)) for e in events if e.behavior == behavior]
                shade = color_of(row) if source == "net" else "#222222"
                axes.broken_barh(bouts, (row + low, height), facecolors=shade)
        axes.set_yticks(range(len(classes)), classes)
        axes.set_ylim(len(classes) - 0.5, -0.5)
        axes.set_xlim(0, end_s)
        axes.set_xlabel("seconds")
        axes.set_title(title + (": the net in colour, a person in black" if person is not None else ""), fontsize=10)
        figure.savefig(path, dpi=110)
    finally:
        pyplot.close(figure)


def overlaid(blocks: Iterator[FrameBlock], labels: Ints, classes: Sequence[str]) -> Iterator[NDArray[np.uint8]]:
    """uint8[N, H, W, 3]: the frames with a bar in the colour of the label, and its name."""
    from PIL import Image, ImageDraw

    at = 0
    for block in blocks:
        frames = list[NDArray[np.uint8]]()
        for frame_hw in block.frames_NHW:
            shown = [int(labels[at])] if labels.ndim == 1 else np.flatnonzero(labels[at]).tolist()
            picture = Image.fromarray(frame_hw).convert("RGB")
            factor = -(-LEAST_SIDE // min(picture.size))
            if factor > 1:
                picture = picture.resize((factor * picture.width, factor * picture.height))
            draw, height = ImageDraw.Draw(picture), max(14, round(BAR * picture.height))
            for place, c in enumerate(shown):
                left, right = (picture.width * i // len(shown) for i in (place, place + 1))
                draw.rectangle((left, picture.height - height, right, picture.height), fill=color_of(c))
                draw.text((left + 4, picture.height - height + 1), classes[c], fill="white")
            frames.append(np.asarray(picture))
            at += 1
        yield np.stack(frames)

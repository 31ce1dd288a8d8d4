"""The command `ranks video-behavior agree`: how two annotations of one video agree.

Imports NumPy inside the function only, so that `--help` answers at once.
"""

from __future__ import annotations

import json as json_format
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ranks.errors import UserError

if TYPE_CHECKING:
    from ranks.workloads.video_behavior.annotations.events import Annotation
    from ranks.workloads.video_behavior.metrics.agreement import RaterAgreement

BACKGROUND = "background"


def agree(
    first: Path,
    second: Path,
    /,
    *,
    fps: float | None = None,
    video: str | None = None,
    subject: str | None = None,
    merge: str = "",
    background: str = "background",
    json: Path | None = None,
) -> int:
    """Compare two annotations of one video: two raters, or a rater and a net.

    Args:
        first: An annotation file: BORIS, Caltech, or a table by frame such as predict writes.
        second: Another one; the formats may differ.
        fps: Frames a second; by default the rate that the files name, or 25.
        video: The media file or observation, where a file has several.
        subject: Compare only the events of this subject.
        merge: Behaviours to rename in both files, as 3->1,5->1.
        background: The class of frames without a code.
        json: Write the figures to this file as well.

    Frames are compared up to the later end of the two. Prints Cohen's kappa, F1 and bout F1 by
    class; they do not depend on the order of the two files. Behaviours must exclude each other.
    """
    from ranks.workloads.video_behavior.annotations.delimited import write_text
    from ranks.workloads.video_behavior.annotations.frame_labels import SAME_RATE, exclusive_labels, nominal_times
    from ranks.workloads.video_behavior.annotations.read import (
        RateUnknown,
        merged,
        parse_merge,
        read_annotation,
    )
    from ranks.workloads.video_behavior.metrics.agreement import agreement_of
    from ranks.workloads.video_behavior.study.study import NOMINAL_FPS

    asked = f"ranks video-behavior agree {first} {second}"
    if fps is not None and not 0.01 <= fps <= 1e6:
        raise UserError(f"--fps {fps:g}", "not a frame rate", "give the frames a second of the video")
    names = parse_merge(merge)
    read: dict[Path, Annotation] = {}
    for path in (first, second):
        with suppress(RateUnknown):
            read[path] = read_annotation(path, subject, video=video, fps=fps)
    named = next((one.fps for one in read.values() if one.fps is not None), NOMINAL_FPS)
    for path in (first, second):  # a file that counts frames has the rate of the other one
        read[path] = read.get(path) or read_annotation(path, subject, video=video, fps=named)
    pair = [merged(read[path], names) for path in (first, second)]
    rates = [one.fps for one in pair if one.fps is not None]
    if len(rates) == 2 and abs(rates[0] / rates[1] - 1) > SAME_RATE:
        found = f"{rates[0]:g} frames a second in {first}, {rates[1]:g} in {second}"
        raise UserError(asked, found, "give two annotations of the same video")
    rate = fps or (rates[0] if rates else NOMINAL_FPS)
    end_s = max([one.duration_s or 0.0 for one in pair] + [event.end_s for one in pair for event in one.events])
    num_frames = round(end_s * rate)
    if num_frames < 1:
        raise UserError(asked, "no frame and no event in either file", "give two annotations of the same video")
    if num_frames > 100_000_000:
        raise UserError(asked, f"{num_frames:,} frames at {rate:g} frames a second", "check --fps")
    classes = (background, *sorted({event.behavior for one in pair for event in one.events} - {background}))
    times_s_N = nominal_times(num_frames, rate)
    labels = [exclusive_labels(one, classes, times_s_N, unlabelled="background") for one in pair]
    found = agreement_of(labels[0], labels[1], len(classes))
    print(f"first: {first}\nsecond: {second}\n{num_frames:,} frames at {rate:g} frames a second")
    print("\n".join(_lines(found, classes)))
    if json is not None:
        content = {"first": str(first), "second": str(second), "fps": rate, **_figures(found, classes)}
        write_text(json, json_format.dumps(content, indent=1) + "\n")
        print(f"figures: {json}")
    return 0


def _lines(found: RaterAgreement, classes: tuple[str, ...]) -> list[str]:
    """The table on the terminal."""
    width = max(len("class"), *map(len, classes))
    lines = [
        f"Cohen's kappa {found.kappa:.3f}; the same label in {found.agreement:.1%} of frames",
        f"{'class':<{width}}  {'frames 1st':>10}  {'2nd':>9}  {'F1':>6}  {'bouts 1st':>9}  {'2nd':>6}  {'bout F1':>7}",
    ]
    for c, name in enumerate(classes):
        frames = f"{found.frames_C[0][c]:>10,}  {found.frames_C[1][c]:>9,}  {found.f1_C[c]:>6.3f}"
        bouts = f"{found.bouts.truth_C[c]:>9,}  {found.bouts.predicted_C[c]:>6,}  {found.bout_f1_C[c]:>7.3f}"
        lines.append(f"{name:<{width}}  {frames}  {bouts}")
    return [*lines, "bout F1: bouts matched one to one at an IoU of 0.5 or more; nan: neither file shows the class"]


def _figures(found: RaterAgreement, classes: tuple[str, ...]) -> dict[str, object]:
    """What --json writes; null where a figure is not defined."""

    def finite(value: float) -> float | None:
        return float(value) if value == value else None

    by_class = {
        name: {
            "frames": [int(frames_C[c]) for frames_C in found.frames_C],
            "f1": finite(found.f1_C[c]),
            "bouts": [int(found.bouts.truth_C[c]), int(found.bouts.predicted_C[c])],
            "bout_f1": finite(found.bout_f1_C[c]),
        }
        for c, name in enumerate(classes)
    }
    confusion = {"classes": list(classes), "counts": found.counts_CC.tolist()}
    return {
        "kappa": finite(found.kappa),
        "agreement": finite(found.agreement),
        "classes": by_class,
        "confusion": confusion,
    }

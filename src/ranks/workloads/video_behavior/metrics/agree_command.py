"""The command `ranks video-behavior agree`: how two annotations of one video agree.

Imports NumPy inside the functions only, so that `--help` answers at once.
"""

from __future__ import annotations

import json as json_format
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ranks.errors import UserError

if TYPE_CHECKING:
    from ranks.workloads.video_behavior.annotations.events import Annotation
    from ranks.workloads.video_behavior.metrics.agreement import RaterAgreement

BACKGROUND = "background"
TITLES = f"{'frames 1st':>10}  {'2nd':>9}  {'F1':>6}  {'bouts 1st':>9}  {'2nd':>6}  {'bout F1':>7}"
LAST_LINE = "bout F1: bouts matched one to one at an IoU of 0.5 or more; nan: "


def agree(
    first: Path,
    second: Path,
    /,
    *,
    fps: float | None = None,
    video: str | None = None,
    subject: str | None = None,
    merge: str = "",
    background: str = BACKGROUND,
    labels: Literal["exclusive", "multi"] = "exclusive",
    json: Path | None = None,
) -> int:
    """Compare two annotations of one video: two raters, or a rater and a net.

    Args:
        first: An annotation file: BORIS, Caltech, or a table by frame such as predict writes.
        second: Another one; the formats may differ.
        fps: Frames a second; by default the rate that the files name, or 25.
        video: The media file or observation, where a file has several.
        subject: Compare only the events of this subject. A file that names no subject counts whole.
        merge: Behaviours to rename in both files, as 3->1,5->1.
        background: The class of frames without a code.
        labels: multi compares each behaviour on its own, so that behaviours may overlap.
        json: Write the figures to this file as well.

    Frames are compared up to the later end of the two. Prints Cohen's kappa, F1 and bout F1 by
    class; they do not depend on the order of the two files. With --labels exclusive, behaviours
    must exclude each other, and there is one kappa of all classes.
    """
    from ranks.workloads.video_behavior.annotations.delimited import write_text
    from ranks.workloads.video_behavior.annotations.frame_labels import SAME_RATE
    from ranks.workloads.video_behavior.annotations.read import parse_merge
    from ranks.workloads.video_behavior.study.study import NOMINAL_FPS

    asked = f"ranks video-behavior agree {first} {second}"
    if fps is not None and not 0.01 <= fps <= 1e6:
        raise UserError(f"--fps {fps:g}", "not a frame rate", "give the frames a second of the video")
    pair = _read(asked, (first, second), subject, video, fps, parse_merge(merge))
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
    compare = _compare if labels == "exclusive" else _compare_each
    lines, figures = compare(pair, background, num_frames, rate)
    print(f"first: {first}\nsecond: {second}\n{num_frames:,} frames at {rate:g} frames a second")
    print("\n".join(lines))
    if json is not None:
        content = {"first": str(first), "second": str(second), "fps": rate, "labels": labels, **figures}
        write_text(json, json_format.dumps(content, indent=1) + "\n")
        print(f"figures: {json}")
    return 0


def _read(
    asked: str,
    paths: tuple[Path, Path],
    subject: str | None,
    video: str | None,
    fps: float | None,
    merge: Mapping[str, str],
) -> list[Annotation]:
    """The two annotations. Raises UserError, also where neither file that names subjects names this one."""
    from ranks.workloads.video_behavior.annotations.events import at_frame_times
    from ranks.workloads.video_behavior.annotations.read import RateUnknown, check_subject, merged, read_annotation
    from ranks.workloads.video_behavior.study.study import NOMINAL_FPS

    read: dict[Path, Annotation] = {}
    for path in paths:
        with suppress(RateUnknown):
            read[path] = read_annotation(path, subject, video=video, fps=fps, missing_ok=True)
    named = next((one.fps for one in read.values() if one.fps is not None), NOMINAL_FPS)
    for path in paths:  # a file that counts frames has the rate of the other one
        read[path] = read.get(path) or read_annotation(path, subject, video=video, fps=named, missing_ok=True)
    check_subject(subject, list(read.values()), asked)
    for path, one in read.items():
        if subject is not None and one.subjects and subject not in one.subjects:
            print(f"note: {path} has no event of '{subject}', only of {', '.join(one.subjects[:5])}")
    return [merged(at_frame_times(read[path]), merge) for path in paths]


def _compare(
    pair: Sequence[Annotation], background: str, num_frames: int, rate: float
) -> tuple[list[str], dict[str, object]]:
    """What is printed, and the figures, for behaviours that exclude each other. Raises UserError for overlaps."""
    from ranks.workloads.video_behavior.annotations.frame_labels import exclusive_labels, nominal_times
    from ranks.workloads.video_behavior.metrics.agreement import agreement_of

    classes = (background, *_behaviors(pair, background))
    times_s_N = nominal_times(num_frames, rate)
    first_N, second_N = (exclusive_labels(one, classes, times_s_N, unlabelled="background") for one in pair)
    found = agreement_of(first_N, second_N, len(classes))
    width = max(len("class"), *map(len, classes))
    lines = [
        f"Cohen's kappa {found.kappa:.3f}; the same label in {found.agreement:.1%} of frames",
        f"{'class':<{width}}  {TITLES}",
        *(f"{name:<{width}}  {_row(found, c)}" for c, name in enumerate(classes)),
        f"{LAST_LINE}neither file shows the class",
    ]
    confusion = {"classes": list(classes), "counts": found.counts_CC.tolist()}
    by_class = {name: _figures(found, c) for c, name in enumerate(classes)}
    agreement = {"kappa": _finite(found.kappa), "agreement": _finite(found.agreement)}
    return lines, {**agreement, "classes": by_class, "confusion": confusion}


def _compare_each(
    pair: Sequence[Annotation], background: str, num_frames: int, rate: float
) -> tuple[list[str], dict[str, object]]:
    """The same for each behaviour on its own: frames that show it against those that do not. The background is no
    behaviour."""
    import numpy as np

    from ranks.workloads.video_behavior.annotations.frame_labels import multi_labels, nominal_times
    from ranks.workloads.video_behavior.metrics.agreement import agreement_of

    classes = _behaviors(pair, background)
    times_s_N = nominal_times(num_frames, rate)
    kept = [replace(one, events=tuple(e for e in one.events if e.behavior != background)) for one in pair]
    first_NC, second_NC = (multi_labels(one, classes, times_s_N) for one in kept)
    width = max([len("class"), *map(len, classes)])
    lines = [f"{'class':<{width}}  {'kappa':>6}  {TITLES}"]
    by_class: dict[str, object] = {}
    for c, name in enumerate(classes):
        found = agreement_of(first_NC[:, c].astype(np.int64), second_NC[:, c].astype(np.int64), 2)
        lines.append(f"{name:<{width}}  {found.kappa:>6.3f}  {_row(found, 1)}")
        kappa = {"kappa": _finite(found.kappa), "agreement": _finite(found.agreement)}
        by_class[name] = {**kappa, **_figures(found, 1)}
    return [*lines, f"{LAST_LINE}both files show the class in all frames"], {"classes": by_class}


def _behaviors(pair: Sequence[Annotation], background: str) -> tuple[str, ...]:
    return tuple(sorted({event.behavior for one in pair for event in one.events} - {background}))


def _row(found: RaterAgreement, c: int) -> str:
    """A line of the table, below TITLES."""
    frames = f"{found.frames_C[0][c]:>10,}  {found.frames_C[1][c]:>9,}  {found.f1_C[c]:>6.3f}"
    return f"{frames}  {found.bouts.truth_C[c]:>9,}  {found.bouts.predicted_C[c]:>6,}  {found.bout_f1_C[c]:>7.3f}"


def _figures(found: RaterAgreement, c: int) -> dict[str, object]:
    """What --json writes of a class."""
    return {
        "frames": [int(frames_C[c]) for frames_C in found.frames_C],
        "f1": _finite(found.f1_C[c]),
        "bouts": [int(found.bouts.truth_C[c]), int(found.bouts.predicted_C[c])],
        "bout_f1": _finite(found.bout_f1_C[c]),
    }


def _finite(value: float) -> float | None:
    """None where a figure is not defined."""
    return float(value) if value == value else None

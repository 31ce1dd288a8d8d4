"""summary.csv: what each animal does, for how long and how often, by the net and by the person who annotated it.

Legend: N frames of a video, C classes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from ranks.workloads.video_behavior.annotations.delimited import number_text, write_rows
from ranks.workloads.video_behavior.annotations.events import Event

COLUMNS = (
    "animal",
    "group",
    "split",
    "behavior",
    "source",
    "videos",
    "observed_s",
    "total_s",
    "share",
    "bouts",
    "mean_bout_s",
    "latency_s",
)
Source = Literal["net", "person"]


@dataclass(frozen=True)
class BehaviorTime:
    """What one video shows of one behaviour. `latency_s`: from its start to the first bout, None without one."""

    behavior: str
    total_s: float
    bouts: int
    latency_s: float | None


@dataclass(frozen=True)
class VideoSummary:
    """One video, labelled by one source. `split`: where the run has the animal, "" where it does not know it."""

    video: str
    animal: str
    group: str
    split: str
    source: Source
    observed_s: float
    times: tuple[BehaviorTime, ...]


def times_of(events: Sequence[Event], behaviors: Sequence[str]) -> tuple[BehaviorTime, ...]:
    """The total time, bouts and latency of each behaviour."""
    found = list[BehaviorTime]()
    for behavior in behaviors:
        bouts = [event for event in events if event.behavior == behavior]
        total_s = sum(event.end_s - event.start_s for event in bouts)
        found.append(BehaviorTime(behavior, total_s, len(bouts), min((event.start_s for event in bouts), default=None)))
    return tuple(found)


def write_summary(path: Path, videos: Iterable[VideoSummary]) -> None:
    """One row for each animal, behaviour and source; videos of an animal are added up, latencies averaged over the
    videos that show the behaviour. Raises UserError."""
    groups: dict[tuple[str, str, str, Source], list[VideoSummary]] = {}
    for video in videos:
        key = (video.animal or video.video, video.group, video.split, video.source)
        groups.setdefault(key, []).append(video)
    write_rows(path, COLUMNS, (row for key, found in groups.items() for row in _rows(key, found)), ",")


def _rows(key: tuple[str, str, str, Source], videos: Sequence[VideoSummary]) -> Iterable[Mapping[str, str]]:
    animal, group, split, source = key
    observed_s = sum(video.observed_s for video in videos)
    for index, first in enumerate(videos[0].times):
        times = [video.times[index] for video in videos]
        total_s, bouts = sum(one.total_s for one in times), sum(one.bouts for one in times)
        latencies = [one.latency_s for one in times if one.latency_s is not None]
        yield {
            "animal": animal,
            "group": group,
            "split": split,
            "behavior": first.behavior,
            "source": source,
            "videos": str(len(videos)),
            "observed_s": _text(observed_s),
            "total_s": _text(total_s),
            "share": f"{total_s / observed_s:.4f}" if observed_s else "",
            "bouts": str(bouts),
            "mean_bout_s": _text(total_s / bouts) if bouts else "",
            "latency_s": _text(float(np.mean(latencies))) if latencies else "",
        }


def _text(seconds: float) -> str:
    return number_text(round(seconds, 3))

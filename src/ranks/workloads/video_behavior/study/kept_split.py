"""The split that a run keeps, so that no animal that its net has learned from enters its test.

    m1:train              an animal; "video m1.mp4" where that is not known
    day1/m1.mp4:train     a video, as dataset.csv writes it

The videos hold where animals get their names later, or other names. Runs of earlier versions keep animals alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ranks.workloads.video_behavior.config import SPLITS
from ranks.workloads.video_behavior.study.class_table import units_of
from ranks.workloads.video_behavior.study.study import StudyVideo


@dataclass(frozen=True)
class KeptSplit:
    """Splits of animals, and of videos by their paths."""

    animals: Mapping[str, str]
    videos: Mapping[str, str]

    @classmethod
    def of(cls, animals: Sequence[str], videos: Sequence[str] = ()) -> KeptSplit:
        """From what a run keeps, as m1:train."""
        return cls(_splits(animals), _splits(videos))

    def splits_of(self, video: StudyVideo) -> set[str]:
        """In which splits the run had the animal of a video, and the video. Empty where it had neither."""
        by_name = self.animals.get(f"video {video.video.name}")
        found = {self.animals.get(video.animal), self.videos.get(video.path) if self.videos else by_name}
        return {split for split in found if split is not None}

    def applied(self, videos: Sequence[StudyVideo]) -> tuple[tuple[StudyVideo, ...], tuple[str, ...]]:
        """(the videos with the splits of the run, warnings). An animal that the run had in several splits has the first
        of train, val and test. One that the run did not have keeps its split, or is one of the test."""
        units = units_of(videos)
        had: dict[str, set[str]] = {unit: set() for unit in units}
        for unit, video in zip(units, videos, strict=True):
            had[unit] |= self.splits_of(video)
        rows = [
            replace(video, split=first_of(had[unit]) or video.split or "test")
            for unit, video in zip(units, videos, strict=True)
        ]
        moved = [
            f"{unit} to {video.split}"
            for unit, video, row in zip(units, videos, rows, strict=True)
            if video.split not in ("", row.split)
        ]
        several = [f"{unit}: {', '.join(sorted(s, key=SPLITS.index))}" for unit, s in had.items() if len(s) > 1]
        found = [f"dataset.csv moved {_listed(moved)}: the run keeps the split that it learned from"] if moved else []
        if several:
            what = f"the run had videos in several splits that are now of one animal ({_listed(several)})"
            found.append(f"{what}: each such animal counts as one of the split that is named first")
        lost, unknown = self._lost(videos), [unit for unit, splits in had.items() if not splits]
        if lost and unknown:
            what = f"dataset.csv no longer has {_listed(lost)}, from which the run has learned"
            found.append(f"{what}: if {_listed(unknown)} is the same animal, the test is not of unseen ones")
        return tuple(rows), tuple(f"warning: {each}" for each in found)

    def _lost(self, videos: Sequence[StudyVideo]) -> list[str]:
        """Animals of training and validation that none of these videos shows, where the run kept no videos."""
        if self.videos:
            return []
        shown = {name for video in videos for name in (video.animal, f"video {video.video.name}")}
        return [animal for animal, split in self.animals.items() if split != "test" and animal not in shown]


def kept_split_of(video: StudyVideo, animals: Sequence[str], videos: Sequence[str] = ()) -> str:
    """In which split a run had a video or its animal; "" where it had neither. `animals`, `videos`: `Config.split` and
    `Config.video_split` of the run."""
    return first_of(KeptSplit.of(animals, videos).splits_of(video))


def first_of(splits: set[str]) -> str:
    """The first of train, val and test; "" of none."""
    return min(splits, key=SPLITS.index, default="")


def _splits(kept: Sequence[str]) -> dict[str, str]:
    """["m1:train"] -> {"m1": "train"}. Of a name with several splits, the first of train, val and test."""
    found: dict[str, str] = {}
    for each in kept:
        name, _, split = each.rpartition(":")
        found[name] = first_of({split, found.get(name, split)})
    return found


def _listed(names: Sequence[str]) -> str:
    unique = sorted(set(names))
    return ", ".join(unique[:5]) + (f" and {len(unique) - 5} more" if len(unique) > 5 else "")

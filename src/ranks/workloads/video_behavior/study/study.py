"""A study: the videos of dataset.csv with their annotations, animals, groups and splits."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class StudyVideo:
    """One row of dataset.csv."""

    video: Path
    annotation: Path | None
    animal: str
    group: str
    fps: float | None
    """Frames a second, where the file's own value is missing or wrong."""
    offset_s: float
    """Added to the times of the annotation."""
    split: str
    """ "train", "val", "test", or "" where it is not decided."""


@dataclass(frozen=True)
class Study:
    """The videos of a study, and the classes of its labels."""

    videos: tuple[StudyVideo, ...]
    classes: tuple[str, ...]
    """The background first."""
    background: str


def load_study(path: Path) -> Study:
    """The study of a dataset.csv. Raises UserError where a row is wrong."""
    raise NotImplementedError

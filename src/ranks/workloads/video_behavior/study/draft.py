"""A draft of dataset.csv from a folder: which annotation belongs to which video, and which animal it shows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ranks.errors import UserError
from ranks.workloads.video_behavior.annotations.events import file_name
from ranks.workloads.video_behavior.annotations.read import read_annotations
from ranks.workloads.video_behavior.study.study import NOMINAL_FPS, StudyVideo

VIDEO_SUFFIXES = frozenset([".avi", ".m4v", ".mkv", ".mov", ".mp4", ".mpeg", ".mpg", ".mts", ".ts", ".webm", ".wmv"])
ANNOTATION_SUFFIXES = frozenset([".boris", ".csv", ".tsv", ".txt", ".gz"])
MAX_FILES = 100_000
ANIMAL = re.compile(r"(?<![a-z])(animal|mouse|rat|subject|id|m|r|a)[-_ ]?(\d+)(?!\d)", re.IGNORECASE)
SEPARATORS = ("_", "-", ".", " ")


@dataclass(frozen=True)
class Draft:
    """The rows of a dataset.csv, and what its user should look at."""

    videos: tuple[StudyVideo, ...]
    notes: tuple[str, ...]


def draft_study(folder: Path) -> Draft:
    """Pair the videos below a folder with their annotations.

    An annotation belongs to the video that it names, else to the video whose name, without suffix, its own name starts
    with. The animal is taken from the names of the videos where each has exactly one part such as mouse12 or m3.
    Raises UserError where there is no video.
    """
    files = list(_files(folder))
    videos = [path for path in files if path.suffix.lower() in VIDEO_SUFFIXES]
    if not videos:
        found = f"no video among {len(files):,} files ({', '.join(sorted(VIDEO_SUFFIXES))})"
        raise UserError(f"a study of {folder}", found, "give the folder of the videos")
    notes: list[str] = []
    candidates: dict[Path, list[Path]] = {video: [] for video in videos}
    for path in files:
        if path.suffix.lower() in ANNOTATION_SUFFIXES and path.name != "dataset.csv":
            for video in _videos_of(path, videos, notes):
                candidates[video].append(path)
    animals = animals_of([video.stem for video in videos])
    rows: list[StudyVideo] = []
    for video, animal in zip(videos, animals, strict=True):
        found = candidates[video]
        if not found:
            notes.append(f"{video}: no annotation")
        if len(found) > 1:
            notes.append(
                f"{video}: {len(found)} annotations, none is used: {', '.join(path.name for path in found[:5])}"
            )
        rows.append(StudyVideo(video, found[0] if len(found) == 1 else None, animal, "", None, 0.0, ""))
    return Draft(tuple(rows), tuple(notes))


def _files(folder: Path) -> Iterator[Path]:
    """The files below a folder by name, without hidden ones. Raises UserError for too many."""
    if not folder.is_dir():
        raise UserError(f"a study of {folder}", "it is not a folder", "give the folder of the videos")
    found: list[Path] = []
    for path in folder.rglob("*"):
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts):
            found.append(path)
        if len(found) > MAX_FILES:
            raise UserError(f"a study of {folder}", f"more than {MAX_FILES:,} files", "give the folder of one study")
    return iter(sorted(found))


def _videos_of(path: Path, videos: Sequence[Path], notes: list[str]) -> list[Path]:
    """The videos that an annotation file belongs to: several for a BORIS project."""
    try:
        named = {file_name(one.video) for one in read_annotations(path, fps=NOMINAL_FPS) if one.video}
    except UserError as error:
        notes.append(f"{path}: not used: {error.found}")
        return []
    found = [video for video in videos if video.name in named]
    if found or named:
        missing = sorted(named - {video.name for video in found})
        notes.extend(f"{path}: it is about {name}, which is not here" for name in missing[:3])
    if not found:
        starts = [video for video in videos if _starts_with(path.name, video.stem)]
        longest = max((len(video.stem) for video in starts), default=0)
        found = [video for video in starts if len(video.stem) == longest]
        if not found:
            notes.append(f"{path}: no video of this name")
    same_folder = [video for video in found if video.parent == path.parent]
    repeated = len({video.name for video in found}) < len(found)
    return same_folder if repeated and same_folder else found


def _starts_with(name: str, stem: str) -> bool:
    """Whether a file name is a video's stem, alone or followed by a separator: m1_annot.txt, m1.csv, not m10.csv."""
    return name.startswith(stem) and name[len(stem) : len(stem) + 1] in SEPARATORS


def animals_of(stems: Sequence[str]) -> list[str]:
    """The animal in each name; all empty unless each name has exactly one, with the same word before its number, and
    there are two animals or more."""
    found = [ANIMAL.findall(stem) for stem in stems]
    words = {parts[0][0].lower() for parts in found if parts}
    if len(words) != 1 or any(len(parts) != 1 for parts in found):
        return ["" for _ in stems]
    animals = [f"{parts[0][0].lower()}{int(parts[0][1])}" for parts in found]
    return animals if len(set(animals)) > 1 else ["" for _ in stems]

"""A draft of dataset.csv from a folder: which annotation belongs to which video, and which animal it shows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ranks.errors import UserError
from ranks.workloads.video_behavior.annotations.events import file_name
from ranks.workloads.video_behavior.annotations.read import is_frame_table, read_annotations, trial_files
from ranks.workloads.video_behavior.study.study import NOMINAL_FPS, StudyVideo

VIDEO_SUFFIXES = frozenset([".avi", ".m4v", ".mkv", ".mov", ".mp4", ".mpeg", ".mpg", ".mts", ".ts", ".webm", ".wmv"])
ANNOTATION_SUFFIXES = frozenset([".boris", ".csv", ".tsv", ".txt", ".gz"])
MAX_FILES = 100_000
ANIMAL = re.compile(r"(?<![a-z])(animal|mouse|rat|subject|id|m|r|a)[-_ ]?(\d+)(?!\d)", re.IGNORECASE)
SEPARATORS = ("_", "-", ".", " ")
SHOWN_ANIMALS = 8
PREDICTION = "prediction_"
"""May stand before the name of a video."""
TRIAL = re.compile(r"(.*?)(\d+)")
"""What the name of a trial's file says after the name of its video: a text, and the number of the trial."""


@dataclass(frozen=True)
class Draft:
    """The rows of a dataset.csv, and what its user should look at."""

    videos: tuple[StudyVideo, ...]
    notes: tuple[str, ...]

    @property
    def guess(self) -> str | None:
        """A line on animals that were guessed from the names of the videos; None where none was."""
        animals = sorted({video.animal for video in self.videos} - {""})
        if not animals:
            return None
        more = f" and {len(animals) - SHOWN_ANIMALS} more" if len(animals) > SHOWN_ANIMALS else ""
        shown = f"{', '.join(animals[:SHOWN_ANIMALS])}{more}"
        return f"animals are guessed from the names of the videos: {shown}; check the column animal"


def draft_study(folder: Path) -> Draft:
    """Pair the videos below a folder with their annotations.

    An annotation belongs to the video that it names, else to the video whose name, without suffix, its own name starts
    with, or starts with after "prediction_". A folder of numbered trials of one video is an annotation of its own, in
    place of its files. The animal is taken from the names of the videos where each has exactly one part such as mouse12
    or m3. Raises UserError where there is no video.
    """
    files = list(_files(folder))
    videos = [path for path in files if path.suffix.lower() in VIDEO_SUFFIXES]
    if not videos:
        found = f"no video among {len(files):,} files ({', '.join(sorted(VIDEO_SUFFIXES))})"
        raise UserError(f"a study of {folder}", found, "give the folder of the videos")
    notes: list[str] = []
    candidates: dict[Path, list[Path]] = {video: [] for video in videos}
    for path, name in _annotations(folder, files, videos).items():
        for video in _videos_of(path, name, videos, notes):
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


def _annotations(root: Path, files: Sequence[Path], videos: Sequence[Path]) -> dict[Path, str]:
    """The annotations, each with the name that says which video it is about: files, and in place of trials the folder.
    Not the root of a study: dataset.csv is no trial."""
    found = [path for path in files if path.suffix.lower() in ANNOTATION_SUFFIXES and path.name != "dataset.csv"]
    names: dict[Path, str] = {}
    for folder in {path.parent for path in found} - {root}:
        name = _name_of_trials(folder, videos)
        if name is not None:
            names[folder] = name
    names |= {path: path.name for path in found if path.parent not in names or path.suffix.lower() != ".csv"}
    return dict(sorted(names.items()))


def _name_of_trials(folder: Path, videos: Sequence[Path]) -> str | None:
    """The name that says which video the trials of a folder are about: of a file, else of the folder.

    None unless all .csv files are tables `Frame,Action`, two or more, of one video, with different numbers at the end
    of their names and otherwise the same name.
    """
    files = trial_files(folder)
    stem, texts, numbers = None, set[str](), set[int]()
    for path in files:
        of_file = next((video.stem for video in _of_name(path.name, videos)), "")
        stem = of_file if stem is None else stem
        end = TRIAL.fullmatch(path.stem.removeprefix(PREDICTION).removeprefix(of_file))
        if of_file != stem or end is None:
            return None
        texts.add(end[1])
        numbers.add(int(end[2]))
    if len(files) < 2 or len(texts) > 1 or len(numbers) < len(files):
        return None
    name = files[0].name if stem else f"{folder.name}."
    try:
        return name if _of_name(name, videos) and all(map(is_frame_table, files)) else None
    except UserError:
        return None


def _videos_of(path: Path, name: str, videos: Sequence[Path], notes: list[str]) -> list[Path]:
    """The videos that an annotation belongs to: several for a BORIS project. `name`: says which, where its content does
    not."""
    damaged: list[UserError] = []
    try:
        read = read_annotations(path, fps=NOMINAL_FPS, damaged=damaged)
    except UserError as error:
        notes.append(f"{path}: not used: {f'{error.asked}: ' if path.is_dir() else ''}{error.found}")
        return []
    notes.extend(f"{path}: left out: {error.found}" for error in damaged)
    if damaged and not read:
        return []
    named = {file_name(one.video) for one in read if one.video}
    found = [video for video in videos if video.name in named]
    if found or named:
        missing = sorted(named - {video.name for video in found})
        notes.extend(f"{path}: it is about {media}, which is not here" for media in missing[:3])
    if not found:
        found = _of_name(name, videos)
        if not found:
            notes.append(f"{path}: no video of this name")
    near = [video for video in found if video.parent in (path, path.parent)]
    repeated = len({video.name for video in found}) < len(found)
    return near if repeated and near else found


def _of_name(name: str, videos: Sequence[Path]) -> list[Path]:
    """The videos with the longest name that a file name starts with, as of m1_annot.txt, m1.csv or prediction_m1_2.csv;
    m10.csv is none of m1."""
    ways = (name, name.removeprefix(PREDICTION))
    starts = [video for video in videos if any(way.startswith(video.stem + end) for way in ways for end in SEPARATORS)]
    longest = max((len(video.stem) for video in starts), default=0)
    return [video for video in starts if len(video.stem) == longest]


def animals_of(stems: Sequence[str]) -> list[str]:
    """The animal in each name; all empty unless each name has exactly one, with the same word before its number, and
    there are two animals or more."""
    found = [ANIMAL.findall(stem) for stem in stems]
    words = {parts[0][0].lower() for parts in found if parts}
    if len(words) != 1 or any(len(parts) != 1 for parts in found):
        return ["" for _ in stems]
    animals = [f"{parts[0][0].lower()}{int(parts[0][1])}" for parts in found]
    return animals if len(set(animals)) > 1 else ["" for _ in stems]

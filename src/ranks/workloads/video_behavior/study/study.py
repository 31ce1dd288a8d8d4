"""A study: the videos of dataset.csv with their annotations, animals, groups and splits.

    video,annotation,animal,group,fps,offset_s,split
    day1/m1.mp4,day1/m1.tsv,m1,control,,,train
    day1/m2.mp4,day1/m2.tsv,m2,treated,25,0.4,test

Paths are relative to the folder of dataset.csv. Only `video` must be filled. `fps` replaces a wrong frame rate.
`offset_s` is added to the times of the annotation. A column may be missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ranks.errors import UserError, nearest
from ranks.workloads.video_behavior.annotations.delimited import (
    MAX_TIME_S,
    Header,
    TableRow,
    delimiter_of,
    first_line,
    head_of,
    number,
    number_text,
    rows_of,
    table_of,
    write_rows,
)
from ranks.workloads.video_behavior.annotations.events import Annotation
from ranks.workloads.video_behavior.annotations.read import check_subject, merged, read_annotation, shifted_events
from ranks.workloads.video_behavior.config import SPLITS
from ranks.workloads.video_behavior.study.annotation_checks import check_media, check_spelling

COLUMNS = ("video", "annotation", "animal", "group", "fps", "offset_s", "split")
MAX_VIDEOS = 100_000
BACKGROUND = "background"
NOMINAL_FPS = 25.0
"""For annotations that count frames, where only their behaviours are wanted."""


@dataclass(frozen=True)
class StudyVideo:
    """One row of dataset.csv."""

    video: Path
    annotation: Path | None
    animal: str
    """ "" where it is not known."""
    group: str
    fps: float | None
    """Frames a second, where the file's own value is missing or wrong."""
    offset_s: float
    """Added to the times of the annotation."""
    split: str
    """ "train", "val", "test", or "" where it is not decided."""
    path: str = field(default="", compare=False)
    """The video as dataset.csv writes it, relative to its folder. Reading dataset.csv fills it in."""

    @property
    def name(self) -> str:
        """What messages call the video."""
        return self.path or self.video.name


@dataclass(frozen=True)
class Study:
    """The videos of a study, and the classes of its labels."""

    videos: tuple[StudyVideo, ...]
    classes: tuple[str, ...]
    """The background first, the others by name."""
    background: str
    background_is_coded: bool = False
    """Whether annotations name the background. It is then a behaviour as well."""
    warnings: tuple[str, ...] = field(default=(), compare=False)
    """What its user should know about its annotations."""


def load_study(
    path: Path, *, background: str = "", subject: str | None = None, merge: Mapping[str, str] | None = None
) -> Study:
    """The study of a dataset.csv, or of the folder that holds it. Raises UserError where a row is wrong.

    All annotations are read, since the classes are what they name. `background`: the class of frames without a code;
    by default "background", or the behaviour with the most time where codes cover every frame. `subject` and `merge`
    as in `annotation_of`; a subject that none of the files names is an error, where some name others. So is an
    annotation of another row's video.
    """
    path = path / "dataset.csv" if path.is_dir() else path
    videos = read_dataset_csv(path)
    found = {video.name: annotation_of(video, subject=subject, merge=merge, video_fps=NOMINAL_FPS) for video in videos}
    by_video = {name: one for name, one in found.items() if one is not None}
    annotations = list(by_video.values())
    check_subject(subject, annotations, _asked(path))
    warnings = check_media(by_video, list(found), _asked(path))
    if subject is not None:
        warnings += check_spelling(by_video, subject, _asked(path))
    if not any(one.events for one in annotations):
        raise UserError(_asked(path), "no annotation with an event", "fill in the column annotation")
    names = {event.behavior for one in annotations for event in one.events}
    background = background or _background(annotations, names)
    return Study(videos, (background, *sorted(names - {background})), background, background in names, warnings)


def annotation_of(
    video: StudyVideo,
    *,
    subject: str | None = None,
    merge: Mapping[str, str] | None = None,
    video_fps: float | None = None,
) -> Annotation | None:
    """The annotation of a row in seconds of its video; None where it has none. Raises UserError.

    `subject`: only this subject's events, none where the file names others only. `merge`: behaviours to rename, as from
    `parse_merge`. `video_fps`: the frame rate of the video file, for annotations that count frames; the column fps
    replaces it.
    """
    if video.annotation is None:
        return None
    read = read_annotation(
        video.annotation, subject, video=video.video.name, fps=video.fps or video_fps, missing_ok=True
    )
    read = replace(read, video=str(video.video), fps=video.fps or read.fps)
    read = shifted_events(read, video.offset_s)
    return merged(read, merge) if merge else read


def _background(annotations: Sequence[Annotation], names: set[str]) -> str:
    """ "background", or the behaviour with the most time where that is no code and codes cover all time that the
    annotations know of. `join` looks at the frames of the videos."""
    if BACKGROUND in names or any(has_gap(one) for one in annotations):
        return BACKGROUND
    time_s = dict.fromkeys(sorted(names), 0.0)
    for one in annotations:
        for event in one.events:
            time_s[event.behavior] += event.end_s - event.start_s
    return max(time_s, key=lambda name: time_s[name])


def has_gap(annotation: Annotation) -> bool:
    """Whether a time of more than one and a half frames has no code, as far as the annotation says."""
    frame_s = 1.5 / (annotation.fps or NOMINAL_FPS)
    covered_s = 0.0
    for event in sorted(annotation.events, key=lambda event: event.start_s):
        if event.start_s > covered_s + frame_s:
            return True
        covered_s = max(covered_s, event.end_s)
    return (annotation.duration_s or covered_s) > covered_s + frame_s or not annotation.events


def read_dataset_csv(path: Path) -> tuple[StudyVideo, ...]:
    """The rows of a dataset.csv. Raises UserError with the line of a wrong one."""
    header, rows = table_of(path, rows_of(path, delimiter_of(first_line(head_of(path), path)), MAX_VIDEOS))
    for name in header.names:
        if name.casefold() not in COLUMNS:
            raise header.row.error(
                f"a column '{name}'", nearest(name, COLUMNS, f"the columns are {', '.join(COLUMNS)}")
            )
    header.required("video")
    videos: dict[Path, tuple[TableRow, StudyVideo]] = {}
    split_of: dict[str, tuple[TableRow, str]] = {}
    for row in rows:
        video = _video_of(row, header, path.parent)
        if video.video in videos:
            row.fail(f"{video.video} is also in line {videos[video.video][0].line}", "remove one of the two rows")
        videos[video.video] = (row, video)
        first, split = split_of.setdefault(video.animal, (row, video.split))
        if video.animal and split != video.split:
            found = f"animal '{video.animal}' is in '{video.split}' here and in '{split}' in line {first.line}"
            row.fail(found, "give all videos of an animal the same split, or the test is not of unseen animals")
    if not videos:
        raise UserError(_asked(path), "no rows below the header", "add one row for each video")
    return tuple(video for _, video in videos.values())


def _video_of(row: TableRow, header: Header, folder: Path) -> StudyVideo:
    def cell(name: str) -> str:
        at = header.index(name)
        return "" if at is None else row.cells[at].strip()

    def number_or_none(name: str) -> float | None:
        at = header.index(name)
        return None if at is None or not row.cells[at].strip() else number(row, at, name)

    def existing(name: str) -> Path:
        path = folder / cell(name)
        try:
            exists = path.exists()
        except (OSError, ValueError):
            exists = False
        if not exists:
            row.fail(f"there is no {name} {path}", f"paths are relative to {folder or '.'}")
        return path

    if not cell("video"):
        row.fail("no video", "fill in the column video")
    fps, offset_s, split = number_or_none("fps"), number_or_none("offset_s") or 0.0, cell("split").lower()
    if fps is not None and not 0.01 <= fps <= 1e6:
        row.fail(f"{fps:g} frames a second", "give the frames a second of the video, or leave it empty")
    if abs(offset_s) > MAX_TIME_S:
        row.fail(
            f"an offset of {offset_s:g} s", "give the seconds from the start of the video to that of the annotation"
        )
    if split not in ("", *SPLITS):
        row.fail(f"split '{split}'", f"write {', '.join(SPLITS)}, or leave it empty in all rows")
    annotation, video = existing("annotation") if cell("annotation") else None, existing("video")
    fixed = (cell("animal"), cell("group"), fps, offset_s, split)
    return StudyVideo(video, annotation, *fixed, _written(video, folder))


def write_dataset_csv(path: Path, videos: Sequence[StudyVideo]) -> None:
    """Write the rows of a dataset.csv, with paths relative to its folder where they lie in it. Raises UserError."""
    rows = (
        {
            "video": _written(video.video, path.parent),
            "annotation": "" if video.annotation is None else _written(video.annotation, path.parent),
            "animal": video.animal,
            "group": video.group,
            "fps": "" if video.fps is None else number_text(video.fps),
            "offset_s": number_text(video.offset_s) if video.offset_s else "",
            "split": video.split,
        }
        for video in videos
    )
    write_rows(path, COLUMNS, rows, ",")


def _written(file: Path, folder: Path) -> str:
    """A file as a dataset.csv in this folder writes it."""
    return file.relative_to(folder).as_posix() if file.is_relative_to(folder) else str(file.absolute())


def _asked(path: Path) -> str:
    return f"the study {path}"

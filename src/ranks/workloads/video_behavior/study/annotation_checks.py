"""Whether the annotations of a study fit its videos and each other: the media files and the subjects that they name.

Videos are named as in dataset.csv.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath

from ranks.errors import UserError
from ranks.workloads.video_behavior.annotations.events import Annotation, file_name

SHOWN = 3


def check_media(annotations: Mapping[str, Annotation], videos: Sequence[str], asked: str) -> tuple[str, ...]:
    """A warning where annotations name media files that are no videos of the study. Raises UserError where one names
    the video of another row.

    `annotations`: by their videos. `videos`: of all rows. Folders, suffixes and capitals do not count, since videos are
    moved and converted.
    """
    by_stem: dict[str, str] = {}
    for video in videos:
        by_stem.setdefault(_stem(video).casefold(), video)
    unknown: list[str] = []
    for video, annotation in annotations.items():
        named = {_stem(file).casefold(): file_name(file) for file in annotation.media}
        if not named or _stem(video).casefold() in named:
            continue
        other = next((stem for stem in named if stem in by_stem), None)
        if other is not None:
            found = f"the annotation of {video} is about {named[other]}, which is the video {by_stem[other]}"
            do = f"correct the column annotation of {video}; if it is right, give it a copy that names {video}"
            raise UserError(asked, found, do)
        if annotation.observation not in (file_name(video), _stem(video)):
            unknown.append(f"{video}: {next(iter(named.values()))}")
    if not unknown:
        return ()
    what = f"the annotations of {len(unknown)} videos name another media file ({_listed(unknown)})"
    return (f"warning: {what}: check that they belong together",)


def check_spelling(annotations: Mapping[str, Annotation], subject: str, asked: str) -> tuple[str, ...]:
    """A warning where annotations name subjects, but not this one. Raises UserError where one has it with other
    capitals or blanks. `annotations`: by their videos."""
    without: list[str] = []
    for video, annotation in annotations.items():
        for name in annotation.subjects:
            if name != subject and _letters(name) == _letters(subject):
                found = f"the annotation of {video} has the subject '{name}', and --subject is '{subject}'"
                raise UserError(asked, found, "write its name in the same way in all annotations")
        if annotation.subjects and subject not in annotation.subjects:
            without.append(f"{video}: {', '.join(annotation.subjects[:SHOWN])}")
    if not without:
        return ()
    what = f"{len(without)} of {len(annotations)} annotations name subjects, but not '{subject}' ({_listed(without)})"
    return (f"warning: {what}: no event of theirs counts",)


def _stem(path: str) -> str:
    """'C:\\\\videos\\\\m1.avi' -> 'm1'."""
    return PurePath(file_name(path)).stem


def _letters(name: str) -> str:
    return "".join(name.split()).casefold()


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")

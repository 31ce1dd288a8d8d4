"""Reads BORIS projects (.boris, also .boris.gz): a JSON document with the ethogram and all observations.

The document is kept as it is. What ranks does not know goes back into the file unchanged, and so does each event that
is still there (boris_project_writer.py).
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from ranks.bounded_file import read_text
from ranks.errors import UserError, nearest
from ranks.workloads.video_behavior.annotations.boris_columns import ONE_FILE, leaving_out, shifted
from ranks.workloads.video_behavior.annotations.boris_json import (
    RESAVE,
    is_array,
    is_number,
    is_object,
    object_of,
    text_of,
)
from ranks.workloads.video_behavior.annotations.delimited import MAX_TIME_S, asked
from ranks.workloads.video_behavior.annotations.events import Annotation, file_name
from ranks.workloads.video_behavior.annotations.pairing import Fail, Kind, Mark, events_of

BEHAVIORS, OBSERVATIONS, SUBJECTS = "behaviors_conf", "observations", "subjects_conf"
SETTLED_NS = 2 * 10**9
"""A file that has changed so lately may change again and keep the time of its last change: clocks have coarse steps."""


@dataclass(frozen=True)
class BorisProject:
    """A project. `document`: its JSON; it is not changed in place."""

    document: Mapping[str, Any]
    annotations: tuple[Annotation, ...]
    """One for each observation, in the order of the file."""
    subjects: tuple[str, ...]
    """All that the project defines, or that an event of any observation has, by name."""


class _Contents:
    """A JSON document that is a project, with what reading one of its many observations looks up."""

    def __init__(self, document: Any, asked: str) -> None:
        """Raises UserError."""
        if not is_object(document) or OBSERVATIONS not in document or BEHAVIORS not in document:
            raise UserError(asked, f"no BORIS project: it has no '{OBSERVATIONS}' and '{BEHAVIORS}'", RESAVE)
        self.document = document
        self.is_state = ethogram_of(document, asked)
        self.observations = object_of(document[OBSERVATIONS], OBSERVATIONS, asked)

    @cached_property
    def by_file(self) -> Mapping[str, Sequence[str]]:
        """The observations that show a media file, by its name without folders."""
        found: dict[str, list[str]] = {}
        for name, observation in self.observations.items():
            for file in dict.fromkeys(map(file_name, _media_files(observation))):
                found.setdefault(file, []).append(name)
        return found

    @cached_property
    def subjects(self) -> tuple[str, ...]:
        """As `BorisProject.subjects`."""
        found = {*subjects_of(self.document)}
        for observation in self.observations.values():
            events: Any = observation.get("events") if is_object(observation) else None
            rows: list[Any] = events if is_array(events) else []
            found.update(row[1] for row in rows if is_array(row) and len(row) > 1 and isinstance(row[1], str))
        return tuple(sorted(found - {""}))

    def observations_of(self, video: str) -> list[str]:
        """Those with this id, or of this media file; the only one of the project, whatever it shows."""
        named = [video] if video in self.observations else []
        found = list(dict.fromkeys([*named, *self.by_file.get(file_name(video), ())]))
        return found or (list(self.observations) if len(self.observations) == 1 else [])


def read_boris_project(path: Path, video: str | None = None, damaged: list[UserError] | None = None) -> BorisProject:
    """Read a project. Raises UserError for damage, for states that do not end and for behaviours that the ethogram
    lacks. `video`: only the observations of this media file or with this id, where there are several; the others may be
    damaged. `damaged`: takes what is wrong with single observations, which are left out; without it, that is raised.

    The last project that was read stays in memory until `forget_project`, so that each video of a study finds its
    observation without reading them all again.
    """
    try:
        stat = path.stat()
        age_ns = time.time_ns() - stat.st_mtime_ns
    except (OSError, ValueError):
        age_ns, stat = 0, None
    if stat is None or age_ns < SETTLED_NS:
        contents = _read_contents(path)
    else:
        contents = _kept_contents(path, stat.st_mtime_ns, stat.st_size)
    return _project(contents, asked(path), video, damaged)


def forget_project() -> None:
    """Give the memory back that `read_boris_project` keeps."""
    _kept_contents.cache_clear()


@lru_cache(maxsize=1)
def _kept_contents(path: Path, mtime_ns: int, size: int) -> _Contents:
    return _read_contents(path)


def _read_contents(path: Path) -> _Contents:
    try:
        document: Any = json.loads(read_text(path, asked(path), has_lines=False))
    except (ValueError, RecursionError) as error:
        raise UserError(asked(path), f"not a JSON document: {str(error)[:200]}", RESAVE) from None
    return _Contents(document, asked(path))


def project_of(document: Any, asked: str) -> BorisProject:
    """The project of a JSON document, with the annotations of all videos. Raises UserError."""
    return _project(_Contents(document, asked), asked)


def _project(
    contents: _Contents, asked: str, video: str | None = None, damaged: list[UserError] | None = None
) -> BorisProject:
    """A project with the annotations of one video or of all. Raises UserError."""
    observations = contents.observations
    wanted = list(observations) if video is None else contents.observations_of(video)
    if video is not None and not wanted:
        do = nearest(video, list(observations), f"it has {', '.join(list(observations)[:5]) or 'none'}")
        raise UserError(asked, f"no observation of {video}", do)
    annotations: list[Annotation] = []
    for name in wanted:
        with leaving_out(damaged):
            annotations.append(_annotation(name, observations[name], contents.is_state, asked))
    return BorisProject(contents.document, tuple(annotations), contents.subjects)


def _media_files(observation: Any) -> list[str]:
    """The media files of all players of an observation."""
    files = observation.get("file") if is_object(observation) else None
    players: list[Any] = list(files.values()) if is_object(files) else []
    return [file for player in players if is_array(player) for file in player if isinstance(file, str) and file]


def ethogram_of(document: Mapping[str, Any], asked: str) -> dict[str, bool]:
    """Whether each behaviour is a state."""
    found: dict[str, bool] = {}
    for number, behavior in object_of(document[BEHAVIORS], BEHAVIORS, asked).items():
        code, kind = (
            text_of(object_of(behavior, f"behaviour {number}", asked), name, asked) for name in ("code", "type")
        )
        if not kind.lower().startswith(("state", "point")):
            raise UserError(asked, f"behaviour '{code}' is a '{kind}', neither a state nor a point event", RESAVE)
        found[code] = kind.lower().startswith("state")
    return found


def _annotation(name: str, observation: Any, is_state: Mapping[str, bool], asked: str) -> Annotation:
    observation = object_of(observation, f"observation '{name}'", asked)
    video = _media_file(name, observation, asked)
    events: Any = observation.get("events")
    if not is_array(events):
        raise UserError(asked, f"observation '{name}' has no list of events", RESAVE)
    offset_s = _offset_s(observation, asked, name)
    marks: list[Mark] = []
    seen: dict[tuple[str, str, str], int] = {}
    for number, event in enumerate(events):
        where = f"observation '{name}', event {number + 1}"
        subject, code, modifiers, comment = _texts_of(event, where, asked)
        if code not in is_state:
            do = nearest(code, list(is_state), f"add it to the ethogram, which has {', '.join(is_state) or 'none'}")
            raise UserError(asked, f"{where}: the ethogram has no behaviour '{code}'", do)
        kind: Kind = "POINT"
        if is_state[code]:
            count = seen.get((subject, code, modifiers), 0)
            kind, seen[subject, code, modifiers] = ("STOP" if count % 2 else "START"), count + 1
        time_s = _time_s(event[0], offset_s, where, asked)
        split = tuple(modifiers.split("|")) if modifiers else ()
        marks.append(Mark(kind, time_s, subject, code, split, comment, _fail(asked, where)))
    info = observation.get("media_info")
    fps, duration_s = (_of_media(info, key, video) for key in ("fps", "length"))
    media = tuple(dict.fromkeys(_media_files(observation)))
    return Annotation(video, events_of(marks), fps, duration_s, name, media=media)


def _fail(asked: str, where: str) -> Fail:
    def fail(found: str, do: str) -> Any:
        raise UserError(asked, f"{where}: {found}", do)

    return fail


def _media_file(name: str, observation: Mapping[str, Any], asked: str) -> str:
    """The file that the first player shows; "" for a live observation. Raises UserError where it shows several."""
    if observation.get("type") == "IMAGES":
        raise UserError(asked, f"observation '{name}' is of images, which have no time", "give a video's observation")
    files = observation.get("file")
    first: Any = files.get("1", []) if is_object(files) else []
    if not is_array(first) or not all(isinstance(file, str) for file in first):
        raise UserError(asked, f"observation '{name}': the media files of player 1 are not a list of names", RESAVE)
    if len(first) > 1:
        raise UserError(asked, f"observation '{name}' plays several files: {', '.join(first[:3])}", ONE_FILE)
    return first[0] if first else ""


def _texts_of(event: Any, where: str, asked: str) -> list[str]:
    """Subject, behaviour, modifiers and comment of an event."""
    texts: Any = event[1:5] if is_array(event) else []
    if len(texts) != 4 or not all(isinstance(text, str) for text in texts):
        raise UserError(asked, f"{where} is not [time, subject, behaviour, modifiers, comment]", RESAVE)
    return texts


def _time_s(value: Any, offset_s: float, where: str, asked: str) -> float:
    if not is_number(value):
        raise UserError(asked, f"{where} has no time", "give an observation of a video: events of images have no times")
    time_s = shifted(float(value), -offset_s)
    if not 0 <= time_s <= MAX_TIME_S:
        do = "times count from the start of the video; check the observation's time offset"
        raise UserError(asked, f"{where}: {time_s:g} s is no time of a video", do)
    return time_s


def _offset_s(observation: Mapping[str, Any], asked: str, name: str) -> float:
    value = observation.get("time offset", 0.0)
    if not is_number(value):
        raise UserError(asked, f"observation '{name}': its time offset is not a number", RESAVE)
    return float(value)


def _of_media(info: Any, key: str, video: str) -> float | None:
    """A positive number about a media file, None where the project has none."""
    values = info.get(key) if is_object(info) else None
    value = values.get(video) if is_object(values) else None
    return float(value) if is_number(value) and value > 0 else None


def subjects_of(document: Mapping[str, Any]) -> list[str]:
    """The names of the subjects that a project defines."""
    subjects = document.get(SUBJECTS)
    values = subjects.values() if is_object(subjects) else ()
    return [value["name"] for value in values if is_object(value) and isinstance(value.get("name"), str)]

"""BORIS projects (.boris, also .boris.gz): a JSON document with the ethogram and all observations.

The document is kept as it is. What ranks does not know goes back into the file unchanged, and so does each event that
is still there.
"""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Iterable, Mapping, Sequence
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
from ranks.workloads.video_behavior.annotations.delimited import MAX_TIME_S, asked, write_text
from ranks.workloads.video_behavior.annotations.events import Annotation, file_name
from ranks.workloads.video_behavior.annotations.pairing import Fail, Kind, Mark, events_of, marks_of

BEHAVIORS, OBSERVATIONS, SUBJECTS = "behaviors_conf", "observations", "subjects_conf"
KEYS = "abcdefghijklmnopqrstuvwxyz0123456789"
"""Keys of a keyboard for behaviours and subjects that are added; BORIS asks which one where several share a key."""
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
        self.is_state = _ethogram(document, asked)
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


def _ethogram(document: Mapping[str, Any], asked: str) -> dict[str, bool]:
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


def empty_project(name: str = "") -> BorisProject:
    """A project without observations, in the form of BORIS 7 and later."""
    objects = ("coding_map", "converters", "independent_variables", "behavioral_categories_config")
    document = {
        "time_format": "hh:mm:ss",
        "project_date": "",
        "project_name": name,
        "project_description": "",
        "project_format_version": "7.0",
        SUBJECTS: {},
        BEHAVIORS: {},
        OBSERVATIONS: {},
        "behavioral_categories": [],
        "behaviors_coding_map": [],
        **{key: {} for key in objects},
    }
    return BorisProject(document, (), ())


def with_annotations(project: BorisProject, annotations: Iterable[Annotation]) -> BorisProject:
    """The project with the events of each annotation in the observation of its id, which is added where it is missing.

    Behaviours and subjects that the project lacks are added to it. Raises UserError where BORIS cannot hold the events:
    overlapping states of one subject, behaviour and modifiers, or a behaviour that is a point event here and a state
    there.
    """
    document: dict[str, Any] = copy.deepcopy(dict(project.document))
    for annotation in annotations:
        _add(document, annotation)
    asked = "to write a BORIS project"
    return _project(_Contents(document, asked), asked)


def _add(document: dict[str, Any], annotation: Annotation) -> None:
    """Put the events of an annotation into a document. Raises UserError."""
    name = annotation.observation or annotation.video
    asked = f"to write the observation '{name}'"
    observation = document[OBSERVATIONS].setdefault(name, _new_observation(annotation))
    _add_behaviors(document[BEHAVIORS], annotation, asked)
    subjects = document.setdefault(SUBJECTS, {})
    for subject in sorted({event.subject for event in annotation.events} - {"", *subjects_of(document)}):
        key = KEYS[len(subjects) % len(KEYS)]
        subjects[_next(subjects)] = {"key": key, "name": subject, "description": ""}
    offset_s = float(observation.get("time offset", 0.0))
    rows = [
        [shifted(mark.time_s, offset_s), mark.subject, mark.behavior, "|".join(mark.modifiers), mark.comment]
        for mark in marks_of(annotation.events, asked)
    ]
    observation["events"] = _as_before(rows, observation["events"])


def write_boris_project(path: Path, project: BorisProject) -> None:
    """Write a project. Raises UserError where the file cannot be written."""
    write_text(path, json.dumps(project.document))


def _as_before(rows: list[list[Any]], before: Sequence[Any]) -> list[Any]:
    """The events as they stood in the project, with all their fields, where they are still there; in their order where
    all are."""
    old: dict[tuple[Any, ...], list[Any]] = {}
    for event in before:
        old.setdefault(tuple(event[:5]), []).append(event)
    kept = [old[tuple(row)].pop(0) if old.get(tuple(row)) else row for row in rows]
    same = len(kept) == len(before) and not any(old.values())
    return list(before) if same else kept


def _new_observation(annotation: Annotation) -> dict[str, Any]:
    video = annotation.video
    info: dict[str, Any] = {"length": {}, "fps": {}, "hasVideo": {video: True}, "hasAudio": {video: False}}
    if annotation.duration_s is not None:
        info["length"][video] = annotation.duration_s
    if annotation.fps is not None:
        info["fps"][video] = annotation.fps
    players = {str(number): [] for number in range(2, 9)}
    return {
        "file": {"1": [video] if video else [], **players},
        "type": "MEDIA" if video else "LIVE",
        "date": "",
        "description": "",
        "time offset": 0.0,
        "events": [],
        "independent_variables": {},
        "media_info": {**info, "offset": {"1": 0.0}},
        "visualize_spectrogram": False,
        "close_behaviors_between_videos": False,
    }


def _add_behaviors(ethogram: dict[str, Any], annotation: Annotation, asked: str) -> None:
    """Add the behaviours that an ethogram lacks. Raises UserError where one is both a state and a point event."""
    is_state = _ethogram({BEHAVIORS: ethogram}, asked)
    for event in annotation.events:
        state = event.stop_s is not None
        if is_state.get(event.behavior, state) != state:
            found = f"'{event.behavior}' is a {'point event' if state else 'state'} in the ethogram"
            do = "give the other kind of events another name"
            raise UserError(asked, f"{found}, and a {'state' if state else 'point event'} at {event.start_s:g} s", do)
        if event.behavior not in is_state:
            is_state[event.behavior] = state
            ethogram[_next(ethogram)] = {
                "type": "State event" if state else "Point event",
                "key": KEYS[len(ethogram) % len(KEYS)],
                "code": event.behavior,
                "description": "",
                "color": "",
                "category": "",
                "modifiers": {},
                "excluded": "",
                "coding map": "",
            }


def _next(numbered: Mapping[str, Any]) -> str:
    """The first number from 0 on that is no key."""
    return next(str(number) for number in range(len(numbered) + 1) if str(number) not in numbered)

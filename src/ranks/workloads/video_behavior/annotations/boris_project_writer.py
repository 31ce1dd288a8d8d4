"""Writes BORIS projects: a new one, or one that was read, with the events of other annotations in it."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ranks.errors import UserError
from ranks.workloads.video_behavior.annotations.boris_columns import shifted
from ranks.workloads.video_behavior.annotations.boris_project import (
    BEHAVIORS,
    OBSERVATIONS,
    SUBJECTS,
    BorisProject,
    ethogram_of,
    project_of,
    subjects_of,
)
from ranks.workloads.video_behavior.annotations.delimited import write_text
from ranks.workloads.video_behavior.annotations.events import Annotation
from ranks.workloads.video_behavior.annotations.pairing import marks_of

KEYS = "abcdefghijklmnopqrstuvwxyz0123456789"
"""Keys of a keyboard for behaviours and subjects that are added; BORIS asks which one where several share a key."""


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
    return project_of(document, asked)


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
    is_state = ethogram_of({BEHAVIORS: ethogram}, asked)
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

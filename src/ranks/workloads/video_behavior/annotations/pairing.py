"""States from their START and STOP marks, and back.

BORIS marks a state twice: once where it starts and once where it stops. A START is closed by the next STOP of the same
subject, behaviour and modifiers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NoReturn, TypeAlias

from ranks.errors import UserError
from ranks.workloads.video_behavior.annotations.events import Event

Kind: TypeAlias = Literal["START", "STOP", "POINT"]
Key: TypeAlias = tuple[str, str, tuple[str, ...]]
"""Subject, behaviour and modifiers: what START and STOP of one state share."""
Fail: TypeAlias = Callable[[str, str], NoReturn]


@dataclass(frozen=True)
class Mark:
    """One row of BORIS: a point event, or an end of a state. `fail` raises UserError for this row."""

    kind: Kind
    time_s: float
    subject: str
    behavior: str
    modifiers: tuple[str, ...]
    comment: str
    fail: Fail

    @property
    def key(self) -> Key:
        return self.subject, self.behavior, self.modifiers

    def __str__(self) -> str:
        return f"{self.kind} of {described(self.key)} at {self.time_s:g} s"


def described(key: Key) -> str:
    """("m1", "lick", ("left",)) -> "'lick' (left) of 'm1'"."""
    subject, behavior, modifiers = key
    with_modifiers = f" ({', '.join(modifiers)})" if any(modifiers) else ""
    return f"'{behavior}'{with_modifiers}" + (f" of '{subject}'" if subject else "")


def events_of(marks: Iterable[Mark]) -> tuple[Event, ...]:
    """The events of marks, in the order of their starts. Raises UserError for a START or a STOP without its partner,
    two STARTs in a row, and point events that are listed twice."""
    events: list[tuple[int, Event]] = []
    open_marks: dict[Key, tuple[int, Mark]] = {}
    points: set[tuple[Key, float, str]] = set()
    for number, mark in enumerate(sorted(marks, key=lambda mark: mark.time_s)):
        if mark.kind == "POINT":
            if (mark.key, mark.time_s, mark.comment) in points:
                mark.fail(f"{mark}: the same point event is listed twice", "remove one of the two rows")
            points.add((mark.key, mark.time_s, mark.comment))
            event = Event(mark.behavior, mark.time_s, None, mark.subject, mark.modifiers, mark.comment)
            events.append((number, event))
        elif mark.kind == "START":
            if mark.key in open_marks:
                since = open_marks[mark.key][1].time_s
                mark.fail(f"{mark}: it has run since {since:g} s without a STOP", "add the STOP, or remove one START")
            open_marks[mark.key] = (number, mark)
        else:
            if mark.key not in open_marks:
                mark.fail(f"{mark}: it has no START", "add the START, or remove the STOP")
            first, start = open_marks.pop(mark.key)
            event = Event(
                *(mark.behavior, start.time_s, mark.time_s, mark.subject, mark.modifiers, start.comment, mark.comment)
            )
            events.append((first, event))
    for _, mark in open_marks.values():
        mark.fail(f"{mark}: it has no STOP", "add the STOP where the behaviour ends")
    return tuple(event for _, event in sorted(events, key=lambda pair: pair[0]))


def never(found: str, do: str) -> NoReturn:
    """For marks that come from events and are not read again."""
    raise AssertionError(found)


def marks_of(events: Sequence[Event], asked: str) -> list[Mark]:
    """The marks of events in the order of time. Raises UserError where two states of the same subject, behaviour and
    modifiers overlap, which marks cannot express."""
    marks: list[Mark] = []
    last: dict[Key, Event] = {}
    for event in sorted(events, key=lambda event: (event.start_s, event.end_s)):
        fixed = (event.subject, event.behavior, event.modifiers)
        if event.stop_s is None:
            marks.append(Mark("POINT", event.start_s, *fixed, event.comment_start, never))
            continue
        before = last.get(fixed)
        if before is not None and before.stop_s is not None and before.stop_s > event.start_s:
            found = f"{described(fixed)} runs from {before.start_s:g} to {before.stop_s:g} s and again from"
            do = "join the two, or give them different subjects or modifiers: BORIS cannot hold both"
            raise UserError(asked, f"{found} {event.start_s:g} to {event.stop_s:g} s", do)
        last[fixed] = event
        marks.append(Mark("START", event.start_s, *fixed, event.comment_start, never))
        marks.append(Mark("STOP", event.stop_s, *fixed, event.comment_stop, never))
    return sorted(marks, key=lambda mark: mark.time_s)

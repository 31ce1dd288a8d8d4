"""What the tables of BORIS share: columns of the observation, of the subject, of the modifiers.

BORIS adds an observation's time offset to the times of its events. Here times count from the first frame, so the offset
is taken off when a file is read and added when it is written.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Hashable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal

from ranks.errors import UserError
from ranks.workloads.video_behavior.annotations.boris_block import MODIFIER, ObservationBlock
from ranks.workloads.video_behavior.annotations.delimited import (
    NUMBER,
    Header,
    TableRow,
    asked,
    check_time,
    is_given,
    number,
    optional_number,
)
from ranks.workloads.video_behavior.annotations.events import Annotation, Event, same_file

DURATION = "Media duration (s)"
NO_SUBJECT = "No focal subject"
PLAYER = re.compile(r"player #\d+:\s*", re.IGNORECASE)
OLD_NAMES = {"Media file name": "Media file path", DURATION: "Total length", "Behavior type": "Status"}
"""What BORIS before version 8 calls a column."""
ONE_FILE = "export one observation for each media file: ranks does not cut observations that play several"


@dataclass(frozen=True)
class ObservationColumns:
    """Where a table says which observation and video a row belongs to; None for columns that it lacks."""

    observation: int | None
    media: int | None
    source: int | None
    fps: int | None
    duration: int | None
    offset: int | None
    subject: int
    behavior: int
    modifiers: tuple[int, ...]
    fixed_observation: str = ""
    """The id of the only observation, where no column names it."""
    fixed_offset_s: float = 0.0
    """Its time offset, where no column names it."""
    fixed_media: tuple[str, ...] = ()
    """Its media files, those of all players, where no column names them."""

    @classmethod
    def of(cls, header: Header, block: ObservationBlock | None = None) -> ObservationColumns:
        """Find the columns. Raises UserError where subject or behaviour are missing."""
        return cls(
            fixed_observation="" if block is None else block.observation,
            fixed_offset_s=0.0 if block is None else block.offset_s,
            fixed_media=() if block is None else tuple(file for files in block.players().values() for file in files),
            observation=header.index("Observation id"),
            media=header.index("Media file name", "Media file path"),
            source=header.index("Source", "Media file", "Media file(s)"),
            fps=header.index("FPS", "FPS (frame/s)"),
            duration=header.index(DURATION, "Total length"),
            offset=header.index("Time offset (s)"),
            subject=header.required("Subject"),
            behavior=header.required("Behavior"),
            modifiers=tuple(at for at, name in enumerate(header.names) if MODIFIER.fullmatch(name)),
        )

    def observation_of(self, row: TableRow) -> str:
        return self.fixed_observation if self.observation is None else row.cells[self.observation]

    def media_of(self, row: TableRow) -> str:
        """The media file of a row: that of its event, else the only one of its observation."""
        if self.media is not None and is_given(row.cells[self.media]):
            return row.cells[self.media]
        text = next(iter(self._players_of(row)), "")
        return text if is_given(text) else ""

    def all_media_of(self, row: TableRow) -> tuple[str, ...]:
        """The media file of a row, and those of all players of its observation."""
        files = (file for player in self._players_of(row) for file in player.split(";"))
        return tuple(dict.fromkeys(filter(is_given, (self.media_of(row), *files, *self.fixed_media))))

    def _players_of(self, row: TableRow) -> list[str]:
        """What each player shows, files in a row with a ; between them; none for a live observation."""
        text = "" if self.source is None else row.cells[self.source]
        return [] if text.lower().startswith("live") else [PLAYER.sub("", part) for part in text.split("|")]

    def time_of(self, row: TableRow, at: int, name: str) -> float:
        """A time from the first frame, without the observation's offset. Raises UserError."""
        time_s = number(row, at, name)
        offset_s = self.fixed_offset_s
        if self.offset is not None and is_given(row.cells[self.offset]):
            offset_s = number(row, self.offset, "time offset")
        return check_time(row, shifted(time_s, -offset_s), name)

    def subject_of(self, row: TableRow) -> str:
        return "" if row.cells[self.subject] == NO_SUBJECT else row.cells[self.subject]

    def behavior_of(self, row: TableRow) -> str:
        if not row.cells[self.behavior].strip():
            row.fail("no behaviour is named", "write the behaviour's code")
        return row.cells[self.behavior]

    def modifiers_of(self, row: TableRow) -> tuple[str, ...]:
        """The modifiers without the empty ones at the end, which only fill the columns."""
        found = [part for at in self.modifiers for part in row.cells[at].split("|")]
        while found and not found[-1]:
            found.pop()
        return tuple(found)


def shifted(time_s: float, offset_s: float) -> float:
    """time_s + offset_s, added in decimals: 0.3 - 0.1 is 0.2, so that a file is written back as it was."""
    return time_s if offset_s == 0 else float(Decimal(repr(time_s)) + Decimal(repr(offset_s)))


def by_observation(
    rows: Sequence[TableRow], columns: ObservationColumns, video: str | None = None
) -> dict[str, list[TableRow]]:
    """The rows of each observation by its id. `video`: only the observations of this media file or with this id, where
    there are some."""
    groups: dict[str, list[TableRow]] = {}
    for row in rows:
        groups.setdefault(columns.observation_of(row), []).append(row)
    if video is None or len(groups) < 2:
        return groups
    wanted = {name: group for name, group in groups.items() if name == video or _shows(group, columns, video)}
    return wanted or groups


def _shows(group: Sequence[TableRow], columns: ObservationColumns, video: str) -> bool:
    """Whether an observation shows a media file, by its name without folders."""
    return any(same_file(name, video) for name in set(map(columns.media_of, group)))


def media_file_of(group: Sequence[TableRow], columns: ObservationColumns, observation: str) -> str:
    """The media file of an observation, "" where it names none. Raises UserError where it plays several."""
    files = list(dict.fromkeys(name for name in map(columns.media_of, group) if name))
    if len(files) > 1 or (files and columns.media is None and ";" in files[0]):
        named = "" if not observation else f" of observation '{observation}'"
        raise UserError(asked(group[0].path), f"events{named} in several media files: {', '.join(files[:3])}", ONE_FILE)
    return files[0] if files else ""


@contextmanager
def leaving_out(damaged: list[UserError] | None, observation: str = "") -> Generator[None]:
    """Puts what is wrong with an observation into `damaged`; raises it where that is None. `observation`: its name,
    where the error does not say it."""
    try:
        yield
    except UserError as error:
        if damaged is None:
            raise
        found = f"observation '{observation}', {error.found}" if observation else error.found
        damaged.append(UserError(error.asked, found, error.do))


def annotation_of(
    group: Sequence[TableRow], columns: ObservationColumns, observation: str, video: str, events: tuple[Event, ...]
) -> Annotation:
    """The annotation of one observation, with the frame rate and the length that its first row names."""
    first = group[0].cells
    fps = None if columns.fps is None else of_first_player(first[columns.fps])
    duration_s = None if columns.duration is None else of_first_player(first[columns.duration])
    return Annotation(video, events, fps, duration_s, observation, media=columns.all_media_of(group[0]))


def of_first_player(text: str) -> float | None:
    """'25.000|30.000' -> 25.0: the value of the first of several cameras, None where it is not given."""
    return optional_number(re.split(r"[|;]", text)[0])


def modifier_cells(modifiers: Sequence[str], width: int) -> dict[str, str]:
    """("left",), 2 -> {"Modifier #1": "left", "Modifier #2": ""}."""
    return {f"Modifier #{at + 1}": modifiers[at] if at < len(modifiers) else "" for at in range(width)}


def observation_cells(annotation: Annotation) -> dict[str, str]:
    """The columns that all rows of an observation share."""
    fps, duration_s = annotation.fps, annotation.duration_s
    return {
        "Observation id": annotation.observation or annotation.video,
        "Observation type": "Media file(s)",
        "Source": f"player #1:{annotation.video}",
        "Time offset (s)": "0.0",
        DURATION: "NA" if duration_s is None else repr(float(duration_s)),
        "FPS": "NA" if fps is None else repr(float(fps)),
        "Media file name": annotation.video or "NA",
        "Image file path": "NA",
    }


def frame_text(time_s: float, fps: float | None) -> str:
    """The frame that a time lies in, counted from 0, or NA."""
    return "NA" if fps is None else str(int(time_s * fps + 1e-6))


@dataclass(frozen=True)
class KeptCells:
    """The cells of a table that was read and is written back: what `Annotation` does not hold stays as it was. Columns
    have the names of BORIS 8."""

    names: tuple[str, ...] = ()
    by_event: Mapping[Hashable, Mapping[str, str]] = field(default_factory=lambda: dict[Hashable, Mapping[str, str]]())
    """The cells of a row, by observation and by what identifies its event."""
    by_observation: Mapping[str, Mapping[str, str]] = field(default_factory=lambda: dict[str, Mapping[str, str]]())
    """The cells that are equal in all rows of an observation, and what the block of an old file says of it."""
    block: ObservationBlock = field(default_factory=ObservationBlock)
    block_names: tuple[str, ...] = ()
    """The columns of what the block says."""

    @classmethod
    def of(
        cls,
        header: Header,
        rows: Sequence[tuple[Hashable, TableRow]],
        columns: ObservationColumns,
        block: ObservationBlock | None = None,
    ) -> KeptCells:
        """What a table holds. `rows`: each with what identifies its event among those of its observation."""
        block = block or ObservationBlock()
        names = _new_names(header.names)
        of_block = block.columns(names)
        by_event: dict[Hashable, Mapping[str, str]] = {}
        shared: dict[str, dict[str, str]] = {}
        for key, row in rows:
            cells = dict(zip(names, row.cells, strict=True))
            observation = columns.observation_of(row)
            by_event[observation, key] = cells
            equal = shared.setdefault(observation, dict(cells))
            for name in [name for name, value in equal.items() if cells[name] != value]:
                del equal[name]
        if block.observation in shared:
            shared[block.observation] = {**of_block, **shared[block.observation]}
        return cls(tuple(names), by_event, shared, block, tuple(of_block))

    def offset_s(self, observation: str) -> float:
        """The time offset of an observation, 0 where the table says nothing."""
        text = self.by_observation.get(observation, {}).get("Time offset (s)", "0")
        return float(text) if NUMBER.fullmatch(text.strip()) else 0.0

    def filled(
        self, annotation: Annotation, key: Hashable, cells: Mapping[str, str], owned: Sequence[str]
    ) -> dict[str, str]:
        """The cells of a row to write. `owned`: the columns that say what the event is; the others are kept."""
        observation = annotation.observation
        kept = {**self.by_observation.get(observation, {}), **self.by_event.get((observation, key), {})}
        for name, value in (
            ("FPS", annotation.fps),
            ("FPS (frame/s)", annotation.fps),
            (DURATION, annotation.duration_s),
        ):
            if name in kept and of_first_player(kept[name]) != value:
                del kept[name]
        return {**cells, **{name: value for name, value in kept.items() if name not in owned}}

    def with_own_columns(self, names: Sequence[str], after: str) -> list[str]:
        """The columns of a table to write: `names`, and what only this table has after the column `after`."""
        known = dict.fromkeys([*self.names, *self.block_names])
        own = [name for name in known if name not in names and not MODIFIER.fullmatch(name)]
        at = names.index(after) + 1
        return [*names[:at], *own, *names[at:]]


def _new_names(names: Sequence[str]) -> list[str]:
    """The columns of a table by the names of BORIS 8, which no other column of it has."""
    new = {old.casefold(): name for name, old in OLD_NAMES.items() if name not in names}
    return [new.get(name.casefold(), name) for name in names]

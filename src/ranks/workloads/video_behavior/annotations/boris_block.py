"""The block about the observation with which tabular events of BORIS before version 8 start.

    Observation id           day 1
    Media file(s)
    Player #1                m1.mp4
    Observation date         2017-03-01 10:00:00
    Description              first day
    Time offset (s)          0.0
    independent variables
    variable                 value
    dose                     5 mg

Later versions write the same values into columns of the table.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from ranks.workloads.video_behavior.annotations.delimited import TableRow, is_given, number

MODIFIER = re.compile(r"modifiers?(\s*#?\s*\d+)?", re.IGNORECASE)
PLAYER = re.compile(r"player #(\d+)", re.IGNORECASE)
FACTS = ("Observation date", "Description", "Time offset (s)")
"""Rows of the block that are columns of the same name in later versions."""
VARIABLES = "independent variables"
TITLES = frozenset(["observation id", "media file(s)", "live observation"])
COLUMNS = frozenset(
    [
        *("observation id", "observation date", "description", "observation duration", "observation type", "source"),
        *("time offset (s)", "coding duration", "media duration (s)", "total length", "fps", "fps (frame/s)"),
        *("subject", "observation duration by subject by observation", "behavior", "behavioral category"),
        *("behavior type", "status", "time", "start (s)", "stop (s)", "duration (s)", "media file", "media file(s)"),
        *("media file name", "media file path", "image index", "image index start", "image index stop"),
        *("image file path", "image file path start", "image file path stop"),
        *("comment", "comment start", "comment stop"),
    ]
)
"""The columns of BORIS' tables, in lower case. An independent variable needs another name."""


@dataclass(frozen=True)
class ObservationBlock:
    """`rows`: as they stand in the file, the blank ones included."""

    rows: tuple[TableRow, ...] = ()

    @property
    def observation(self) -> str:
        """The id of the observation, "" where the block has none."""
        row = self._row("Observation id")
        return "" if row is None else row.cells[1]

    @property
    def offset_s(self) -> float:
        """The time offset, 0 where the block has none. Raises UserError where it is not a number."""
        row = self._row("Time offset (s)")
        return 0.0 if row is None or not is_given(row.cells[1]) else number(row, 1, "time offset")

    def columns(self, taken: Collection[str] = ()) -> dict[str, str]:
        """The values by the names that their columns have in later versions.

        A variable that is called like a column of BORIS, or like one in `taken`, becomes "NAME (observation)".
        """
        found: dict[str, str] = {}
        for name, row in ((name, self._row(name)) for name in FACTS):
            if row is not None:
                found[name] = row.cells[1]
        players = self.players()
        if players:
            found["Source"] = "|".join(f"player #{number}:{';'.join(files)}" for number, files in players.items())
        used = {*COLUMNS, *(name.casefold() for name in taken)}
        for name, value in self._variables():
            is_free = name.casefold() not in used and not MODIFIER.fullmatch(name)
            found.setdefault(name if is_free else f"{name} (observation)", value)
        return found

    def _row(self, name: str) -> TableRow | None:
        """The first row of this name that has a second cell."""
        return next((row for row in self.rows if len(row.cells) > 1 and _name(row) == name.casefold()), None)

    def players(self) -> dict[str, list[str]]:
        """The media files of each player, by its number."""
        found: dict[str, list[str]] = {}
        for row in self.rows:
            player = PLAYER.fullmatch(_name(row))
            if player and len(row.cells) > 1 and is_given(row.cells[1]):
                found.setdefault(player[1], []).append(row.cells[1])
        return found

    def _variables(self) -> Iterator[tuple[str, str]]:
        """(name, value) of the independent variables, and of all rows with a value that nobody knows."""
        facts = [self._row(name) for name in FACTS]
        is_listed = False
        for row in self.rows:
            written, value, *_ = (*row.cells, "", "")
            name = _name(row)
            is_known = row in facts or name in TITLES or PLAYER.fullmatch(name) is not None
            if name == VARIABLES:
                is_listed = True
            elif (name, value.strip().casefold()) == ("variable", "value") or is_known:
                continue
            elif name and (is_listed or value.strip()):
                yield written.strip(), value


def _name(row: TableRow) -> str:
    """What a row calls its value, in lower case; "" for a blank row."""
    return row.cells[0].strip().casefold() if row.cells else ""

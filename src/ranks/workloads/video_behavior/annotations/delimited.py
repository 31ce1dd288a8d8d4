"""Rows of text tables: CSV, TSV, or with semicolons, quoted as spreadsheets do it.

Rows are read one at a time and counted, so that a table of any length is read or refused in bounded memory. Nothing is
guessed: a number is a plain decimal number, and a row has as many cells as the header.
"""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from ranks.bounded_file import open_file
from ranks.errors import UserError

DELIMITERS = ("\t", ",", ";")
MAX_EVENT_ROWS = 1_000_000
MAX_FRAME_ROWS = 10_000_000
"""Frames of a video: 46 hours at 60 frames a second."""
MAX_TIME_S = 1e7
"""Four months. Larger times are dates in seconds, which say nothing about a place in a video."""
NOT_GIVEN = frozenset({"", "na", "nan", "none", "not found", "n/a"})
"""How files say that a value is missing, in lower case."""
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
COUNT = re.compile(r"\d{1,12}", re.ASCII)
HEAD_BYTES = 1 << 16


@dataclass(frozen=True)
class TableRow:
    """One row of a table, with its file and line for messages."""

    path: Path
    line: int
    cells: tuple[str, ...]

    @property
    def is_blank(self) -> bool:
        """Whether no cell holds anything but blanks."""
        return not any(cell.strip() for cell in self.cells)

    def error(self, found: str, do: str) -> UserError:
        """What was found in this row."""
        return UserError(asked(self.path), f"line {self.line}: {found}", do)

    def fail(self, found: str, do: str) -> NoReturn:
        """Raise UserError: what was found in this row."""
        raise self.error(found, do)


@dataclass(frozen=True)
class Header:
    """The columns of a table, found by their names in any case."""

    row: TableRow

    @property
    def names(self) -> tuple[str, ...]:
        return self.row.cells

    def index(self, *names: str) -> int | None:
        """The column with one of these names, None where there is none."""
        folded = [name.strip().casefold() for name in self.names]
        return next((folded.index(name.casefold()) for name in names if name.casefold() in folded), None)

    def required(self, *names: str) -> int:
        """The column with one of these names. Raises UserError."""
        at = self.index(*names)
        if at is None:
            found = f"no column '{names[0]}' among {', '.join(self.names)}"
            raise UserError(asked(self.row.path), found, "export the file again with all columns")
        return at


def asked(path: Path) -> str:
    """The first line of all messages about an annotation file."""
    return f"the annotation {path}"


def head_of(path: Path) -> str:
    """The first 64 KiB of a text file, by which its format is recognised. Raises UserError where it is no text."""
    with open_file(path, asked(path), has_lines=False) as file:
        start = file.read(HEAD_BYTES)
    do = "give a BORIS, per-frame, binary or Caltech annotation file; see docs/video-behavior-files.md"
    if not start.strip():
        raise UserError(asked(path), "the file is empty", do)
    try:
        return start.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if error.start >= len(start) - 4 and len(start) == HEAD_BYTES:  # a character is cut at the end of the head
            return start[: error.start].decode("utf-8-sig")
        raise UserError(asked(path), "bytes that are not UTF-8 text", do) from None


def first_line(head: str, path: Path) -> str:
    """The first line with text of the head of a file. Raises UserError where there is none."""
    line = next((line for line in head.splitlines() if line.strip()), None)
    if line is None:
        raise UserError(asked(path), "the file has no text", "give a file with rows")
    return line


def delimiter_of(line: str) -> str:
    """The delimiter that occurs most often in a header line, tabs first."""
    return max(DELIMITERS, key=line.count)


def rows_of(path: Path, delimiter: str, max_rows: int, *, blank: bool = False) -> Iterator[TableRow]:
    """The rows of a table that are not blank. Raises UserError, also for more than `max_rows` of them.

    `blank`: the blank rows as well.
    """
    count = 0
    with open_file(path, asked(path)) as file, io.TextIOWrapper(file, "utf-8-sig", newline="") as text:
        rows, line = csv.reader(text, delimiter=delimiter, strict=True), 0
        while True:
            line = rows.line_num + 1
            try:
                cells = next(rows, None)
            except UnicodeDecodeError:
                found = f"line {line} or later: bytes that are not UTF-8 text"
                raise UserError(asked(path), found, "save it as UTF-8 text") from None
            except csv.Error as error:
                raise UserError(asked(path), f"line {line}: {error}", "export the file again") from None
            if cells is None:
                return
            row = TableRow(path, line, tuple(cells))
            if not row.is_blank:
                count += 1
                if count > max_rows + 1:  # one is the header
                    found = f"more than {max_rows:,} rows"
                    raise UserError(asked(path), found, "give one file for each video, or a shorter part of it")
            if blank or not row.is_blank:
                yield row


def table_of(path: Path, rows: Iterator[TableRow]) -> tuple[Header, Iterator[TableRow]]:
    """The header and the rows below it, each with as many cells as the header. Raises UserError."""
    first = next(rows, None)
    if first is None:
        raise UserError(asked(path), "a table without a header", "give a file with rows")
    names = [name.strip() for name in first.cells]
    while names and not names[-1]:
        names.pop()
    header = Header(TableRow(first.path, first.line, tuple(names)))
    repeated = next((name for name in names if name and names.count(name) > 1), None)
    if repeated is not None:
        first.fail(f"two columns are called '{repeated}'", "rename one of them")
    return header, (_fitted(row, len(names)) for row in rows)


def _fitted(row: TableRow, width: int) -> TableRow:
    """The row with as many cells as the header; empty cells at its end may be missing or too many."""
    cells = list(row.cells)
    while len(cells) > width and not cells[-1].strip():
        cells.pop()
    if len(cells) != width:
        row.fail(f"{len(row.cells)} cells, and the header has {width}", "export the file again")
    return TableRow(row.path, row.line, tuple(cells))


def number(row: TableRow, at: int, name: str) -> float:
    """The finite decimal number in a cell. Raises UserError."""
    text = row.cells[at].strip()
    value = float(text) if len(text) <= 40 and NUMBER.fullmatch(text) else math.nan
    if not math.isfinite(value):
        row.fail(f"{name} '{text}' is not a number", "write a decimal number with a point, such as 12.345")
    return value


def check_time(row: TableRow, value: float, name: str) -> float:
    """A time in seconds from the first frame of the video. Raises UserError where it is negative or far too large."""
    if value < 0:
        row.fail(f"{name} {value:g} s lies before the first frame", "times count from the start of the video")
    if value > MAX_TIME_S:
        row.fail(f"{name} {value:g} s is longer than any video", "give times from the start of the video, not dates")
    return value


def whole_number(row: TableRow, at: int, name: str) -> int:
    """The number 0, 1, 2, ... in a cell. Raises UserError."""
    text = row.cells[at].strip()
    if not COUNT.fullmatch(text):
        row.fail(f"{name} '{text}' is not a whole number from 0 on", "write 0, 1, 2, ...")
    return int(text)


def optional_number(text: str) -> float | None:
    """A positive number, None where the file says nothing or something else."""
    text = text.strip()
    if not NUMBER.fullmatch(text) or len(text) > 40:
        return None
    value = float(text)
    return value if math.isfinite(value) and value > 0 else None


def is_given(text: str) -> bool:
    """Whether a cell holds a value."""
    return text.strip().casefold() not in NOT_GIVEN


def number_text(value: float) -> str:
    """1.5 -> '1.500': three decimals as BORIS writes them, and more where they are needed to read the same number."""
    short = f"{value:.3f}"
    return short if float(short) == value else repr(float(value))


def write_rows(path: Path, names: Sequence[str], rows: Iterable[Mapping[str, str]], delimiter: str) -> None:
    """Write a table with the columns `names`, whole or not at all. Raises UserError where it cannot be written."""
    write_cells(path, itertools.chain([names], ([row.get(name, "") for name in names] for row in rows)), delimiter)


def write_cells(path: Path, rows: Iterable[Sequence[str]], delimiter: str) -> None:
    """Write rows of any length whole or not at all. Raises UserError where the file cannot be written."""
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter, lineterminator="\r\n").writerows(rows)
    write_text(path, text.getvalue())


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all. Raises UserError where it cannot be written."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        unfinished.write_text(text, encoding="utf-8", newline="")
        unfinished.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)
        found = error.strerror or str(error)
        raise UserError(f"to write {path}", found, "give a path that can be written") from None


def delimiter_for(path: Path) -> str:
    """The delimiter of a file to write: commas for .csv, else tabs."""
    return "," if path.suffix.lower() == ".csv" else "\t"

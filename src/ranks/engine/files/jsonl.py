"""Files of one JSON object a line. Rows are appended; a resume truncates them to the length in a
checkpoint. Torn and odd lines are skipped when the file is read."""

from __future__ import annotations

import errno
import json
import math
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any, cast

from ranks.engine.files.disk import writing
from ranks.engine.files.regular import DamagedFile, open_regular
from ranks.engine.files.strict_json import parse_object
from ranks.errors import UserError

ENCODER = json.JSONEncoder(allow_nan=False, check_circular=False)
"""For rows that the engine makes itself; the search for cycles would take half of the time."""
MAX_LINE_BYTES = 1 << 20
"""Longer lines are skipped."""
TAIL_BYTES = 1 << 18


def strict(value: Any) -> Any:
    """Replace NaN and infinities, which strict JSON does not have, by null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(k): strict(v) for k, v in cast(Mapping[Any, Any], value).items()}
    if isinstance(value, list | tuple):
        return [strict(v) for v in cast(list[Any], value)]
    return value


class JsonlFile:
    """One .jsonl file, open for appending. `missing_bytes`: how much shorter it was than
    `length`."""

    def __init__(self, path: Path, length: int | None = None) -> None:
        """`length`: bytes to keep; what follows them is cut off. A torn last line is ended, so that
        the next row has a line of its own. Raises UserError."""
        self.path = path
        with self._writing():
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            self._file = os.open(path, flags, 0o666)
            found = os.fstat(self._file)
            if not stat.S_ISREG(found.st_mode):
                os.close(self._file)
                raise OSError(errno.EINVAL, "not a regular file")
            size = found.st_size
            self.missing_bytes = max(0, (length or 0) - size)
            if length is not None and size > length:
                os.ftruncate(self._file, length)
                size = length
            if size and os.pread(self._file, 1, size - 1) != b"\n":
                self._write(b"\n")

    def _writing(self) -> AbstractContextManager[None]:
        return writing(f"to write {self.path}", self.path.parent)

    def append(self, row: Mapping[str, Any]) -> None:
        """Raises UserError where the disk is full; no part of the row is then left in the file."""
        try:
            text = ENCODER.encode(row)
        except ValueError:
            text = ENCODER.encode(strict(row))
        try:
            self._write(text.encode() + b"\n")
        except OSError as error:
            with self._writing():
                raise error

    def _write(self, line: bytes) -> None:
        written = 0
        try:
            while written < len(line):
                written += os.write(self._file, line[written:])
        except OSError:
            if written:
                with suppress(OSError):
                    os.ftruncate(self._file, os.fstat(self._file).st_size - written)
            raise

    def sync(self) -> int:
        """Make what was written durable (fsync); the length of the file in bytes."""
        with self._writing():
            os.fsync(self._file)
            return os.fstat(self._file).st_size

    def check_present(self) -> None:
        """Raises UserError where the file was deleted or replaced since it was opened."""
        with suppress(OSError):
            if os.path.samestat(os.lstat(self.path), os.fstat(self._file)):
                return
        raise UserError(
            f"to write {self.path}",
            "the file was deleted or replaced while the run trained: the rows since then are lost",
            "run the same command again; it resumes from the newest checkpoint",
        )

    def close(self) -> None:
        with suppress(OSError):  # a failed write was reported by `append`
            os.close(self._file)


def parse_row(line: bytes) -> dict[str, Any] | None:
    """The row of a line; None where the line is torn or odd."""
    try:
        return parse_object(line)
    except ValueError:
        return None


def iter_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a .jsonl file, in order; none where it cannot be read."""
    with suppress(DamagedFile, OSError), open_regular(path) as file:
        continued = False
        while line := file.readline(MAX_LINE_BYTES):
            ended = line.endswith(b"\n")
            row = parse_row(line) if ended and not continued else None
            continued = not ended
            if row is not None:
                yield row


def read_rows(path: Path) -> list[dict[str, Any]]:
    """All rows of a .jsonl file; an incomplete last line is left out."""
    return list(iter_rows(path))


def last_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows at the end of a .jsonl file, newest first; none where it cannot be read."""
    try:
        with open_regular(path) as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
            lines = file.read(TAIL_BYTES).splitlines()
    except (DamagedFile, OSError):
        return
    for line in reversed(lines):
        row = parse_row(line)
        if row is not None:
            yield row


def number(row: Mapping[str, Any], name: str) -> float | None:
    """The finite number that a row has under a name, if it has one."""
    value = row.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None

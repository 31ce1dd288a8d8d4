"""Follow a .jsonl file that another process appends to and truncates when a run resumes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ranks.engine.files.jsonl import MAX_LINE_BYTES, parse_row
from ranks.engine.files.regular import DamagedFile, open_regular

MARK_BYTES = 64
READ_BYTES = 8_000_000
"""Most bytes in one read."""


@dataclass(frozen=True)
class NewRows:
    """The whole rows since the last read. `truncated`: the file was truncated, and these are all of its rows."""

    rows: list[dict[str, Any]]
    truncated: bool = False


class JsonlTail:
    """Reads the new whole lines of a file.

    A truncation is noticed by the file's length, or because the last bytes that were read have changed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._offset = 0
        self._mark = b""
        """The last bytes before the offset."""

    @property
    def position(self) -> int:
        """How many bytes of the file were read."""
        return self._offset

    def read(self) -> NewRows:
        """The new rows; none while the file does not exist or cannot be read."""
        try:
            with open_regular(self.path) as file:
                file.seek(max(0, self._offset - len(self._mark)))
                truncated = file.read(len(self._mark)) != self._mark
                if truncated:
                    self._offset, self._mark = 0, b""
                    file.seek(0)
                data = file.read(READ_BYTES)
        except (DamagedFile, OSError):
            return NewRows([])
        whole = data[: data.rfind(b"\n") + 1]
        if len(data) == READ_BYTES and not whole:  # a line without end is no row
            whole = data
        self._offset += len(whole)
        self._mark = (self._mark + whole)[-MARK_BYTES:]
        lines = (line for line in whole.splitlines() if len(line) <= MAX_LINE_BYTES)
        return NewRows([row for line in lines if (row := parse_row(line)) is not None], truncated)

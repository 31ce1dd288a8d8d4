"""Follow a .jsonl file that another process appends to, and that is cut back when a run resumes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

MARK_BYTES = 64
READ_BYTES = 8_000_000
"""At most so much is read at once."""


@dataclass(frozen=True)
class News:
    """Whole rows since the last look. `cut`: the file was cut back, and these rows are its content from the start."""

    rows: list[dict[str, Any]]
    cut: bool = False


class Tail:
    """Reads whole lines only. A cut is seen by the length, or by other bytes where the last ones read had stood."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._offset = 0
        self._mark = b""

    def read(self) -> News:
        """What is new; nothing while the file is not there or cannot be read."""
        try:
            with self.path.open("rb") as file:
                file.seek(max(0, self._offset - len(self._mark)))
                cut = file.read(len(self._mark)) != self._mark
                if cut:
                    self._offset, self._mark = 0, b""
                    file.seek(0)
                data = file.read(READ_BYTES)
        except OSError:
            return News([])
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        self._mark = (self._mark + whole)[-MARK_BYTES:]
        return News([row for line in whole.splitlines() if (row := _row(line)) is not None], cut)


def _row(line: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return cast("dict[str, Any]", row) if isinstance(row, dict) else None

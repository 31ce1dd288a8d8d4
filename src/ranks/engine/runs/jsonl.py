"""Files of one JSON object a line. Rows are appended; a resume truncates them to the length in a
checkpoint."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any, cast

from ranks.engine.runs.disk import writing

ENCODER = json.JSONEncoder(allow_nan=False)


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
    """One .jsonl file, open for appending."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._writing():
            self._file = path.open("ab")

    def _writing(self) -> AbstractContextManager[None]:
        return writing(f"to write {self.path}", self.path.parent)

    def append(self, row: Mapping[str, Any]) -> None:
        try:
            text = ENCODER.encode(row)
        except ValueError:
            text = ENCODER.encode(strict(row))
        try:
            self._file.write(text.encode() + b"\n")
            self._file.flush()
        except OSError as error:
            with self._writing():
                raise error

    def sync(self) -> int:
        """Make what was written durable (fsync); the length of the file in bytes."""
        with self._writing():
            os.fsync(self._file.fileno())
            return self._file.tell()

    def cut(self, length: int) -> None:
        """Truncate the file to `length` bytes, if it is longer."""
        with self._writing():
            self._file.truncate(min(length, self.path.stat().st_size))
            self._file.seek(0, os.SEEK_END)

    def close(self) -> None:
        with suppress(OSError):  # a failed write was reported by `append`
            self._file.close()


def read_rows(path: Path) -> list[dict[str, Any]]:
    """All complete rows of a .jsonl file; an incomplete last line is left out."""
    if not path.exists():
        return []
    lines = path.read_bytes().split(b"\n")[:-1]
    return [json.loads(line) for line in lines]

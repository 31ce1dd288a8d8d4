"""Lines of JSON that are appended as things happen, and cut back to a checkpoint on resume."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

ENCODER = json.JSONEncoder(allow_nan=False)


def strict(value: Any) -> Any:
    """NaN and infinities become null, since strict JSON has neither."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(k): strict(v) for k, v in cast(Mapping[Any, Any], value).items()}
    if isinstance(value, list | tuple):
        return [strict(v) for v in cast(list[Any], value)]
    return value


class Journal:
    """One .jsonl file, open for appending."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("ab")

    def append(self, row: Mapping[str, Any]) -> None:
        try:
            text = ENCODER.encode(row)
        except ValueError:
            text = ENCODER.encode(strict(row))
        self._file.write(text.encode() + b"\n")
        self._file.flush()

    def sync(self) -> int:
        """Make what was written durable; its length in bytes."""
        os.fsync(self._file.fileno())
        return self._file.tell()

    def cut(self, length: int) -> None:
        """Drop everything behind the first `length` bytes."""
        self._file.truncate(length)
        self._file.seek(length)

    def close(self) -> None:
        self._file.close()


def read_rows(path: Path) -> list[dict[str, Any]]:
    """All whole rows of a .jsonl file; a last line that is still being written is left out."""
    if not path.exists():
        return []
    lines = path.read_bytes().split(b"\n")[:-1]
    return [json.loads(line) for line in lines]

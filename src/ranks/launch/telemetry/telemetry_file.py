"""telemetry.jsonl of a run: a row for each sample, of bounded size. Written by the launcher alone."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ranks.engine.files.jsonl import JsonlFile, read_rows
from ranks.engine.runs.folder import TELEMETRY_FILE, RunFolder

MOST_BYTES = 8 << 20
"""At this size every second row is removed, and from then on every second sample is left out."""


class TelemetryFile:
    """Appends rows once the run folder exists."""

    def __init__(self, run_dir: Path, most_bytes: int = MOST_BYTES) -> None:
        self.path, self._most_bytes = run_dir / TELEMETRY_FILE, most_bytes
        self._file: JsonlFile | None = None
        self._samples, self._every = 0, 1

    def append(self, row: Mapping[str, Any]) -> None:
        """Write a row, or leave it out where the file has become long. Raises UserError where it cannot be written."""
        self._samples += 1
        if self._samples % self._every:
            return
        if self._file is None:
            if not RunFolder(self.path.parent).exists:
                return
            self._file = JsonlFile(self.path)
        self._file.append(row)
        if os.path.getsize(self.path) > self._most_bytes:
            self._thin()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _thin(self) -> None:
        """Keep every second row. A reader sees the old file or the new one."""
        self.close()
        self._every *= 2
        kept = read_rows(self.path)[1::2]
        temporary = self.path.with_name(f".{self.path.name}.tmp-{os.getpid()}")
        temporary.write_text("".join(json.dumps(row) + "\n" for row in kept), encoding="utf-8")
        os.replace(temporary, self.path)

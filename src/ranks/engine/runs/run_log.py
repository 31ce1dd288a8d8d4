"""metrics.jsonl, events.jsonl and sessions.jsonl of an open run."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ranks.engine.runs.folder import EVENTS_FILE, METRICS_FILE, SESSIONS_FILE
from ranks.engine.runs.jsonl import JsonlFile


class RunLog:
    """The three files on the first rank; on other ranks, and once closed, nothing is written."""

    def __init__(self, folder: Path, lengths: Mapping[str, int], *, writes: bool) -> None:
        """`lengths`: file name -> bytes that belong to the checkpoint; what follows them is cut
        off."""
        names = (METRICS_FILE, EVENTS_FILE, SESSIONS_FILE) if writes else ()
        self._files = {name: JsonlFile(folder / name) for name in names}
        if writes:
            for name, length in lengths.items():
                self._files[name].cut(length)

    def metrics(self, row: Mapping[str, Any]) -> None:
        self._append(METRICS_FILE, row)

    def event(self, event: Mapping[str, Any]) -> None:
        self._append(EVENTS_FILE, event)

    def session(self, record: Mapping[str, Any]) -> None:
        """How a session began or ended; these records are never cut off."""
        self._append(SESSIONS_FILE, {**record, "time": time.time()})

    def _append(self, name: str, row: Mapping[str, Any]) -> None:
        if name in self._files:
            self._files[name].append(row)

    def lengths(self) -> dict[str, int]:
        """Make metrics and events durable; their lengths in bytes, as a checkpoint's manifest keeps
        them."""
        return {
            "metrics_bytes": self._files[METRICS_FILE].sync(),
            "events_bytes": self._files[EVENTS_FILE].sync(),
        }

    def close(self) -> None:
        for file in self._files.values():
            file.close()
        self._files = {}

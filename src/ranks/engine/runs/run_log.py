"""metrics.jsonl, events.jsonl and sessions.jsonl of an open run."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ranks.engine.files.jsonl import JsonlFile
from ranks.engine.runs.folder import EVENTS_FILE, METRICS_FILE, SESSIONS_FILE


class RunLog:
    """The three files on the first rank; on other ranks, and once closed, nothing is written."""

    def __init__(self, folder: Path, lengths: Mapping[str, int], *, writes: bool) -> None:
        """`lengths`: file name -> bytes that belong to the checkpoint; what follows them is cut
        off. Raises UserError where a file cannot be written."""
        names = (METRICS_FILE, EVENTS_FILE, SESSIONS_FILE) if writes else ()
        self._files = {name: JsonlFile(folder / name, lengths.get(name)) for name in names}

    @property
    def shortened(self) -> list[str]:
        """The files that were shorter than the checkpoint says, in words."""
        found = {name: file.missing_bytes for name, file in self._files.items()}
        return [
            f"{name} is {missing:,} bytes shorter than at the checkpoint: rows are missing"
            for name, missing in found.items()
            if missing
        ]

    def check_present(self) -> None:
        """Raises UserError where a file was deleted or replaced since it was opened."""
        for file in self._files.values():
            file.check_present()

    def metrics(self, row: Mapping[str, Any]) -> None:
        self._append(METRICS_FILE, row)

    def event(self, event: Mapping[str, Any]) -> None:
        self._append(EVENTS_FILE, event)

    def session(self, record: Mapping[str, Any]) -> None:
        """How a session began or ended; these records are durable and never cut off."""
        self._append(SESSIONS_FILE, {**record, "time": time.time()})
        if SESSIONS_FILE in self._files:
            self._files[SESSIONS_FILE].sync()

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

"""Which content a video file has: the sha256 of all its bytes, remembered as long as the file does not change.

`sources.json` in a store has the size, the time of the last change and the sha256 of each video. A file whose size and
time are those is not read again. A file that was changed in the last two seconds is not remembered: some disks would
give another change in that time the same stamp.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ranks.engine.files.disk import write_durably
from ranks.engine.liveness.heartbeat import heartbeat

SOURCES_FILE = "sources.json"
SETTLED_NS = 2 * 10**9
BLOCK_BYTES = 2**20


@dataclass(frozen=True)
class SourceFile:
    """A video file as it was when it was read."""

    size_bytes: int
    changed_ns: int
    sha256: str

    def is_of(self, found: os.stat_result) -> bool:
        """Whether a file is still the same."""
        return (self.size_bytes, self.changed_ns) == (found.st_size, found.st_mtime_ns)


class Sources:
    """The contents of the videos of a store."""

    def __init__(self, folder: Path) -> None:
        """Read what `folder` remembers; what is damaged is forgotten."""
        self.folder = folder
        self._files: dict[str, SourceFile] = {}
        try:
            for path, values in json.loads((folder / SOURCES_FILE).read_bytes()).items():
                self._files[path] = SourceFile(**values)
        except (OSError, ValueError, TypeError, AttributeError):
            self._files = {}

    def remembered(self, path: Path) -> str | None:
        """The sha256 of a video that has not changed since it was read; None for others. Raises OSError."""
        known = self._files.get(str(path.absolute()))
        return known.sha256 if known is not None and known.is_of(path.stat()) else None

    def sha256_of(self, path: Path) -> str:
        """The sha256 of a video file, which is read where it is not remembered. Raises OSError."""
        known = self.remembered(path)
        if known is not None:
            return known
        before = path.stat()
        digest = hashlib.sha256()
        with path.open("rb") as file:
            while block := file.read(BLOCK_BYTES):
                digest.update(block)
                heartbeat.beat()
        found = SourceFile(before.st_size, before.st_mtime_ns, digest.hexdigest())
        if found.is_of(path.stat()) and time.time_ns() - before.st_mtime_ns > SETTLED_NS:
            self._files[str(path.absolute())] = found
        return found.sha256

    def write(self) -> None:
        """Remember the files that exist. Raises OSError."""
        kept: dict[str, Any] = {path: asdict(file) for path, file in self._files.items() if Path(path).exists()}
        temporary = self.folder / f".{SOURCES_FILE}.tmp"
        write_durably(temporary, json.dumps(kept, indent=1).encode())
        temporary.replace(self.folder / SOURCES_FILE)

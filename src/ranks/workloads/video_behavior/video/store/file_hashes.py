"""The sha256 of files, remembered as long as the files do not change.

A store has two such lists: `sources.json` of the videos, `checked.json` of its own .npy files. Each has the size, the
time of the last change and the sha256 of a file. A file whose size and time are those is not read again. A file that
was changed in the last two seconds is not remembered after it was read: some disks would give another change in that
time the same stamp.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ranks.engine.files.disk import replace_durably
from ranks.engine.liveness.heartbeat import heartbeat
from ranks.progress import ProgressBar

SOURCES_FILE, CHECKED_FILE = "sources.json", "checked.json"
SETTLED_NS = 2 * 10**9
BLOCK_BYTES = 2**24


@dataclass(frozen=True)
class HashedFile:
    """A file as it was when it was read."""

    size_bytes: int
    changed_ns: int
    sha256: str

    def is_of(self, found: os.stat_result) -> bool:
        """Whether a file is still the same."""
        return (self.size_bytes, self.changed_ns) == (found.st_size, found.st_mtime_ns)


class FileHashes:
    """The list in one file. Files in its folder are known by name, so a store that is moved keeps them."""

    def __init__(self, file: Path) -> None:
        """Read the list; a damaged one is forgotten."""
        self.file = file
        self._files: dict[str, HashedFile] = {}
        try:
            for path, values in json.loads(file.read_bytes()).items():
                self._files[path] = HashedFile(**values)
        except (OSError, ValueError, TypeError, AttributeError):
            self._files = {}

    def remembered(self, path: Path) -> str | None:
        """The sha256 of a file that has not changed since it was read; None for others. Raises OSError."""
        known = self._files.get(self._name_of(path))
        return known.sha256 if known is not None and known.is_of(path.stat()) else None

    def sha256_of(self, path: Path, advance: Callable[[int], object], *, skip: int = 0) -> str:
        """Read a file and remember its sha256. Raises OSError.

        `advance` is called with the number of bytes that were read. `skip`: the first bytes, which do not count.
        """
        before = path.stat()
        digest = hashlib.sha256()
        with path.open("rb") as file:
            file.seek(skip)
            while block := file.read(BLOCK_BYTES):
                digest.update(block)
                advance(len(block))
                heartbeat.beat()
        found = HashedFile(before.st_size, before.st_mtime_ns, digest.hexdigest())
        if found.is_of(path.stat()) and time.time_ns() - before.st_mtime_ns > SETTLED_NS:
            self._files[self._name_of(path)] = found
        return found.sha256

    def remember(self, path: Path, sha256: str) -> None:
        """Remember a file that this command has just written. Raises OSError."""
        found = path.stat()
        self._files[self._name_of(path)] = HashedFile(found.st_size, found.st_mtime_ns, sha256)

    def write(self) -> None:
        """Write the list of the files that exist. Raises OSError."""
        folder = self.file.parent
        kept: dict[str, Any] = {name: asdict(file) for name, file in self._files.items() if (folder / name).exists()}
        replace_durably(self.file, json.dumps(kept, indent=1).encode())

    def _name_of(self, path: Path) -> str:
        return path.name if path.parent == self.file.parent else str(path.absolute())


@contextmanager
def reading(title: str, files: Sequence[Path]) -> Generator[Callable[[int], object]]:
    """A progress bar over the bytes of files; the function to call with the number of bytes that were read."""
    if not files:
        yield lambda _: None
        return
    total = sum(path.stat().st_size for path in files if path.exists())
    with ProgressBar(total, title=title, unit="bytes", stream=sys.stderr) as bar:
        yield bar.advance

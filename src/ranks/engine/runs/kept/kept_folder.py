"""The folder runs/NAME/kept/ on disk: writes, opens, verifies and deletes kept files.

    kept/replay/00000012-SHA256.safetensors    named by the iteration in which it was written, and its content

A file is written to a temporary name, synced, read back and renamed, and never changes after that.
A link, FIFO or device in its place is damage, and so is a link in the place of one of the two folders.
"""

from __future__ import annotations

import errno
import hashlib
import os
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

from ranks.engine.files.disk import real_folder, remove, sync_folder, write_durably
from ranks.engine.files.mapped import map_arrays
from ranks.engine.files.regular import DamagedFile, sha256_regular
from ranks.engine.liveness.heartbeat import heartbeat
from ranks.engine.runs.folder import TEMPORARY
from ranks.engine.runs.kept.kept_file import PATTERN, KeptFile

NAMED = 5
"""Damaged files that an error names."""


class KeptFolder:
    """`path`: runs/NAME/kept."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._problems: dict[KeptFile, str] = {}

    def write(self, folder: str, iteration: int, arrays: Mapping[str, NDArray[Any]]) -> KeptFile:
        """Write arrays. A file that is there already is kept where it is equal, and replaced where it
        is not. Raises OSError, or DamagedFile where it does not read back; nothing is then left of
        it."""
        content = safetensors.numpy.save({name: np.asarray(array, order="C") for name, array in arrays.items()})
        file = KeptFile.named(folder, iteration, hashlib.sha256(content).hexdigest(), len(content))
        try:
            self.verify(file)
            os.utime(self.path / file.path)  # `listing` puts what was written last behind the others
            return file
        except DamagedFile:
            pass
        if not self.path.parent.is_dir():
            raise FileNotFoundError(errno.ENOENT, "the run folder is gone")
        place = real_folder(real_folder(self.path) / folder)
        temporary, final = place / f"{TEMPORARY}{iteration:08d}-{os.getpid()}", self.path / file.path
        try:
            write_durably(temporary, content)
            if sha256_regular(temporary, size=file.size) != file.sha256:
                raise DamagedFile(f"{temporary}: its sha256 is not that of what was written")
            remove(final)
            os.rename(temporary, final)
            sync_folder(place)
        except (OSError, DamagedFile):
            remove(temporary)
            raise
        return file

    def open(self, file: KeptFile) -> dict[str, NDArray[Any]]:
        """Its arrays by name, read-only and memory-mapped. The content is not verified. Raises
        DamagedFile."""
        self._refuse_links(file)
        return map_arrays(self.path / file.path, size=file.size)

    def verify(self, file: KeptFile) -> None:
        """Read the whole file. Raises DamagedFile where it is not what its name says."""
        self._refuse_links(file)
        if sha256_regular(self.path / file.path, size=file.size) != file.sha256:
            raise DamagedFile(f"{self.path / file.path}: its sha256 is not the one in its name")

    def listing(self, folder: str) -> list[KeptFile]:
        """The files of a folder that have the name of a kept file, from oldest to newest, without verifying
        them. Of one iteration there are two where a run was killed and repeated it with another result;
        the one that was written last comes last."""
        place = self.path / folder
        if self.path.is_symlink() or place.is_symlink() or not place.is_dir():
            return []
        found: list[tuple[int, int, KeptFile]] = []
        for path in place.iterdir():
            name = f"{folder}/{path.name}"
            if PATTERN.fullmatch(name):
                with suppress(FileNotFoundError):  # a running run may delete it
                    about = path.lstat()
                    file = KeptFile(name, about.st_size)
                    found.append((file.iteration, about.st_mtime_ns, file))
        return [file for _, _, file in sorted(found, key=lambda row: row[:2])]

    def remove_temporaries(self, folder: str, older_than_s: float = 0.0) -> None:
        """Remove what killed processes have left of files that they were writing. Raises OSError."""
        place = self.path / folder
        if self.path.is_symlink() or place.is_symlink() or not place.is_dir():
            return
        for path in place.glob(f"{TEMPORARY}*"):
            with suppress(FileNotFoundError):
                if time.time() - path.lstat().st_mtime >= older_than_s:
                    remove(path)

    def problem(self, named: Mapping[str, int]) -> str:
        """How many of some files (path -> bytes) are damaged, and what is wrong with each; empty where
        all are good. Each file is read once, however often it is asked about."""
        files = [KeptFile(path, size) for path, size in named.items()]
        for file in files:
            if file not in self._problems:
                heartbeat.beat()
                try:
                    self.verify(file)
                    self._problems[file] = ""
                except DamagedFile as damage:
                    self._problems[file] = str(damage)
        found = [self._problems[file] for file in files if self._problems[file]]
        if not found:
            return ""
        more = [f"and {len(found) - NAMED} more"] if len(found) > NAMED else []
        return f"{len(found)} of {len(files)} kept files damaged: {'; '.join([*found[:NAMED], *more])}"

    def missing(self, named: Mapping[str, int]) -> list[str]:
        """Which of some files (path -> bytes) are not there with that size; their content is not read."""
        found: list[str] = []
        for path, size in named.items():
            place = self.path / path
            if place.is_symlink() or not place.is_file() or place.stat().st_size != size:
                found.append(path)
        return found

    def delete_unnamed(self, named: Collection[str], before: int) -> None:
        """Delete files that were written before an iteration and that no checkpoint names. Later
        ones stay: a checkpoint to come will name them. Raises OSError."""
        if self.path.is_symlink() or not self.path.is_dir():
            return
        for folder in self.path.iterdir():
            if folder.is_symlink() or not folder.is_dir():
                continue
            for path in folder.iterdir():
                match = PATTERN.fullmatch(f"{folder.name}/{path.name}")
                if match and match[0] not in named and int(match[1]) < before:
                    remove(path)

    def _refuse_links(self, file: KeptFile) -> None:
        for folder in (self.path, (self.path / file.path).parent):
            if folder.is_symlink():
                raise DamagedFile(f"{folder}: a link")

"""Labels on disk, shared by all runs of a user.

    FOLDER/v1-stockfish-15.1-nodes-1000-0123456789ab/       one folder for each engine, version, net and limit
        labels/00001763959000123456-SHA256.safetensors       immutable, named by time and content
        limit                                                 bytes of all files, where the user gave a limit
        lock                                                  held while files are merged or dropped

A file is written durably, read back and renamed, as the kept files of a run are. Several runs may add files at the same
time; each sees those of the others at its next look-up. Small files are merged. When all files together exceed the
limit, the oldest are dropped. A damaged file is named and removed: its labels are computed again. One that the system
does not let us read is named and left alone.

Legend: N positions.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ranks.cache_home import cache_home
from ranks.data.prepared.say import say
from ranks.engine.files.disk import remove, write_durably, writing
from ranks.engine.files.lock import tried
from ranks.engine.files.regular import DamagedFile, UnreadableFile
from ranks.engine.runs.kept.kept_file import KeptFile
from ranks.engine.runs.kept.kept_folder import KeptFolder
from ranks.workloads.chess_value.labels.cache_file import (
    BYTES_PER_LABEL,
    FORMAT,
    CacheAbout,
    CachedLabels,
    UnfitLabels,
    in_order,
    labels_of,
    merged,
)
from ranks.workloads.chess_value.labels.label import NO_SCORE
from ranks.workloads.chess_value.labels.position_keys import PositionKeys

FILES = "labels"
"""The folder of the files, below that of an engine and limit."""
LIMIT_FILE = "limit"
"""Bytes, where a limit was given."""
DEFAULT_BYTES = 1 << 30
"""About 60 million labels."""
MOST_FILES = 16
"""More small files than these are merged."""
SMALL_SHARE = 8
"""A file is small below the limit of the whole cache divided by this."""
KEPT = "nothing that was cached before is lost"


class LabelCache:
    """The labels of one engine and one limit."""

    def __init__(
        self,
        root: Path,
        about: CacheAbout,
        most_bytes: int | None = None,
        report: Callable[[str], None] = say,
    ) -> None:
        """Open the cache, or make it. Raises UserError where the folder cannot be written.

        most_bytes: the limit from now on; without it the one that was given last, also by another run meanwhile, or
        DEFAULT_BYTES. report: gets one line for each file that cannot be used."""
        self.about, self.path = about, root / folder_name(about)
        self._report = report
        with writing(f"the label cache {root}", root, KEPT):
            self.path.mkdir(parents=True, exist_ok=True)
        for other in other_versions(root):
            report(f"the label cache {other} is of another version of ranks: it is left alone and not used")
        self._folder = KeptFolder(self.path)
        self._labels: dict[KeptFile, CachedLabels] = {}
        self._unreadable: set[KeptFile] = set()
        self._has_own_limit = most_bytes is not None
        self.most_bytes = self._limit() if most_bytes is None else self._set_limit(most_bytes)
        self.refresh()

    def __len__(self) -> int:
        """Labels of all files; a position counts twice if two runs labelled it at the same time."""
        return sum(len(labels.key_N) for labels in self._labels.values())

    @property
    def size_bytes(self) -> int:
        """Of all files."""
        return sum(file.size for file in self._labels)

    def look_up(self, boards_N13: NDArray[np.uint64]) -> NDArray[np.int16]:
        """int16[N]: the scores of positions; NO_SCORE where there is no label."""
        keys = PositionKeys(boards_N13)
        order_N = keys.key_N.argsort()  # in order, so that nearby keys are looked up together
        key_N, check_N = keys.key_N[order_N], keys.check_N[order_N]
        sorted_cp_N = np.full(len(key_N), NO_SCORE, np.int16)
        for labels in self._labels.values():
            at_N = labels.places(key_N, check_N)
            sorted_cp_N[at_N >= 0] = labels.cp_N[at_N[at_N >= 0]]
        cp_N = np.empty_like(sorted_cp_N)
        cp_N[order_N] = sorted_cp_N
        return cp_N

    def add(self, boards_N13: NDArray[np.uint64], cp_N: NDArray[np.int16]) -> None:
        """Add labels as one file; positions without a score are left out. Raises UserError where the disk is full."""
        known_N = cp_N != NO_SCORE
        keys = PositionKeys(boards_N13[known_N])
        self.add_labels(in_order(keys.key_N, keys.check_N, cp_N[known_N]))

    def add_labels(self, labels: CachedLabels) -> None:
        """Add labels in the order of their keys; those that the cache has are left out. Raises UserError where the disk
        is full."""
        labels = self._without_known(labels)
        if not len(labels.key_N):
            return
        with writing(f"the label cache {self.path}", self.path, KEPT):
            for file in self._write(labels):
                self._take(file)
        if self._due():
            self._tidy()

    def refresh(self) -> None:
        """See the files that other runs have added or dropped since, and the limit that they have set."""
        if not self._has_own_limit:
            self.most_bytes = self._limit()
        files = self._folder.listing(FILES)
        for gone in self._labels.keys() - set(files):
            del self._labels[gone]
        for file in files:
            if file not in self._labels and file not in self._unreadable:
                self._take(file)

    def all_labels(self) -> CachedLabels:
        """Every label once, in the order of keys."""
        empty = CachedLabels(np.zeros(0, np.uint64), np.zeros(0, np.uint64), np.zeros(0, np.int16))
        return merged([empty, *self._labels.values()])

    def _limit(self) -> int:
        with suppress(OSError, ValueError):
            return int((self.path / LIMIT_FILE).read_bytes()[:20])
        return DEFAULT_BYTES

    def _set_limit(self, most_bytes: int) -> int:
        temporary = self.path / f".{LIMIT_FILE}-{os.getpid()}"
        with writing(f"the label cache {self.path}", self.path, KEPT):
            write_durably(temporary, f"{most_bytes}\n".encode())
            os.replace(temporary, self.path / LIMIT_FILE)
        return most_bytes

    def _without_known(self, labels: CachedLabels) -> CachedLabels:
        known_N = np.zeros(len(labels.key_N), np.bool_)
        for other in self._labels.values():
            known_N |= other.places(labels.key_N, labels.check_N) >= 0
        return CachedLabels(labels.key_N[~known_N], labels.check_N[~known_N], labels.cp_N[~known_N])

    def _write(self, labels: CachedLabels) -> Iterator[KeptFile]:
        """Write labels as files of a share of the limit, because whole files are dropped at the limit."""
        most = max(1, self.most_bytes // (SMALL_SHARE * BYTES_PER_LABEL))
        for begin in range(0, len(labels.key_N), most):
            part = labels.rows(begin, begin + most)
            yield self._folder.write(FILES, time.time_ns() // 1000, part.arrays(self.about))

    def _take(self, file: KeptFile) -> None:
        """Verify a file and map it. One that is damaged is named and removed; one that cannot be read is named."""
        try:
            self._folder.verify(file)
            self._labels[file] = labels_of(self._folder.open(file), self.about)
        except UnreadableFile as problem:
            self._unreadable.add(file)
            self._report(f"the label cache: {problem}; it is left alone, its labels are not used")
        except (DamagedFile, UnfitLabels) as problem:
            path = self.path / file.path
            if os.path.lexists(path):  # another run may have merged it into a new file
                self._report(f"the label cache: {path}: {problem}; it is removed, its labels are computed again")
                remove(path)

    def _small(self) -> list[KeptFile]:
        return [file for file in self._labels if file.size * SMALL_SHARE < self.most_bytes]

    def _due(self) -> bool:
        return len(self._small()) > MOST_FILES or self.size_bytes > self.most_bytes

    def _tidy(self) -> None:
        """Merge small files and drop the oldest beyond the limit, unless another run does it now."""
        with writing(f"the label cache {self.path}", self.path, KEPT), tried(self.path / "lock") as locked:
            if not locked:
                return
            self._folder.remove_temporaries(FILES, older_than_s=3600)  # of killed runs; others may be writing now
            self.refresh()  # another run may have merged the files that this one still maps, or raised the limit
            small = self._small()
            if len(small) > MOST_FILES:
                written = list(self._write(merged([self._labels[part] for part in small])))
                self._drop([part for part in small if part not in written])
                for file in written:
                    self._take(file)
            by_age = sorted(self._labels, key=lambda file: file.iteration)
            dropped = 0
            while self.size_bytes > self.most_bytes and len(by_age) > 1:
                dropped += len(self._labels[by_age[0]].key_N)
                self._drop([by_age.pop(0)])
            if dropped:
                most = f"{self.most_bytes / 2**20:,.0f} MiB"
                self._report(f"the label cache {self.path}: the {dropped:,} oldest labels are dropped, to keep {most}")

    def _drop(self, files: list[KeptFile]) -> None:
        for file in files:
            del self._labels[file]
            remove(self.path / file.path)


def folder_name(about: CacheAbout) -> str:
    """'v1-stockfish-15.1-nodes-1000-' and a hash, so that no two engines share a folder."""
    engine = re.sub(r"[^a-z0-9.]+", "-", about.engine.partition(",")[0].lower()).strip("-.")[:40]
    digest = hashlib.sha256(str(about).encode()).hexdigest()[:12]
    return f"v{FORMAT}-{engine or 'engine'}-{about.limit.replace(':', '-')}-{digest}"


def other_versions(root: Path) -> list[Path]:
    """Folders of other formats of the cache."""
    found = (path for path in root.iterdir() if re.fullmatch(r"v[0-9]{1,6}-.*", path.name) and path.is_dir())
    return sorted(path for path in found if not path.name.startswith(f"v{FORMAT}-"))


def default_root() -> Path:
    """The user's folder for the cache."""
    return cache_home() / "ranks" / "chess-labels"

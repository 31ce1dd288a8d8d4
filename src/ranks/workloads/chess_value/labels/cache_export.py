"""One file for all labels of an engine and limit: to copy them to another machine, and to read them there."""

from __future__ import annotations

import os
from pathlib import Path

import safetensors.numpy

from ranks.engine.files.disk import remove, sync_folder, write_durably, writing
from ranks.engine.files.mapped import map_arrays
from ranks.engine.files.regular import DamagedFile
from ranks.errors import UserError
from ranks.workloads.chess_value.labels.cache_file import (
    BYTES_PER_LABEL,
    FORMAT,
    CacheAbout,
    UnfitLabels,
    about_of,
    labels_of,
)
from ranks.workloads.chess_value.labels.label_cache import FILES, LabelCache

UNHARMED = "the cache is as it was"


def export_labels(cache: LabelCache, path: Path) -> int:
    """Write all labels to one file. Returns how many. Raises UserError."""
    asked = f"to export labels to {path}"
    if path.is_dir() or not path.parent.is_dir():
        raise UserError(asked, "no file can be written there", "give the path of a file in an existing folder")
    labels = cache.all_labels()
    temporary = path.with_name(f".tmp-{path.name}-{os.getpid()}")
    try:
        with writing(asked, path.parent, UNHARMED):
            write_durably(temporary, safetensors.numpy.save(labels.arrays(cache.about)))
            os.replace(temporary, path)
            sync_folder(path.parent)
    finally:
        remove(temporary)
    return len(labels.key_N)


def import_labels(root: Path, path: Path, most_bytes: int | None) -> tuple[CacheAbout, int]:
    """Add the labels of an exported file to the cache in `root`. Returns what they belong to and how many they are.
    `most_bytes`: see `LabelCache`. Raises UserError where the file is damaged or none."""
    try:
        arrays = map_arrays(path, size=path.stat().st_size)
        about, sha256 = about_of(arrays)
        labels = labels_of(arrays)
        if labels.sha256() != sha256:
            raise UnfitLabels("its content is not that of its sha256")
    except (DamagedFile, UnfitLabels, OSError) as problem:
        found = str(problem) if isinstance(problem, DamagedFile) else f"{path}: {problem}"
        do = "give a file that `ranks chess-value cache export` of this version has written, or copy it again"
        raise UserError(f"to import labels from {path}", found, do) from None
    cache = LabelCache(root, about, most_bytes)
    if (needed := BYTES_PER_LABEL * len(labels.key_N)) > cache.most_bytes:
        most = f"the cache may take {cache.most_bytes / 2**20:,.0f}"
        found = f"{len(labels.key_N):,} labels take {needed / 2**20:,.1f} MiB, {most}"
        raise UserError(f"to import labels from {path}", found, f"give --cache-mib {2 * needed // 2**20 + 1}")
    cache.add_labels(labels)
    return about, len(labels.key_N)


def caches_in(root: Path) -> list[LabelCache]:
    """The caches of all engines and limits in a folder."""
    caches: list[LabelCache] = []
    for folder in sorted(root.glob(f"v{FORMAT}-*/{FILES}")):
        about = _about_of_folder(folder)
        if about is not None:
            caches.append(LabelCache(root, about))
    return caches


def _about_of_folder(folder: Path) -> CacheAbout | None:
    """What the labels of a folder belong to, by its first file that says so."""
    for path in sorted(folder.glob("*.safetensors")):
        try:
            return about_of(map_arrays(path, size=path.stat().st_size))[0]
        except (DamagedFile, UnfitLabels, OSError):
            continue
    return None

"""Compares the frames of a store with their checksums."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ranks.workloads.video_behavior.video.store.file_hashes import FileHashes, reading
from ranks.workloads.video_behavior.video.store.part import HEAD_BYTES


def unread_parts(folder: Path, sha256_of_key: Mapping[str, str], checked: FileHashes) -> list[str]:
    """The keys of the parts that have changed since their frames were compared, or never were."""
    return [key for key, sha256 in sha256_of_key.items() if checked.remembered(folder / f"{key}.npy") != sha256]


def damaged_parts(folder: Path, sha256_of_key: Mapping[str, str], checked: FileHashes) -> dict[str, str]:
    """Read the frames of these parts; what is wrong, by key, where they do not have their sha256."""
    damaged: dict[str, str] = {}
    paths = {key: folder / f"{key}.npy" for key in sha256_of_key}
    with reading("compare checksums", list(paths.values())) as advance:
        for key, path in paths.items():
            try:
                if checked.sha256_of(path, advance, skip=HEAD_BYTES) != sha256_of_key[key]:
                    damaged[key] = f"{path.name} has other frames than {key}.json says"
            except OSError as error:
                damaged[key] = f"{path.name} cannot be read ({error.strerror})"
    return damaged

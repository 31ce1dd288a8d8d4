"""The files of a folder that is to be copied."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from ranks.errors import UserError


def list_files(path: Path, asked: str) -> dict[str, int]:
    """Name below `path` -> size in bytes, by name; of a single file its own name. Links are followed. Raises UserError
    for what is no file or folder, and where nothing is there."""
    found = dict(_walk(path, "", asked, ()) if path.is_dir() else [(path.name, _size(path, asked))])
    if not found:
        raise UserError(asked, f"{path} holds no file", "name a folder with files")
    return dict(sorted(found.items()))


def _walk(folder: Path, prefix: str, asked: str, above: tuple[tuple[int, int], ...]) -> Iterator[tuple[str, int]]:
    about = folder.stat()
    here = (about.st_dev, about.st_ino)
    if here in above:
        raise UserError(asked, f"{folder} is a link to a folder above it", "remove the link")
    try:
        entries = list(os.scandir(folder))
    except OSError as error:
        raise UserError(asked, f"{folder}: {error.strerror}", "make it readable") from None
    for entry in entries:
        if entry.is_dir():
            yield from _walk(Path(entry.path), f"{prefix}{entry.name}/", asked, (*above, here))
        else:
            yield f"{prefix}{entry.name}", _size(Path(entry.path), asked)


def _size(path: Path, asked: str) -> int:
    try:
        about = path.stat()
    except OSError as error:
        raise UserError(asked, f"{path}: {error.strerror}", "name a file or a folder that exists") from None
    if not stat.S_ISREG(about.st_mode):
        raise UserError(asked, f"{path} is neither a file nor a folder", "remove it from the folder")
    return about.st_size

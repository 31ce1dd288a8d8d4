"""Errors of a full or read-only disk, as messages for a user."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from ranks.errors import UserError


@contextmanager
def writing(asked: str, folder: Path) -> Generator[None]:
    """Turn an OSError into a UserError that names the place and the free space."""
    try:
        yield
    except OSError as error:
        there = next((p for p in (folder, *folder.absolute().parents) if p.is_dir()), Path("/"))
        free = shutil.disk_usage(there).free
        left = f"{free / 2**20:.1f} MiB" if free >= 2**20 else f"{free // 2**10} KiB"
        raise UserError(
            asked,
            f"{error.strerror or error} ({left} free); older checkpoints are intact",
            "free disk space, or make the folder writable (chmod), then run the same command again",
        ) from error

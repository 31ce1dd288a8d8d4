"""What a full or read-only disk says to a user."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from ranks.errors import UserError


@contextmanager
def writing(asked: str, folder: Path) -> Generator[None]:
    """Turn an OSError into a UserError that names the place and the space left there."""
    try:
        yield
    except OSError as error:
        there = next((p for p in (folder, *folder.absolute().parents) if p.is_dir()), Path("/"))
        free_mib = shutil.disk_usage(there).free / 2**20
        raise UserError(
            asked,
            f"{error.strerror or error} ({free_mib:.1f} MiB free); older checkpoints are intact",
            "free some space or mend the folder's rights, then run the same command again",
        ) from error

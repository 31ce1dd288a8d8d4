"""sha256 sums of files here."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from ranks.errors import UserError


def local_sums(folder: Path, names: Iterable[str], asked: str) -> dict[str, str]:
    """Name -> sha256 sum of the files below `folder`. Raises UserError where one cannot be read."""
    found: dict[str, str] = {}
    for name in names:
        try:
            with open(folder / name, "rb") as file:
                found[name] = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise UserError(asked, f"{folder / name}: {error.strerror}", "run the same command again") from None
    return found

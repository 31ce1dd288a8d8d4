"""The file that a command writes for a person to read, change and start."""

from __future__ import annotations

from pathlib import Path

from ranks.engine.files.disk import NOTHING_SAVED, writing
from ranks.errors import UserError


def write_file(path: Path, text: str, asked: str, *, overwrite: bool) -> None:
    """Write a new file. Raises UserError where another one has the name, unless `overwrite`."""
    if path.exists() and not overwrite and path.read_text(encoding="utf-8", errors="replace") != text:
        raise UserError(asked, f"{path} exists, with other content", "give --overwrite, or another --out")
    with writing(asked, path.absolute().parent, NOTHING_SAVED):
        path.write_text(text, encoding="utf-8")

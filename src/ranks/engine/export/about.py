"""`ranks.json`: from which run a published export is, and the sha256 of each of its files. Imports no torch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from ranks.engine.files.regular import DamagedFile
from ranks.engine.files.strict_json import object_of, read_object

ABOUT_FILE = "ranks.json"
FORMAT = 1
HEX_DIGITS = 64


@dataclass(frozen=True)
class ExportAbout:
    """What is known of an export besides its weights."""

    workload: str
    """The name of a workload, or of a user's file without its folder."""
    run: str
    iteration: int
    """Of the checkpoint."""
    seed: int
    config: Mapping[str, Any]
    """The settings of the workload."""
    versions: Mapping[str, str]
    sha256: Mapping[str, str]
    """Of each file, by its name."""

    def to_bytes(self) -> bytes:
        """The content of the file."""
        return (json.dumps({"format": FORMAT, **vars(self)}, indent=2) + "\n").encode()


def parse_about(content: bytes, path: Path) -> ExportAbout:
    """What a file's content says. Raises DamagedFile: another format, a part that is missing or has another type."""
    return _checked(object_of(content, path), path)


def read_about(folder: Path) -> ExportAbout:
    """What the file in an export folder says. Raises DamagedFile."""
    path = folder / ABOUT_FILE
    return _checked(read_object(path, follow=True), path)


def _checked(found: Mapping[str, Any], path: Path) -> ExportAbout:
    if found.get("format") != FORMAT:
        raise DamagedFile(f"{path}: its format is {found.get('format')}, this version of ranks reads {FORMAT}")
    parts = {"workload": str, "run": str, "iteration": int, "seed": int, "config": dict, "versions": dict}
    for name, kind in (parts | {"sha256": dict}).items():
        if type(found.get(name)) is not kind:
            raise DamagedFile(f"{path}: {name} is missing or has another type")
    sums = cast("dict[str, Any]", found["sha256"])
    wrong = [name for name, value in sums.items() if not isinstance(value, str) or len(value) != HEX_DIGITS]
    if wrong:
        raise DamagedFile(f"{path}: the sha256 of {wrong[0]} is none")
    return ExportAbout(**{name: found[name] for name in (*parts, "sha256")})

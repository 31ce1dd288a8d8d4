"""The name of a kept file: a few JSON values in a state, and in the manifest of a checkpoint. Imports
no torch."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

PATTERN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,39}/([0-9]{8,18})-([0-9a-f]{64})\.safetensors")
KEY = "kept_file"
"""The key that makes an object in a state the name of a kept file."""
ARCHIVED = "archived"
"""The key of a file that training never reads again, so that a run continues without it."""


@dataclass(frozen=True)
class KeptFile:
    """`path`: below runs/NAME/kept/, such as `replay/00000012-SHA256.safetensors`; `size`: in bytes.
    Raises ValueError where they are anything else."""

    path: str
    size: int

    def __post_init__(self) -> None:
        fits = isinstance(self.path, str) and PATTERN.fullmatch(self.path)  # pyright: ignore[reportUnnecessaryIsInstance]
        if not fits or type(self.size) is not int or not 0 <= self.size < 2**63:
            raise ValueError(f"no kept file is named {self.path!r} and has {self.size!r} bytes"[:200])

    @classmethod
    def named(cls, folder: str, iteration: int, sha256: str, size: int) -> KeptFile:
        """The file of some content, written in an iteration."""
        return cls(f"{folder}/{iteration:08d}-{sha256}.safetensors", size)

    @property
    def iteration(self) -> int:
        """In which it was written."""
        return int(self._part(1))

    @property
    def sha256(self) -> str:
        """Of its content."""
        return self._part(2)

    def _part(self, group: int) -> str:
        match = PATTERN.fullmatch(self.path)
        assert match is not None
        return match[group]

    def as_json(self, *, archived: bool = False) -> dict[str, Any]:
        """For a `state_dict`: the checkpoint's manifest then names the file."""
        return {KEY: self.path, "bytes": self.size, **({ARCHIVED: True} if archived else {})}

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> KeptFile:
        """The inverse of `as_json`. Raises ValueError."""
        if {*found} - {ARCHIVED} != {KEY, "bytes"} or found.get(ARCHIVED, True) is not True:
            raise ValueError(f"the name of a kept file has {KEY} and bytes, not {sorted(found)}"[:200])
        return cls(found[KEY], found["bytes"])


def named_in(state: Mapping[str, Any]) -> dict[str, int]:
    """The kept files that a JSON tree names: path -> bytes. Raises ValueError where a name is odd."""
    return {file.path: file.size for file, _ in _files_in(state)}


def archived_in(state: Mapping[str, Any]) -> set[str]:
    """Of these files the paths of those that training never reads again."""
    return {file.path for file, archived in _files_in(state) if archived}


def _files_in(state: Mapping[str, Any]) -> Iterator[tuple[KeptFile, bool]]:
    """Each file that a JSON tree names, and whether it is archived."""
    nodes: list[Any] = [state]
    while nodes:
        node = nodes.pop()
        if isinstance(node, Mapping) and KEY in node:
            name = cast("Mapping[str, Any]", node)
            yield KeptFile.of(name), ARCHIVED in name
        else:
            children = cast("Mapping[str, Any]", node).values() if isinstance(node, Mapping) else node
            nodes += [child for child in children if isinstance(child, Mapping | list | tuple)]

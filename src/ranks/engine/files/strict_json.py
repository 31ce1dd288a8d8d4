"""Strict JSON: no NaN, at most 64 levels deep, and an object where an object is expected."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NoReturn, cast

from ranks.engine.files.regular import DamagedFile, read_regular

MAX_DEPTH = 64


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not strict JSON")


DECODER = json.JSONDecoder(parse_constant=_refuse)


def parse_object(content: bytes) -> dict[str, Any]:
    """The JSON object in UTF-8 text. Raises ValueError where it is anything else."""
    try:
        value = DECODER.decode(content.decode())
    except RecursionError:
        raise ValueError(f"nested more than {MAX_DEPTH} levels deep") from None
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    if content.count(b"{") + content.count(b"[") > MAX_DEPTH:  # else it cannot be deeper
        _check_depth(cast("dict[str, Any]", value))
    return cast("dict[str, Any]", value)


def _check_depth(value: dict[str, Any]) -> None:
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for node in level
            for child in (cast("dict[str, Any]", node).values() if isinstance(node, dict) else node)
            if isinstance(child, dict | list)
        ]
        if not level:
            return
    raise ValueError(f"nested more than {MAX_DEPTH} levels deep")


def object_of(content: bytes, path: Path) -> dict[str, Any]:
    """The JSON object in the content of a file. Raises DamagedFile."""
    try:
        return parse_object(content)
    except ValueError as error:
        text = str(error) if len(str(error)) < 200 else "not JSON"
        raise DamagedFile(f"{path}: {text}") from None


def read_object(path: Path, *, follow: bool = False) -> dict[str, Any]:
    """The JSON object in a small regular file. Raises DamagedFile. `follow`: it may be a link."""
    return object_of(read_regular(path, follow=follow), path)

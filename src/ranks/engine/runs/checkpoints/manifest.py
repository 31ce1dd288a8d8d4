"""The manifest of a checkpoint: what its other files must be, and where the run was.

It holds a sha256 of itself, so a damaged manifest is noticed before it is used. A manifest with
missing or odd facts is damaged too, whatever its sha256 says.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, cast

from ranks.engine.files.regular import DamagedFile, read_regular
from ranks.engine.files.strict_json import object_of
from ranks.engine.runs.kept.kept_file import PATTERN
from ranks.engine.state import canonical_json
from ranks.errors import OtherFormat

FORMAT = 2
MANIFEST = "manifest.json"


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**63


def _is_number(value: Any) -> bool:
    return (type(value) is float and math.isfinite(value)) or (type(value) is int and abs(value) < 2**63)


def _is_sha256(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None


def _are_objects(value: Any, fit: Callable[[dict[str, Any]], bool]) -> bool:
    """Whether a value is an object of objects that all fit."""
    if not isinstance(value, dict):
        return False
    inner = list(cast("dict[str, Any]", value).values())
    return all(isinstance(v, dict) and fit(cast("dict[str, Any]", v)) for v in inner)


def _are_kept(value: Any) -> bool:
    """Whether a value is an object of kept files and their sizes."""
    if not isinstance(value, dict):
        return False
    return all(PATTERN.fullmatch(path) and _is_count(size) for path, size in cast("dict[str, Any]", value).items())


def _is_measured(value: Any) -> bool:
    """Whether a value is the shards of each rank, and what learners measured with them."""
    if not isinstance(value, dict):
        return False
    learners = {k: v for k, v in cast("dict[str, Any]", value).items() if k != "assignment"}
    return _are_objects(learners, lambda found: found.get("max_cost") is None or _is_number(found["max_cost"]))


@dataclass(frozen=True)
class Manifest:
    """The facts that a resume needs, checked.

    `files`: name -> {"bytes", "sha256"}. `fingerprint`: of the whole state. `finite`: whether all
    weights are. `score`: lower is better. `metrics_bytes`, `events_bytes`: lengths of the two
    files at this iteration. `measured`: "assignment", the shards of each rank, and for each learner
    what it measured with them. `sha256`: of the manifest itself. `kept`: path -> bytes of the kept
    files that the state names; a manifest without any says nothing about them.
    """

    iteration: int
    fingerprint: str
    finite: bool
    files: dict[str, dict[str, Any]]
    time_s: float
    score: float | None
    metrics_bytes: int
    events_bytes: int
    measured: dict[str, Any]
    sha256: str
    kept: dict[str, int]

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Manifest:
        """Raises ValueError naming the facts that are missing or odd."""
        found = {"kept": {}, **found}
        wrong = [name for name, fits in CHECKS.items() if name not in found or not fits(found[name])]
        if wrong:
            raise ValueError(f"it has no valid {', '.join(wrong)}")
        outside = [name for name in found["files"] if Path(name).name != name]
        if outside:
            raise ValueError(f"the file name {outside[0]!r} leaves the folder")
        return cls(**{f.name: found[f.name] for f in fields(cls)})


CHECKS: dict[str, Callable[[Any], bool]] = {
    "iteration": _is_count,
    "fingerprint": _is_sha256,
    "finite": lambda value: isinstance(value, bool),
    "files": lambda value: _are_objects(value, lambda f: _is_count(f.get("bytes")) and _is_sha256(f.get("sha256"))),
    "time_s": _is_number,
    "score": lambda value: value is None or _is_number(value),
    "metrics_bytes": _is_count,
    "events_bytes": _is_count,
    "measured": _is_measured,
    "sha256": _is_sha256,
    "kept": _are_kept,
}


def sealed(manifest: Mapping[str, Any]) -> bytes:
    """A manifest as the bytes of its file, with a checksum of itself."""
    body = {k: v for k, v in manifest.items() if k != "sha256"}
    return canonical_json({**body, "sha256": hashlib.sha256(canonical_json(body)).hexdigest()})


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a checkpoint folder. Raises DamagedFile, or OtherFormat."""
    if folder.is_symlink():
        raise DamagedFile(f"{folder}: a link")
    path = folder / MANIFEST
    raw = read_regular(path)
    found = object_of(raw, path)
    try:
        intact = raw == sealed(found)
    except ValueError:  # a number that no float holds
        intact = False
    if not intact:
        raise DamagedFile(f"{path}: its checksum is wrong")
    written_by = found.get("format")
    if type(written_by) is not int:
        raise DamagedFile(f"{path}: not the manifest of a checkpoint")
    if written_by != FORMAT:
        raise OtherFormat.of(folder, written_by, FORMAT)
    try:
        return Manifest.of(found)
    except ValueError as error:
        raise DamagedFile(f"{path}: {error}") from None

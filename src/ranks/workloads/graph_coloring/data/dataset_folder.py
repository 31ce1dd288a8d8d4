"""The folder of a data set: parts with the graphs, and a manifest with the checksum of each file.

part-0000.safetensors ...   arrays, see `GraphArrays`
plan.json                   which graphs the parts hold, see `build`
manifest.json               families, how many graphs of each, sha256 of each file; its own sha256
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, cast

import numpy as np

from ranks.engine.files.disk import replace_durably
from ranks.errors import UserError
from ranks.workloads.graph_coloring.data.dataset import PART_PREFIX, GraphArrays, GraphDataset, unpack

FORMAT = 1
MANIFEST = "manifest.json"


class Damaged(Exception):
    """Some files are not what their manifest says; `names` are the names of these files."""

    def __init__(self, folder: Path, names: Sequence[str], found: str) -> None:
        super().__init__(f"{folder}: {found}")
        self.folder, self.names, self.found = folder, list(names), found


def load(folder: Path) -> GraphDataset:
    """All graphs of a folder that `build.prepare` made. Raises UserError for damaged files."""
    try:
        manifest, contents = verify(folder)
    except Damaged as damage:
        do = "run the same command again, which builds them again, or delete the folder"
        raise UserError(f"the graphs in {folder}", damage.found, do) from None
    parts = [unpack(content) for content in contents]
    arrays = {f.name: np.concatenate([vars(part)[f.name] for part in parts]) for f in fields(GraphArrays)}
    return GraphDataset(**arrays, families=tuple(manifest["families"]), sha256=str(manifest["sha256"]))


def verify(folder: Path) -> tuple[dict[str, Any], list[bytes]]:
    """(manifest, content of each part), after checking all checksums.

    Raises Damaged with the names of all bad files.
    """
    manifest = read_manifest(folder)
    contents, damaged = list[bytes](), list[str]()
    for name, expected in manifest["files"].items():
        try:
            content = (folder / name).read_bytes()
        except OSError:
            content = b""
        if hashlib.sha256(content).hexdigest() != expected["sha256"]:
            damaged.append(name)
        elif name.startswith(PART_PREFIX):
            contents.append(content)
    if damaged:
        raise Damaged(folder, damaged, f"{', '.join(damaged)}: missing, or not what the manifest says")
    return manifest, contents


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest alone. Raises Damaged."""
    try:
        content = (folder / MANIFEST).read_bytes()
        manifest = cast(dict[str, Any], json.loads(content))
        intact = content == _with_checksum(manifest)
    except (OSError, ValueError, AttributeError, RecursionError):
        intact, manifest = False, {}
    if not intact or manifest.get("format") != FORMAT:
        raise Damaged(folder, [MANIFEST], f"{MANIFEST} is missing, damaged or of another version")
    return manifest


def write_manifest(folder: Path, identity: Mapping[str, Any], families: Sequence[str]) -> None:
    """Writes the manifest of all files in the folder; counts the graphs of each family."""
    contents = {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if not path.name.startswith(".")}
    parts = [unpack(content) for name, content in contents.items() if name.startswith(PART_PREFIX)]
    family_G, low_G, high_G = (
        np.concatenate([vars(part)[name] for part in parts]) for name in ("family_G", "low_G", "high_G")
    )
    counts = np.bincount(family_G, minlength=len(families)).tolist()
    manifest = {
        "format": FORMAT,
        **identity,
        "graphs": len(family_G),
        "chromatic_number_proven": int((low_G == high_G).sum()),
        "families": dict(zip(families, counts, strict=True)),
        "files": {
            name: {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
            for name, content in contents.items()
        },
    }
    replace_durably(folder / MANIFEST, _with_checksum(manifest))


def _with_checksum(manifest: Mapping[str, Any]) -> bytes:
    """The bytes of a manifest, with the sha256 of its other fields in the field 'sha256'."""
    body = {name: value for name, value in manifest.items() if name != "sha256"}
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
    return (json.dumps({**body, "sha256": digest}, indent=1) + "\n").encode()

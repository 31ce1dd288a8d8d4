"""Checkpoints: folders that are complete or absent.

    checkpoints/00000120/   learner.safetensors ...   tensors of each kept object
                            state.json                the rest of their state
                            manifest.json             sha256 and length of each file, counters; written last

A checkpoint is written into a temporary sibling folder. Each file is fsynced and read back, then
the folder is renamed. The newest checkpoint is found by listing the folders. Nothing is unpickled.

It is read in this order: the manifest's own sha256, each file's length and sha256, the tensors, the
fingerprint of all of them, and what events.jsonl recorded about it. A resume also reads the kept files
that it names. Whatever goes wrong means: this checkpoint is damaged.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
from torch import Tensor

from ranks.engine.files.disk import remove, sync_folder, write_durably
from ranks.engine.files.regular import DamagedFile, read_regular
from ranks.engine.files.strict_json import object_of
from ranks.engine.runs.checkpoints.history import History
from ranks.engine.runs.checkpoints.manifest import FORMAT, MANIFEST, Manifest, read_manifest, sealed
from ranks.engine.runs.folder import EVENTS_FILE, TEMPORARY, RunFolder, iteration_of, listing, name_of
from ranks.engine.runs.kept.kept_file import archived_in, named_in
from ranks.engine.runs.kept.kept_folder import KeptFolder
from ranks.engine.state import all_finite, canonical_json, fingerprint, join_state, split_state
from ranks.errors import OtherFormat

STATE = "state.json"
TENSORS = ".safetensors"
KEEP = 3


class DamagedCheckpoint(Exception):
    """A checkpoint that cannot be read, or that differs from its manifest; names the file."""


@dataclass(frozen=True)
class Checkpoint:
    """A verified checkpoint: its manifest, and the state of each kept object."""

    path: Path
    manifest: Manifest
    state: dict[str, dict[str, Any]]
    archived: set[str]
    """The kept files that training never reads again, by path."""

    @property
    def needed(self) -> dict[str, int]:
        """The kept files without which training cannot continue: path -> bytes."""
        return {path: size for path, size in self.manifest.kept.items() if path not in self.archived}

    @property
    def iteration(self) -> int:
        return self.manifest.iteration

    @property
    def fingerprint(self) -> str:
        return self.manifest.fingerprint


@dataclass(frozen=True)
class HostState:
    """A copy of the state of all kept objects in host memory: tensors by object and path, and the
    rest as JSON."""

    tensors: dict[str, dict[str, Tensor]]
    rest: dict[str, dict[str, Any]]

    @classmethod
    def of(cls, state: Mapping[str, Mapping[str, Any]]) -> HostState:
        parts = {name: split_state(s) for name, s in state.items()}
        return cls({n: t for n, (t, _) in parts.items()}, {n: r for n, (_, r) in parts.items()})

    def flat(self) -> dict[str, Tensor]:
        return {f"{name}/{path}": t for name, tensors in self.tensors.items() for path, t in tensors.items()}

    def fingerprint(self) -> str:
        return fingerprint(self.flat(), self.rest)


# Writing --------------------------------------------------------------------------------------------------------------


def write(folder: Path, iteration: int, state: HostState, about: Mapping[str, Any]) -> Manifest:
    """Write one checkpoint into `folder` (checkpoints/), which exists. Raises OSError, or
    DamagedFile where it does not read back; nothing is then left of it."""
    final = folder / name_of(iteration)
    temporary = folder / f"{TEMPORARY}{final.name}-{os.getpid()}"
    remove(temporary)
    try:
        temporary.mkdir()
        manifest = _write(temporary, iteration, state, about)
        remove(final)
        os.rename(temporary, final)
        sync_folder(folder)
    except (OSError, DamagedFile):
        remove(temporary)
        raise
    return manifest


def _write(folder: Path, iteration: int, state: HostState, about: Mapping[str, Any]) -> Manifest:
    files = {f"{name}{TENSORS}": safetensors.torch.save(t) for name, t in state.tensors.items() if t}
    files[STATE] = canonical_json(state.rest)
    manifest = {
        **about,
        "format": FORMAT,
        "iteration": iteration,
        "fingerprint": state.fingerprint(),
        "finite": all_finite(state.flat()),
        "files": {n: {"bytes": len(b), "sha256": hashlib.sha256(b).hexdigest()} for n, b in files.items()},
    }
    if kept := named_in(state.rest):
        manifest["kept"] = kept
    for name, content in files.items():
        write_durably(folder / name, content)
    write_durably(folder / MANIFEST, sealed(manifest))
    written = read_manifest(folder)
    for name in written.files:
        _verified(folder, name, written)
    sync_folder(folder)
    return written


# Reading --------------------------------------------------------------------------------------------------------------


def read(path: Path, history: History | None = None) -> Checkpoint:
    """Verify a checkpoint and load it. Raises DamagedCheckpoint whatever is wrong with it, or
    OtherFormat. `history`: by default that of its run folder."""
    try:
        return _read(path, history if history is not None else History.of(path.parent.parent / EVENTS_FILE))
    except OtherFormat:
        raise
    except DamagedFile as damage:
        raise DamagedCheckpoint(str(damage)) from damage
    except Exception as error:
        raise DamagedCheckpoint(f"{path}: {type(error).__name__}: {error}") from error


def _read(path: Path, history: History) -> Checkpoint:
    manifest = read_manifest(path)
    if iteration_of(path) not in (None, manifest.iteration):
        raise DamagedFile(f"{path / MANIFEST}: it belongs to iteration {manifest.iteration}")
    if not history.agrees(manifest):
        raise DamagedFile(f"{path / MANIFEST}: events.jsonl recorded another fingerprint for it")
    rest = object_of(_verified(path, STATE, manifest), path / STATE)
    names = [name for name in manifest.files if name != STATE]
    tensors = {n.removesuffix(TENSORS): safetensors.torch.load(_verified(path, n, manifest)) for n in names}
    if not all(isinstance(part, dict) for part in rest.values()):
        raise DamagedFile(f"{path / STATE}: a part of it is not an object")
    if named_in(rest) != manifest.kept:
        raise DamagedFile(f"{path / MANIFEST}: its kept files are not those that {STATE} names")
    if HostState(tensors, rest).fingerprint() != manifest.fingerprint:
        raise DamagedFile(f"{path}: the state in it does not have the fingerprint in its manifest")
    state = {name: join_state(tensors.get(name, {}), rest[name]) for name in rest}
    return Checkpoint(path, manifest, state, archived_in(rest))


def _verified(folder: Path, name: str, manifest: Manifest) -> bytes:
    """The content of a file of a checkpoint. Raises DamagedFile where it is not the manifest's."""
    if name not in manifest.files:
        raise DamagedFile(f"{folder / MANIFEST}: it does not list {name}")
    listed = manifest.files[name]
    content = read_regular(folder / name, size=listed["bytes"])
    if hashlib.sha256(content).hexdigest() != listed["sha256"]:
        raise DamagedFile(f"{folder / name}: its sha256 is not the manifest's")
    return content


def newest(folder: Path, on_damage: list[str], *, resume: bool = False) -> Checkpoint | None:
    """The newest checkpoint that verifies; what is wrong with newer ones is appended to
    `on_damage`. `resume`: the kept files that training needs must verify too."""
    history, kept = History.of(folder.parent / EVENTS_FILE), _kept(folder)
    for path in reversed(listing(folder)):
        try:
            found = read(path, history)
            problem = kept.problem(found.needed) if resume else ""
            if not problem:
                return found
            on_damage.append(f"{path}: {problem}")
        except DamagedCheckpoint as damage:
            on_damage.append(str(damage))
    return None


# Keeping --------------------------------------------------------------------------------------------------------------


def manifests(folder: Path) -> dict[Path, Manifest]:
    """Checkpoint folders from oldest to newest, with their manifests; without those that have
    none. The other files are not verified."""
    found: dict[Path, Manifest] = {}
    for path in listing(folder):
        try:
            found[path] = read_manifest(path)
        except (DamagedFile, OtherFormat):
            continue
    return found


def rotate(folder: Path) -> None:
    """Delete old checkpoints, but never the newest three, the best, or the newest with finite
    weights. Raises OSError."""
    found = manifests(folder)
    keep = {*list(found)[-KEEP:], _newest_finite(found), _best(found)}
    for path in found:
        if path not in keep:
            to_delete = path.with_name(f"{TEMPORARY}old-{path.name}")
            remove(to_delete)
            os.rename(path, to_delete)
            remove(to_delete)


def delete_unnamed_files(folder: Path, before: int) -> None:
    """Delete the kept files that no checkpoint names and that were written before an iteration.
    Raises OSError."""
    named = {path for manifest in manifests(folder).values() for path in manifest.kept}
    _kept(folder).delete_unnamed(named, before)


def _kept(folder: Path) -> KeptFolder:
    return KeptFolder(RunFolder(folder.parent).kept)


def newest_finite(folder: Path) -> Path | None:
    """The newest checkpoint whose weights are finite, by its manifest."""
    return _newest_finite(manifests(folder))


def _newest_finite(found: Mapping[Path, Manifest]) -> Path | None:
    finite = [path for path, manifest in found.items() if manifest.finite]
    return finite[-1] if finite else None


def best(folder: Path) -> Path | None:
    """The checkpoint with the lowest score, if any has one."""
    return _best(manifests(folder))


def _best(found: Mapping[Path, Manifest]) -> Path | None:
    scored = [(manifest.score, path) for path, manifest in found.items() if manifest.score is not None]
    return min(scored)[1] if scored else None


def quarantine(folder: Path, newer_than: int) -> None:
    """Rename damaged checkpoints newer than an iteration to damaged-*, so that rotation does not
    count them. Only the owner of the run may call it. Raises OSError."""
    for path in listing(folder):
        if (iteration_of(path) or 0) > newer_than:
            remove(path.with_name(f"damaged-{path.name}"))
            os.rename(path, path.with_name(f"damaged-{path.name}"))

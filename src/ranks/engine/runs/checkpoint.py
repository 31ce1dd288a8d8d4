"""Checkpoints: folders that are complete or absent.

    checkpoints/00000120/   learner.safetensors ...   tensors of each kept object
                            state.json                the rest of their state
                            manifest.json             sha256 and length of each file, counters; written last

A checkpoint is written into a temporary sibling folder. Each file is fsynced and read back, then
the folder is renamed. The newest checkpoint is found by listing the folders. Nothing is unpickled.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
from torch import Tensor

from ranks.engine.runs.disk import writing
from ranks.engine.state import all_finite, canonical_json, fingerprint, join_state, split_state
from ranks.errors import OtherFormat

FORMAT = 2
MANIFEST = "manifest.json"
STATE = "state.json"
TEMPORARY = ".tmp-"
KEEP = 3


class DamagedCheckpoint(Exception):
    """A checkpoint whose files differ from its manifest; names the file."""


@dataclass(frozen=True)
class Checkpoint:
    """A verified checkpoint: its manifest, and the state of each kept object."""

    path: Path
    manifest: dict[str, Any]
    state: dict[str, dict[str, Any]]

    @property
    def iteration(self) -> int:
        return int(self.manifest["iteration"])

    @property
    def fingerprint(self) -> str:
        return str(self.manifest["fingerprint"])


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


def write(folder: Path, iteration: int, state: HostState, about: Mapping[str, Any]) -> Path:
    """Write one checkpoint into `folder` (checkpoints/). Raises UserError where the disk is full or
    read-only."""
    final = folder / f"{iteration:08d}"
    temporary = folder / f"{TEMPORARY}{iteration:08d}-{os.getpid()}"
    with writing(f"to save a checkpoint in {folder}", folder):
        try:
            _write(temporary, iteration, state, about)
            if final.exists():
                shutil.rmtree(final)
            os.rename(temporary, final)
            _sync_folder(folder)
        except OSError:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
    return final


def _write(folder: Path, iteration: int, state: HostState, about: Mapping[str, Any]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    files = {f"{name}.safetensors": safetensors.torch.save(t) for name, t in state.tensors.items() if t}
    files[STATE] = canonical_json(state.rest)
    manifest = {
        **about,
        "format": FORMAT,
        "iteration": iteration,
        "fingerprint": state.fingerprint(),
        "finite": all_finite(state.flat()),
        "files": {n: {"bytes": len(b), "sha256": hashlib.sha256(b).hexdigest()} for n, b in files.items()},
    }
    for name, content in files.items():
        _write_durably(folder / name, content)
    _write_durably(folder / MANIFEST, sealed(manifest))
    _verified_files(folder, iteration)
    _sync_folder(folder)


def read(path: Path) -> Checkpoint:
    """Verify every file, then load. Raises DamagedCheckpoint (naming the file) or UserError for
    another format."""
    manifest, files = _verified_files(path, int(path.name) if path.name.isdigit() else None)
    rest = json.loads(files.pop(STATE))
    tensors = {name.removesuffix(".safetensors"): safetensors.torch.load(b) for name, b in files.items()}
    state = {name: join_state(tensors.get(name, {}), rest[name]) for name in rest}
    return Checkpoint(path, manifest, state)


def newest(folder: Path, on_damage: list[str]) -> Checkpoint | None:
    """The newest checkpoint that verifies; what is wrong with newer ones is appended to
    `on_damage`."""
    for path in reversed(listing(folder)):
        try:
            return read(path)
        except DamagedCheckpoint as damage:
            on_damage.append(str(damage))
    return None


def listing(folder: Path) -> list[Path]:
    """Checkpoint folders from oldest to newest, without verifying them."""
    if not folder.is_dir():
        return []
    return sorted(p for p in folder.iterdir() if re.fullmatch(r"\d{8,}", p.name) and p.is_dir())


def read_manifest(path: Path) -> dict[str, Any]:
    """The manifest alone. Raises DamagedCheckpoint or UserError."""
    raw = _read(path / MANIFEST)
    try:
        manifest = json.loads(raw)
    except (ValueError, UnicodeDecodeError):
        raise DamagedCheckpoint(f"{path / MANIFEST}: not JSON") from None
    if not isinstance(manifest, dict) or "format" not in manifest:
        raise DamagedCheckpoint(f"{path / MANIFEST}: not the manifest of a checkpoint")
    if manifest["format"] != FORMAT and raw == sealed(manifest):
        raise OtherFormat.of(path, manifest["format"], FORMAT)
    if raw != sealed(manifest):
        raise DamagedCheckpoint(f"{path / MANIFEST}: its checksum is wrong")
    return manifest


def rotate(folder: Path) -> None:
    """Delete old checkpoints, but never the newest three, the best, or the newest with finite
    weights."""
    manifests: dict[Path, dict[str, Any]] = {}
    for path in listing(folder):
        try:
            manifests[path] = read_manifest(path)
        except DamagedCheckpoint:
            continue
    paths = list(manifests)
    keep = set(paths[-KEEP:])
    keep.update([p for p in paths if manifests[p].get("finite")][-1:])
    scored = [p for p in paths if manifests[p].get("score") is not None]
    if scored:
        keep.add(min(scored, key=lambda p: float(manifests[p]["score"])))
    for path in paths:
        if path not in keep:
            to_delete = path.with_name(f"{TEMPORARY}old-{path.name}")
            with writing(f"to delete the old checkpoint {path}", folder):
                shutil.rmtree(to_delete, ignore_errors=True)
                os.rename(path, to_delete)
            shutil.rmtree(to_delete, ignore_errors=True)


def newest_finite(folder: Path) -> Path | None:
    """The newest checkpoint whose weights are finite, by its manifest."""
    for path in reversed(listing(folder)):
        try:
            if read_manifest(path).get("finite"):
                return path
        except DamagedCheckpoint:
            continue
    return None


def best(folder: Path) -> Path | None:
    """The checkpoint with the lowest score, if any has one."""
    scored: list[tuple[float, Path]] = []
    for path in listing(folder):
        try:
            score = read_manifest(path).get("score")
        except DamagedCheckpoint:
            continue
        if score is not None:
            scored.append((float(score), path))
    return min(scored)[1] if scored else None


def quarantine(folder: Path, newer_than: int) -> None:
    """Rename damaged checkpoints newer than an iteration to damaged-*, so that rotation does not
    count them. Only the owner of the run may call it."""
    for path in listing(folder):
        if int(path.name) > newer_than:
            shutil.rmtree(path.with_name(f"damaged-{path.name}"), ignore_errors=True)
            os.rename(path, path.with_name(f"damaged-{path.name}"))


def remove_temporaries(folder: Path) -> None:
    """Remove the temporary folders of interrupted saves. Only the owner of the run may call it."""
    if folder.is_dir():
        for path in folder.glob(f"{TEMPORARY}*"):
            shutil.rmtree(path, ignore_errors=True)


def sealed(manifest: Mapping[str, Any]) -> bytes:
    """A manifest as the bytes of its file, with a checksum of itself."""
    body = {k: v for k, v in manifest.items() if k != "sha256"}
    return canonical_json({**body, "sha256": hashlib.sha256(canonical_json(body)).hexdigest()})


def _verified_files(path: Path, iteration: int | None) -> tuple[dict[str, Any], dict[str, bytes]]:
    manifest = read_manifest(path)
    if iteration is not None and manifest["iteration"] != iteration:
        raise DamagedCheckpoint(f"{path / MANIFEST}: it belongs to iteration {manifest['iteration']}")
    files: dict[str, bytes] = {}
    for name, listed in manifest["files"].items():
        if Path(name).name != name:
            raise DamagedCheckpoint(f"{path / MANIFEST}: the file name {name!r} leaves the folder")
        content = _read(path / name)
        if len(content) != listed["bytes"]:
            raise DamagedCheckpoint(f"{path / name}: {len(content)} bytes, the manifest says {listed['bytes']}")
        if hashlib.sha256(content).hexdigest() != listed["sha256"]:
            raise DamagedCheckpoint(f"{path / name}: its sha256 is not the manifest's")
        files[name] = content
    return manifest, files


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise DamagedCheckpoint(f"{path}: missing") from None
    except OSError as error:
        raise DamagedCheckpoint(f"{path}: {error.strerror or error}") from None


def _write_durably(path: Path, content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

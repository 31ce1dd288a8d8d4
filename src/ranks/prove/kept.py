"""The kept files of a run under proof: which ones there are, which a checkpoint names, and whether they are intact."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ranks.engine.files.regular import DamagedFile
from ranks.engine.runs.checkpoints import checkpoint
from ranks.engine.runs.folder import RunFolder, listing
from ranks.engine.runs.kept.kept_file import PATTERN, KeptFile
from ranks.engine.runs.kept.kept_folder import KeptFolder
from ranks.prove.processes import ProofError
from ranks.prove.train_command import TrainCommand
from ranks.selfplay.records import FROM_MOVES


@dataclass(frozen=True)
class KeptFileSet:
    """The kept files that the newest checkpoint of a run names, all intact."""

    names: tuple[str, ...]
    """With iteration and sha256, such as `replay/00000012-SHA256.safetensors`."""
    size: int
    """Bytes of all."""

    @property
    def sha256(self) -> str:
        """Of all names, and so of all contents."""
        return hashlib.sha256("\n".join(self.names).encode()).hexdigest()

    def __str__(self) -> str:
        return f"{len(self.names)} files, {self.size:,} bytes, sha256 of their names {self.sha256}"


def folder_of(run: TrainCommand) -> KeptFolder:
    """The folder kept/ of a run."""
    return KeptFolder(RunFolder(run.folder).kept)


def named_by_checkpoints(run: TrainCommand) -> dict[int, dict[str, int]]:
    """Of each checkpoint, by its iteration: path -> bytes of the kept files that it names."""
    found = checkpoint.manifests(run.folder / "checkpoints")
    return {manifest.iteration: manifest.kept for manifest in found.values()}


def needed_by_checkpoints(run: TrainCommand) -> dict[int, dict[str, int]]:
    """The same without those that training never reads again."""
    found = [checkpoint.read(path) for path in checkpoint.manifests(run.folder / "checkpoints")]
    return {each.iteration: each.needed for each in found}


def newest_kept(run: TrainCommand) -> dict[str, int]:
    """path -> bytes of the kept files that the newest checkpoint names."""
    named = named_by_checkpoints(run)
    return named[max(named)] if named else {}


def read_kept(run: TrainCommand) -> KeptFileSet:
    """Verify all kept files that the newest checkpoint names. Raises ProofError where one is damaged."""
    kept = newest_kept(run)
    if problem := folder_of(run).problem(kept):
        raise ProofError(f"{run.name}: {problem}")
    return KeptFileSet(tuple(sorted(kept)), sum(kept.values()))


def files_on_disk(run: TrainCommand) -> dict[str, tuple[int, int]]:
    """The kept files in the run folder, also those that no checkpoint names: path -> (inode, time of the last change
    in nanoseconds)."""
    kept, found = RunFolder(run.folder).kept, dict[str, tuple[int, int]]()
    for path in kept.glob("*/*"):
        name = path.relative_to(kept).as_posix()
        try:
            status = path.lstat()
        except OSError:  # deleted meanwhile
            continue
        if PATTERN.fullmatch(name):
            found[name] = status.st_ino, status.st_mtime_ns
    return found


def unnamed_files(run: TrainCommand) -> dict[str, tuple[int, int]]:
    """Those that were written after the newest checkpoint, so that none names them."""
    newest = max((int(path.name) for path in listing(run.folder / "checkpoints")), default=0)
    return {name: at for name, at in files_on_disk(run).items() if iteration_of(name) >= newest}


def iteration_of(name: str) -> int:
    """In which a kept file was written."""
    return KeptFile(name, 0).iteration


def fate_of(run: TrainCommand, before: Mapping[str, tuple[int, int]]) -> dict[str, str]:
    """What became of files after a restart: found equal, written again, or deleted."""
    now = files_on_disk(run)
    words = {name: "found equal" if now[name] == at else "written again" for name, at in before.items() if name in now}
    return {name: words.get(name, "deleted") for name in before}


def is_intact(run: TrainCommand, name: str) -> bool:
    """Whether a kept file has the content that its name says."""
    path = Path(run.folder) / "kept" / name
    try:
        folder_of(run).verify(KeptFile(name, path.lstat().st_size))
    except (DamagedFile, OSError):
        return False
    return True


def games_sha256(run: TrainCommand) -> str:
    """The sha256 of all positions, legal moves, moves and outcomes in the replay window of the newest checkpoint; of
    nothing that a net has computed, so rounding cannot change it. Empty where the run has no such window."""
    found, files = hashlib.sha256(), [KeptFile(*item) for item in sorted(newest_kept(run).items())]
    parts = [folder_of(run).open(file) for file in files]
    parts = [part for part in parts if part.keys() >= {*FROM_MOVES}]
    for part in parts:
        for name in FROM_MOVES:
            array: NDArray[Any] = part[name]
            found.update(f"{name} {array.dtype.str} {array.shape}".encode())
            found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest() if parts else ""

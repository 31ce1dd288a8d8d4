"""The folder that a run left behind, read: which workload, which settings, how far it came."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from ranks.engine.config import RunConfig
from ranks.engine.config_file import overlay, read_object
from ranks.engine.runs.folder import CONFIG_FILE, RunFolder
from ranks.errors import UserError, nearest
from ranks.workloads import load

TAIL_BYTES = 1 << 18


@dataclass(frozen=True)
class SavedRun:
    """A run folder with its settings read back."""

    folder: Path
    workload: str
    module: ModuleType
    engine: RunConfig
    config: Any


def find_folder(run: str, runs_dir: Path, asked: str) -> Path:
    """The folder of a run given by its name under runs/ or by its path. Raises UserError with the nearest name."""
    for folder in (runs_dir / run, Path(run)):
        if (folder / CONFIG_FILE).is_file():
            RunFolder(folder).check_format()
            return folder
    names = [folder.name for folder in folders(runs_dir)]
    listed = "see `ranks runs` for what there is" if names else "train one first: ranks train WORKLOAD"
    raise UserError(asked, f"no run {run} in {runs_dir}/, and no run folder at that path", nearest(run, names, listed))


def folders(runs_dir: Path) -> list[Path]:
    """All run folders, by name."""
    return sorted(path.parent for path in runs_dir.glob(f"*/{CONFIG_FILE}") if not path.parent.name.startswith("."))


def open_run(folder: Path, asked: str) -> SavedRun:
    """Read a run's settings and find its workload. Raises UserError."""
    content = read_object(folder / CONFIG_FILE, asked)
    workload = str(content.get("workload"))
    module = load(workload)
    engine = overlay(RunConfig(), content.get("engine", {}), asked, "engine")
    config = overlay(module.Config(), content.get("config", {}), asked, "config")
    return SavedRun(folder, workload, module, engine, config)


def in_use(folder: Path) -> bool:
    """Whether a process holds the run's lock now."""
    lock = folder.parent / f".{folder.name}.lock"
    try:
        with lock.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def rows(path: Path) -> Iterator[dict[str, Any]]:
    """The last rows of a .jsonl file, newest first; lines that are cut off are passed over."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - TAIL_BYTES))
            lines = file.read().splitlines()
    except OSError:
        return
    for line in reversed(lines):
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict):
            yield cast("dict[str, Any]", row)

"""A saved run read from its folder: workload, code, settings, last rows."""

from __future__ import annotations

import fcntl
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from ranks.engine.config import RunConfig
from ranks.engine.config_file import overlay, read_object
from ranks.engine.runs import code
from ranks.engine.runs.folder import CONFIG_FILE, RunFolder
from ranks.errors import UserError, nearest
from ranks.workloads import WORKLOADS, is_path, load, load_workload_file

TAIL_BYTES = 1 << 18


@dataclass(frozen=True)
class SavedRun:
    """A run folder with its settings and its workload's module."""

    folder: Path
    workload: str
    module: ModuleType
    engine: RunConfig
    config: Any


def find_folder(run: str, runs_dir: Path, asked: str) -> Path:
    """The folder of a run given by its name under runs/ or by its path. Raises UserError with the
    nearest name."""
    for folder in (runs_dir / run, Path(run)):
        if (folder / CONFIG_FILE).is_file():
            RunFolder(folder).check_format()
            return folder
    names = [folder.name for folder in run_folders(runs_dir)]
    listed = "see `ranks runs` for the runs that exist" if names else "train one first: ranks train WORKLOAD"
    raise UserError(asked, f"no run {run} in {runs_dir}/, and no run folder at that path", nearest(run, names, listed))


def run_folders(runs_dir: Path) -> list[Path]:
    """All run folders, by name."""
    return sorted(path.parent for path in runs_dir.glob(f"*/{CONFIG_FILE}") if not path.parent.name.startswith("."))


def open_run(folder: Path, asked: str, *, trust_code: bool = False) -> SavedRun:
    """Read a run's settings and load its workload. Raises UserError.

    `trust_code`: a user's file is loaded from the copy in the run folder, in place of the original.
    """
    content = read_object(folder / CONFIG_FILE, asked)
    workload = str(content.get("workload"))
    module = load_code(folder, workload, asked, trust_code)
    engine = overlay(RunConfig(), content.get("engine", {}), asked, "engine")
    config = overlay(module.Config(), content.get("config", {}), asked, "config")
    return SavedRun(folder, workload, module, engine, config)


def load_code(folder: Path, workload: str, asked: str, trust_code: bool) -> ModuleType:
    """The module of a run's workload. Raises UserError; warns where the code has changed since the
    run was trained."""
    original, copy = Path(workload), folder / code.CODE_DIR / Path(workload).name
    if not is_path(workload):
        if workload not in WORKLOADS:
            raise made_by_a_script(folder, workload, asked)
    elif trust_code:
        if not copy.is_file():
            raise UserError(asked, f"the run has no copy of its code at {copy}", f"go to the folder of {workload}")
        return load_workload_file(copy, asked)
    elif not original.is_file():
        found = f"the run's file {workload} is not in this folder"
        do = "go to the folder where the run was trained"
        if copy.is_file():
            do += f", or add --trust-code, which executes the copy {copy}"
        raise UserError(asked, found, do)
    for change in code.changes(RunFolder(folder).read_run().get("code"), original.resolve().parent):
        hint = f"; with --trust-code the copy in {copy.parent} is used" if copy.is_file() else ""
        print(f"warning: {change} since the run was trained{hint}", file=sys.stderr)
    return load(workload)


def made_by_a_script(folder: Path, script: str, asked: str) -> UserError:
    """The error for a run whose loop is in a script of the user, which has no Config, build and
    evaluate."""
    export = folder / "export"
    do = f"load {export} with its model.py" if export.is_dir() else "call run.finish(export=model) in the script"
    do += "; or write the loop as a workload: see `ranks new NAME`"
    return UserError(asked, f"the run was made by the script {script}.py, which is not a workload", do)


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


def last_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The last rows of a .jsonl file, newest first; lines that are cut off are skipped."""
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

"""A saved run read from its folder: workload, code, settings, last rows."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from ranks.engine.config import RunConfig
from ranks.engine.config_file import overlay
from ranks.engine.runs import code
from ranks.engine.runs.folder import RunFolder
from ranks.errors import UserError
from ranks.workloads import WORKLOADS, is_path, load, load_workload_file


@dataclass(frozen=True)
class SavedRun:
    """A run folder with its settings and its workload's module."""

    folder: Path
    workload: str
    module: ModuleType
    engine: RunConfig
    config: Any


def open_run(folder: Path, asked: str, *, trust_code: bool = False) -> SavedRun:
    """Read a run's settings and load its workload. Raises UserError.

    `trust_code`: a user's file is loaded from the copy in the run folder, in place of the original.
    """
    content = RunFolder(folder).read_settings()
    workload = content["workload"]
    module = load_code(folder, workload, asked, trust_code)
    engine = overlay(RunConfig(), content["engine"], asked, "engine")
    config = overlay(module.Config(), content["config"], asked, "config")
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

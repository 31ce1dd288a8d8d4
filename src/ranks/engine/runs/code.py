"""The code of a run: the sha256 sums of the user's files in run.json, and a copy of each in the run
folder.

    runs/my_task/run.json             "code": {"package": "ranks 0.1.0", "files": {"my_task.py": "9f86d0...", ...}}
    runs/my_task/code/my_task.py      the file that trained last
    runs/my_task/code/layers.py       a module of the same folder that it imports

A built-in workload has no files of a user: the version of the package is all that is kept.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from ranks.engine.runs.folder import RUN_FILE

CODE_DIR = "code"


def source_files(workload: str) -> dict[str, Path]:
    """The user's file and the modules of its folder that this process has imported, by path inside
    that folder.

    `workload`: the path of a workload's file, or the name of the script that runs a user's own
    loop."""
    script = Path(sys.argv[0])
    path = script if script.suffix == ".py" and script.stem == workload else Path(workload)
    if path.suffix != ".py" or not path.is_file():
        return {}
    folder = path.resolve().parent
    files = {path.name: path}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        inside = name.replace(".", "/")
        if file in (f"{folder}/{inside}.py", f"{folder}/{inside}/__init__.py") and name.split(".")[0] != "ranks":
            files[str(Path(file).relative_to(folder))] = Path(file)
    return files


def keep(run_folder: Path, workload: str) -> dict[str, Any]:
    """Copy the user's files into the run folder. Returns the entry `code` of run.json."""
    files = source_files(workload)
    for name, path in files.items():
        copy = run_folder / CODE_DIR / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    return {"package": package_version(), "files": {name: sha256_of(path) for name, path in sorted(files.items())}}


def changes(recorded: dict[str, Any] | None, folder: Path) -> list[str]:
    """What differs between the entry `code` of run.json and this package and the files in `folder`.

    A run that an older version started has no such entry: nothing is known to differ.
    """
    if recorded is None:
        return []
    found = [f"{name} has changed" for name, sha in recorded["files"].items() if sha256_of(folder / name) != sha]
    if recorded["package"] != package_version():
        found.append(f"the package was {recorded['package']} and is {package_version()}")
    return found


def update(run_folder: Path, workload: str) -> list[str]:
    """Compare the code of a resumed run with the one that trained before, and keep the new one.
    Returns the changes."""
    run: dict[str, Any] = json.loads((run_folder / RUN_FILE).read_text())
    files = source_files(workload)
    found = changes(run.get("code"), next(iter(files.values())).resolve().parent if files else Path())
    if found:
        shutil.rmtree(run_folder / CODE_DIR, ignore_errors=True)
        run["code"] = keep(run_folder, workload)
        temporary = run_folder / f".{RUN_FILE}.tmp-{os.getpid()}"
        temporary.write_text(json.dumps(run, indent=2) + "\n")
        temporary.replace(run_folder / RUN_FILE)
    return found


def package_version() -> str:
    """'ranks 0.1.0', or 'ranks source' where the package is not installed."""
    try:
        return f"ranks {metadata.version('ranks')}"
    except metadata.PackageNotFoundError:
        return "ranks source"


def sha256_of(path: Path) -> str | None:
    """Of a file; None where it cannot be read."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None

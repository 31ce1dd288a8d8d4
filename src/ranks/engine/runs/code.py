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
import shutil
import sys
from importlib import metadata
from pathlib import Path
from typing import Any, cast

from ranks.engine.files.disk import remove, replace_durably, writing
from ranks.engine.files.regular import DamagedFile, read_regular
from ranks.engine.runs.folder import RUN_FILE, RunFolder

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
    """Copy the user's files into the run folder. Returns the entry `code` of run.json. Raises
    OSError."""
    files = source_files(workload)
    for name, path in files.items():
        copy = run_folder / CODE_DIR / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    return {"package": package_version(), "files": {name: sha256_of(path) for name, path in sorted(files.items())}}


def changes(recorded: Any, folder: Path) -> list[str]:
    """What differs between the entry `code` of run.json and this package and the files in `folder`.

    A run that an older version started has no such entry: nothing is known to differ.
    """
    if recorded is None:
        return []
    entry = cast("dict[str, Any]", recorded) if isinstance(recorded, dict) else {}
    files = entry.get("files")
    if not isinstance(files, dict):
        return ["the record of its code in run.json is damaged: the code may have changed"]
    found: list[str] = []
    for name, sha256 in cast("dict[str, Any]", files).items():
        inside = not Path(name).is_absolute() and ".." not in Path(name).parts
        if not inside or sha256_of(folder / name) != sha256:
            found.append(f"{name} has changed")
    if entry.get("package") != package_version():
        found.append(f"the package was {entry.get('package')} and is {package_version()}")
    return found


def update(folder: RunFolder, workload: str) -> list[str]:
    """Compare the code of a resumed run with the one that trained before, and keep the new one.
    Returns the changes. Raises UserError."""
    run = folder.read_run()
    files = source_files(workload)
    found = changes(run.get("code"), next(iter(files.values())).resolve().parent if files else Path())
    if found:
        with writing(f"to keep the code of the run in {folder.path}", folder.path):
            remove(folder.path / CODE_DIR)
            run["code"] = keep(folder.path, workload)
            replace_durably(folder.path / RUN_FILE, (json.dumps(run, indent=2) + "\n").encode())
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
        return hashlib.sha256(read_regular(path, follow=True)).hexdigest()
    except DamagedFile:
        return None

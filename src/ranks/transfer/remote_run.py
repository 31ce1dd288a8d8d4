"""What a run on another machine holds now: its settings, how it goes, and which checkpoints it has. Read at once, so
that a run that trains meanwhile does not confuse it."""

from __future__ import annotations

import base64
import shlex
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ranks.engine.files.jsonl import last_rows
from ranks.engine.files.regular import DamagedFile
from ranks.engine.runs.checkpoints.manifest import MANIFEST, Manifest, read_manifest
from ranks.engine.runs.folder import RUN_FILE, SESSIONS_FILE, RunFolder, iteration_of
from ranks.errors import OtherFormat, UserError
from ranks.transfer.remote import Remote

FILES = (RUN_FILE, SESSIONS_FILE)
LOOK = """
cd {folder} 2>/dev/null || exit 0
for f in {files} checkpoints/[0-9]*/manifest.json; do
    [ -f "$f" ] && [ ! -h "$f" ] && printf '%s ' "$f" && base64 < "$f" | tr -d '\\n' && echo
done
exit 0
"""
"""One line for each small file: its name, and its content in base64."""


@dataclass(frozen=True)
class RemoteRun:
    """`run`: its run.json. `sessions`: its sessions.jsonl. `manifests`: those that are intact, by iteration, oldest
    first. `finished`: it has ended well, and nobody has continued it since."""

    run: dict[str, Any]
    sessions: bytes
    manifests: dict[int, Manifest]
    finished: bool

    @property
    def code_files(self) -> list[str]:
        """The user's files of which the run folder has a copy, below code/."""
        entry: Any = self.run.get("code")
        files: Any = entry.get("files") if isinstance(entry, dict) else None  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType]
        names = [str(name) for name in files] if isinstance(files, dict) else []  # pyright: ignore[reportUnknownArgumentType,reportUnknownVariableType]
        return [f"code/{name}" for name in names if is_inside(name)]


def look(remote: Remote, folder: str, asked: str) -> RemoteRun:
    """Read the small files of a run folder there. Raises UserError where it is no run, OtherFormat, ConnectionCut."""
    script = LOOK.format(folder=shlex.quote(folder), files=" ".join(FILES))
    lines = remote.run(f"( {script} )", asked, place=folder).decode().splitlines()
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place) / "run"
        for line in lines:
            name, _, content = line.partition(" ")
            if is_inside(name):
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                (copy / name).write_bytes(base64.b64decode(content))
        if not (copy / RUN_FILE).exists():
            do = f"see what is there: {remote.typed} ranks runs"
            raise UserError(asked, f"{remote.host}:{folder} is no run folder", do)
        RunFolder(copy).check_format()
        manifests: dict[int, Manifest] = {}
        for path in sorted(copy.glob(f"checkpoints/*/{MANIFEST}")):
            try:
                manifest = read_manifest(path.parent)
            except (DamagedFile, OtherFormat):
                continue
            if iteration_of(path.parent) == manifest.iteration:
                manifests[manifest.iteration] = manifest
        sessions = copy / SESSIONS_FILE
        finished = next(last_rows(sessions), {}).get("event") == "finished"
        said = sessions.read_bytes() if sessions.exists() else b""
        return RemoteRun(RunFolder(copy).read_run(), said, dict(sorted(manifests.items())), finished)


def list_all(remote: Remote, folder: str, asked: str) -> list[str]:
    """All files of a run folder there, without those that are being written or deleted. Raises ConnectionCut."""
    script = f"cd {shlex.quote(folder)} && find . -type f ! -path '*/.*' -print0"
    output = remote.run(script, asked, place=folder).decode("utf-8", "surrogateescape")
    return sorted(name.removeprefix("./") for name in output.split("\0") if is_inside(name.removeprefix("./")))


def is_inside(name: str) -> bool:
    """Whether a name that another machine gives stays below the folder."""
    path = Path(name)
    return bool(name) and not path.is_absolute() and ".." not in path.parts

"""A model from the hub: looked at first, downloaded next to its place, compared, and moved there whole.

No file of it is executed or unpickled."""

from __future__ import annotations

import glob
import json
import os
from dataclasses import dataclass
from pathlib import Path

from ranks.engine.export.about import ExportAbout
from ranks.engine.files.disk import finish_replacement, remove, replace_folder, write_durably, writing
from ranks.engine.files.lock import process_exists
from ranks.engine.files.regular import DamagedFile
from ranks.engine.files.strict_json import read_object
from ranks.errors import UserError
from ranks.hub.client import HubClient, HubCommit, HubFile
from ranks.hub.files import (
    NEEDED,
    OPTIONAL,
    RejectedRepository,
    check_folder,
    check_size,
    git_id_of,
    refuse_no_model,
    refuse_pickles,
    sha256_of,
)

FETCHED = "fetched.json"
"""In the folder of a fetched model: from which commit of which repository it is."""
AGAIN = "run it again; if it happens again, the repository is damaged: tell its owner"


@dataclass(frozen=True)
class FetchedModel:
    """`skipped`: other files of the repository, which were not downloaded."""

    folder: Path
    about: ExportAbout
    commit: str
    num_bytes: int
    skipped: tuple[str, ...]


def fetch(client: HubClient, repo_id: str, revision: str | None, folder: Path) -> FetchedModel:
    """Bring the model of a repository into a folder. Raises UserError; the folder is then as it was."""
    asked, folder = client.asked, folder.absolute()
    with writing(asked, folder.parent, "nothing was fetched"):
        _tidy(folder)
    _check_place(folder, repo_id, asked)
    found = client.model_info(repo_id, revision)
    refuse_pickles(repo_id, found.files, asked)
    refuse_no_model(repo_id, found.files, asked)
    wanted = [found.files[name] for name in (*NEEDED, *OPTIONAL) if name in found.files]
    staging = folder.with_name(f".{folder.name}.tmp-{os.getpid()}")
    with writing(asked, folder.parent, "nothing was fetched"):
        remove(staging)
        staging.mkdir(parents=True)
        try:
            about = _download(client, repo_id, found, wanted, staging)
            origin = {"repository": repo_id, "endpoint": client.endpoint, "commit": found.commit}
            write_durably(staging / FETCHED, (json.dumps(origin, indent=2) + "\n").encode())
            remove(staging / ".cache")
            replace_folder(folder, staging)
        finally:
            remove(staging)
    skipped = sorted({*found.files} - {*NEEDED, *OPTIONAL})
    return FetchedModel(folder, about, found.commit, sum(file.num_bytes for file in wanted), tuple(skipped))


def _tidy(folder: Path) -> None:
    """After a kill: put an older model back, and remove what was downloaded. Raises OSError."""
    finish_replacement(folder)
    staged = f".{folder.name}.tmp-"
    for left in folder.parent.glob(f"{glob.escape(staged)}*"):
        process = left.name.removeprefix(staged)
        if process.isdecimal() and not process_exists(int(process)):
            remove(left)


def _check_place(folder: Path, repo_id: str, asked: str) -> None:
    """Raises UserError where a folder is in the way that is more than an older fetch of the same repository."""
    if not os.path.lexists(folder):
        return
    do = "remove it, or name another --out"
    try:
        is_older = not folder.is_symlink() and read_object(folder / FETCHED).get("repository") == repo_id
    except DamagedFile:
        is_older = False
    if not is_older:
        raise UserError(asked, f"{folder} exists, and was not fetched from {repo_id}", do)
    if folder.samefile(Path.cwd()):
        raise UserError(asked, f"{folder} is the present folder, which a fetch replaces", "call it from another folder")
    own = sorted({path.name for path in folder.iterdir()} - {*NEEDED, *OPTIONAL, FETCHED, "__pycache__"})
    if own:
        found = f"{folder} has files that were not fetched, and would be lost: {', '.join(own[:3])}"
        raise UserError(asked, found, "move them away, or name another --out")


def _download(client: HubClient, repo_id: str, found: HubCommit, wanted: list[HubFile], staging: Path) -> ExportAbout:
    """Download and verify. Raises UserError."""
    try:
        for file in wanted:
            check_size(file.name, file.num_bytes)
        for file in wanted:
            check_download(client.download(repo_id, file.name, found.commit, staging), file)
        return check_folder(staging)
    except DamagedFile as damage:
        text = str(damage).replace(f"{staging}{os.sep}", "")
        raise RejectedRepository(client.asked, f"{repo_id} is damaged: {text}", AGAIN) from None


def check_download(path: Path, file: HubFile) -> None:
    """Whether a file has the sum that the hub gives for it. Raises DamagedFile."""
    if file.sha256 is not None:
        sums = ("sha256", sha256_of(path), file.sha256)
    else:
        sums = ("git id", git_id_of(path), file.blob_id or "")
    kind, here, there = sums
    if here != there:
        raise DamagedFile(f"{file.name}: its {kind} is {here[:12]}, the hub says {there[:12]}")

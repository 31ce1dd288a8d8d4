"""A folder with a model to the hub, in one commit; then what the hub has is compared with the folder."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ranks.engine.files.regular import DamagedFile, read_regular
from ranks.errors import UserError
from ranks.hub.client import HubClient, HubFile
from ranks.hub.fetch import check_download
from ranks.hub.files import LARGE, NEEDED, OPTIONAL, RejectedRepository, refuse_pickles, sha256_of
from ranks.secrets import IN_FILE, INSTEAD, is_secret


@dataclass(frozen=True)
class LocalFile:
    """A file that is to be uploaded."""

    name: str
    num_bytes: int
    sha256: str


def local_files(folder: Path, asked: str) -> dict[str, LocalFile]:
    """The files of a folder that are published, by name. Raises UserError: one is missing, or holds a secret."""
    found: dict[str, LocalFile] = {}
    for name in (*NEEDED, *(name for name in OPTIONAL if (folder / name).exists())):
        path = folder / name
        try:
            if name not in LARGE and is_secret(read_regular(path).decode("utf-8", "replace")):
                raise UserError(f"{asked}: {path}", IN_FILE, INSTEAD)
            found[name] = LocalFile(name, path.stat().st_size, sha256_of(path))
        except DamagedFile as damage:
            raise UserError(asked, str(damage), "run it again") from None
    return found


def publish(
    client: HubClient, repo_id: str, folder: Path, files: Mapping[str, LocalFile], message: str, *, private: bool
) -> str:
    """Upload files and verify them; the id of the commit. Raises UserError.

    The repository is made where there is none. `private`: a new one is private, and an existing one that is not is
    refused. Files of an earlier model of ours that are not uploaded again are deleted; other files stay."""
    client.need_token()
    client.create(repo_id, private=private)
    before = client.model_info(repo_id)
    if private and not before.private:
        do = "make it private in its settings on the hub, or leave --private out"
        raise RejectedRepository(client.asked, f"{repo_id} exists, and is public", do)
    refuse_pickles(repo_id, before.files, client.asked)
    stale = [name for name in OPTIONAL if name in before.files and name not in files]
    commit = client.upload(repo_id, folder, list(files), stale, message, before.commit)
    there = client.model_info(repo_id, commit).files
    with tempfile.TemporaryDirectory(prefix="ranks-publish-") as place:
        for file in files.values():
            _verify(client, repo_id, commit, file, there.get(file.name), Path(place))
    return commit


def _verify(client: HubClient, repo_id: str, commit: str, file: LocalFile, there: HubFile | None, place: Path) -> None:
    """Compare the sha256 that the hub keeps of a large file; a small one is downloaded. Raises RejectedRepository."""
    do = "run it again; if it happens again, look at the commits of the repository"
    if there is None:
        raise RejectedRepository(client.asked, f"{file.name} has not arrived in {repo_id}", do)
    found = there.sha256
    if found is None:
        path = client.download(repo_id, file.name, commit, place)
        found = sha256_of(path)
        try:
            check_download(path, there)
        except DamagedFile as damage:
            raise RejectedRepository(client.asked, f"in {repo_id}, {damage}", do) from None
    if found != file.sha256:
        text = f"the sha256 of {file.name} in {repo_id} is {found[:12]}, here it is {file.sha256[:12]}"
        raise RejectedRepository(client.asked, text, do)

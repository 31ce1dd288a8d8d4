"""The hub as this package uses it: a few calls of huggingface_hub, and its errors as errors for users.

The token comes from the process variable HF_TOKEN only, never from the file that other programs keep, and goes nowhere
but into the header of a request to the hub.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from ranks.errors import UserError
from ranks.secrets import hide

TOKEN = "HF_TOKEN"
ENDPOINT = "HF_ENDPOINT"
PUBLIC_HUB = "https://huggingface.co"
LOOPBACK = ("127.0.0.1", "::1", "localhost")
INSTALL = "pip install 'ranks[hub]'"
NEW_TOKEN = f"make a token at {PUBLIC_HUB}/settings/tokens, and export {TOKEN}=..."


@dataclass(frozen=True)
class HubFile:
    """A file of a repository, as the hub describes it."""

    name: str
    num_bytes: int
    sha256: str | None
    """Of its content, where the hub keeps it as a large file."""
    blob_id: str | None
    """git's id of a small file: the sha1 of a header and the content."""


@dataclass(frozen=True)
class HubCommit:
    """One state of a repository."""

    commit: str
    files: Mapping[str, HubFile]
    private: bool


class HubClient:
    """Calls for one command. Every method raises UserError."""

    def __init__(self, asked: str, environ: Mapping[str, str] = os.environ) -> None:
        """Read the token and the address from process variables. Raises UserError: huggingface_hub is not installed,
        or the token would travel unencrypted."""
        self.asked = asked
        self.endpoint = (environ.get(ENDPOINT) or PUBLIC_HUB).rstrip("/")
        self._token: str | bool = environ.get(TOKEN, "").strip() or False
        if self._token and not re.fullmatch(r"[!-~]+", str(self._token)):  # libraries print a header that they reject
            found = "a token has ASCII letters, digits and signs only; this one has spaces, line breaks or others"
            raise UserError(f"the token in {TOKEN}", found, NEW_TOKEN)
        scheme, host = _place(self.endpoint)
        if "@" in self.endpoint:
            found = f"an address with a name or a password, which would be stored; the token belongs into {TOKEN}"
            raise UserError(ENDPOINT, found, "give the address without it")
        is_http = scheme in ("http", "https") and host
        if not is_http or (self._token and scheme == "http" and host not in LOOPBACK):
            found = "the token would travel unencrypted" if is_http else "not the address of a hub"
            raise UserError(f"{ENDPOINT}={self.endpoint}", found, f"give an https:// address, or unset {ENDPOINT}")
        try:
            from huggingface_hub import HfApi
            from huggingface_hub.utils import disable_progress_bars
        except ModuleNotFoundError as missing:
            raise UserError(asked, f"the package {missing.name} is not installed", INSTALL) from None
        if not sys.stderr.isatty():
            disable_progress_bars()
        self._api = HfApi(endpoint=self.endpoint, token=self._token, library_name="ranks")

    def need_token(self) -> None:
        """Raises UserError where there is none."""
        if not self._token:
            raise UserError(self.asked, f"there is no token in {TOKEN}", NEW_TOKEN)

    def model_info(self, repo_id: str, revision: str | None = None) -> HubCommit:
        """The files of a model repository at a branch, tag or commit."""
        with self._errors(repo_id, revision):
            info = self._api.model_info(repo_id, revision=revision, files_metadata=True)
        files = [
            HubFile(entry.rfilename, entry.size or 0, entry.lfs.sha256 if entry.lfs else None, entry.blob_id)
            for entry in info.siblings or []
        ]
        if not info.sha:
            raise UserError(self.asked, f"{self.endpoint} names no commit of {repo_id}", "check HF_ENDPOINT")
        return HubCommit(info.sha, {file.name: file for file in files}, bool(info.private))

    def create(self, repo_id: str, *, private: bool) -> None:
        """Make a model repository; an existing one stays as it is."""
        with self._errors(repo_id, writes=True):
            self._api.create_repo(repo_id, private=private or None, exist_ok=True)

    def upload(
        self, repo_id: str, folder: Path, names: Sequence[str], to_delete: Sequence[str], message: str, parent: str
    ) -> str:
        """Commit files of a folder; the id of the commit. It is refused where the repository has gone on from
        `parent`."""
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete

        operations = [CommitOperationAdd(name, str(folder / name)) for name in names]
        deletions = [CommitOperationDelete(name) for name in to_delete]
        with self._errors(repo_id, writes=True):
            done = self._api.create_commit(
                repo_id, [*operations, *deletions], commit_message=message, parent_commit=parent
            )
        return done.oid

    def download(self, repo_id: str, name: str, commit: str, folder: Path) -> Path:
        """Bring one file into a folder. Its content is not checked."""
        with self._errors(repo_id):
            path = self._api.hf_hub_download(repo_id, name, revision=commit, local_dir=folder, force_download=True)
        return Path(path)

    @contextmanager
    def _errors(self, repo_id: str, revision: str | None = None, *, writes: bool = False) -> Generator[None]:
        """Turn what huggingface_hub raises into a UserError, without its stack and without the token."""
        from httpx2 import HTTPError
        from huggingface_hub import errors

        try:
            yield
        except errors.OfflineModeIsEnabled:
            raise UserError(self.asked, "HF_HUB_OFFLINE is set", "unset it") from None
        except errors.GatedRepoError:
            do = f"ask for access on {self.endpoint}/{repo_id}"
            raise UserError(self.asked, f"{repo_id} is open to some users only", do) from None
        except errors.RevisionNotFoundError:
            do = f"see its branches and commits at {self.endpoint}/{repo_id}/commits/main"
            raise UserError(self.asked, f"{repo_id} has no revision {revision}", do) from None
        except errors.HfHubHTTPError as error:
            raise self._refused(error, repo_id, writes=writes) from None
        except (HTTPError, errors.LocalEntryNotFoundError) as error:
            found = f"no answer from {self.endpoint}: {_first_line(error)}"
            raise UserError(self.asked, found, f"check the network and {ENDPOINT}, then run it again") from None
        except (
            errors.FileMetadataError,
            errors.XetDownloadError,
            OSError,
            ValueError,
            KeyError,
            RuntimeError,
        ) as error:
            found = f"{self.endpoint} and huggingface_hub do not agree: {_first_line(error)}"
            raise UserError(self.asked, found, "run it again; update huggingface_hub if it happens again") from None

    def _refused(self, error: OSError, repo_id: str, *, writes: bool) -> UserError:
        """The error for an answer with an HTTP status of 400 or more."""
        response = getattr(error, "response", None)
        status, headers = getattr(response, "status_code", 0), getattr(response, "headers", {})
        missing = headers.get("X-Error-Code") == "RepoNotFound" or status == 404
        if self._token and status == 401 and not missing:
            return UserError(self.asked, f"{self.endpoint} does not accept the token in {TOKEN}", NEW_TOKEN)
        if missing or status == 401:
            do = "check the name" + ("" if self._token else f"; a private one needs a token in {TOKEN}")
            return UserError(self.asked, f"there is no repository {repo_id}, or you may not see it", do)
        if status == 403 and not writes:
            found = f"{self.endpoint} does not let you read {repo_id}: {_first_line(error)}"
            return UserError(self.asked, found, f"see {self.endpoint}/{repo_id} in a browser")
        if status == 403:
            do = f"give a token that may write there, and export {TOKEN}=..."
            return UserError(self.asked, f"the token in {TOKEN} may not write to {repo_id}", do)
        if status in (409, 412):
            found = f"{repo_id} has changed meanwhile"
            return UserError(self.asked, found, "run it again")
        return UserError(self.asked, f"{self.endpoint} answers {status}: {_first_line(error)}", "run it again later")


def _place(address: str) -> tuple[str, str | None]:
    """Scheme and host; empty where it is no address."""
    try:
        parts = urlsplit(address)
        return parts.scheme, parts.hostname
    except ValueError:
        return "", None


def _first_line(error: BaseException) -> str:
    """Of an error's text; of its cause where it only says that an upload failed."""
    error = error.__cause__ if isinstance(error, RuntimeError) and error.__cause__ is not None else error
    text = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return hide(text)[:300]

"""A server on the loopback interface that speaks the hub's protocol as far as huggingface_hub uses it for models.

Written after huggingface_hub 2.4.0: hf_api.py (create_repo, model_info), _commit_api.py (preupload, commit), lfs.py
(batch, upload) and file_download.py (HEAD and GET of resolve). Large files go through the LFS protocol, not Xet."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import unquote, urlsplit

TOKEN = "hf_" + "t" * 30
LFS_SUFFIXES = (".safetensors", ".onnx", ".data")
REPO = r"(?P<repo>[\w.-]+/[\w.-]+)"


def git_id(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


@dataclass
class Repository:
    """Commits of one branch: the id of each, and its files."""

    private: bool
    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)

    def commit(self, files: Mapping[str, bytes]) -> str:
        """Add a state."""
        name = hashlib.sha1(f"{len(self.commits)}{sorted(files)}".encode()).hexdigest()
        self.commits[name] = dict(files)
        return name

    @property
    def head(self) -> str:
        return list(self.commits)[-1]

    def at(self, revision: str) -> str | None:
        return self.head if revision == "main" else revision if revision in self.commits else None


class LocalHub:
    """The server. `harm` changes the content of a file that is downloaded or stored."""

    def __init__(self) -> None:
        self.repositories: dict[str, Repository] = {}
        self.large: dict[str, bytes] = {}
        self.tokens: list[str | None] = []
        self.requests: list[str] = []
        self.forbidden = ""
        """A repository that nobody may read."""
        self.harm_download: Callable[[str, bytes], bytes] = lambda name, content: content
        self.harm_commit: Callable[[str, bytes], bytes] = lambda name, content: content
        hub = self

        class Handler(_Handler):
            def __getattribute__(self, name: str) -> Any:
                return hub if name == "hub" else super().__getattribute__(name)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.endpoint = f"http://127.0.0.1:{self.server.server_port}"

    def add(self, repo: str, files: Mapping[str, bytes], *, private: bool = False) -> Repository:
        """A repository with one commit."""
        found = self.repositories.setdefault(repo, Repository(private))
        found.commit(files)
        return found

    def __enter__(self) -> LocalHub:
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.server.shutdown()
        self.server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: LocalHub

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""

    def do_GET(self) -> None:
        self._route("GET")

    def do_HEAD(self) -> None:
        self._route("HEAD")

    def do_POST(self) -> None:
        self._route("POST")

    def do_PUT(self) -> None:
        self._route("PUT")

    def _route(self, method: str) -> None:
        path = unquote(urlsplit(self.path).path)
        body = self._body()
        bearer = self.headers.get("Authorization")
        token = bearer.removeprefix("Bearer ") if bearer else None
        self.hub.tokens.append(token)
        self.hub.requests.append(f"{method} {path}")
        if token not in (None, TOKEN) and not path.startswith("/large/"):
            return self._fail(401, message="Invalid credentials in Authorization header")
        for kind, pattern, answer in ROUTES:
            match = re.fullmatch(pattern, path)
            if kind == method and match is not None:
                return answer(self, body, token, **match.groupdict())
        return self._fail(404)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts: list[bytes] = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _send(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _json(self, content: Any, status: int = 200) -> None:
        self._send(status, json.dumps(content).encode(), Content_Type="application/json")

    def _fail(self, status: int, code: str = "", message: str = "") -> None:
        self._send(status, b"{}", X_Error_Code=code, X_Error_Message=message or "no")

    def _find(self, repo: str, revision: str, token: str | None) -> tuple[Repository, str] | None:
        """The repository and the commit; answers where there is none."""
        found = self.hub.repositories.get(repo)
        if found is not None and repo == self.hub.forbidden:
            self._fail(403, message="It is disabled")
            return None
        if found is None or (found.private and token is None):
            self._fail(404 if token else 401, "RepoNotFound")
            return None
        commit = found.at(revision)
        if commit is None:
            self._fail(404, "RevisionNotFound")
            return None
        return found, commit

    def create(self, body: bytes, token: str | None) -> None:
        asked = json.loads(body)
        repo = f"{asked['organization']}/{asked['name']}"
        if token is None:
            return self._fail(401)
        if asked["organization"] == "others":
            return self._fail(403, message="You don't have the rights to create a model under this namespace")
        if repo in self.hub.repositories:
            return self._json({"url": f"{self.hub.endpoint}/{repo}", "error": "You already created it"}, 409)
        self.hub.add(
            repo, {".gitattributes": b"*.safetensors filter=lfs\n"}, private=asked.get("visibility") == "private"
        )
        return self._json({"url": f"{self.hub.endpoint}/{repo}"})

    def validate(self, body: bytes, token: str | None) -> None:
        front = json.loads(body)["content"].split("---\n")
        self._json(
            {"errors": [], "warnings": [] if front[0] == "" and len(front) > 2 else [{"message": "no metadata"}]}
        )

    def info(self, body: bytes, token: str | None, repo: str, revision: str | None = None) -> None:
        at = self._find(repo, revision or "main", token)
        if at is not None:
            files = at[0].commits[at[1]]
            siblings = [_sibling(n, c) for n, c in sorted(files.items())]
            self._json({"id": repo, "sha": at[1], "private": at[0].private, "siblings": siblings})

    def preupload(self, body: bytes, token: str | None, repo: str, revision: str) -> None:
        files = [
            {
                "path": f["path"],
                "uploadMode": "lfs" if f["path"].endswith(LFS_SUFFIXES) else "regular",
                "shouldIgnore": False,
            }
            for f in json.loads(body)["files"]
        ]
        self._json({"files": files})

    def batch(self, body: bytes, token: str | None, repo: str) -> None:
        href = f"{self.hub.endpoint}/large/"
        objects = [
            {**o, "actions": {"upload": {"href": href + o["oid"]}}} if o["oid"] not in self.hub.large else o
            for o in json.loads(body)["objects"]
        ]
        self._json({"transfer": "basic", "objects": objects})

    def put(self, body: bytes, token: str | None, oid: str) -> None:
        if hashlib.sha256(body).hexdigest() != oid:
            return self._fail(400)
        self.hub.large[oid] = body
        return self._send(200, b"")

    def commit(self, body: bytes, token: str | None, repo: str, revision: str) -> None:
        at = self._find(repo, revision, token)
        if at is None:
            return None
        files = dict(at[0].commits[at[1]])
        for line in map(json.loads, body.splitlines()):
            key, value = line["key"], line["value"]
            if key == "header" and value.get("parentCommit", at[1]) != at[1]:
                return self._fail(412)
            if key == "file":
                files[value["path"]] = self.hub.harm_commit(value["path"], base64.b64decode(value["content"]))
            elif key == "lfsFile":
                files[value["path"]] = self.hub.harm_commit(value["path"], self.hub.large[value["oid"]])
            elif key == "deletedFile":
                del files[value["path"]]
        commit = at[0].commit(files)
        return self._json({"commitUrl": f"{self.hub.endpoint}/{repo}/commit/{commit}", "commitOid": commit})

    def resolve(self, body: bytes, token: str | None, repo: str, revision: str, name: str) -> None:
        at = self._find(repo, revision, token)
        if at is None:
            return None
        if name not in at[0].commits[at[1]]:
            return self._fail(404, "EntryNotFound")
        content = at[0].commits[at[1]][name]
        is_large = name.endswith(LFS_SUFFIXES)
        etag = hashlib.sha256(content).hexdigest() if is_large else git_id(content)
        return self._send(200, self.hub.harm_download(name, content), ETag=f'"{etag}"', X_Repo_Commit=at[1])


def _sibling(name: str, content: bytes) -> dict[str, Any]:
    found: dict[str, Any] = {"rfilename": name, "size": len(content), "blobId": git_id(content)}
    if name.endswith(LFS_SUFFIXES):
        found["lfs"] = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest(), "pointerSize": 134}
    return found


ROUTES: tuple[tuple[str, str, Callable[..., None]], ...] = (
    ("POST", "/api/repos/create", _Handler.create),
    ("POST", "/api/validate-yaml", _Handler.validate),
    ("GET", f"/api/models/{REPO}", _Handler.info),
    ("GET", f"/api/models/{REPO}/revision/(?P<revision>.+)", _Handler.info),
    ("POST", f"/api/models/{REPO}/preupload/(?P<revision>.+)", _Handler.preupload),
    ("POST", rf"/{REPO}\.git/info/lfs/objects/batch", _Handler.batch),
    ("PUT", "/large/(?P<oid>[0-9a-f]{64})", _Handler.put),
    ("POST", f"/api/models/{REPO}/commit/(?P<revision>.+)", _Handler.commit),
    ("GET", f"/{REPO}/resolve/(?P<revision>[^/]+)/(?P<name>.+)", _Handler.resolve),
    ("HEAD", f"/{REPO}/resolve/(?P<revision>[^/]+)/(?P<name>.+)", _Handler.resolve),
)

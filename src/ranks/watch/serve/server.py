"""The server of the page: GET and HEAD of / and /data, on 127.0.0.1 only.

Other pages of the browser must not read a run. So requests need a Host of this machine, which stops a foreign name that
was pointed at 127.0.0.1 (DNS rebinding), and no header allows another origin. The page is the same for every run: what
runs say reaches it as JSON, and its script shows it as text.
"""

from __future__ import annotations

import base64
import errno
import hashlib
import json
import re
import sys
import threading
import time
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import TCPServer
from typing import Any

from ranks.errors import UserError
from ranks.watch.live_run import LiveRun
from ranks.watch.serve.answer import answer

ADDRESS = "127.0.0.1"
HOSTS = re.compile(r"(127\.0\.0\.1|localhost)(:[0-9]{1,5})?", re.IGNORECASE)
DATA = re.compile(r"/data(?:\?since=([0-9a-f-]{0,40}))?")
IDLE_S = 10.0
"""After which a connection without a request is closed."""


class PageServer(ThreadingHTTPServer):
    """Serves one run. `with PageServer(folder, port) as server: server.serve_forever()`."""

    daemon_threads = True
    allow_reuse_port = False

    def __init__(self, folder: Path, port: int, price: float | None = None) -> None:
        """`port`: 0 for any free one. Raises UserError where it cannot be had."""
        content = Content(page(), LiveRun(folder), price)
        try:
            super().__init__((ADDRESS, port), partial(Handler, content))
        except OSError as error:
            taken = error.errno == errno.EADDRINUSE
            found = f"port {port} of {ADDRESS} is taken" if taken else f"port {port}: {error.strerror or error}"
            raise UserError(f"--port {port}", found, "give another number, or --port 0 for any free port") from None

    def server_bind(self) -> None:
        """Without the look-up of a host name, which can take long."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = ADDRESS, int(self.server_address[1])

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that goes away is no error; anything else is one line."""
        error = sys.exception()
        if not isinstance(error, ConnectionError | TimeoutError):
            print(f"a request failed ({type(error).__name__}: {error})", file=sys.stderr)


class Content:
    """What the server answers. Browser tabs share one reader of the files."""

    def __init__(self, page: bytes, live: LiveRun, price: float | None) -> None:
        self.page, self.policy = page, policy(page)
        self._live, self._price = live, price
        self._lock = threading.Lock()

    def data(self, since: str) -> bytes:
        """The JSON of the run now."""
        with self._lock:
            self._live.read()
            found = answer(self._live, since, self._price, time.time())
        return json.dumps(found, allow_nan=False, separators=(",", ":")).encode()


class Handler(BaseHTTPRequestHandler):
    """One request."""

    timeout = IDLE_S

    def __init__(self, content: Content, *args: Any, **kwargs: Any) -> None:
        self._content = content
        super().__init__(*args, **kwargs)

    def do_GET(self) -> None:
        """The page or the data."""
        hosts = self.headers.get_all("Host", [])
        if len(hosts) != 1 or not HOSTS.fullmatch(hosts[0]):
            self._send(HTTPStatus.FORBIDDEN, "text/plain", b"open this page as http://127.0.0.1:PORT/\n")
        elif self.path == "/":
            self._send(HTTPStatus.OK, "text/html", self._content.page)
        elif asked := DATA.fullmatch(self.path):
            self._send(*self._data(asked[1] or ""))
        else:
            self._send(HTTPStatus.NOT_FOUND, "text/plain", b"there is only / and /data\n")

    do_HEAD = do_GET

    def _data(self, since: str) -> tuple[HTTPStatus, str, bytes]:
        try:
            return HTTPStatus.OK, "application/json", self._content.data(since)
        except Exception as error:  # whatever the files hold, the server goes on
            print(f"the data of the run: {type(error).__name__}: {error}"[:300], file=sys.stderr)
            return HTTPStatus.INTERNAL_SERVER_ERROR, "text/plain", b"the run's files cannot be shown\n"

    def _send(self, status: HTTPStatus, kind: str, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Content-Security-Policy", self._content.policy)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("X-Frame-Options", "DENY")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cache-Control", "no-store")
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET, HEAD")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse a request that is no GET or HEAD, or is malformed; nothing of it is in the answer."""
        status = HTTPStatus(code)
        if status == HTTPStatus.NOT_IMPLEMENTED:  # what the standard library says to other methods
            status = HTTPStatus.METHOD_NOT_ALLOWED
        self._send(status, "text/plain", f"{status.phrase}\n".encode())

    def version_string(self) -> str:
        """The header Server, without the versions of Python and its library."""
        return "ranks"

    def log_message(self, format: str, *args: Any) -> None:
        """No line for each request."""


def page() -> bytes:
    """The whole page: its script is a file of its own here."""
    here = Path(__file__).parent
    html, script = (here / "page.html").read_bytes(), (here / "page.js").read_bytes()
    return html.replace(b"<script></script>", b"<script>\n" + script + b"</script>")


def policy(page: bytes) -> str:
    """The Content-Security-Policy: this page's style and script, its own data, and nothing else."""
    parts = ["default-src 'none'", "connect-src 'self'", "base-uri 'none'", "form-action 'none'"]
    parts += ["frame-ancestors 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'"]
    for tag in ("style", "script"):
        (inline,) = re.findall(rf"<{tag}>(.*?)</{tag}>".encode(), page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inline).digest()).decode()
        parts.append(f"{tag}-src 'sha256-{digest}'")
    return "; ".join(parts)

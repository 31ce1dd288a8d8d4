"""A provider's API on the loopback interface that behaves in a chosen way, and a machine that it may end: the session
of one process."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Behavior = Callable[["StubProvider"], tuple[int, object]]
"""What it answers to a request to end the machine, after it has done what it does."""


class StubProvider:
    """`ended`: how often it was asked to end the machine. Use as a context manager; `api` is its address."""

    def __init__(self, end: Behavior, *, key: str = "key-of-the-stub") -> None:
        self.ended, self.asked_at = 0, list[float]()
        self.machine: int | None = None
        """The process group that ends with the machine."""
        self.closing = threading.Event()
        stub = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, format: str, *args: object) -> None: ...

            def answer(self, code: int, content: object) -> None:
                body = content.encode() if isinstance(content, str) else json.dumps(content).encode()
                self.send_response(code)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self) -> None:
                if self.headers["Authorization"] != f"Bearer {key}":
                    return self.answer(401, {"error": "unauthorized"})
                self.answer(200, {"id": "pod1", "desiredStatus": "TERMINATED" if stub.ended else "RUNNING"})

            def do_DELETE(self) -> None:
                stub.ended += 1
                stub.asked_at.append(time.monotonic())
                code, content = end(stub)
                if code:
                    with contextlib.suppress(ConnectionError):  # the asker may have gone with its machine
                        self.answer(code, content)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.api = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> StubProvider:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()

    def end_machine(self) -> None:
        """End the machine and all that runs on it."""
        if self.machine is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.machine, signal.SIGKILL)


def honest(stub: StubProvider) -> tuple[int, object]:
    """Ends the machine a second after its answer."""
    threading.Timer(1.0, stub.end_machine).start()
    return 200, {"status": "terminating"}


def says_stopped(stub: StubProvider) -> tuple[int, object]:
    """Says that the machine has ended, and lets it run."""
    return 200, {"desiredStatus": "TERMINATED"}


def fails_twice(stub: StubProvider) -> tuple[int, object]:
    """Fails two times, and ends the machine at the third."""
    return honest(stub) if stub.ended > 2 else (500, {"error": "internal"})


def never_answers(stub: StubProvider) -> tuple[int, object]:
    """Takes the connection, and says nothing."""
    stub.closing.wait(120)
    return 0, None


def answers_a_page(stub: StubProvider) -> tuple[int, object]:
    """A page of HTML in place of JSON; the machine runs on."""
    return 200, "<html><body>Welcome</body></html>"

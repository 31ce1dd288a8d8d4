"""A helper process's side of the socket to its rank. While it works it shows four times a second that it lives."""

from __future__ import annotations

import threading
import time
from multiprocessing.connection import Connection
from typing import Any

SIGN_S = 0.25
SIGN = "alive"
"""Sent between the answers, which are tuples."""


class RankConnection:
    """Requests of the rank and answers to it. Any one thread at a time uses it."""

    def __init__(self, number: int) -> None:
        """`number`: of the socket."""
        self._connection: Connection[Any, Any] = Connection(number)
        self._lock = threading.Lock()
        self._works = threading.Event()
        self._works.set()
        threading.Thread(target=self._show_life, daemon=True).start()

    def recv(self) -> Any:
        """The next request. Raises EOFError where the rank has ended or closed the socket."""
        self._works.clear()
        request = self._connection.recv()
        self._works.set()
        return request

    def send(self, answer: Any) -> None:
        """Raises OSError where the rank has ended or closed the socket."""
        with self._lock:
            self._connection.send(answer)

    def _show_life(self) -> None:
        try:
            while True:
                time.sleep(SIGN_S)
                if self._works.wait():
                    self.send(SIGN)
        except OSError:  # the rank has ended
            pass

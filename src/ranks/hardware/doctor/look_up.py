"""Look up a name, for a limited time: the system's resolver can wait for minutes."""

from __future__ import annotations

import queue
import socket
import threading
import time
from dataclasses import dataclass


@dataclass(frozen=True)
class LookedUp:
    """An IPv4 address, or why there is none."""

    address: str
    error: str
    seconds: float


def look_up(host: str, limit_s: float) -> LookedUp:
    """The first IPv4 address of a host. A resolver that does not answer within the limit is left alone."""
    answers: queue.Queue[tuple[str, str]] = queue.Queue()
    began = time.monotonic()
    threading.Thread(target=_ask, args=(host, answers), daemon=True).start()
    try:
        address, error = answers.get(timeout=limit_s)
    except queue.Empty:
        address, error = "", f"no answer within {limit_s:g} s (see /etc/resolv.conf)"
    return LookedUp(address, error, time.monotonic() - began)


def _ask(host: str, answers: queue.Queue[tuple[str, str]]) -> None:
    try:
        found = socket.getaddrinfo(host, None, socket.AF_INET, socket.SOCK_STREAM)
        answers.put((str(found[0][4][0]), ""))
    except (OSError, UnicodeError) as error:  # UnicodeError: a name with empty or very long parts
        answers.put(("", getattr(error, "strerror", None) or str(error)))

"""Call a function for a limited time: a resolver or a driver can wait for minutes."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def within(limit_s: float, act: Callable[[], T]) -> T | None:
    """What `act` returns; None where it does not end in time. It is then left alone in its thread. `act` raises
    nothing."""
    answers: queue.Queue[T] = queue.Queue()
    threading.Thread(target=lambda: answers.put(act()), daemon=True).start()
    try:
        return answers.get(timeout=limit_s)
    except queue.Empty:
        return None

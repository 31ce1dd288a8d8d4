"""What does tasks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

T_co = TypeVar("T_co", covariant=True)


class Interrupted(Exception):
    """Raised inside a task when the run stops."""


class TaskWorker(Protocol[T_co]):
    """Does tasks one after the other, in one thread."""

    def run(self, task: int, stopping: Callable[[], bool]) -> T_co:
        """The result of a task, a function of its number alone. Raises Interrupted soon after `stopping()`."""
        ...

    def close(self) -> None:
        """Release memory and processes."""
        ...

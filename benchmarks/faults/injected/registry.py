"""The list of faults. Each is a function that changes one or two hosts before the doctor starts on them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.faults.injected.hosts import Host

Inject = Callable[..., None]


class NotPossibleHere(Exception):
    """This machine lacks what the fault needs."""


@dataclass(frozen=True)
class Fault:
    """What is broken, and what a finding must say to count."""

    name: str
    cause: str
    """A regular expression that the topic and the words of one warning or failure must match."""
    remedy: str
    """The same for the line of that finding that says what to do."""
    hosts: int
    inject: Inject
    author: str

    def matches(self, finding: Mapping[str, Any]) -> bool:
        """Whether a finding names the cause and a remedy."""
        said = f"{finding['topic']}: {finding['found']}"
        return bool(re.search(self.cause, said, re.DOTALL) and re.search(self.remedy, finding["do"], re.DOTALL))

    def inject_into(self, made: Sequence[Host]) -> None:
        self.inject(*made)


FAULTS: dict[str, Fault] = {}


def fault(name: str, *, cause: str, remedy: str, hosts: int = 1, author: str = "the doctor's author"):
    """Register the function below as a fault. It gets one Host, or two."""

    def register(inject: Inject) -> Inject:
        assert name not in FAULTS, f"two faults are called {name}"
        FAULTS[name] = Fault(name, cause, remedy, hosts, inject, author)
        return inject

    return register

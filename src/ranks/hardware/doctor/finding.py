"""What the doctor asks and what it finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import IntEnum
from typing import Any


class Severity(IntEnum):
    """How bad a finding is."""

    OK = 0
    NOTE = 1
    """Good to know; nothing is wrong."""
    WARNING = 2
    """A run works, but slower or at a risk."""
    FAILURE = 3
    """A run will fail."""


@dataclass(frozen=True)
class Finding:
    """One answer: what was looked at, what was found, what was expected, and a line to paste or to do."""

    topic: str
    severity: Severity
    found: str
    expected: str = ""
    do: str = ""

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "severity": self.severity.name.lower()}


@dataclass(frozen=True)
class Asked:
    """What the machine is wanted for."""

    ranks: int
    """Processes of the run."""
    runs_dir: str
    """Where the checkpoints will be."""
    gpus: int | None = None
    """As many GPUs are expected; None: no number."""
    expect: str | None = None
    """Part of the name of each GPU, such as B200."""
    checkpoint_bytes: int = 2**30
    """Space that the kept checkpoints will take."""
    doctor_pid: int = 0
    """The process that asks; its children are not foreign load."""
    nodes: int = 1
    """Machines of the run."""
    node: int = 0
    """Which of them this one is."""
    meeting: str = ""
    """HOST:PORT where the nodes meet; empty: on one machine."""
    meeting_name: str = ""
    """Of the job."""
    served_by_agent: bool = False
    """torchrun serves the store of the meeting, else node 0."""
    wait_s: float = 60.0
    """How long nodes wait for each other."""
    workload: Mapping[str, Any] | None = None
    """Code, config and data of the workload, which all nodes must share; None: it is not known."""
    link_gbit: float | None = None
    """The rate of the network between the nodes, in Gbit/s; None: what the interface says."""
    memory_left: int = 0
    """Bytes that could be allocated when the doctor began: the checks themselves use some."""


def ok(topic: str, found: str) -> Finding:
    return Finding(topic, Severity.OK, found)


def note(topic: str, found: str, do: str = "") -> Finding:
    return Finding(topic, Severity.NOTE, found, do=do)


def warning(topic: str, found: str, expected: str, do: str) -> Finding:
    return Finding(topic, Severity.WARNING, found, expected, do)


def failure(topic: str, found: str, expected: str, do: str) -> Finding:
    return Finding(topic, Severity.FAILURE, found, expected, do)

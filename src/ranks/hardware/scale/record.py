"""What one rank recorded of a short run with others: its collectives with their times, its data, its memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ranks.engine.liveness.beats import Collective


@dataclass(frozen=True)
class TimedCall:
    """One collective. The times are seconds by the machine's clock, which all its ranks share."""

    kind: Collective
    num_bytes: int
    start_s: float
    issued_s: float
    """When the call that starts it has returned."""
    wait_s: float
    """When the rank asks for the result; equal to `start_s` where the call itself waits."""
    end_s: float
    """When it has the result."""


@dataclass(frozen=True)
class RankRecord:
    """The record of one rank."""

    rank: int
    device: str
    """The name of its GPU or processor."""
    calls: tuple[TimedCall, ...]
    """In the order of their starts."""
    first_calls: tuple[int, ...]
    """The index of the first collective of each iteration."""
    data_s: tuple[float, ...]
    """Of each iteration: the time in which its batches are made."""
    peak_bytes: int
    """The most memory that the rank held."""
    capacity_bytes: int
    """What it may hold: on its GPU, or its part of what all ranks of a CPU machine may hold."""

    def as_json(self) -> dict[str, Any]:
        """For `of_json`."""
        calls = [[c.kind.value, c.num_bytes, c.start_s, c.issued_s, c.wait_s, c.end_s] for c in self.calls]
        return {name: getattr(self, name) for name in self.__dataclass_fields__} | {"calls": calls}

    @classmethod
    def of_json(cls, content: Mapping[str, Any]) -> RankRecord:
        """Raises KeyError, TypeError or ValueError where the content is no record."""
        return cls(
            int(content["rank"]),
            str(content["device"]),
            tuple(_call(call) for call in content["calls"]),
            tuple(map(int, content["first_calls"])),
            tuple(map(float, content["data_s"])),
            int(content["peak_bytes"]),
            int(content["capacity_bytes"]),
        )


def _call(values: Sequence[Any]) -> TimedCall:
    kind, num_bytes, *seconds = values
    start_s, issued_s, wait_s, end_s = map(float, seconds)
    return TimedCall(Collective(kind), int(num_bytes), start_s, issued_s, wait_s, end_s)

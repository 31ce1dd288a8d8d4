"""Merge the records of all ranks of a run: what an iteration computes, and what it waits for.

    rank 0  | compute | data | compute .......... | skew ....| communication |
    rank 1  | compute | data | compute ......................| communication |
                                        last call of the collective ^

The n-th collective is the same on every rank. Before its last rank has called it, the others wait for that rank (skew).
After that they wait for the link (communication). What is neither is the rank's own work: data and compute.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ranks.hardware.scale.record import RankRecord
from ranks.hardware.short_runs.rows import first_update, items_of, value

LEAST_ITERATIONS = 3
"""Whole iterations that are measured at least."""


class TooFewIterations(Exception):
    """The run was too short. `needed_s`: how long it takes, about."""

    def __init__(self, needed_s: float) -> None:
        super().__init__(f"fewer than {LEAST_ITERATIONS} whole iterations")
        self.needed_s = needed_s


@dataclass(frozen=True)
class Parts:
    """Seconds of an iteration, which add up to it; or shares of it."""

    compute: float = 0.0
    """The rank's own work without data, and all that is not split."""
    communication: float = 0.0
    """Exposed: all ranks have called a collective, and this one waits for its end."""
    data: float = 0.0
    """Batches are made."""
    skew: float = 0.0
    """Waiting for the slowest rank."""

    @property
    def total(self) -> float:
        return self.compute + self.communication + self.data + self.skew

    def times(self, factor: float) -> Parts:
        return Parts(*(factor * part for part in vars(self).values()))

    def minus(self, other: Parts) -> Parts:
        return Parts(*(a - b for a, b in zip(vars(self).values(), vars(other).values(), strict=True)))

    @classmethod
    def mean(cls, parts: Sequence[Parts]) -> Parts:
        return cls(*(sum(column) / len(parts) for column in zip(*(vars(p).values() for p in parts), strict=True)))


@dataclass(frozen=True)
class ShortRun:
    """One short run: means of its iterations, without the first ones."""

    ranks: tuple[Parts, ...]
    """Of each rank."""
    iterations: int
    """That were measured."""
    collectives: int
    """In these iterations, on each rank."""
    items: Mapping[str, float]
    """What an iteration processes on all ranks, by kind: samples, env_steps, ..."""
    peak_bytes: int
    """Of the rank that held most."""
    devices: tuple[str, ...]
    """The name of each rank's device."""
    capacities: tuple[int, ...]
    """What each rank may hold, in bytes."""

    @property
    def parts(self) -> Parts:
        """Means over ranks."""
        return Parts.mean(self.ranks)


def short_run(records: Sequence[RankRecord], rows: Sequence[Mapping[str, Any]]) -> ShortRun:
    """The run of all ranks, from their records and the rows of metrics.jsonl. Raises TooFewIterations, and ValueError
    where the collectives of the ranks differ."""
    dropped = max(1, len(rows) // 10, first_update(rows) or 0)
    if len(rows) < dropped + LEAST_ITERATIONS + 1:
        raise TooFewIterations(_needed_s(rows))
    steady = rows[dropped:]
    if len(records) == 1:
        seconds = (value(rows[-1], "time_s") - value(rows[dropped - 1], "time_s")) / len(steady)
        data_s = sum(value(row, "time/data_s") for row in steady) / len(steady)
        ranks, count, collectives = [Parts(compute=seconds - data_s, data=data_s)], len(steady), 0
    else:
        check_matched(records)
        first, last = len(records[0].first_calls) - len(rows) + dropped, len(records[0].first_calls) - 1
        if first < 0:
            raise ValueError(f"{-first} iterations have no collective")
        calls = records[0].first_calls[first], records[0].first_calls[last]
        ready_s = [max(record.calls[i].start_s for record in records) for i in range(*calls)]
        ranks = [_parts(record, ready_s, calls, (first, last)) for record in records]
        count, collectives = last - first, calls[1] - calls[0]
    peak_bytes = max(record.peak_bytes for record in records)
    devices = tuple(record.device for record in records)
    capacities = tuple(record.capacity_bytes for record in records)
    return ShortRun(tuple(ranks), count, collectives, items_of(steady), peak_bytes, devices, capacities)


def check_matched(records: Sequence[RankRecord]) -> None:
    """Raises ValueError where the n-th collective is not of the same kind, in the same iteration, on every rank."""
    first, *others = records
    kinds = [call.kind for call in first.calls]
    for other in others:
        if [call.kind for call in other.calls] != kinds or other.first_calls != first.first_calls:
            raise ValueError(f"the collectives of the ranks {first.rank} and {other.rank} differ")


def _parts(record: RankRecord, ready_s: Sequence[float], calls: tuple[int, int], iterations: tuple[int, int]) -> Parts:
    """Means of the iterations between two collectives. `ready_s`: when the last rank has called each of them;
    `calls`, `iterations`: (first, the one after the last)."""
    count = iterations[1] - iterations[0]
    whole_s = record.calls[calls[1]].start_s - record.calls[calls[0]].start_s
    skew_s = communication_s = 0.0
    for call, ready in zip(record.calls[slice(*calls)], ready_s, strict=True):
        waited_s = call.end_s - call.wait_s
        for_rank_s = min(max(ready - call.wait_s, 0.0), waited_s)
        skew_s += for_rank_s
        communication_s += waited_s - for_rank_s + (call.issued_s - call.start_s)
    data_s = sum(record.data_s[slice(*iterations)])
    compute_s = whole_s - skew_s - communication_s - data_s
    return Parts(compute_s, communication_s, data_s, skew_s).times(1 / count)


def _needed_s(rows: Sequence[Mapping[str, Any]]) -> float:
    """How long a run takes that has enough iterations."""
    if not rows:
        return 0.0
    last_s = value(rows[-1], "time/iteration_s")
    return value(rows[0], "time_s") + (LEAST_ITERATIONS + 3) * last_s

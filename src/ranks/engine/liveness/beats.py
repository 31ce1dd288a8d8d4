"""The file in which ranks show that they live: one row of int64 for each, in memory that the launcher shares.

A rank writes its row with plain stores, and the launcher reads it. No lock is taken: a reader may see a row between
two stores, so it acts only on rows that have not changed for a while.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from ranks.engine.liveness.phases import Phase, limit_s


class Field(IntEnum):
    """The index of each number in a row. After the last one follows the longest silence of each phase (ns)."""

    PID = 0
    """0 until the rank has opened the file."""
    PHASE = 1
    ITERATION = 2
    """The number of finished iterations of its run."""
    STEPS = 3
    """Updates begun."""
    BEATS = 4
    """Signs of progress."""
    BEAT_NS = 5
    """`time.monotonic_ns` of the last one."""
    COLLECTIVES = 6
    """Collectives entered."""
    COLLECTIVE = 7
    """Which one it entered last (`Collective`)."""
    WAITING = 8
    """1 while the host waits for a collective."""
    WORKER = 9
    """The process id of the worker (of an environment, of data) that the rank waits for, else 0."""
    WORKER_ITEM = 10
    """The id of that environment, or of the item that the worker loads."""
    STACKS = 11
    """1 once the rank writes its Python stack to a file at `STACK_SIGNAL`."""
    COMPUTE_NS = 12
    """The time of training up to the begin of this iteration, by `Account`: own work."""
    DATA_NS = 13
    SEND_NS = 14
    WAIT_NS = 15
    SHARD = 16
    """The shard at which the newest forward pass begins."""
    OFFSET = 17
    """The item of that shard, from 0."""
    BATCHES_READY = 18
    """Micro-batches that workers had gathered when the loop asked for its newest batch, of BATCHES_AHEAD."""
    BATCHES_AHEAD = 19
    """Micro-batches that the workers were to read ahead; 0 without workers."""
    SLOWEST_NS = 20


class Collective(IntEnum):
    """The kinds of collectives. In a correct program the n-th one has the same kind on every rank."""

    NONE = 0
    ALL_REDUCE = 1
    ALL_TO_ALL = 2
    ALL_GATHER = 3
    BROADCAST = 4
    GATHER_OBJECTS = 5
    SUM_HOST = 6
    MAX_HOST = 7
    JOIN = 8

    @property
    def words(self) -> str:
        """Its name in a sentence."""
        return self.name.lower().replace("_", " ")


ROW = 32
"""Numbers of a row: 256 bytes, so that no two ranks write to the same cache line."""
ROW_BYTES = 8 * ROW
assert Field.SLOWEST_NS + len(Phase) <= ROW


@dataclass(frozen=True)
class Beat:
    """One rank's row."""

    numbers: tuple[int, ...]

    def __getitem__(self, field: Field) -> int:
        return self.numbers[field]

    @property
    def connected(self) -> bool:
        return self[Field.PID] != 0

    @property
    def phase(self) -> Phase:
        return Phase(self[Field.PHASE])

    @property
    def collective(self) -> Collective:
        return Collective(self[Field.COLLECTIVE])

    def slowest_s(self, phase: Phase) -> float:
        """The longest silence of this rank in a phase."""
        return self.numbers[Field.SLOWEST_NS + phase] / 1e9


def limit_of(phase: Phase, rows: Iterable[Beat], hang_timeout_s: float) -> float:
    """Seconds without progress after which a rank in this phase counts as hanging, given the rows of all ranks."""
    seen = [(row.slowest_s(phase), row.slowest_s(Phase.FIRST_ITERATION)) for row in rows]
    return limit_s(phase, hang_timeout_s, max(s for s, _ in seen), max(first for _, first in seen))


class BeatsFile:
    """The rows of all ranks of one attempt."""

    def __init__(self, path: Path, num_ranks: int, *, create: bool = False) -> None:
        """`create`: make the file, which only this user can open. Raises OSError."""
        flags = os.O_RDWR | (os.O_CREAT | os.O_EXCL if create else 0)
        descriptor = os.open(path, flags, 0o600)
        try:
            if create:
                os.ftruncate(descriptor, num_ranks * ROW_BYTES)
            self._memory = mmap.mmap(descriptor, num_ranks * ROW_BYTES)
        finally:
            os.close(descriptor)
        self.num_ranks = num_ranks

    def row(self, rank: int) -> memoryview:
        """The numbers of a rank, to write to."""
        return memoryview(self._memory).cast("q")[rank * ROW : (rank + 1) * ROW]

    def read(self) -> list[Beat]:
        """The rows of all ranks now."""
        numbers = memoryview(bytes(self._memory)).cast("q").tolist()
        return [Beat(tuple(numbers[rank * ROW : (rank + 1) * ROW])) for rank in range(self.num_ranks)]

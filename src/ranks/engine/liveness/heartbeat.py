"""The heartbeat of this process: its phase, counters and last sign of progress, for the launcher that watches it.

There is one object, `heartbeat`. Without a launcher it writes to memory that nobody reads.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from time import monotonic_ns

from ranks.engine.liveness import stacks
from ranks.engine.liveness.beats import ROW, BeatsFile, Field
from ranks.engine.liveness.phases import Phase
from ranks.engine.liveness.work_times import Account, WorkTimes

BEATS_VARIABLE = "RANKS_BEATS"
"""The environment variable with the path of the file of beats."""

_ITERATION, _STEPS, _BEATS, _BEAT_NS = Field.ITERATION.value, Field.STEPS.value, Field.BEATS.value, Field.BEAT_NS.value
_PHASE, _COLLECTIVES, _COLLECTIVE = Field.PHASE.value, Field.COLLECTIVES.value, Field.COLLECTIVE.value
_WAITING, _SLOWEST_NS = Field.WAITING.value, Field.SLOWEST_NS.value
_BATCHES_READY, _BATCHES_AHEAD = Field.BATCHES_READY.value, Field.BATCHES_AHEAD.value
_SHARD, _OFFSET, _TRAIN = Field.SHARD.value, Field.OFFSET.value, Phase.TRAIN.value
_WAITING_FOR_DATA = Phase.WAITING_FOR_DATA.value
_COMPUTE_NS, _DATA_NS = Field.COMPUTE_NS.value, Field.DATA_NS.value
_SEND_NS, _WAIT_NS = Field.SEND_NS.value, Field.WAIT_NS.value
_COMPUTE, _DATA = Account.COMPUTE.value, Account.DATA.value
_SEND, _WAIT = Account.SEND.value, Account.WAIT.value


class Heartbeat:
    """Writes the row of this rank. All methods are a few stores; none takes a lock or a system call but the clock."""

    def __init__(self) -> None:
        self._row = memoryview(bytearray(8 * ROW)).cast("q")
        self._last_ns = monotonic_ns()
        self._phase: int = Phase.START.value  # plain integers: those of an enum are slower to index with
        self._iteration_phase: int = Phase.FIRST_ITERATION.value
        self._slowest_ns = [0] * len(Phase)
        self._beats = self._collectives = 0
        self._waiting = _Waiting(self)
        self._times = WorkTimes()

    def connect(self, environ: Mapping[str, str] = os.environ) -> None:
        """Write to the launcher's file from now on, and write the Python stack to a file when it asks for it.

        Does nothing where no launcher watches this process, or where the file cannot be opened.
        """
        path = environ.get(BEATS_VARIABLE)
        if path is None or self._row[Field.PID] == os.getpid():
            return
        with contextlib.suppress(OSError, ValueError):
            row = BeatsFile(Path(path), int(environ["WORLD_SIZE"])).row(int(environ["RANK"]))
            row[:] = self._row
            self._row = row
            self._last_ns = monotonic_ns()  # a forked process still has that of the process that it came from
            row[Field.STACKS] = int(stacks.register(environ))
            self.beat()
            row[Field.PID] = os.getpid()

    @property
    def watched(self) -> bool:
        """Whether a launcher reads the row of this process."""
        return self._row[Field.PID] == os.getpid()

    @property
    def progress(self) -> tuple[int, int]:
        """Grows with every sign of progress."""
        return self._beats, self._collectives

    @property
    def phase(self) -> Phase:
        """What this process does."""
        return Phase(self._phase)

    @property
    def slowest_s(self) -> float:
        """The longest silence of this process in its present phase so far."""
        return self._slowest_ns[self._phase] / 1e9

    def beat(self) -> None:
        """Show progress."""
        now_ns, row, phase = monotonic_ns(), self._row, self._phase
        silence_ns = now_ns - self._last_ns
        if silence_ns > self._slowest_ns[phase]:
            self._slowest_ns[phase] = row[_SLOWEST_NS + phase] = silence_ns
        self._last_ns = row[_BEAT_NS] = now_ns
        self._beats = row[_BEATS] = self._beats + 1

    def step(self) -> None:
        """An update begins."""
        if self._phase != self._iteration_phase:
            self.enter(self._iteration_phase)
        else:
            self.beat()
        self._row[_STEPS] += 1

    def enter(self, phase: int) -> None:
        """The rank begins another phase."""
        self.beat()
        self._phase = self._row[_PHASE] = int(phase)
        if self._phase == _WAITING_FOR_DATA:
            self._times.switch(_DATA)
        else:
            self._times.train(self._phase == _TRAIN)

    def iteration(self, finished: int, *, first: bool) -> None:
        """An iteration begins when `finished` of them are finished. `first`: of this session."""
        self._iteration_phase = (Phase.FIRST_ITERATION if first else Phase.TRAIN).value
        self.enter(self._iteration_phase)
        self._row[_ITERATION] = finished
        row, total_ns = self._row, self._times.total_ns
        row[_COMPUTE_NS], row[_DATA_NS] = total_ns[_COMPUTE], total_ns[_DATA]
        row[_SEND_NS], row[_WAIT_NS] = total_ns[_SEND], total_ns[_WAIT]

    def may_evaluate(self) -> None:
        """An evaluation may follow, until the next update or the end of the iteration."""
        self.enter(Phase.EVALUATE)

    def finish(self, finished: int) -> None:
        """The loop has ended after `finished` iterations."""
        self._row[_ITERATION] = finished
        self.enter(Phase.FINISH)

    @contextmanager
    def during(self, phase: Phase) -> Generator[None]:
        """Be in another phase inside the block, then in the one before."""
        before = self._phase
        self.enter(phase)
        try:
            yield
        finally:
            self.enter(before)

    def micro_batch(self, shard: int, offset: int) -> None:
        """A forward pass begins at this item of this shard."""
        self._row[_SHARD], self._row[_OFFSET] = shard, offset

    # Where the time goes ----------------------------------------------------------------------------------------------

    def loads(self) -> None:
        """The rank begins to load items."""
        self._times.switch(_DATA)

    def loaded(self) -> None:
        self._times.switch(_COMPUTE)

    def loading_queue(self, ready: int, ahead: int) -> None:
        """The loop asks for a batch. Workers have gathered `ready` of `ahead` micro-batches that they read ahead."""
        self._row[_BATCHES_READY], self._row[_BATCHES_AHEAD] = ready, ahead

    def host_counts(self, counts: bool) -> None:
        """Whether the time of the host counts from now on; in an update on CUDA that of the device counts."""
        self._times.count_host(counts)

    def device_worked(self, seconds: Mapping[Account, float]) -> None:
        """What the device's clock says of an update, by `Account`."""
        self._times.add(seconds)

    # Collectives ------------------------------------------------------------------------------------------------------

    def start_collective(self, kind: int) -> None:
        """A collective was started; nothing waits for it yet."""
        self._row[_COLLECTIVE] = kind
        self._collectives = self._row[_COLLECTIVES] = self._collectives + 1

    def sends(self) -> None:
        """The rank begins to start the sum of gradients."""
        self._times.switch(_SEND)

    def sent(self) -> None:
        self._times.switch(_COMPUTE)

    def wait(self, account: int = _WAIT) -> None:
        """The host begins to wait for the other ranks or the device. `account`: what its time goes to."""
        self._times.switch(account)
        self._row[_WAITING] = 1

    def wait_over(self) -> None:
        self._row[_WAITING] = 0
        self._times.switch(_COMPUTE)

    def collective(self, kind: int) -> AbstractContextManager[None]:
        """The host takes part in a collective inside the block."""
        self.start_collective(kind)
        self.wait()
        return self._waiting

    # Workers ----------------------------------------------------------------------------------------------------------

    @contextmanager
    def waits_for_worker(self, pid: int, item: int) -> Generator[None]:
        """The rank waits for a worker inside the block. `item`: the id of its environment, or of the item that it
        loads."""
        self._row[Field.WORKER_ITEM], self._row[Field.WORKER] = item, pid
        try:
            yield
        finally:
            self._row[Field.WORKER] = 0


class _Waiting:
    """Ends a wait at the end of a block; a generator would cost several microseconds."""

    def __init__(self, owner: Heartbeat) -> None:
        self._owner = owner

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        self._owner.wait_over()


heartbeat = Heartbeat()
"""Of this process."""

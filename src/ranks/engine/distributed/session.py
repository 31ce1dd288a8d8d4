"""What an open run shares with its learners and with long phases (rollouts, evaluations)."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ranks.engine.liveness.heartbeat import heartbeat
from ranks.engine.liveness.phases import Phase


def _counter() -> dict[str, float]:
    return defaultdict(float)


@dataclass
class PhaseTimes:
    """Where one iteration's time goes. `seconds`: by phase; `items`: how many of each kind were
    processed."""

    seconds: dict[str, float] = field(default_factory=_counter)
    items: dict[str, float] = field(default_factory=_counter)


def _drop(event: dict[str, Any]) -> None:
    """The events of a world without a run."""


def _unreported(part: str, share: float) -> None:
    """The progress of ranks other than the first, and of a world without a run."""


@dataclass
class Session:
    """One session of a run, from `Run.open` to its end. `Run` makes it and owns it; `World.session`
    holds it.

    A world without an open run has a detached session: events and times are dropped, and nothing is
    requested.
    """

    attached: bool = False
    """Whether a run is open. A signal then waits for the next boundary; otherwise it ends the
    process at once."""
    long_iterations: bool = False
    """Whether `World.check_stop` may raise Stopped inside an iteration."""
    emit: Callable[[dict[str, Any]], None] = _drop
    """Append an event to events.jsonl, on the first rank."""
    clock_requests: Callable[[], tuple[bool, bool]] = lambda: (False, False)
    """(a checkpoint is due, the time is up), by this rank's clock."""
    finite_checkpoint: Callable[[], Path | None] = lambda: None
    """The newest checkpoint with finite weights."""
    saved: Callable[[], int] = lambda: -1
    """The iteration of the newest checkpoint, -1 without one."""
    report_progress: Callable[[str, float], None] = _unreported
    """See `progress`."""
    before_first_update: Callable[[float], None] | None = None
    """Where set, the learner calls it once, before its first update, with the seconds that one
    update takes."""
    times: PhaseTimes = field(default_factory=PhaseTimes)
    """Of the current iteration; a new object for each."""
    kept: set[int] = field(default_factory=set[int])
    """`id` of each object whose state the run's checkpoints hold: it adds itself where its state is read or loaded, as
    at the start of a run. Also of those that are not held and were named in a warning."""
    _drains: dict[Callable[[], None], None] = field(default_factory=dict[Callable[[], None], None], init=False)
    _phase: str | None = field(default=None, init=False)

    def note(self, text: str) -> None:
        """One line for the person who watches."""
        self.emit({"event": "note", "text": text})

    def warn(self, text: str) -> None:
        """One line for the person who watches, marked as a warning."""
        self.emit({"event": "warning", "text": text})

    def warn_unless_kept(self, used: object, name: str) -> None:
        """Warn once where a run is open and its checkpoints do not hold the state of `used`."""
        if self.attached and id(used) not in self.kept:
            self.kept.add(id(used))
            lost = f"{name} is not in keep, so a resumed run begins without its state"
            self.warn(f"{lost}: name it, or what contains it, in Run.open(keep=dict(...))")

    @contextmanager
    def timed(self, phase: str) -> Generator[None]:
        """Count the time of this block as `phase`; the time of a block inside another one counts
        for the outer one."""
        if self._phase is not None:
            yield
            return
        times, start, self._phase = self.times, time.perf_counter(), phase
        try:
            with heartbeat.during(Phase.EVALUATE) if phase == "evaluation" else nullcontext():
                yield
        finally:
            times.seconds[phase] += time.perf_counter() - start
            self._phase = None

    def count(self, item: str, number: float) -> None:
        """Add to the items of this iteration; metrics.jsonl shows them as time/ITEM_per_second."""
        self.times.items[item] += number

    def progress(self, part: str, done: float, total: float) -> None:
        """Say how far a part of this iteration is, such as 300 of 1,600 games. It costs next to nothing: call it often.
        The numbers of the first rank count."""
        if total > 0:
            self.report_progress(part, done / total)

    def register(self, drain: Callable[[], None]) -> None:
        """A learner's method that reads its last vote; `drain` calls it."""
        self._drains[drain] = None

    def drain(self) -> None:
        """Read every vote that is still under way; all ranks then know the same."""
        for drain in list(self._drains):
            drain()

"""Whether to start all ranks again after a failure."""

from __future__ import annotations

from ranks.launch.failures.failure import RESTARTED, Failure


class Restarts:
    """Counts starts without progress. `best`: the progress before the first start."""

    def __init__(self, max_restarts: int, best: int, *, foreign: bool) -> None:
        """`foreign`: restart after any failure, since a script's progress and kinds of failure are unknown."""
        self.max_restarts, self.foreign = max_restarts, foreign
        self._best, self._without_progress = best, 0
        self._previous: Failure | None = None
        """The failure of the previous attempt, if it failed at the start."""

    def allows(self, failure: Failure) -> bool:
        """Whether a failure of this kind is followed by a restart at all."""
        return self.foreign or failure.kind in RESTARTED

    def reason_to_give_up(self, failure: Failure, progress: int) -> str:
        """Why not to start again after this failure; empty to start again. Call it once for each failure."""
        self._without_progress = 1 if progress > self._best else self._without_progress + 1
        self._best = max(self._best, progress)
        previous, self._previous = self._previous, failure if failure.at_start else None
        if self._without_progress > self.max_restarts:
            saved = "" if self.foreign else " without progress"
            return f"{self._without_progress} starts in a row failed{saved}"
        if self.foreign and previous is not None and failure.at_start and failure.same_cause(previous):
            return "2 starts in a row failed at once with the same error"
        return ""

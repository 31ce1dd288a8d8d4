"""When to stop a run, and when to end its machine: pure functions of what the watcher sees."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ranks.renting.autodown.run_state import RunState


@dataclass(frozen=True)
class Rules:
    """Limits in seconds."""

    budget_s: float = math.inf
    """The machine is ended after it, also where the run does not end when it is stopped."""
    stuck_s: float = 3600.0
    """A run without progress for so long is stopped. Its evaluation, its export and what follows may take so long."""
    keep_s: float = 3600.0
    """How long the machine waits for `ranks pull` when the run is over."""
    save_s: float = 600.0
    """How long a run may take to save when it is stopped. It is killed after it."""
    restart_s: float = 300.0
    """How long a launcher that was killed may stay away."""
    start_s: float = 3600.0
    """How long the run may take to appear."""

    @property
    def run_s(self) -> float:
        """When the run is stopped, so that it can save and come home before the budget is spent."""
        return max(0.0, self.budget_s - self.keep_s - self.save_s)


@dataclass(frozen=True)
class Seen:
    """`started`: the run has been alive, or has written, since the watch began; before that, the files may be those of
    an earlier machine. `elapsed_s`: since the watch began. `silent_s`: since the last progress. `down_s`: for how long
    no process of the run has been alive. `stopping_s`: since the run was asked to stop, None where it was not."""

    run: RunState
    started: bool
    elapsed_s: float
    silent_s: float
    down_s: float
    stopping_s: float | None = None


@dataclass(frozen=True)
class Decision:
    """Reasons in words; empty where there is none."""

    stop_run: str = ""
    end_machine: str = ""


def decide(seen: Seen, rules: Rules) -> Decision:
    """What to do now. A run that is alive has its time to save before the machine is ended."""
    run = seen.run
    had_time = seen.stopping_s is not None and seen.stopping_s >= rules.save_s
    if seen.elapsed_s >= rules.budget_s and (had_time or not run.alive):
        return Decision(end_machine="the limit of time or cost is reached")
    if run.alive:
        if seen.elapsed_s >= rules.run_s:
            return Decision(stop_run="the limit of time or cost is near, and the run has to save and come home")
        if run.exists and seen.silent_s >= rules.stuck_s:
            return Decision(stop_run=f"no progress for {seen.silent_s / 60:.0f} minutes")
        if not run.exists and seen.elapsed_s >= rules.start_s:
            return Decision(stop_run=f"no run folder after {seen.elapsed_s / 60:.0f} minutes")
        return Decision()
    if not (run.exists and seen.started):
        late = seen.elapsed_s >= rules.start_s
        return Decision(end_machine=f"no run has begun within {seen.elapsed_s / 60:.0f} minutes" if late else "")
    if run.ended is None and seen.down_s < rules.restart_s:
        return Decision()
    if run.results_due and seen.down_s < rules.stuck_s:
        return Decision()
    over = f"the run {run.ended}" if run.ended is not None else "the run was killed"
    if run.pulled:
        return Decision(end_machine=f"{over}, and is at home")
    if seen.down_s >= rules.keep_s:
        return Decision(end_machine=f"{over}, and nobody has pulled it for {rules.keep_s / 60:.0f} minutes")
    return Decision()

"""Notices ranks that hang, from the rows that all ranks write (`engine/liveness`), and says which one and where.

A rank that hangs makes the others wait in their next collective. So the ranks that hold the run up are those that have
entered the fewest collectives. They hang when each of them has shown no progress for longer than its phase allows.
Waiting ranks are never counted. Time counts only while the launcher itself runs, so a suspended machine is no hang.

Long before that, after a limit that is learnt from the run itself (`silences.py`), the same ranks are named as slow or
stuck. That is a line and a record; nothing else follows.
"""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ranks.engine.liveness.beats import Beat, BeatsFile, Field, limit_of
from ranks.engine.liveness.phases import Phase
from ranks.engine.liveness.process_state import process_state
from ranks.engine.liveness.stacks import STACK_SIGNAL, StackFile
from ranks.launch.failures.failure import Failure, short
from ranks.launch.supervision.evidence import (
    Evidence,
    Frame,
    as_lines,
    call_site,
    guilty_of,
    why_no_stack,
)
from ranks.launch.supervision.notice import Notice
from ranks.launch.supervision.rows import holding_up, holding_up_beyond, loops_differ, place
from ranks.launch.supervision.silences import SilenceHistory

MAX_TICK_S = 3.0
"""Most time that counts between two looks."""
STACK_S = 2.0
"""How long to wait for the stacks of the ranks."""

DEADLOCK = "deadlock"
"""The type of a hang in which all ranks wait for each other."""


class Watchdog:
    """Watches the ranks of one attempt."""

    def __init__(
        self,
        beats: BeatsFile,
        stacks: Mapping[int, Path],
        timeout_s: float,
        *,
        foreign: bool,
        notice: Callable[[Notice], None] = lambda notice: None,
        history: SilenceHistory | None = None,
        compare: Callable[[Mapping[int, Beat], float], list[Notice]] = lambda rows, now_s: [],
    ) -> None:
        """`stacks`: rank -> the file to which it writes its stack. `foreign`: ranks may have no heartbeat at all.
        `notice`: is called with what is said of slow ranks. `history`: of the run, kept over attempts. `compare`:
        notices of ranks that are unlike the others, from the rows of the running ranks at each look."""
        self.beats, self.timeout_s, self.foreign = beats, timeout_s, foreign
        self._stacks = {rank: StackFile(path) for rank, path in stacks.items()}
        self._rows = beats.read()
        self._silence_s = [0.0] * beats.num_ranks
        self._looked_s = time.monotonic()
        self._suspected = ""
        self._notice = notice
        self._history = history if history is not None else SilenceHistory()
        self._compare = compare
        self._named: dict[int, float] = {}
        """The ranks that were named as slow and show no progress yet, with their longest silence."""
        self.reported: frozenset[int] = frozenset()
        """The ranks whose hang was reported and still lasts."""

    def look(self, pids: Mapping[int, int], now_s: float) -> Failure | None:
        """What is wrong with the running ranks, None where nothing is. `pids`: rank -> process id.

        Call it about once a second.
        """
        rows, before = self.beats.read(), self._rows
        elapsed_s, self._looked_s, self._rows = min(now_s - self._looked_s, MAX_TICK_S), now_s, rows
        for rank, row in enumerate(rows):
            if row != before[rank]:
                self._learn(before[rank], row, self._silence_s[rank] + elapsed_s)
            self._silence_s[rank] = self._silence_s[rank] + elapsed_s if row == before[rank] else 0.0
        running = {rank: rows[rank] for rank in pids}
        if not running or (self.foreign and not any(row.connected for row in running.values())):
            return None
        self.reported = frozenset(r for r in self.reported if r in running and self._silence_s[r] > 0)
        problem = loops_differ(running)
        suspected, self._suspected = self._suspected, problem[1] if problem else ""
        if problem is not None and suspected == problem[1]:  # on two looks: a row may be read between two stores
            return Failure(problem[0], "user", "loops differ", problem[1], time_s=time.time())
        self._say_who_goes_on(running)
        for notice in self._compare(running, now_s):
            self._notice(notice)
        hanging = holding_up(running, self._silence_s, self.timeout_s)
        if not hanging:
            self._name_slow(running, pids)
            return None
        if self.reported.issuperset(hanging):
            return None
        hang = self._explain(hanging, running, pids)
        self.reported = frozenset({hang.rank} if running[hang.rank][Field.WORKER] else hanging)
        return hang

    def _learn(self, before: Beat, after: Beat, silence_s: float) -> None:
        """A rank has made progress. A rank that waited for others has had no silence of its own."""
        if not before.connected:
            return
        beats = max(0, after[Field.BEATS] - before[Field.BEATS])
        own_s = 0.0 if before[Field.WAITING] else silence_s
        self._history.add(before.phase, beats, own_s)
        self._history.passed(after)

    def _name_slow(self, rows: Mapping[int, Beat], pids: Mapping[int, int]) -> None:
        """Name the ranks that hold the others up for longer than the run's own history explains."""
        slow = holding_up_beyond(rows, self._silence_s, lambda rank: self._history.limit_s(rows[rank].phase))
        if not slow or not self._named.keys().isdisjoint(slow):
            return
        found = self._explain(slow, rows, pids)
        row = rows[found.rank]
        self._named = {rank: self._silence_s[rank] for rank in slow}
        at = f" (at {short(found.where)})" if found.where else ""
        dead_s = limit_of(row.phase, rows.values(), self.timeout_s)
        dead = f"; it counts as dead after {dead_s:.0f} s" if math.isfinite(dead_s) else ""
        facts = {
            "phase": row.phase.words,
            "iteration": row[Field.ITERATION],
            "update": row[Field.STEPS],
            "shard": row[Field.SHARD],
            "where": found.where,
            "silence_s": round(self._silence_s[found.rank], 1),
        }
        if found.type == DEADLOCK:  # no rank is more to blame than the others
            self._notice(Notice("slow_rank", None, f"the ranks are stuck: {found.message}{dead}", facts))
            return
        text = f"rank {found.rank} is slow or stuck{at}: {found.message}{dead}"
        self._notice(Notice("slow_rank", found.rank, text, facts))

    def _say_who_goes_on(self, rows: Mapping[int, Beat]) -> None:
        for rank, silence_s in list(self._named.items()):
            self._named[rank] = max(silence_s, self._silence_s[rank])
        over = [rank for rank in self._named if rank not in rows or self._silence_s[rank] == 0]
        if over:
            rank, self_s = over[0], self._named[over[0]]
            self._named = {}
            if rank in rows:
                facts = {"phase": rows[rank].phase.words, "silence_s": round(self_s, 1)}
                self._notice(Notice("rank_goes_on", rank, f"rank {rank} goes on after {self_s:.0f} s", facts))

    def restart_clocks(self) -> None:
        """Forget all silence so far: the ranks were stopped, and continue now."""
        self._silence_s, self._named = [0.0] * len(self._silence_s), {}
        self._looked_s = time.monotonic()

    def quiet_s(self, ranks: Sequence[int]) -> float:
        """Seconds since any of these ranks showed progress."""
        return min((self._silence_s[rank] for rank in ranks), default=0.0)

    def slowest_s(self, ranks: Sequence[int]) -> float:
        """The longest silence so far in a phase that one of these ranks is in now."""
        phases = {self._rows[rank].phase for rank in ranks}
        return max((row.slowest_s(phase) for row in self._rows for phase in phases), default=0.0)

    def works(self, rank: int) -> bool:
        """Whether a rank has, as far as its row says, not yet ended its loop."""
        return self.beats.read()[rank].phase not in (Phase.FINISH, Phase.LEFT)

    def _explain(self, hanging: Sequence[int], rows: Mapping[int, Beat], pids: Mapping[int, int]) -> Failure:
        stacks = self._ask_for_stacks(rows, pids)
        seen = {rank: Evidence(row, tuple(stacks[rank]), process_state(pids[rank])) for rank, row in rows.items()}
        guilty = guilty_of(hanging, seen)
        rank = guilty[0]
        worker = rows[rank][Field.WORKER]
        if worker:
            return self._explain_worker(rank, seen[rank], worker)
        kind = "hang"
        silence = f"no progress for {self._silence_s[rank]:.0f} s {place(seen[rank].beat)}"
        if len(guilty) > 1 and all(seen[r].waits_for_others for r in guilty):
            each = "; ".join(f"rank {r} in {call_site(seen[r])}" for r in guilty)
            kind, message = DEADLOCK, f"{silence}; all ranks wait for each other: {each}"
        else:
            waiting = [r for r in rows if r not in guilty]
            silent = why_no_stack(seen[rank])
            message = "; ".join([silence, *([f"it {silent}"] if silent else []), *_others(guilty[1:], waiting)])
        return Failure(
            rank, "hang", kind, message, seen[rank].where, frames=as_lines(seen[rank].frames), time_s=time.time()
        )

    def _explain_worker(self, rank: int, evidence: Evidence, worker: int) -> Failure:
        """The rank waits for a worker, which hangs: the process of an environment, or one that loads data."""
        with contextlib.suppress(OSError):
            os.kill(worker, STACK_SIGNAL)
        frames = self._wait_for_frames({rank})[rank]
        seen = Evidence(evidence.beat, tuple(frames), process_state(worker))
        item = evidence.beat[Field.WORKER_ITEM]
        data = evidence.beat.phase == Phase.WAITING_FOR_DATA
        doing = f", which loads item {item}" if data else f" of environment {item}"
        whom = f"it waits for the process {worker}{doing}"
        silent = why_no_stack(seen)
        message = (
            f"no progress for {self._silence_s[rank]:.0f} s {place(evidence.beat)}; {whom}"
            f"{f', which {silent}' if silent else ''}"
        )
        return Failure(rank, "hang", "hang", message, seen.where, frames=as_lines(seen.frames), time_s=time.time())

    def _ask_for_stacks(self, rows: Mapping[int, Beat], pids: Mapping[int, int]) -> dict[int, list[Frame]]:
        asked = {rank for rank, row in rows.items() if row[Field.STACKS]}
        for rank in asked:
            with contextlib.suppress(OSError):
                os.kill(pids[rank], STACK_SIGNAL)
        return self._wait_for_frames(asked) | {rank: [] for rank in rows if rank not in asked}

    def _wait_for_frames(self, ranks: set[int]) -> dict[int, list[Frame]]:
        """The stacks of these ranks; empty for a rank that does not write one in time."""
        found: dict[int, list[Frame]] = {rank: [] for rank in ranks}
        deadline_s = time.monotonic() + STACK_S
        while not all(found.values()) and time.monotonic() < deadline_s:
            time.sleep(0.1)  # also the time that a stack takes to be complete
            for rank in ranks:
                found[rank] = found[rank] or self._stacks[rank].new_frames()
        return found


def _others(also: Sequence[int], waiting: Sequence[int]) -> list[str]:
    text = [f"rank {rank} hangs too" for rank in also]
    if waiting:
        plural = len(waiting) > 1
        names = ", ".join(map(str, waiting))
        text.append(f"rank{'s' if plural else ''} {names} wait{'' if plural else 's'} for it")
    return text

"""Notices ranks that hang, from the rows that all ranks write (`engine/liveness`), and says which one and where.

A rank that hangs makes the others wait in their next collective. So the ranks that hold the run up are those that have
entered the fewest collectives. They hang when each of them has shown no progress for longer than its phase allows.
Waiting ranks are never counted. Time counts only while the launcher itself runs, so a suspended machine is no hang.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ranks.engine.liveness.beats import Beat, BeatsFile, Field, limit_of
from ranks.engine.liveness.phases import Phase
from ranks.engine.liveness.stacks import STACK_SIGNAL, StackFile
from ranks.launch.failures.failure import Failure, short
from ranks.launch.failures.report import is_own_code

MAX_TICK_S = 3.0
"""Most time that counts between two looks."""
STACK_S = 2.0
"""How long to wait for the stacks of the ranks."""
Frame = tuple[str, int, str]


@dataclass(frozen=True)
class Evidence:
    """What one rank does, seen from outside. `state`: of its process, one letter as in /proc."""

    beat: Beat
    frames: tuple[Frame, ...] = ()
    state: str = ""

    @property
    def where(self) -> str:
        """file:line of the innermost frame that is the user's or this package's, else of the innermost one."""
        own = next((frame for frame in self.frames if is_own_code(frame[0])), (*self.frames, None)[0])
        return f"{own[0]}:{own[1]}" if own is not None else ""

    @property
    def stopped(self) -> bool:
        return self.state in ("T", "t")

    @property
    def waits_for_others(self) -> bool:
        """Whether it waits in a collective: by its stack, and by its row where the stack does not contradict it."""
        file = self.frames[0][0].replace(os.sep, "/") if self.frames else ""
        calls_torch = not file or "/torch/" in file or "/ranks/engine/" in file
        return "/torch/distributed/" in file or (calls_torch and self.beat[Field.WAITING] == 1)


class Watchdog:
    """Watches the ranks of one attempt."""

    def __init__(self, beats: BeatsFile, stacks: Mapping[int, Path], timeout_s: float, *, foreign: bool) -> None:
        """`stacks`: rank -> the file to which it writes its stack. `foreign`: ranks may have no heartbeat at all."""
        self.beats, self.timeout_s, self.foreign = beats, timeout_s, foreign
        self._stacks = {rank: StackFile(path) for rank, path in stacks.items()}
        self._rows = beats.read()
        self._silence_s = [0.0] * beats.num_ranks
        self._looked_s = time.monotonic()
        self._suspected = ""
        self.reported: frozenset[int] = frozenset()
        """The ranks whose hang was reported and still lasts."""

    def look(self, pids: Mapping[int, int], now_s: float) -> Failure | None:
        """What is wrong with the running ranks, None where nothing is. `pids`: rank -> process id.

        Call it about once a second.
        """
        rows, before = self.beats.read(), self._rows
        elapsed_s, self._looked_s, self._rows = min(now_s - self._looked_s, MAX_TICK_S), now_s, rows
        for rank, row in enumerate(rows):
            self._silence_s[rank] = self._silence_s[rank] + elapsed_s if row == before[rank] else 0.0
        running = {rank: rows[rank] for rank in pids}
        if not running or (self.foreign and not any(row.connected for row in running.values())):
            return None
        self.reported = frozenset(r for r in self.reported if r in running and self._silence_s[r] > 0)
        problem = loops_differ(running)
        suspected, self._suspected = self._suspected, problem[1] if problem else ""
        if problem is not None and suspected == problem[1]:  # on two looks: a row may be read between two stores
            return Failure(problem[0], "user", "loops differ", problem[1], time_s=time.time())
        hanging = holding_up(running, self._silence_s, self.timeout_s)
        if not hanging or self.reported.issuperset(hanging):
            return None
        return self._explain(hanging, running, pids)

    def restart_clocks(self) -> None:
        """Forget all silence so far: the ranks were stopped, and continue now."""
        self._silence_s = [0.0] * len(self._silence_s)
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
        self.reported = frozenset(hanging)
        silence = f"no progress for {self._silence_s[rank]:.0f} s {place(seen[rank].beat)}"
        if len(guilty) > 1 and all(seen[r].waits_for_others for r in guilty):
            each = "; ".join(f"rank {r} in {call_site(seen[r])}" for r in guilty)
            message = f"{silence}; all ranks wait for each other: {each}"
        else:
            waiting = [r for r in rows if r not in guilty]
            silent = _cannot_answer(seen[rank])
            message = "; ".join([silence, *([f"it {silent}"] if silent else []), *_others(guilty[1:], waiting)])
        return Failure(
            rank, "hang", "hang", message, seen[rank].where, frames=_as_lines(seen[rank].frames), time_s=time.time()
        )

    def _explain_worker(self, rank: int, evidence: Evidence, worker: int) -> Failure:
        """The rank waits for a worker, which hangs: the process of an environment, or one that loads data."""
        self.reported = frozenset({rank})
        with contextlib.suppress(OSError):
            os.kill(worker, STACK_SIGNAL)
        frames = self._wait_for_frames({rank})[rank]
        seen = Evidence(evidence.beat, tuple(frames), process_state(worker))
        item = evidence.beat[Field.WORKER_ITEM]
        data = evidence.beat.phase == Phase.WAITING_FOR_DATA
        doing = f", which loads item {item}" if data else f" of environment {item}"
        whom = f"it waits for the process {worker}{doing}"
        silent = _cannot_answer(seen)
        message = (
            f"no progress for {self._silence_s[rank]:.0f} s {place(evidence.beat)}; {whom}"
            f"{f', which {silent}' if silent else ''}"
        )
        return Failure(rank, "hang", "hang", message, seen.where, frames=_as_lines(seen.frames), time_s=time.time())

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


# Pure functions of the rows -------------------------------------------------------------------------------------------


def holding_up(rows: Mapping[int, Beat], silence_s: Sequence[float], timeout_s: float) -> list[int]:
    """The ranks that hold the others up, where each of them is silent for longer than its phase allows; else none."""
    fewest = min(row[Field.COLLECTIVES] for row in rows.values())
    behind = [rank for rank, row in rows.items() if row[Field.COLLECTIVES] == fewest]

    def overdue(rank: int) -> bool:
        return silence_s[rank] > limit_of(rows[rank].phase, rows.values(), timeout_s)

    return behind if all(overdue(rank) for rank in behind) else []


def guilty_of(hanging: Sequence[int], seen: Mapping[int, Evidence]) -> list[int]:
    """Of the ranks that hold the others up: those that are stopped, else those that do not wait for others, else all.

    Ranks that have entered equally many collectives can all be inside the same one.
    """
    stopped = [rank for rank in hanging if seen[rank].stopped]
    busy = [rank for rank in hanging if not seen[rank].waits_for_others]
    return stopped or busy or list(hanging)


def loops_differ(rows: Mapping[int, Beat]) -> tuple[int, str] | None:
    """(rank, what is wrong) where one rank has ended its loop and another one still works in the same loop."""
    for rank, row in rows.items():
        if row.phase != Phase.FINISH:
            continue
        for other, theirs in rows.items():
            later = theirs[Field.ITERATION] > row[Field.ITERATION] or theirs[Field.STEPS] > row[Field.STEPS]
            if later and theirs.phase not in (Phase.FINISH, Phase.LEFT):
                return rank, (
                    f"its loop ended after iteration {row[Field.ITERATION]}, but rank {other} goes on with iteration "
                    f"{theirs[Field.ITERATION] + 1}: end the loop on all ranks together"
                )
    return None


def place(beat: Beat) -> str:
    """Where in the run a rank is, in words."""
    if not beat.connected:
        return "in the phase start"
    if beat.phase in (Phase.START, Phase.LOAD):
        return f"in the phase {beat.phase.words}"
    return f"in the phase {beat.phase.words}, after iteration {beat[Field.ITERATION]}"


def call_site(evidence: Evidence) -> str:
    at = f" at {short(evidence.where)}" if evidence.where else ""
    return f"{evidence.beat.collective.words}{at}"


def process_state(pid: int) -> str:
    """The state of a process as one letter (R, S, D, T, Z), empty where the system does not tell (not Linux)."""
    if sys.platform != "linux":
        return ""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""


def _cannot_answer(evidence: Evidence) -> str:
    """Why there is no line of Python code, as a predicate; empty where there is one."""
    if evidence.frames:
        return ""
    if evidence.stopped:
        return f"is stopped ({signal.Signals.SIGSTOP.name} or a debugger)"
    if evidence.state == "D":
        return "waits inside the kernel, for a disk or a driver"
    return "does not answer"


def _others(also: Sequence[int], waiting: Sequence[int]) -> list[str]:
    text = [f"rank {rank} hangs too" for rank in also]
    if waiting:
        plural = len(waiting) > 1
        names = ", ".join(map(str, waiting))
        text.append(f"rank{'s' if plural else ''} {names} wait{'' if plural else 's'} for it")
    return text


def _as_lines(frames: Sequence[Frame]) -> tuple[str, ...]:
    """As in a traceback, outermost call first."""
    return tuple(f'  File "{file}", line {line}, in {name}' for file, line, name in reversed(frames))

"""What one rank does, seen from outside: its row, its Python stack and the state of its process."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ranks.engine.liveness.beats import Beat, Field
from ranks.engine.liveness.process_state import IS_STOPPED, STOPPED
from ranks.launch.failures.failure import short
from ranks.launch.failures.report import is_own_code

Frame = tuple[str, int, str]
"""(file, line, function)."""


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
    def caller(self) -> str:
        """As `where`, but of the code that called the engine, where some did: it says which collective this is."""
        files = [(file.replace(os.sep, "/"), line) for file, line, _ in self.frames if is_own_code(file)]
        return next((f"{file}:{line}" for file, line in files if "/ranks/engine/" not in file), self.where)

    @property
    def stopped(self) -> bool:
        return self.state in STOPPED

    @property
    def waits_for_others(self) -> bool:
        """Whether it waits in a collective: by its stack, and by its row where the stack does not contradict it."""
        file = self.frames[0][0].replace(os.sep, "/") if self.frames else ""
        calls_torch = not file or "/torch/" in file or "/ranks/engine/" in file
        return "/torch/distributed/" in file or (calls_torch and self.beat[Field.WAITING] == 1)


def guilty_of(hanging: Sequence[int], seen: Mapping[int, Evidence]) -> list[int]:
    """Of the ranks that hold the others up: those that are stopped, else those that do not wait for others, else all.

    Ranks that have entered equally many collectives can all be inside the same one.
    """
    stopped = [rank for rank in hanging if seen[rank].stopped]
    busy = [rank for rank in hanging if not seen[rank].waits_for_others]
    return stopped or busy or list(hanging)


def call_site(evidence: Evidence) -> str:
    """The collective that a rank waits in, and the line that called it."""
    at = f" at {short(evidence.caller)}" if evidence.caller else ""
    return f"{evidence.beat.collective.words}{at}"


def why_no_stack(evidence: Evidence) -> str:
    """Why there is no line of Python code, as a predicate; empty where there is one."""
    if evidence.frames:
        return ""
    if evidence.stopped:
        return IS_STOPPED
    if evidence.state == "D":
        return "waits inside the kernel, for a disk or a driver"
    return "does not answer"


def as_lines(frames: Sequence[Frame]) -> tuple[str, ...]:
    """As in a traceback, outermost call first."""
    return tuple(f'  File "{file}", line {line}, in {name}' for file, line, name in reversed(frames))

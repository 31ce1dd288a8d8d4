"""The clock: ranks compare times of files and of other machines."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ranks.hardware.doctor.doing import doing
from ranks.hardware.doctor.finding import Asked, Finding, ok, warning

WATCH_S, LOOK_S, STEADY_S = 3.0, 0.05, 0.01
"""How long the clock is watched and how often, and how close together both clocks must be asked."""
JUMP_S, SKEW_S, FUTURE_S = 0.2, 2.0, 60.0
"""How far the wall clock may differ from the steady one, the time of a new file from the clock, and a run's newest file
from the present."""


@dataclass(frozen=True)
class ClockFacts:
    """Seconds."""

    now: float
    """Since 1970."""
    jump_s: float
    """How much more the wall clock moved than the steady one, at most."""
    file_skew_s: float | None
    """The time of a new file in the runs folder, less the clock; None: none could be written."""
    newest_s: float
    """How far in the future the newest file of a run lies; negative: in the past."""
    code_s: float
    """How far in the future this program's own files lie."""


def measure(asked: Asked) -> ClockFacts:
    """Watch both clocks for a moment, and compare with the times of files."""
    jump_s = _largest_jump()
    folder = Path(asked.runs_dir)
    doing(f"the times of files in the runs folder {folder.absolute()}")
    existing = next(place for place in (folder.absolute(), *folder.absolute().parents) if place.is_dir())
    try:
        with tempfile.NamedTemporaryFile(dir=existing, prefix=".ranks-doctor-") as file:
            skew: float | None = os.fstat(file.fileno()).st_mtime - time.time()
    except OSError:
        skew = None
    rows = list[float]()
    for path in folder.glob("*/*.jsonl"):
        with suppress(OSError):  # a run that is being removed
            rows.append(path.stat().st_mtime)
    now = time.time()
    return ClockFacts(now, jump_s, skew, max(rows, default=0.0) - now, Path(__file__).stat().st_mtime - now)


def _largest_jump() -> float:
    """How far the difference of the two clocks moved from its first value. A look that was interrupted does not
    count."""
    apart, end = list[float](), time.monotonic() + WATCH_S
    while time.monotonic() < end or not apart:
        before, wall, after = time.monotonic(), time.time(), time.monotonic()
        if after - before < STEADY_S:
            apart.append(wall - after)
        time.sleep(LOOK_S)
    return max((one - apart[0] for one in apart), key=abs)


def judge(facts: ClockFacts, asked: Asked) -> Iterator[Finding]:
    """A clock that is right enough."""
    do = "set the clock: chronyc makestep, or timedatectl set-ntp true"
    date = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(facts.now))
    if facts.code_s > FUTURE_S:
        found = f"{date}, but the files of ranks are {facts.code_s / 86_400:.1f} days younger"
        yield warning("clock", found, "the present time", do)
    elif facts.newest_s > FUTURE_S:
        found = f"{date}, but a run in {asked.runs_dir} has written {facts.newest_s / 60:.0f} minutes later"
        yield warning("clock", found, "the present time", do)
    elif abs(facts.jump_s) > JUMP_S:
        yield warning("clock", f"it jumped by {facts.jump_s:.1f} s within {WATCH_S:g} s", "a steady clock", do)
    elif facts.file_skew_s is not None and abs(facts.file_skew_s) > SKEW_S:
        found = f"new files in {asked.runs_dir} are {facts.file_skew_s:+.0f} s off"
        yield warning("clock", found, "the same clock on the file server", do)
    else:
        yield ok("clock", date)

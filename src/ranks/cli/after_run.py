"""What follows the end of a run: an export, what the machine costs until it is ended, and the command of `--then`."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from ranks.engine.config import RunConfig, seconds
from ranks.errors import GaveUp, Stopped, UserError

INTERRUPTED = 130
RENTED = {"RUNPOD_POD_ID": "RunPod", "VAST_CONTAINERLABEL": "Vast.ai", "MODAL_TASK_ID": "Modal"}
"""Process variables by which a rented machine is known, and whose it is."""


@dataclass(frozen=True)
class Cost:
    """The flags of `ranks train` about money, and about the hours that it pays for."""

    price: float | None
    """Of the machine, an hour."""
    max_cost: float | None
    then: str | None
    max_hours: float | None = None

    def __post_init__(self) -> None:
        for flag, value in (("--price", self.price), ("--max-cost", self.max_cost), ("--max-hours", self.max_hours)):
            if value is not None and not 0 < value < math.inf:
                raise UserError(f"{flag} {value:g}", "it must be a number above 0", f"give {flag} 2.49, for example")
        if self.max_cost is not None and self.price is None:
            raise UserError(
                f"--max-cost {self.max_cost:g}", "--price is missing", "add --price, what the machine costs an hour"
            )
        if self.then is not None and not self.then.strip():
            raise UserError("--then ''", "the command is empty", "give a shell command, or leave --then out")

    def limited(self, engine: RunConfig) -> RunConfig:
        """With the time after which `max_cost` is spent or `max_hours` are over, where that is sooner than
        `--max-time`."""
        limits_s = [] if self.max_hours is None else [3600 * self.max_hours]
        if self.max_cost is not None and self.price is not None:
            limits_s.append(3600 * self.max_cost / self.price)
        if not limits_s:
            return engine
        if engine.max_time is not None and seconds(engine.max_time, "--max-time") <= min(limits_s):
            return engine
        return replace(engine, max_time=f"{min(limits_s):.3f}s")


@contextmanager
def at_the_end(cost: Cost, run_dir: Path, export: Sequence[str] = ()) -> Generator[list[int]]:
    """Around a run: whatever ends it, say what the machine costs and run the command. The caller appends the exit code
    to the list, or lets the exception that ended the run pass. `export`: a command after a good end; where it fails,
    its exit code follows in the list."""
    began, codes = time.monotonic(), list[int]()
    try:
        yield codes
    except (UserError, GaveUp, Stopped) as end:
        codes.append(end.exit_code)
        raise
    except KeyboardInterrupt:
        codes.append(INTERRUPTED)
        raise
    finally:
        sys.stdout.flush()
        if export and codes == [0]:
            codes.append(subprocess.run(export).returncode)
        _finish(cost, codes[-1] if codes else 1, run_dir, time.monotonic() - began)


def _finish(cost: Cost, code: int, run_dir: Path, elapsed_s: float) -> None:
    for line in cost_lines(cost, elapsed_s, os.environ):
        print(line, file=sys.stderr, flush=True)
    if cost.then is None:
        return
    if code == INTERRUPTED:
        print(f"Ctrl-C: not run: {cost.then}", file=sys.stderr, flush=True)
        return
    print(f"then: {cost.then}", file=sys.stderr, flush=True)
    environ = {**os.environ, "RANKS_EXIT_CODE": str(code), "RANKS_RUN_DIR": str(run_dir.absolute())}
    result = subprocess.run(cost.then, shell=True, env=environ).returncode
    if result:
        print(f"--then ended with exit code {result}: the machine may still cost money", file=sys.stderr, flush=True)


def cost_lines(cost: Cost, elapsed_s: float, environ: Mapping[str, str]) -> list[str]:
    """What was spent, and what is spent until somebody ends the machine; empty where nothing is known of a price."""
    if cost.price is not None:
        spent = f"{cost.price * elapsed_s / 3600:,.2f}"
        spent += "" if cost.max_cost is None else f" of --max-cost {cost.max_cost:,.2f}"
        still = f"{cost.price:,.2f} an hour until you end the machine"
        return [f"cost: {spent} since the start of this command; {still}"]
    rented = [name for variable, name in RENTED.items() if environ.get(variable)]
    return [f"this machine of {rented[0]} costs money until you end it (--price says how much)"] if rented else []

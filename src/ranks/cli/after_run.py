"""What follows the end of a run: an export, what the machine costs until it is ended, and the command of `--then`."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from ranks.engine.config import RunConfig, seconds
from ranks.errors import GaveUp, Stopped, UserError
from ranks.hardware.catalogue.machine_price import counted, machine_price
from ranks.hardware.catalogue.prices import known_prices
from ranks.hardware.this_machine import ThisMachine

INTERRUPTED = 130


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
    machine = ThisMachine.look(os.environ) if cost.price is None else ThisMachine("", ())
    for line in cost_lines(cost, elapsed_s, machine):
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


def cost_lines(cost: Cost, elapsed_s: float, machine: ThisMachine) -> list[str]:
    """What was spent, and what is spent until somebody ends the machine. Without `--price` it is estimated by the
    catalogue's prices of its GPUs. Empty on a machine without GPUs that is of no known provider: a laptop costs
    nothing by the hour."""
    hours = elapsed_s / 3600
    if cost.price is not None:
        spent = f"{cost.price * hours:,.2f}"
        spent += "" if cost.max_cost is None else f" of --max-cost {cost.max_cost:,.2f}"
        still = f"{cost.price:,.2f} an hour until you end the machine"
        return [f"cost: {spent} since the start of this command; {still}"]
    rented = f"this machine of {machine.provider}" if machine.provider else "if this machine is rented, it"
    found = machine_price(machine.gpus, known_prices())
    if found is not None:
        costs = f"{rented} costs about {_range(found.low, found.high)} USD an hour until you end it"
        spent = f"{_range(found.low * hours, found.high * hours)} since the start of this command"
        source = f"estimated from prices of {found.dates} for {found.gpus}; --price gives yours"
        return [f"cost: {costs}, {spent} ({source})"]
    if not machine.gpus and not machine.provider:
        return []
    price = f"the price of {counted(machine.gpus)}" if machine.gpus else "its price"
    return [f"cost: {rented} costs money until you end it; {price} is unknown (--price gives it)"]


def _range(low: float, high: float) -> str:
    """'1.79 to 3.43', or one number where both are the same."""
    shown = [f"{low:,.2f}", f"{high:,.2f}"]
    return " to ".join(dict.fromkeys(shown))

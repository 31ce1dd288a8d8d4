"""`ranks autodown RUN`: end this rented machine when its run is over, stuck, or at its limit."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from ranks.cli.flags.parse import Positional, parse
from ranks.engine.config import seconds, time_limit
from ranks.errors import UserError

if TYPE_CHECKING:
    from ranks.engine.runs.folder import RunFolder
    from ranks.renting.autodown.decision import Rules
    from ranks.renting.autodown.providers import EndableMachine


@dataclass(frozen=True)
class AutodownFlags:
    """Watch a run, and end this rented machine when the run is over and at home, stuck, or at its limit.

    Start it before ranks train, as a process of its own: it ends the machine also when the launcher was killed. It
    never says that the machine has ended, because then it has ended too; while the machine still runs after a request
    to end it, it rings an alarm and tries again."""

    run: Positional[str]
    """The name of the run, which may begin later."""
    provider: str | None = None
    """runpod, lambda, vast or skypilot; by default found by the machine's process variables."""
    command: str | None = None
    """A shell command that ends any other machine: --command "sudo poweroff"."""
    job: int | None = None
    """With --provider skypilot: the process of the job's shell ($$), which is ended."""
    idle: str = "5m"
    """With --provider skypilot: after how long SkyPilot ends an idle machine, as its file says."""
    price: float | None = None
    """What this machine costs an hour."""
    max_cost: float | None = None
    """End the machine before it has cost so much, with --price."""
    max_hours: float | None = None
    """End the machine before so many hours have passed."""
    stuck: str = "1h"
    """A run without progress for so long is stopped."""
    keep: str = "1h"
    """How long the machine waits for ranks pull when the run is over. It is ended at once after a pull."""
    save: str = "10m"
    """How long a run may take to save when it is stopped."""
    restart: str = "5m"
    """How long a killed launcher may stay away."""
    start: str = "1h"
    """How long the run may take to begin."""
    alarm: str | None = None
    """A shell command for alarms, which finds the text in RANKS_ALARM: --alarm 'curl -d "$RANKS_ALARM" ntfy.sh/me'."""
    detach: bool = False
    """Go to the background, and write to runs/.RUN.autodown.log."""
    api: str | None = None
    """Another address of the provider's API."""
    runs_dir: Path = Path("runs")
    """The folder of the run folders."""


def autodown(argv: Sequence[str]) -> int:
    """Check the rules and the machine's key, then watch until the machine ends."""
    flags = parse(AutodownFlags, argv, prog="ranks autodown")
    asked = f"ranks autodown {flags.run}"
    idle_s = time_limit(flags.idle, "--idle") + 60.0 if flags.provider == "skypilot" else 0.0
    rules = rules_of(flags, idle_s, asked)
    from ranks.engine.files.lock import lock
    from ranks.engine.runs.folder import RunFolder

    machine = checked_machine(flags, asked)
    folder = RunFolder.of(flags.runs_dir, flags.run)
    lock_fd = lock(folder.path.with_name(f".{flags.run}.autodown.lock"), f"to watch {folder.path}")
    if flags.detach and os.fork():
        print(f"watching {folder.path} on {machine.title}; log: {_log_of(folder)}")
        return 0
    try:
        if flags.detach:
            _leave_the_terminal(_log_of(folder))
        _watch(flags, folder, rules, machine)
    finally:
        os.close(lock_fd)


def rules_of(flags: AutodownFlags, lag_s: float, asked: str) -> Rules:
    """The limits. `lag_s`: how long the machine is paid after it was asked to end. Raises UserError where they leave no
    time for the run."""
    from ranks.renting.autodown.decision import Rules

    for flag, value in (("--price", flags.price), ("--max-cost", flags.max_cost), ("--max-hours", flags.max_hours)):
        if value is not None and not 0 < value < math.inf:
            raise UserError(f"{flag} {value}", "it must be a number above 0", f"give {flag} 2.49, for example")
    if flags.max_cost is not None and flags.price is None:
        raise UserError(f"--max-cost {flags.max_cost:g}", "--price is missing", "add --price, of this machine an hour")
    budget_s = math.inf if flags.max_hours is None else 3600 * flags.max_hours
    if flags.max_cost is not None and flags.price is not None:
        budget_s = min(budget_s, 3600 * flags.max_cost / flags.price)
    budget_s -= lag_s
    keep_s, save_s = seconds(flags.keep, "--keep"), time_limit(flags.save, "--save")
    if budget_s <= keep_s + save_s:
        found = f"the limit is {budget_s / 60:.0f} minutes, and --keep and --save take {(keep_s + save_s) / 60:.0f}"
        raise UserError(asked, found, "give a higher limit, or a shorter --keep")
    return Rules(
        budget_s,
        time_limit(flags.stuck, "--stuck"),
        keep_s,
        save_s,
        seconds(flags.restart, "--restart"),
        time_limit(flags.start, "--start"),
    )


def checked_machine(flags: AutodownFlags, asked: str) -> EndableMachine:
    """The machine, of which the provider has answered. Raises UserError where its key or its id is refused: then nobody
    could end it later."""
    from ranks.renting.autodown.providers import SkyPilotMachine, machine_of

    if flags.provider == "skypilot":
        if flags.job is None or flags.command is not None:
            raise UserError(asked, "the process of the job is missing", "give --job $$ in the run commands of its file")
        return SkyPilotMachine(flags.job, time_limit(flags.idle, "--idle"), os.environ.get("SKYPILOT_TASK_ID", ""))
    if flags.job is not None:
        raise UserError(f"--job {flags.job}", "it is for --provider skypilot", "leave it out")
    machine = machine_of(flags.provider, flags.command, flags.api, asked)
    answer = machine.look()
    if not answer.accepted:
        found = f"the provider does not answer for this machine: {answer.text}"
        raise UserError(asked, found, "check its key and its id; until then nobody but you ends the machine")
    return machine


def _log_of(folder: RunFolder) -> Path:
    return folder.path.with_name(f".{folder.path.name}.autodown.log")


def _leave_the_terminal(log: Path) -> None:
    """A session of its own, which no closed terminal ends, with the log as its output."""
    os.setsid()
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)


def _watch(flags: AutodownFlags, folder: RunFolder, rules: Rules, machine: EndableMachine) -> NoReturn:
    import time

    from ranks.renting.autodown.ending import Alarm
    from ranks.renting.autodown.paid_time import PaidTime
    from ranks.renting.autodown.run_state import read_state
    from ranks.renting.autodown.watcher import Watcher, line_writer

    def show(line: str) -> None:
        print(line, flush=True, file=sys.stdout)

    say = line_writer(show)
    kept = folder.path.with_name(f".{flags.run}.autodown.json")
    paid = PaidTime(kept, machine.rental, time.time(), read_state(folder).last_sign)
    limit = "none" if rules.budget_s == math.inf else f"{rules.budget_s / 3600:.2f} h"
    say(f"watching {folder.path} on {machine.title}; limit {limit}, of which {paid.elapsed_s() / 60:.0f} min gone")
    Watcher(folder, rules, machine, Alarm(say, flags.alarm), paid).watch()

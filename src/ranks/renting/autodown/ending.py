"""Ending a machine from within. Only the machine's end proves that it has ended, and it ends this process too: so each
line that is written after the first request says that the machine still runs, whatever the provider answers."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from ranks.renting.autodown.providers import EndableMachine

RETRY_S = 15.0
"""Between two requests to end the machine."""
ALARM_AGAIN_S = 300.0
ALARM_COMMAND_S = 20.0


@dataclass(frozen=True)
class Alarm:
    """Says loudly that a machine runs on. `command`: of the user; it finds the text in RANKS_ALARM."""

    say: Callable[[str], None]
    command: str | None = None

    def ring(self, text: str) -> None:
        """Print the alarm, and run the command. The watch goes on where that fails or hangs."""
        self.say(f"ALARM: {text}")
        if self.command is None:
            return
        try:
            environ = {**os.environ, "RANKS_ALARM": text}
            code = subprocess.run(self.command, shell=True, env=environ, timeout=ALARM_COMMAND_S).returncode
        except subprocess.TimeoutExpired:
            self.say(f"the command of --alarm has not ended within {ALARM_COMMAND_S:.0f} s")
            return
        if code:
            self.say(f"the command of --alarm ended with exit code {code}")


def end_machine(machine: EndableMachine, reason: str, alarm: Alarm) -> NoReturn:
    """Ask until this process ends with the machine; ring the alarm while it does not."""
    alarm.say(f"ending {machine.title}: {reason}")
    began = time.monotonic()
    next_alarm_s = machine.alarm_s
    while True:
        asked_at = time.monotonic()
        answer = machine.end()
        what = "accepts the request to end" if answer.accepted else "does NOT end"
        alarm.say(f"{machine.title} {what}: {answer.text}")
        while time.monotonic() - asked_at < RETRY_S:
            if time.monotonic() - began >= next_alarm_s:
                alarm.ring(_still_runs(machine, time.monotonic() - began, answer.accepted))
                next_alarm_s = time.monotonic() - began + ALARM_AGAIN_S
            time.sleep(0.5)


def _still_runs(machine: EndableMachine, after_s: float, accepted: bool) -> str:
    said = machine.look().text
    claim = f"; the provider says: {said}" if said else ""
    request = "the last request was accepted" if accepted else "the last request FAILED"
    return (
        f"{machine.title} still runs {after_s:.0f} s after the first request to end it ({request}{claim}). "
        "It costs money: end it by hand, in the provider's console"
    )

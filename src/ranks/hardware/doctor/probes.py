"""Run the checks in child processes, side by side, each with a time limit. A check that hangs or dies is a finding.

check ─► child process: measure() ─► facts as JSON ─► judge(facts) ─► findings
                └─ no answer within its limit: killed ─► a finding with the line at which it hung
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import get_type_hints

from ranks.hardware.doctor import doing
from ranks.hardware.doctor.child import MARK
from ranks.hardware.doctor.finding import Asked, Finding, failure, warning

STARVED = 0.25
"""A check that waited for a core for a larger share of its time did not hang: the machine is busy."""
GPUS = "gpus"
"""The topic of the checks of GPUs."""
KILL_S = 1.0
"""How long to wait for a killed process. One that the kernel holds in a driver does not end."""


@dataclass(frozen=True)
class Probe:
    """One check: a module of `checks/` with `measure(asked)`, which returns a dataclass, and `judge(facts, asked)`."""

    name: str
    topic: str
    """What a person calls it."""
    limit_s: float
    silent: str = ""
    """What to do where it does not answer."""

    @property
    def module(self) -> str:
        return f"ranks.hardware.doctor.checks.{self.name}"


@dataclass(frozen=True)
class Answer:
    """How the child of a check ended."""

    output: str
    errors: str
    code: int | None
    """None: it did not end within its limit."""
    seconds: float
    waited_s: float = 0.0
    """For a core, where it did not end in time (Linux)."""


def examine(probes: tuple[Probe, ...], asked: Asked) -> Iterator[list[Finding]]:
    """The findings of each check, in the given order. Never waits longer than the longest limit and a second."""
    with ThreadPoolExecutor(max(1, len(probes))) as pool:
        answers = [pool.submit(_ask, probe, asked) for probe in probes]
        for probe, answer in zip(probes, answers, strict=True):
            yield _findings(probe, answer.result(), asked)


def _ask(probe: Probe, asked: Asked) -> Answer:
    """Start the child of a check and wait for its answer."""
    argv = [sys.executable, "-m", "ranks.hardware.doctor.child", probe.name]
    began = time.monotonic()
    pipe = subprocess.PIPE
    child = subprocess.Popen(
        [*argv, str(began + probe.limit_s)],
        stdin=pipe,  # what is asked may be longer than an argument: it has the hash of each file of the workload
        stdout=pipe,
        stderr=pipe,
        text=True,
        start_new_session=True,
    )
    code: int | None = None
    waited_s = 0.0
    try:
        output, errors = child.communicate(json.dumps(asdict(asked)), timeout=probe.limit_s)
        code = child.returncode
    except subprocess.TimeoutExpired:
        waited_s = _waited_for_a_core_s(child.pid)
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        try:
            output, errors = child.communicate(timeout=KILL_S)
        except subprocess.TimeoutExpired as held:
            output, errors = "", held.stderr.decode(errors="replace") if isinstance(held.stderr, bytes) else ""
    return Answer(output, errors, code, time.monotonic() - began, waited_s)


def _waited_for_a_core_s(pid: int) -> float:
    """How long the main thread of a process was ready and had no core."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


def _findings(probe: Probe, answer: Answer, asked: Asked) -> list[Finding]:
    """What a check says, or that it did not answer."""
    expected = f"an answer within {probe.limit_s:g} s"
    alone = f"run it alone: {Path(sys.executable).name} -X faulthandler -m ranks doctor --only {probe.name}"
    do = f"{probe.silent}; {alone}" if probe.silent else alone
    if answer.code is None and answer.waited_s > STARVED * answer.seconds:
        found = f"no answer after {answer.seconds:.0f} s, of which it waited {answer.waited_s:.0f} s for a core"
        do = f"end other programs, or raise the container's share of the cores; then {alone}"
        if probe.topic == GPUS and (asked.gpus or asked.expect):
            return [failure(probe.topic, f"not examined: {found}", "an answer, as these GPUs are asked for", do)]
        return [warning(probe.topic, f"not examined: {found}", "free cores", do)]
    if answer.code is None:
        return [failure(probe.topic, f"no answer after {answer.seconds:.0f} s{_place(answer.errors)}", expected, do)]
    line = next((line for line in reversed(answer.output.splitlines()) if line.startswith(MARK)), None)
    if answer.code != 0 or line is None:
        how = f"killed by {signal.Signals(-answer.code).name}" if answer.code < 0 else f"exit code {answer.code}"
        last = next((text.strip() for text in reversed(answer.errors.splitlines()) if text.strip()), "no message")
        return [failure(probe.topic, f"the check ended with {how}: {last[:300]}", expected, do)]
    module = import_module(probe.module)
    facts = get_type_hints(module.measure)["return"](**json.loads(line.removeprefix(MARK)))
    return list(module.judge(facts, asked))


def _place(errors: str) -> str:
    """': WHAT, in FILE:LINE, FUNCTION': what the check said last, and the stack that faulthandler wrote."""
    said = [line.removeprefix(doing.MARK) for line in errors.splitlines() if line.startswith(doing.MARK)]
    found = re.search(r'most recent call first\):\n\s+File "([^"]+)", line (\d+) in (\S+)', errors)
    parts = [*said[-1:], *([f"in {Path(found[1]).name}:{found[2]}, {found[3]}"] if found else [])]
    return f": {', '.join(parts)}" if parts else ""

"""`ranks autodown` against providers that lie, fail or say nothing, and with runs that are killed, stuck or too dear.

    python -m benchmarks.renting.machine_end        writes benchmarks/results/machine_end.json, in about five minutes

The provider is a stub on the loopback interface that speaks RunPod's API. The machine is a process session with the
watcher and the run in it; the stub ends it with SIGKILL where it keeps its word. The watcher must ring within 60 s
while the machine runs on, and may never write that the machine has ended.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.measure import ROOT, SOURCE, origin, write_result
from tests.renting.stub_provider import (
    Behavior,
    StubProvider,
    answers_a_page,
    fails_twice,
    honest,
    never_answers,
    says_stopped,
)

RANKS = (sys.executable, "-m", "ranks")
QUICK = ("--keep", "8s", "--save", "20s", "--restart", "5s", "--start", "4m")
ALARM_WITHIN_S = 60.0
CLAIM = re.compile(r"\b(has ended|was ended|is gone|terminated)\b", re.IGNORECASE)


@dataclass(frozen=True)
class EndCase:
    """`watch`: more flags of the watcher. `train`: flags of the run; None for no run. `during`: what happens while it
    trains. `ends`: whether the machine must end, or an alarm must ring. `says`: a line that the watcher must write."""

    provider: Behavior
    ends: bool
    says: str
    watch: Sequence[str] = ()
    train: Sequence[str] | None = ("--iterations", "40")
    during: Callable[[Path, int], None] | None = None


def kill_launcher(folder: Path, launcher: int) -> None:
    """SIGKILL to the launcher once the run trains."""
    wait_for(folder / "runs/toy/metrics.jsonl")
    os.kill(launcher, signal.SIGKILL)


def stop_all(folder: Path, launcher: int) -> None:
    """SIGSTOP to the launcher and its ranks: all hang, and no handler of a signal runs."""
    import psutil

    wait_for(folder / "runs/toy/metrics.jsonl")
    process = psutil.Process(launcher)
    for one in (process, *process.children(recursive=True)):
        one.suspend()


def restart_watcher(folder: Path, launcher: int) -> None:
    """SIGKILL to the watcher; the same command again counts the time on."""
    wait_for(folder / "runs/toy/metrics.jsonl")
    (folder / "restart").touch()


LONG = ("--iterations", "100000000")
CASES: Mapping[str, EndCase] = {
    "finished, honest provider": EndCase(honest, True, "the run finished, and nobody has pulled it"),
    "says stopped and runs on": EndCase(says_stopped, False, "still runs"),
    "fails twice": EndCase(fails_twice, True, "does NOT end: 500"),
    "never answers": EndCase(never_answers, False, "does NOT end: timed out"),
    "answers a page of HTML": EndCase(answers_a_page, False, "still runs"),
    "launcher killed": EndCase(honest, True, "the run was killed", (), LONG, kill_launcher),
    "all processes hang": EndCase(honest, True, "stopping the run: no progress", ("--stuck", "15s"), LONG, stop_all),
    "cost cap": EndCase(honest, True, "stopping the run: the limit", ("--price", "60", "--max-cost", "2"), LONG),
    "time limit": EndCase(honest, True, "stopping the run: the limit", ("--max-hours", "0.03"), LONG),
    "watcher killed and started again": EndCase(
        honest, True, "min gone", ("--max-hours", "0.03"), LONG, restart_watcher
    ),
    "no run begins": EndCase(honest, True, "no run has begun", ("--start", "10s"), None),
}


def wait_for(path: Path, limit_s: float = 240.0) -> None:
    """Until a file has content."""
    deadline = time.monotonic() + limit_s
    while not (path.exists() and path.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.1)


def play(name: str, case: EndCase) -> dict[str, Any]:
    """Start the machine of a case, wait for its end or for the alarm, and say what was seen."""
    folder = Path(tempfile.mkdtemp(prefix="machine-end-"))
    env = {**os.environ, "PYTHONPATH": SOURCE, "RUNPOD_POD_ID": "pod1", "RUNPOD_API_KEY": "key-of-the-stub"}
    with StubProvider(case.provider) as stub:
        watch = [*RANKS, "autodown", "toy", "--provider", "runpod", "--api", stub.api, *QUICK, *case.watch]
        watch += ["--alarm", 'echo "$RANKS_ALARM" >> alarm']
        train = [*RANKS, "train", str(ROOT / "tests/toys/images.py"), "--name", "toy", "--gpus", "none", "--ranks", "1"]
        log = (folder / "watch.log").open("w")

        def start_watcher() -> subprocess.Popen[bytes]:
            process = subprocess.Popen(
                watch, cwd=folder, env=env, stdout=log, stderr=log, process_group=stub.machine or 0
            )
            stub.machine = stub.machine or process.pid
            return process

        watcher = start_watcher()
        launcher = None
        if case.train is not None:
            out = (folder / "train.log").open("w")
            launcher = subprocess.Popen(
                [*train, *case.train], cwd=folder, env=env, stdout=out, stderr=out, process_group=stub.machine
            )
            if case.during is not None:
                case.during(folder, launcher.pid)
                if (folder / "restart").exists():
                    watcher.kill()
                    watcher.wait()
                    watcher = start_watcher()
        deadline = time.monotonic() + 400
        while time.monotonic() < deadline and watcher.poll() is None and not (folder / "alarm").exists():
            time.sleep(0.1)
        found = time.monotonic()
        text = (folder / "watch.log").read_text()
        ended, rang = watcher.poll() is not None, (folder / "alarm").exists()
        stub.end_machine() if not ended else None
        for process in (watcher, launcher):
            if process is not None:
                process.wait(30)
        after_s = found - stub.asked_at[0] if stub.asked_at else None
        own = "\n".join(line.partition("200 ")[0] for line in text.splitlines())  # without what the provider says
        right = ended == case.ends and rang != case.ends and case.says in text and not CLAIM.search(own)
        right = right and (case.ends or (after_s is not None and after_s <= ALARM_WITHIN_S))
        shutil.rmtree(folder)
    return {
        "case": name,
        "right": right,
        "machine_ended": ended,
        "alarm": rang,
        "requests": stub.ended,
        "after_first_request_s": None if after_s is None else round(after_s, 1),
        "lines": text.splitlines(),
    }


def main() -> int:
    """Four cases at a time; exit code 1 where one went wrong."""
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda item: play(*item), CASES.items()))
    for one in found:
        verdict, after_s = "PASS" if one["right"] else "FAIL", one["after_first_request_s"]
        what = "the machine ended" if one["machine_ended"] else "alarm"
        print(f"{verdict}  {one['case']}: {what} {after_s} s after the first request")
        if not one["right"]:
            print("\n".join(f"      {line}" for line in one["lines"]))
    write_result("machine_end", {"origin": origin(), "right": sum(one["right"] for one in found), "cases": found})
    return 0 if all(one["right"] for one in found) else 1


if __name__ == "__main__":
    sys.exit(main())

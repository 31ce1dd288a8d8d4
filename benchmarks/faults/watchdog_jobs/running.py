"""How each kind of case of watchdog.py runs, and what is found."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.faults.watchdog_jobs.cases import LONG_STEP_MS, Case
from benchmarks.faults.watchdog_jobs.hangs import HANGS, line_of
from benchmarks.faults.watchdog_jobs.trial import START_LIMIT_S, Trial, cpu_quota, described
from ranks.launch.supervision.silences import LEAST_S, P99_FACTOR

LOOK_S, STACKS_S = 1.0, 2.0
"""The launcher looks once a second, and waits so long for stacks."""
HANG_LIMIT_S = LEAST_S + 2 * LOOK_S + STACKS_S
HANG_PATIENCE_S, STRAGGLER_PATIENCE_S = 60.0, 60.0
CLEAN_S = 60.0


def run_hang(case: Case) -> dict[str, Any]:
    """Wait until a rank is named, and compare with the truth."""
    hang, settings = HANGS[case["cause"]], case["settings"]
    with Trial(case["ranks"], settings) as trial:
        if not trial.wait(lambda: trial.started_s() is not None, START_LIMIT_S):
            raise RuntimeError(f"{case['key']} never began: {trial.output()[-1500:]}")
        learnt_s = P99_FACTOR * trial.longest_save_s if hang.phase == "save" else 0.0  # a busy disk makes saves slow
        limit_s = max(LEAST_S, learnt_s) + HANG_LIMIT_S - LEAST_S
        trial.wait(lambda: bool(trial.notices), limit_s + HANG_PATIENCE_S)
        began_s = trial.started_s() or 0.0
        named = [notice for notice in trial.notices if notice["event"] == "slow_rank"]
        first = named[0] if named else {}
        line = line_of(case["cause"])
        where = str(first.get("where", ""))
        text = str(first.get("text"))
        if hang.both:
            each = [
                f"rank {settings['rank']} in all gather at ",
                f"hangs.py:{line}",
                f"rank {1 - settings['rank']} in ",
            ]
            where = f"hangs.py:{line}" if all(part in text for part in [*each, "job.py:"]) else ""
        right = {
            "rank": bool(first) and first.get("rank") == (None if hang.both else settings["rank"]),
            "phase": first.get("phase") == hang.phase,
            "line": "is stopped" in text if line is None else where.endswith(f"hangs.py:{line}"),
        }
        after_s = round(first["time_s"] - began_s, 1) if first else None
        right["in_time"] = after_s is not None and after_s <= limit_s
        return {
            "right": right,
            "after_s": after_s,
            "limit_s": round(limit_s, 1),
            "notices": [described(notice) for notice in trial.notices],
        }


def run_straggler(case: Case) -> dict[str, Any]:
    """Wait until a straggler is named, and a while longer for a second one."""
    settings, quota = case["settings"], case["cause"] == "quota"
    with ExitStack() as stack:
        trial = stack.enter_context(Trial(case["ranks"], settings))
        begins_at = 250 if quota else settings["at"]
        if not trial.wait(lambda: trial.iterations >= begins_at, START_LIMIT_S):
            raise RuntimeError(f"{case['key']} never began: {trial.output()[-1500:]}")
        began_s, before = time.time(), len(trial.notices)
        began_at = trial.iterations
        if quota:
            pid = trial.pid_of(settings["rank"])
            stack.enter_context(cpu_quota(pid, share_of_a_core(pid) / case["slowdown"]))
            began_s, began_at = time.time(), trial.iterations
        named = lambda: [n for n in trial.notices if n["event"] == "straggler"]  # noqa: E731
        trial.wait(lambda: len(named()) > 0, STRAGGLER_PATIENCE_S)
        found = named()
        cause = "compute" if quota else case["cause"]
        right = [notice for notice in found if notice["rank"] == settings["rank"] and notice["cause"] == cause]
        return {
            "named": len(found),
            "named_right": len(right),
            "early": before,
            "after_s": round(right[0]["time_s"] - began_s, 1) if right else None,
            "iterations": trial.iterations - began_at,
            "notices": [described(notice) for notice in trial.notices],
        }


def run_clean(case: Case) -> dict[str, Any]:
    """A minute in which nothing is wrong."""
    with Trial(case["ranks"], case["settings"]) as trial:
        if not trial.wait(lambda: trial.iterations > 0, START_LIMIT_S):
            raise RuntimeError(f"{case['key']} never began: {trial.output()[-1500:]}")
        trial.wait(lambda: trial.process.poll() is not None, CLEAN_S)
        return {"iterations": trial.iterations, "notices": [described(notice) for notice in trial.notices]}


def run_long(case: Case) -> dict[str, Any]:
    """The whole run, with the CPU seconds of the launcher and of the ranks. Raises RuntimeError where it does not end
    in time: the seconds of a part of it are no result."""
    with Trial(case["ranks"], case["settings"]) as trial:
        pids = [trial.pid_of(rank) for rank in range(case["ranks"])]
        began_s, start = time.monotonic(), trial.launcher_cpu_s()
        newest: dict[str, Any] = {}

        def ended() -> bool:
            try:
                newest.update(launcher=trial.launcher_cpu_s(), ranks=[cpu_s(pid) for pid in pids])
            except (OSError, KeyError):
                return True
            return trial.process.poll() is not None

        first = [cpu_s(pid) for pid in pids]
        asked = case["settings"]["iterations"]
        trial.wait(ended, 4 * asked * LONG_STEP_MS / 1000)
        if trial.iterations < asked:
            raise RuntimeError(f"{trial.iterations} of {asked} iterations were done in time: run it on idle cores")
        rows = trial.telemetry
        main_s, all_s = (now - then for now, then in zip(newest["launcher"], start, strict=True))
        ranks_s = sum(now - then for now, then in zip(newest["ranks"], first, strict=True))
        counted_s = asked * case["ranks"] * counters_s()
        sampling_s = max((float(row["sampling_cpu_s"]) for row in rows), default=0.0)
        return {
            "iterations": trial.iterations,
            "seconds": round(time.monotonic() - began_s, 1),
            "notices": [described(notice) for notice in trial.notices],
            "cpu_s": {
                "ranks": round(ranks_s, 2),
                "launcher_main_thread": round(main_s, 3),
                "launcher_all_threads": round(all_s, 3),
                "sampling": round(sampling_s, 3),
                "counters": round(counted_s, 3),
            },
            "share": round((main_s + sampling_s + counted_s) / (ranks_s + all_s), 5),
            "telemetry_rows": len(rows),
        }


def share_of_a_core(pid: int, seconds: float = 5.0) -> float:
    """What a process uses now: on a busy machine less than it could, and only a smaller quota slows it down."""
    before = cpu_s(pid)
    time.sleep(seconds)
    return (cpu_s(pid) - before) / seconds


def cpu_s(pid: int) -> float:
    """CPU seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def counters_s(steps: int = 20_000) -> float:
    """CPU seconds of all calls of the heartbeat in an iteration of one update with one bucket."""
    from ranks.engine.liveness.beats import Collective
    from ranks.engine.liveness.heartbeat import Heartbeat

    found: list[float] = []
    for _ in range(7):
        heartbeat, began_s = Heartbeat(), time.thread_time()
        for step in range(steps):
            heartbeat.iteration(step, first=False)
            heartbeat.step()
            heartbeat.micro_batch(0, 0)
            heartbeat.loads()
            heartbeat.loaded()
            heartbeat.start_collective(Collective.ALL_REDUCE)
            heartbeat.sends()
            heartbeat.sent()
            heartbeat.wait()
            heartbeat.wait_over()
        found.append((time.thread_time() - began_s) / steps)
    return statistics.median(found)


RUN: Mapping[str, Callable[[Case], dict[str, Any]]] = {
    "hangs": run_hang,
    "stragglers": run_straggler,
    "clean": run_clean,
    "long": run_long,
}

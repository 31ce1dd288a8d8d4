"""What the watchdog names, and what it does not: hangs, stragglers, clean runs, a long run, and what it costs.

    python -m benchmarks.faults.watchdog [--only hangs,stragglers,clean,long] [--quick] [--parallel N] [--result FILE]

The jobs are real runs of `ranks train` with gloo (watchdog_jobs/job.py). Most of them sleep instead of computing, so
eight ranks fit on two cores; in 12 of the stragglers and 5 of the clean runs two ranks compute. It says nothing of
GPUs. All cases are drawn from a seed before the first one runs. A start continues with the cases that are missing in
the result. CPU quotas need root and cgroup v1; without them those cases are left out and counted.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.faults.watchdog_jobs.hangs import HANGS, line_of
from benchmarks.faults.watchdog_jobs.trial import CPU_GROUPS, START_LIMIT_S, Trial, cpu_quota, described
from benchmarks.measure import RESULTS, origin, write_result
from ranks.launch.supervision.silences import LEAST_S, P99_FACTOR

SEED = 17
LOOK_S, STACKS_S = 1.0, 2.0
"""The launcher looks once a second, and waits so long for stacks."""
HANG_LIMIT_S = LEAST_S + 2 * LOOK_S + STACKS_S
HANG_PATIENCE_S, STRAGGLER_PATIENCE_S = 60.0, 60.0
CLEAN_S, LONG_ITERATIONS, LONG_STEP_MS = 60.0, 10_000, 20.0
Case = dict[str, Any]


# The cases ------------------------------------------------------------------------------------------------------------


def hang_cases() -> list[Case]:
    """Each cause once, on a drawn rank and at a drawn iteration."""
    chance = random.Random(SEED)
    found: list[Case] = []
    for cause, hang in HANGS.items():
        rank = chance.randrange(2) if hang.rank is None else hang.rank
        at = chance.randrange(150, 250)
        settings = {"hang": cause, "rank": rank, "at": at, "eval_every": 60, "save_every_updates": 60}
        found.append({"kind": "hangs", "key": f"hang: {cause}", "ranks": 2, "cause": cause, "settings": settings})
    return found


def straggler_cases() -> list[Case]:
    """60: 12 with a CPU quota on one of two ranks that compute; 16 each that compute, load or send longer."""
    chance = random.Random(SEED + 1)
    kinds = ["quota"] * 12 + ["compute"] * 16 + ["data"] * 16 + ["network"] * 16
    found: list[Case] = []
    for index, kind in enumerate(kinds):
        ranks = 2 if kind == "quota" else chance.choice([2, 3, 4, 8])
        compute_ms, load_ms = chance.uniform(15, 60), chance.uniform(0.5, 10)
        rank, slowdown = chance.randrange(ranks), chance.uniform(1.4, 3.0)
        settings = {"compute_ms": round(compute_ms, 1), "load_ms": round(load_ms, 1), "rank": rank}
        settings |= {"jitter": round(chance.uniform(0.0, 0.15), 3), "eval_every": 400, "iterations": 100_000}
        if kind == "quota":
            settings |= {"burn": True, "jitter": 0.05}
        else:
            extra_ms = (slowdown - 1) * (compute_ms + load_ms)
            at = int(chance.uniform(8, 14) * 1000 / (compute_ms + load_ms + 2))
            settings |= {"slow": kind, "extra_ms": round(extra_ms, 1), "at": at}
        case = {"kind": "stragglers", "key": f"straggler {index}: {kind}", "ranks": ranks, "cause": kind}
        found.append(case | {"slowdown": round(slowdown, 2), "settings": settings})
    return found


def clean_cases() -> list[Case]:
    """20: 15 that sleep on 2 to 8 ranks, 5 that compute on 2."""
    chance = random.Random(SEED + 2)
    found: list[Case] = []
    for index in range(20):
        burns = index % 4 == 3
        ranks = 2 if burns else chance.choice([2, 3, 4, 8])
        settings = {"compute_ms": round(chance.uniform(10, 60), 1), "load_ms": round(chance.uniform(0.5, 10), 1)}
        settings |= {"jitter": round(chance.uniform(0.0, 0.2), 3), "eval_every": 200, "save_every_updates": 200}
        settings |= {"iterations": 100_000} | ({"burn": True} if burns else {})
        found.append({"kind": "clean", "key": f"clean {index}", "ranks": ranks, "settings": settings})
    return found


def long_case(iterations: int) -> Case:
    """Steps of 20 ms that compute, with evaluations of up to two seconds and saves."""
    settings = {"compute_ms": LONG_STEP_MS - 1, "load_ms": 1.0, "burn": True, "iterations": iterations}
    settings |= {"eval_every": 500, "evaluate_ms": 2000.0, "save_every_updates": 250}
    return {"kind": "long", "key": "long", "ranks": 2, "settings": settings}


# Running them ---------------------------------------------------------------------------------------------------------


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


# The result -----------------------------------------------------------------------------------------------------------


def summary(results: Sequence[Case]) -> dict[str, Any]:
    """The figures of the page."""
    by_kind = {kind: [case for case in results if case["kind"] == kind] for kind in RUN}
    hangs, stragglers, clean, long = (by_kind[kind] for kind in RUN)
    found: dict[str, Any] = {}
    if hangs:
        right = [case for case in hangs if all(case["found"]["right"].values())]
        times = [case["found"]["after_s"] for case in hangs if case["found"]["after_s"] is not None]
        found["hangs"] = {
            "cases": len(hangs),
            "right": len(right),
            "limit_s": HANG_LIMIT_S,
            "latest_s": max(times, default=None),
        }
    if stragglers:
        named = sum(case["found"]["named"] for case in stragglers)
        right_names = sum(case["found"]["named_right"] for case in stragglers)
        recalled = sum(case["found"]["named_right"] > 0 for case in stragglers)
        times = sorted(case["found"]["after_s"] for case in stragglers if case["found"]["after_s"] is not None)
        found["stragglers"] = {
            "cases": len(stragglers),
            "precision": round(right_names / named, 4) if named else None,
            "recall": round(recalled / len(stragglers), 4),
            "median_after_s": statistics.median(times) if times else None,
            "by_cause": {
                cause: [
                    sum(c["found"]["named_right"] > 0 for c in stragglers if c["cause"] == cause),
                    sum(c["cause"] == cause for c in stragglers),
                ]
                for cause in ("quota", "compute", "data", "network")
            },
        }
    if clean:
        found["clean"] = {"cases": len(clean), "with_a_notice": sum(bool(case["found"]["notices"]) for case in clean)}
    if long:
        facts = long[0]["found"]
        found["long"] = {name: facts[name] for name in ("iterations", "seconds", "cpu_s", "share")}
        found["long"]["notices"] = len(facts["notices"])
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default=",".join(RUN), help="kinds of cases")
    parser.add_argument("--quick", action="store_true", help="a few cases of each kind; another result file")
    parser.add_argument("--parallel", type=int, default=2, help="cases at the same time; a long run is alone")
    parser.add_argument("--result", type=Path)
    flags = parser.parse_args()
    name = f"watchdog{'_quick' if flags.quick else ''}_{time.strftime('%Y-%m-%d', time.gmtime())}.json"
    path = flags.result or RESULTS / name
    cases = [*hang_cases(), *straggler_cases(), *clean_cases(), long_case(1000 if flags.quick else LONG_ITERATIONS)]
    if flags.quick:
        cases = [case for kind in RUN for case in [c for c in cases if c["kind"] == kind][::5]]
    cases = [case for case in cases if case["kind"] in flags.only.split(",")]
    no_quota = [case for case in cases if case.get("cause") == "quota" and not os.access(CPU_GROUPS, os.W_OK)]
    done: dict[str, Case] = {}
    if path.exists():
        done = {case["key"]: case for case in json.loads(path.read_text(encoding="utf-8"))["cases"]}
    missing = [case for case in cases if case["key"] not in done and case not in no_quota]

    writing = threading.Lock()

    def run(case: Case) -> None:
        load = os.getloadavg()[0]
        found = RUN[case["kind"]](case)
        done[case["key"]] = {**case, "load_average": round(load, 2), "found": found}
        print(case["key"], json.dumps({k: v for k, v in found.items() if k != "notices"}), flush=True)
        content = {"origin": origin(), "left_out": len(no_quota), "summary": summary(list(done.values()))}
        with writing:
            write_result(path.stem, {**content, "cases": list(done.values())}, path.parent)

    alone = [case for case in missing if case["kind"] == "long" or case["settings"].get("burn")]
    with ThreadPoolExecutor(flags.parallel) as pool:
        list(pool.map(run, [case for case in missing if case not in alone]))
    for case in alone:
        run(case)
    print(json.dumps(summary(list(done.values())), indent=1))


if __name__ == "__main__":
    main()

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
import statistics
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.faults.watchdog_jobs.cases import (
    LONG_ITERATIONS,
    Case,
    clean_cases,
    hang_cases,
    long_case,
    straggler_cases,
)
from benchmarks.faults.watchdog_jobs.running import HANG_LIMIT_S, RUN
from benchmarks.faults.watchdog_jobs.trial import CPU_GROUPS
from benchmarks.measure import RESULTS, origin, write_result


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

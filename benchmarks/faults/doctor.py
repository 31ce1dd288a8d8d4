"""Does the doctor find faults that are injected where they happen, and is it silent on a sound machine?

    python -m benchmarks.faults.doctor [--clean N] [--minutes M] [--only NAME ...] [--result FILE]     needs root, Linux

Each case is a new host, or two, in namespaces (injected/hosts.py). A fault is injected, the whole doctor is
started, and its answer is judged: one warning or failure must name the cause, and its line "do" a remedy. The doctor
gets the flags that a user would give, and nothing about the fault. A start continues with the cases that are missing in
the result.

To add a fault, write a function of one Host (or two, with hosts=2) into a new file of injected/, and import that
file in `injected/every.py`:

    @fault("NAME", cause="REGEX of topic: found", remedy="REGEX of do", author="YOU")
    def my_fault(host: Host) -> None:
        host.before.append("SHELL COMMAND inside the host's namespaces, before the doctor: mount, ulimit, PROGRAM &")
        host.env["LD_PRELOAD"] = str(library(C_SOURCE))      # or other process variables
        host.flags += ["--gpus", "2"]                        # more flags of ranks doctor
        host.cgroup("pids", max="40")                        # a cgroup of its own
        host.inside("tc", "qdisc", ...)                      # a command in its network, now
        host.own_file("/etc/resolv.conf", "nameserver ...")  # another file at this path, on this host alone
        host.closing.callback(...)                           # what the fault made elsewhere is removed here

Write `cause` and `remedy` before you run the doctor. Raise NotPossibleHere where the machine lacks what you need.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.faults.injected.every import FAULTS
from benchmarks.faults.injected.hosts import Answer, Host, hosts, run_doctors
from benchmarks.faults.injected.registry import Fault, NotPossibleHere
from benchmarks.faults.injected.two_hosts import with_workload
from benchmarks.measure import RESULTS, origin, write_result

CLEAN = {"one host": 0.7, "two hosts": 0.2, "two hosts and a workload": 0.1}
"""Shares of the clean runs."""
MOST_S = 20.0
"""What a doctor may take."""


def clean_case(kind: str) -> dict[str, Any]:
    """A sound machine, or two."""
    with (
        tempfile.TemporaryDirectory(prefix="faults-") as folder,
        hosts(1 if kind == "one host" else 2, Path(folder)) as h,
    ):
        if kind.endswith("workload"):
            with_workload(*h)
        return said(h, run_doctors(h))


def fault_case(one: Fault) -> dict[str, Any]:
    """A machine with a fault, or two."""
    with tempfile.TemporaryDirectory(prefix="faults-") as folder, hosts(one.hosts, Path(folder)) as made:
        try:
            one.inject_into(made)
        except NotPossibleHere as why:
            return {"not_injected": str(why), "author": one.author}
        answers = run_doctors(made)
    matching = [finding for answer in answers for finding in answer.alarms if one.matches(finding)]
    found = {"found": bool(matching), "finding": matching[0] if matching else None, "author": one.author}
    return found | said(made, answers)


def said(made: Sequence[Host], answers: Sequence[Answer]) -> dict[str, Any]:
    """All alarms, and how long each doctor took."""
    return {
        "seconds": [answer.seconds for answer in answers],
        "codes": [answer.code for answer in answers],
        "alarms": [
            f"{host.name}: {a['severity']}: {a['topic']}: {a['found']}" + f"; do: {a['do']}"
            for host, answer in zip(made, answers, strict=True)
            for a in answer.alarms
        ],
        "errors": [answer.errors for answer in answers if answer.errors],
        "load_average": round(os.getloadavg()[0], 2),
    }


class Result:
    """The file, written after each case."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.content: dict[str, Any] = {"origin": origin(), "faults": {}, "clean": {kind: [] for kind in CLEAN}}
        if path.exists():
            self.content = json.loads(path.read_text())

    def write(self) -> None:
        self.content["summary"] = summary(self.content)
        write_result(self.path.stem, self.content, self.path.parent)


def summary(content: dict[str, Any]) -> dict[str, Any]:
    """The figures."""
    faults = {name: case for name, case in content["faults"].items() if "found" in case}
    clean = [case for cases in content["clean"].values() for case in cases]
    one = [s for case in clean for s in case["seconds"] if len(case["seconds"]) == 1]
    two = [s for case in clean for s in case["seconds"] if len(case["seconds"]) == 2]
    every = [s for case in [*faults.values(), *clean] for s in case["seconds"]]
    return {
        "faults": len(faults),
        "found": sum(case["found"] for case in faults.values()),
        "missed": [name for name, case in faults.items() if not case["found"]],
        "not_injected": [name for name, case in content["faults"].items() if "found" not in case],
        "clean_runs": len(clean),
        "clean_runs_with_an_alarm": sum(bool(case["alarms"]) for case in clean),
        "one_host_s": {"median": statistics.median(one), "most": max(one)} if one else None,
        "two_hosts_s": {"median": statistics.median(two), "most": max(two)} if two else None,
        "over_20_s": sum(s > MOST_S for s in every),
    }


def cases(result: Result, only: Sequence[str], counts: dict[str, int]) -> Iterator[str]:
    """Run what is missing, clean cases between faults; a line about each."""
    faults, clean = result.content["faults"], result.content["clean"]
    missing = [one for name, one in FAULTS.items() if name not in faults and (not only or name in only)]
    kinds = [kind for kind, count in counts.items() for _ in range(count - len(clean[kind]))] if not only else []
    while missing or kinds:
        if missing:
            one = missing.pop(0)
            case = faults[one.name] = fault_case(one)
            verdict = case.get("not_injected") or ("found" if case["found"] else "MISSED")
            yield f"{one.name}: {verdict}, {case.get('seconds')} s: {(case.get('finding') or {}).get('found', '')}"
        if kinds:
            kind = kinds.pop(0)
            case = clean_case(kind)
            clean[kind].append(case)
            yield f"clean, {kind}: {case['seconds']} s {'; '.join(case['alarms'])}"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--clean", type=int, default=100, help="so many clean runs")
    parser.add_argument("--only", nargs="*", default=[], choices=list(FAULTS), help="these faults, no clean runs")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no case after so many minutes")
    parser.add_argument("--result", type=Path, default=RESULTS / f"doctor_faults_{time.strftime('%Y-%m-%d')}.json")
    asked, began = parser.parse_args(), time.monotonic()
    if os.geteuid() != 0 or sys.platform != "linux":
        parser.error("namespaces need root on Linux")
    result = Result(asked.result)
    for line in cases(result, asked.only, {kind: round(share * asked.clean) for kind, share in CLEAN.items()}):
        result.write()
        print(line, flush=True)
        if time.monotonic() - began > 60 * asked.minutes:
            return 3
    print(json.dumps(result.content.get("summary"), indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())

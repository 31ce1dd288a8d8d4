"""Forecasts against facts: 50 jobs on 1, 2, 4 and 8 ranks over real gloo and shaped links between network namespaces.

    python -m benchmarks.forecast.jobs [--jobs 0-19] [--minutes M] [--result FILE]     needs root, and quiet cores

A job's passes sleep as long as they should take (network_jobs/sleeper.py), so eight ranks fit on two cores; the
engine, its buckets, gloo and the network are real. It says nothing of GPUs. A forecast sees what a user has before
renting: the trace of one rank (`ranks forecast`), and a link probe of two ranks. 20 jobs are for tuning, 30 for
judging. A start continues with the configurations that are missing in the result; a job takes about four minutes.
At the end it says how far forecasts are from facts (network_jobs/judge.py).
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psutil

from benchmarks.forecast.network_jobs.jobs import NetworkJob, draw
from benchmarks.forecast.network_jobs.judge import JobFact, judge, ledger
from benchmarks.forecast.network_jobs.network import Network
from benchmarks.measure import RESULTS, origin
from ranks.cli.forecasting.child import TraceRequest
from ranks.cli.forecasting.measure import read_link, record_trace
from ranks.hardware.forecast.job import ForecastInterval, iteration_interval
from ranks.hardware.forecast.replay import replay
from ranks.hardware.forecast.trace import Trace
from ranks.hardware.links import probe

RANKS = (1, 2, 4, 8)
SLEEPER = Path(__file__).parent / "network_jobs" / "sleeper.py"
MEASURED_S, LEAST, MOST, DROPPED = 8.0, 10, 60, 2
"""Of each configuration: about so long, between so many iterations, without the first ones."""
PROFILE_S, LIMIT_S = 5.0, 400.0


def profile(job: NetworkJob, num_ranks: int) -> Trace:
    """The trace of rank 0, recorded alone and without a network."""
    asked = TraceRequest(num_ranks, "cpu", PROFILE_S, time.time())
    return record_trace(str(SLEEPER), [*job.flags(num_ranks), "--threads=1"], asked).trace


def probe_link(network: Network, port: int) -> dict[str, Any]:
    """What `hardware/links/probe.py` measures with two ranks on two hosts."""
    with tempfile.TemporaryDirectory(prefix="link-") as folder:
        out = Path(folder) / "link.json"
        ranks = network.start(2, [sys.executable, str(probe.__file__), str(out)], port, Path(folder))
        codes = [process.wait(LIMIT_S) for process in ranks]
        if codes != [0, 0]:
            raise RuntimeError((Path(folder) / "rank0.log").read_text()[-2000:])
        return json.loads(out.read_text())


def measure(job: NetworkJob, network: Network, num_ranks: int, expected_s: float, port: int) -> dict[str, Any]:
    """Mean seconds of an iteration of real ranks, and the share of both cores that was used meanwhile."""
    iterations = DROPPED + min(MOST, max(LEAST, round(MEASURED_S / expected_s)))
    with tempfile.TemporaryDirectory(prefix="job-") as name:
        folder = Path(name)
        argv = [
            sys.executable,
            "-m",
            "ranks",
            "train",
            str(SLEEPER),
            *job.flags(num_ranks),
            "--threads=1",
            "--gpus=none",
        ]
        argv += [f"--iterations={iterations}", f"--runs-dir={folder / 'runs'}", "--hang-timeout=10m"]
        ranks = network.start(num_ranks, argv, port, folder)
        try:
            cpu = _cpu_while(ranks, folder / "runs" / "sleeper" / "metrics.jsonl")
            codes = [process.wait(LIMIT_S) for process in ranks]
        finally:
            for process in ranks:
                process.kill()
        if any(codes):
            raise RuntimeError((folder / "rank0.log").read_text()[-2000:])
        rows = [json.loads(line) for line in (folder / "runs" / "sleeper" / "metrics.jsonl").open()]
    seconds = [row["time/iteration_s"] - row["time/save_s"] for row in rows[DROPPED:]]
    return {"iteration_s": statistics.fmean(seconds), "iterations": len(seconds), "cpu": cpu}


def _cpu_while(ranks: list[subprocess.Popen[bytes]], metrics: Path) -> float:
    """The share of the cores in use from the first rows of metrics until a rank ends."""
    while ranks[0].poll() is None and not (metrics.exists() and metrics.read_text().count("\n") >= DROPPED):
        time.sleep(0.1)
    before, began = _busy_s(), time.monotonic()
    while all(process.poll() is None for process in ranks):
        time.sleep(0.1)
    return (_busy_s() - before) / max(1e-9, time.monotonic() - began) / (psutil.cpu_count() or 1)


def _busy_s() -> float:
    times = psutil.cpu_times()
    return times.user + times.system + getattr(times, "softirq", 0.0) + getattr(times, "irq", 0.0)


class Result:
    """The file: one entry for each job, written after each configuration."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.content: dict[str, Any] = {"origin": origin(), "jobs": {}}
        if path.exists():
            self.content = json.loads(path.read_text())

    def of(self, job: NetworkJob) -> dict[str, Any]:
        return self.content["jobs"].setdefault(str(job.number), {"job": asdict(job), "facts": {}})

    def write(self) -> None:
        temporary = self.path.with_suffix(".tmp")
        # a line for each entry of the file: all traces with indents would be four times as long
        lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in self.content.items())
        temporary.write_text(f"{{{lines}}}\n", encoding="utf-8")
        temporary.replace(self.path)


def run_job(job: NetworkJob, network: Network, result: Result, port: int) -> None:
    """Fill in what is missing of a job."""
    entry = result.of(job)
    network.shape(job.mbit)
    if "link" not in entry:
        entry["link"] = probe_link(network, port)
        entry["traces"] = {n: profile(job, n).as_json() for n in RANKS}
        result.write()
    for index, num_ranks in enumerate(n for n in RANKS if str(n) not in entry["facts"]):
        expected_s = forecast(entry, num_ranks).middle
        fact = measure(job, network, num_ranks, expected_s, port + 1 + index)
        entry["facts"][str(num_ranks)] = fact
        result.write()
        error = expected_s / fact["iteration_s"] - 1
        figures = f"{fact['iteration_s']:.3f} s, forecast {expected_s:.3f} s ({error:+.1%}), CPU {fact['cpu']:.0%}"
        print(f"job {job.number}, {job.mbit:g} Mbit/s, {job.megabytes:g} MB, {num_ranks} ranks: {figures}", flush=True)


def forecast(entry: Mapping[str, Any], num_ranks: int) -> ForecastInterval:
    """Seconds of an iteration, from the trace and the link alone."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "link.json"
        path.write_text(json.dumps(entry["link"]))
        link = read_link(path)
    traces = entry["traces"]
    trace = Trace.of_json(traces.get(str(num_ranks)) or traces[num_ranks])
    replayed = replay(trace.iterations, link, num_ranks)
    return iteration_interval(trace.iterations, link, num_ranks, replayed.seconds)


def facts_of(entries: Mapping[str, Any]) -> list[JobFact]:
    """Forecasts and facts of a result's jobs."""
    return [
        JobFact(NetworkJob(**e["job"]), int(n), forecast(e, int(n)), fact["iteration_s"], fact["cpu"])
        for e in entries.values()
        for n, fact in e["facts"].items()
    ]


def print_judgement(result: Result) -> None:
    """The figures of the jobs for tuning and of those for judging, apart."""
    facts = facts_of(result.content["jobs"])
    for name, chosen in {"tuned": False, "judged": True}.items():
        part = [fact for fact in facts if fact.job.is_judged is chosen]
        if part:
            found = result.content.setdefault("judgement", {})[name] = judge(part)
            shown = {key: value for key, value in found.items() if key != "choices"}
            result.content.setdefault("ledger", {})[name] = ledger(part)
            print(f"{name}: {json.dumps(shown, indent=1)}")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--jobs", default="0-19", help="FIRST-LAST; those from 20 on are for judging alone")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no job after so many minutes")
    parser.add_argument("--result", type=Path, default=RESULTS / f"forecast_jobs_{time.strftime('%Y-%m-%d')}.json")
    asked, began = parser.parse_args(), time.monotonic()
    first, last = map(int, asked.jobs.split("-"))
    result = Result(asked.result)
    with ExitStack() as closing:
        network = Network(max(RANKS), closing)
        for job in draw()[first : last + 1]:
            if time.monotonic() - began > 60 * asked.minutes:
                break
            run_job(job, network, result, 29600 + 10 * job.number)
    print_judgement(result)
    result.write()
    print(f"{len(result.content['jobs'])} jobs: {result.path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

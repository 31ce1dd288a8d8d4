"""Whole runs of every workload: a training loop, the same bits from 1 and 4 ranks, and a run that is killed once."""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from benchmarks.gpu_parts.updates import coloring_config
from benchmarks.measure import THREADS, environment
from ranks import RunConfig, World
from ranks.engine.files.jsonl import read_rows
from ranks.workloads import load

SMALL = {"graph-coloring": ["--preset", "demo", "--data.labels", "bounds"], "stock-trading": ["--preset", "demo"]}
RUN_S = 110.0
"""No run may take longer."""


def training_loop(device: str, workload: str, iterations: int, precision: str) -> dict[str, Any]:
    """A workload's own loop, as `ranks train` runs it: data, updates, rows, evaluation, checkpoints."""
    with tempfile.TemporaryDirectory(prefix="ranks-benchmark-") as folder:
        place = RunConfig(precision=precision, threads=THREADS, runs_dir=Path(folder), name="run")
        world = World.join(place, device=device, workload=workload)
        module = load(workload)
        config = coloring_config(device) if workload == "graph-coloring" else module.Config()
        summary = module.train(replace(config, iterations=iterations), world)
        rows = read_rows(summary.folder / "metrics.jsonl")
        finished = [e for e in read_rows(summary.folder / "events.jsonl") if e["event"] == "finished"][-1]
    later = rows[len(rows) // 5 :]
    return {
        "iterations": len(rows),
        "iteration_s": statistics.median(row["time/iteration_s"] for row in later),
        **{
            f"{item}_per_s": statistics.median(row[f"time/{item}_per_second"] for row in later)
            for item in ("samples", "env_steps")
            if f"time/{item}_per_second" in later[0]
        },
        "time_split_s": finished["time_split"],
        "peak_memory_bytes": finished["peak_memory_bytes"],
        "metrics": summary.metrics,
    }


def ranks_train(workload: str, name: str, runs: Path, device: str, num_ranks: int, *more: str) -> subprocess.Popen[str]:
    """`python -m ranks train ...`, as a user types it. `device`: "cpu", "cuda:0", or several: "cuda:0,1"."""
    place = ["--gpus", f"{device.removeprefix('cuda:')},"] if device.startswith("cuda") else ["--gpus", "none"]
    command = ["train", workload, "--ranks", str(num_ranks), *place, "--name", name, "--runs-dir", str(runs)]
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "ranks", *command, *more],
        env=environment(),
        cwd=runs,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def end_of(process: subprocess.Popen[str], runs: Path, name: str) -> str:
    """The fingerprint that a run ended with. Raises RuntimeError with what it printed."""
    try:
        output, _ = process.communicate(timeout=RUN_S)
    except subprocess.TimeoutExpired:
        process.terminate()
        output, _ = process.communicate(timeout=10)
    finished = [e for e in read_rows(runs / name / "events.jsonl") if e["event"] == "finished"]
    if process.returncode or not finished:
        raise RuntimeError(f"{name} ended with exit code {process.returncode}:\n{output[-2000:]}")
    return str(finished[-1]["fingerprint"])


def same_bits(device: str, workload: str, iterations: int) -> dict[str, Any]:
    """L3: the same fingerprint from 1 rank and from 4 ranks on the same device."""
    with tempfile.TemporaryDirectory(prefix="ranks-benchmark-") as folder:
        found: dict[str, str] = {}
        seconds: dict[str, float] = {}
        for num_ranks in (1, 4):
            start = time.perf_counter()
            name = f"of-{num_ranks}"
            flags = ["--exact", "--iterations", str(iterations), *SMALL.get(workload, [])]
            run = ranks_train(workload, name, Path(folder), device, num_ranks, *flags)
            found[f"ranks_{num_ranks}"] = end_of(run, Path(folder), name)
            seconds[f"ranks_{num_ranks}"] = time.perf_counter() - start
    equal = len(set(found.values())) == 1
    return {"iterations": iterations, "equal": equal, "fingerprints": found, "seconds": seconds, "failed": not equal}


def several_gpus(device: str, workload: str, iterations: int) -> dict[str, Any]:
    """One rank on each GPU over NCCL, compared with one rank: the bits with --exact, and the speed without.

    On the CPU two ranks over gloo, so that this code runs there too.
    """
    num_gpus = torch.cuda.device_count() if device.startswith("cuda") else 2
    if num_gpus < 2:
        return {"left_out": "it needs 2 GPUs, and there is 1"}
    fingerprints: dict[str, str] = {}
    iteration_s: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="ranks-benchmark-") as folder:
        for num_ranks in (1, num_gpus):
            place = f"cuda:{','.join(map(str, range(num_ranks)))}" if device.startswith("cuda") else device
            for mode in ("exact", "fast"):
                name = f"{mode}-{num_ranks}"
                flags = [*(["--exact"] if mode == "exact" else []), "--iterations", str(iterations)]
                run = ranks_train(workload, name, Path(folder), place, num_ranks, *flags, *SMALL.get(workload, []))
                fingerprint = end_of(run, Path(folder), name)
                rows = read_rows(Path(folder, name, "metrics.jsonl"))
                if mode == "exact":
                    fingerprints[f"ranks_{num_ranks}"] = fingerprint
                else:
                    later = [row["time/iteration_s"] for row in rows[len(rows) // 5 :]]
                    iteration_s[f"ranks_{num_ranks}"] = statistics.median(later)
    equal = len(set(fingerprints.values())) == 1
    return {
        "ranks": num_gpus,
        "backend": "nccl" if device.startswith("cuda") else "gloo",
        "equal": equal,
        "fingerprints": fingerprints,
        "iteration_s_by_ranks": iteration_s,
        "failed": not equal,
    }


def survives(device: str, workload: str, iterations: int) -> dict[str, Any]:
    """One of 2 ranks is killed after a checkpoint; the run must end as one that nobody touched."""
    with tempfile.TemporaryDirectory(prefix="ranks-benchmark-") as folder:
        runs = Path(folder)
        flags = ("--exact", "--iterations", str(iterations), "--save-every", "5")
        straight = end_of(ranks_train(workload, "straight", runs, device, 2, *flags), runs, "straight")
        run = ranks_train(workload, "killed", runs, device, 2, *flags)
        checkpoints, metrics = runs / "killed" / "checkpoints", runs / "killed" / "metrics.jsonl"
        wait_for(lambda: any(p.name.isdigit() and int(p.name) >= 5 for p in folders(checkpoints)), run, "a checkpoint")
        victim = rank_of(run.pid, 1)
        os.kill(victim, signal.SIGKILL)
        killed_at = time.perf_counter()
        sessions = runs / "killed" / "sessions.jsonl"
        wait_for(lambda: '"event": "resumed"' in sessions.read_text(encoding="utf-8"), run, "the restart")
        size = metrics.stat().st_size
        wait_for(lambda: metrics.stat().st_size > size, run, "the first iteration after the restart")
        recovery_s = time.perf_counter() - killed_at
        killed = end_of(run, runs, "killed")
        rows = [json.loads(line)["iteration"] for line in metrics.read_text(encoding="utf-8").splitlines()]
    held = killed == straight and rows == list(range(1, iterations + 1))
    return {
        "equal": killed == straight,
        "each_iteration_once": rows == list(range(1, iterations + 1)),
        "recovery_s": recovery_s,
        "fingerprints": {"straight": straight, "killed": killed},
        "failed": not held,
    }


def folders(path: Path) -> list[Path]:
    return [p for p in path.iterdir() if p.is_dir()] if path.is_dir() else []


def wait_for(ready: Callable[[], bool], run: subprocess.Popen[str], what: str) -> None:
    """Raises RuntimeError where the run ends, or a minute passes, before it."""
    deadline = time.monotonic() + 60
    while True:
        with suppress(OSError):
            if ready():
                return
        if run.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"{what} did not come; exit code {run.poll()}")
        time.sleep(0.005)


def rank_of(launcher: int, rank: int) -> int:
    """The process id of a rank (Linux): a process named "rank N" below the launcher. Raises RuntimeError."""
    names: dict[int, str] = {}
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            pid, _, rest = path.read_text(encoding="utf-8", errors="replace").partition(" (")
            name, _, state_and_parent = rest.rpartition(") ")
            names[int(pid)], parents[int(pid)] = name, int(state_and_parent.split()[1])
    for pid, name in names.items():
        above = pid
        while above in parents and above != launcher:
            above = parents[above]
        if name == f"rank {rank}" and above == launcher:
            return pid
    raise RuntimeError(f"no rank {rank} of launcher {launcher}")

"""Is the memory right that the doctor says a workload needs, and does it know what fits? (a GPU: memory_fit_cuda.py)

    python -m benchmarks.forecast.memory_fit [--quick] [--result FILE]         Linux, root, and a cgroup for memory

Increment: the doctor's own measurement (two small passes and a line, `hardware/forecast/memory.py`) gives the peak of a
rank at the whole size. A run of that size is then made. Both are compared as the increment over what the process held
after `build`. Fits: in a memory cgroup with a limit, `ranks doctor` is asked about 20 sizes around it, then the
workload is trained in an equal cgroup: it ends, or the kernel kills it. A start continues with what is missing.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.measure import RESULTS, environment, origin
from ranks.engine.files.jsonl import read_rows
from ranks.engine.runs.folder import EVENTS_FILE, METRICS_FILE, RunFolder
from ranks.engine.update.learner import SPLIT_WARNING

MODEL = Path(__file__).with_name("memory_fit_model.py")
MIB, GIB = 2**20, 2**30
INCREMENTS: dict[str, list[str]] = {
    f"{kind}, width {width}, depth {depth}, {items} items": [
        f"--kind={kind}", f"--width={width}", f"--depth={depth}", f"--global-batch={items}"
    ]
    for kind, width, depth, items in (
        ("dense", 128, 6, 170_000), ("dense", 64, 12, 200_000), ("dense", 256, 6, 80_000), ("dense", 4096, 5, 16),
        ("dense", 128, 20, 80_000), ("conv", 8, 6, 5_000), ("conv", 16, 4, 4_000), ("conv", 4, 10, 8_000),
        ("attention", 64, 4, 3_000), ("attention", 128, 3, 2_000), ("attention", 32, 6, 4_000),
    )
}  # fmt: skip
"""Eleven shapes of 1 GB and more."""
LIMIT = 1024 * MIB
FIT_SHAPE = ("--kind=dense", "--width=128", "--depth=6")
FIT_SHARES = (0.5, 0.6, 0.7, 0.76, 0.8, 0.84, 0.88, 0.91, 0.94, 0.97, 1.0, 1.03, 1.06, 1.09, 1.13, 1.18, 1.25, 1.35,
              1.5, 1.7)  # fmt: skip
"""Sizes, as shares of the batch whose peak should be the limit."""
WALL_S = 600.0


def peak_of_run(
    flags: Sequence[str], prefix: Sequence[str] = (), *, gpus: str = "none", more_env: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Train for some iterations: exit code, peak, what the process held after `build`, and whether a pass ran out of
    memory and was split (the kernel kills a process of the CPU, but torch refuses memory of a GPU)."""
    with tempfile.TemporaryDirectory(prefix="memory-fit-") as folder:
        argv = [sys.executable, "-m", "ranks", "train", str(MODEL), *flags, f"--gpus={gpus}", "--ranks=1"]
        argv += ["--threads=1", "--max-restarts=0", f"--runs-dir={folder}/runs"]
        env = environment(MEMORY_FIT_NOTE=f"{folder}/note", **(more_env or {}))
        ended = subprocess.run([*prefix, *argv], env=env, cwd=folder, capture_output=True, text=True, timeout=WALL_S)
        run = RunFolder(Path(folder, "runs", MODEL.stem))
        rows, events = (read_rows(run.path / name) for name in (METRICS_FILE, EVENTS_FILE))
        note = Path(folder, "note")
        return {
            "code": ended.returncode,
            "split": any(str(row.get("text", "")).startswith(SPLIT_WARNING) for row in events),
            "peak_bytes": max((row["memory/peak_bytes"] for row in rows), default=None),
            "after_build_bytes": int(note.read_text()) if note.exists() else None,
            "said": ended.stderr[-300:],
        }


def asked_doctor(
    flags: Sequence[str], prefix: Sequence[str] = (), *, gpus: int = 0, more_env: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The finding `fits`, and what the process of the small passes held after `build`."""
    with tempfile.TemporaryDirectory(prefix="memory-fit-") as folder:
        argv = [sys.executable, "-m", "ranks", "doctor", str(MODEL), "--only=clock", "--ranks=1", "--json"]
        argv += [f"--train={' '.join(flags)} --threads 1", f"--gpus={gpus}"]
        env = environment(MEMORY_FIT_NOTE=f"{folder}/note", **(more_env or {}))
        began = time.monotonic()
        ended = subprocess.run([*prefix, *argv], env=env, cwd=folder, capture_output=True, text=True, timeout=WALL_S)
        by_topic = {one["topic"]: one for one in json.loads(ended.stdout)["findings"]}
        note = Path(folder, "note")
        return {
            "finding": by_topic.get("fits", by_topic.get("workload")),
            "after_build_bytes": int(note.read_text()) if note.exists() else None,
            "seconds": round(time.monotonic() - began, 1),
        }


def predicted(
    flags: Sequence[str],
    workload: str = str(MODEL),
    device: str = "cpu",
    *,
    more_env: Mapping[str, str] | None = None,
    limit_s: float = WALL_S,
) -> dict[str, Any]:
    """What the doctor's measurement says, before the workload has run at its size."""
    program = (
        "import json, sys, tempfile, torch; from pathlib import Path; from dataclasses import asdict\n"
        "from ranks.cli.flags.settings import resolve; from ranks.hardware.short_runs.job import Job\n"
        "from ranks.hardware.forecast.memory import measure_need\n"
        "from ranks.hardware.short_runs.capacity import capacity_bytes\n"
        "s = resolve(sys.argv[2], sys.argv[3:]); job = Job(s.workload, s.module.train, s.config, s.engine)\n"
        "device = torch.device(sys.argv[1])\n"
        "with tempfile.TemporaryDirectory() as folder:\n"
        "    need = measure_need(job, device, 1, Path(folder))\n"
        "assert need is not None, 'the passes cannot be made smaller, or no update was made'\n"
        "said = {**asdict(need), 'peak_bytes': need.peak_bytes, 'capacity_bytes': capacity_bytes(device, 1)}\n"
        "print('\\nneed: ' + json.dumps(said))\n"
    )
    with tempfile.TemporaryDirectory(prefix="memory-fit-") as folder:
        env = environment(MEMORY_FIT_NOTE=f"{folder}/note", **(more_env or {}))
        found = answer_of(program, [device, workload, *flags, "--threads=1"], "need: ", env, folder, limit_s)
        note = Path(folder, "note")
        return found | ({"after_build_bytes": int(note.read_text())} if note.exists() else {})


def answer_of(
    program: str, argv: Sequence[str], mark: str, env: Mapping[str, str], folder: str, limit_s: float
) -> dict[str, Any]:
    """The line that a program in a process of its own prints after a mark. Raises RuntimeError with its last words."""
    command = [sys.executable, "-c", program, *argv]
    ended = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, timeout=limit_s)
    for line in ended.stdout.splitlines():
        if line.startswith(mark):
            return json.loads(line.removeprefix(mark))
    raise RuntimeError(f"exit code {ended.returncode}: {ended.stderr[-600:]}")


def increment(flags: Sequence[str]) -> dict[str, Any]:
    """Forecast and fact of one shape."""
    forecast, fact = predicted(flags), peak_of_run(flags)
    ahead = forecast["peak_bytes"] - forecast["after_build_bytes"]
    real = fact["peak_bytes"] - fact["after_build_bytes"]
    return {"forecast": forecast, "fact": fact, "forecast_bytes": ahead, "fact_bytes": real, "error": ahead / real - 1}


@contextmanager
def capped() -> Generator[list[str]]:
    """A command prefix that runs a program in a new memory cgroup of LIMIT."""
    root = Path("/sys/fs/cgroup/memory") if Path("/sys/fs/cgroup/memory").is_dir() else Path("/sys/fs/cgroup")
    group = root / f"memory-fit-{os.getpid()}-{time.monotonic_ns()}"
    group.mkdir()
    try:
        name = "memory.limit_in_bytes" if root.name == "memory" else "memory.max"
        (group / name).write_text(str(LIMIT))
        yield ["sh", "-c", f'echo 0 > {group}/cgroup.procs && exec "$@"', "sh"]
    finally:
        for _ in range(100):
            try:
                group.rmdir()
                break
            except OSError:
                time.sleep(0.1)


def fit(items: int) -> dict[str, Any]:
    """The doctor's verdict on a size, and what happens."""
    flags = [*FIT_SHAPE, f"--global-batch={items}"]
    with capped() as prefix:
        verdict = asked_doctor(flags, prefix)
    with capped() as prefix:
        fact = peak_of_run(flags, prefix)
    says = verdict["finding"] is not None and verdict["finding"]["severity"] != "failure"
    return {"items": items, "says_fits": says, "fits": fact["code"] == 0, "verdict": verdict, "fact": fact}


def summary(content: dict[str, Any]) -> dict[str, Any]:
    """The figures."""
    large = [one for one in content["increments"].values() if one["fact_bytes"] >= 1e9]
    errors = [abs(one["error"]) for one in large]
    fits = list(content["fits"].values())
    return {
        "increments_of_1_gb_or_more": len(large),
        "within_15_percent": sum(error <= 0.15 for error in errors),
        "median_error": round(statistics.median(errors), 4) if errors else None,
        "largest_error": round(max(errors), 4) if errors else None,
        "sizes": len(fits),
        "right": sum(one["says_fits"] == one["fits"] for one in fits),
        "sizes_that_fit": sum(one["fits"] for one in fits),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two shapes and three sizes")
    parser.add_argument("--result", type=Path, default=RESULTS / f"memory_fit_{time.strftime('%Y-%m-%d')}.json")
    asked = parser.parse_args()
    content: dict[str, Any] = {"origin": origin(), "limit_bytes": LIMIT, "increments": {}, "fits": {}}
    if asked.result.exists():
        content = json.loads(asked.result.read_text())

    def write() -> None:
        content["summary"] = summary(content)
        temporary = asked.result.with_suffix(".tmp")
        temporary.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        temporary.replace(asked.result)

    for name, flags in list(INCREMENTS.items())[: 2 if asked.quick else None]:
        if name not in content["increments"]:
            one = content["increments"][name] = increment(flags)
            write()
            sizes = f"{one['forecast_bytes'] / 1e9:.2f} GB, in fact {one['fact_bytes'] / 1e9:.2f} GB"
            print(f"{name}: {sizes} ({one['error']:+.1%})", flush=True)
    if "at_limit" not in content:  # the batch whose peak should be the limit
        need = predicted([*FIT_SHAPE, "--global-batch=50000"])
        content["at_limit"] = int((LIMIT - need["fixed_bytes"]) / need["bytes_per_item"])
    for share in FIT_SHARES[:: 8 if asked.quick else 1]:
        if str(share) not in content["fits"]:
            one = content["fits"][str(share)] = fit(int(share * content["at_limit"]))
            write()
            words = f"the doctor says {'fits' if one['says_fits'] else 'no'}, in fact {'fits' if one['fits'] else 'no'}"
            print(f"{one['items']} items, {share:g} of the limit: {words}", flush=True)
    print(json.dumps(content["summary"], indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())

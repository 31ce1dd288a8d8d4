"""Is the GPU memory right that the doctor says a workload needs, and does it know what fits?

    python -m benchmarks.forecast.memory_fit_cuda [--at-once 12] [--budget 95] [--result FILE]  one GPU, 16 cores: 100 s

Peaks: the doctor's own measurement (small passes and a line, `hardware/forecast/memory.py`) against
`torch.cuda.max_memory_allocated` of a training of that size, in a process of its own. Fits: torch's allocator gets a
limit (`per_process_memory_fraction` of PYTORCH_ALLOC_CONF, which every process reads). `ranks doctor` is asked about 20
sizes around it, then `ranks train` runs under the same limit: it ends, or a pass runs out of memory.

Several processes use the GPU at once. That changes no figure: torch counts and limits memory for each process. The
result is written after each part, and a start continues with what is missing or failed. `--device cpu` tries the
program without a GPU: then nothing is limited, and a peak is that of the whole process.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from benchmarks.forecast.memory_fit import (
    FIT_SHARES,
    GIB,
    INCREMENTS,
    MODEL,
    answer_of,
    asked_doctor,
    peak_of_run,
    predicted,
)
from benchmarks.measure import RESULTS, environment, origin
from ranks.launch.env_vars import set_allocator_defaults

LIMIT = 2 * GIB
"""Of torch's allocator, in the runs that fit or do not fit."""
FIT_SHAPE = ("--kind=dense", "--width=256", "--depth=24")
FIRST_BATCH = 10_000
"""Its peak gives the batch whose peak should be the limit."""
PART_S = 80.0
"""Time limit of a process."""
NO_EVALUATION = ("--eval-every=1000000", "--iterations=5")
WORKLOADS: dict[str, tuple[str, ...]] = {
    "graph-coloring, 128 graphs": (
        "graph-coloring", "--data.train-graphs=1500", "--data.validation-graphs=20", "--data.unseen-graphs=10",
        "--data.labels=bounds", "--data.max-nodes=300", "--global-batch=128", "--eval-graphs=20", *NO_EVALUATION,
    ),
    "video-behavior, full, 64 clips": (
        "video-behavior", "--preset=full", "--precision=bf16", "--rendered.animals=5", "--rendered.seconds=10",
        "--global-batch=64", "--eval-stride=30", *NO_EVALUATION,
    ),
    "chess-spiking, full, 1,024 positions": (
        "chess-spiking", "--preset=full", "--games-per-iteration=32", "--slots=32", "--selfplay.simulations=2",
        "--selfplay.num-considered=2", "--selfplay.max-plies=60", "--eval-games=1", "--eval-simulations=0",
        "--eval-max-plies=20", "--snapshot-every=1000000", *NO_EVALUATION,
    ),
}  # fmt: skip
"""Few data, so that they are made in seconds: they change what is held, not what a pass needs."""
TRAIN = """
import json, sys
from ranks import World
from ranks.cli.flags.settings import resolve
from ranks.engine.runs.metrics_rows import peak_memory_bytes
settings = resolve(sys.argv[2], sys.argv[3:])
world = World.join(settings.engine, device=sys.argv[1], workload=settings.workload)
try:
    settings.module.train(settings.config, world)
finally:
    world.leave()
print("\\nfact: " + json.dumps({"peak_bytes": peak_memory_bytes(world.device)}), flush=True)
"""
DEVICE = """
import json, sys, torch
total = torch.cuda.get_device_properties(sys.argv[1]).total_memory
found = {"total_bytes": total, "allowed": torch.cuda.get_per_process_memory_fraction(sys.argv[1])}
for name, share in (("below", 0.9), ("above", 1.1)):
    try:
        torch.empty(int(share * float(sys.argv[2])), dtype=torch.uint8, device=sys.argv[1])
        found[name] = "allocated"
    except torch.OutOfMemoryError:
        found[name] = "out of memory"
    torch.cuda.empty_cache()
print("\\ndevice: " + json.dumps(found))
"""


def allocator(fraction: float | None = None) -> dict[str, str]:
    """The variable of torch's allocator, as `ranks train` sets it; with a limit where one is given."""
    variables = dict[str, str]()
    set_allocator_defaults(variables)
    (name, value), *_ = variables.items()
    return {name: value if fraction is None else f"{value},per_process_memory_fraction:{fraction:.9f}"}


def trained(flags: Sequence[str], workload: str, device: str) -> dict[str, Any]:
    """The peak of a training at its size."""
    with tempfile.TemporaryDirectory(prefix="memory-fit-") as folder:
        argv = [device, workload, *flags, "--threads=1", f"--runs-dir={folder}/runs"]
        return answer_of(TRAIN, argv, "fact: ", environment(**allocator()), folder, PART_S)


def peak(flags: Sequence[str], workload: str, device: str) -> dict[str, Any]:
    """Forecast and fact of one shape."""
    forecast = predicted(flags, workload, device, more_env=allocator(), limit_s=PART_S)
    fact = trained(flags, workload, device)
    return {"forecast": forecast, "fact": fact, "error": forecast["peak_bytes"] / fact["peak_bytes"] - 1}


def limited(device: str) -> dict[str, Any]:
    """The share of the GPU that the limit is, and whether torch obeys it; without a limit on a CPU."""
    if device == "cpu":
        return {"fraction": None}
    with tempfile.TemporaryDirectory(prefix="memory-fit-") as folder:

        def ask(fraction: float | None) -> dict[str, Any]:
            return answer_of(
                DEVICE, [device, str(LIMIT)], "device: ", environment(**allocator(fraction)), folder, PART_S
            )

        fraction = LIMIT / ask(None)["total_bytes"]
        return ask(fraction) | {"fraction": fraction}


def at_limit(device: str, fraction: float | None) -> int:
    """The batch whose peak should be the limit."""
    flags = [*FIT_SHAPE, f"--global-batch={FIRST_BATCH}"]
    need = predicted(flags, str(MODEL), device, more_env=allocator(fraction), limit_s=PART_S)
    return int((LIMIT - need["fixed_bytes"]) / need["bytes_per_item"])


def fit(items: int, device: str, fraction: float | None) -> dict[str, Any]:
    """The doctor's verdict on a size, and what happens."""
    flags, env = [*FIT_SHAPE, f"--global-batch={items}"], allocator(fraction)
    on_gpu = device != "cpu"
    verdict = asked_doctor(flags, gpus=int(on_gpu), more_env=env)
    fact = peak_of_run(flags, gpus="0," if on_gpu else "none", more_env=env)
    says = verdict["finding"] is not None and verdict["finding"]["severity"] != "failure"
    fits = fact["code"] == 0 and not fact["split"]
    return {"items": items, "says_fits": says, "fits": fits, "verdict": verdict, "fact": fact}


def summary(content: dict[str, Any]) -> dict[str, Any]:
    """The figures."""
    parts = content["parts"]
    peaks = {name: abs(one["error"]) for name, one in parts.items() if "error" in one}
    fits = [one for one in parts.values() if "says_fits" in one]
    return {
        "peaks": len(peaks),
        "within_10_percent": sum(error <= 0.1 for error in peaks.values()),
        "median_error": round(statistics.median(peaks.values()), 4) if peaks else None,
        "largest_error": round(max(peaks.values()), 4) if peaks else None,
        "largest_error_of": max(peaks, key=lambda name: peaks[name]) if peaks else None,
        "sizes": len(fits),
        "right": sum(one["says_fits"] == one["fits"] for one in fits),
        "sizes_that_fit": sum(one["fits"] for one in fits),
        "failed": [name for name, one in parts.items() if "failed" in one],
    }


def said(one: dict[str, Any]) -> str:
    """A part as a line."""
    if "failed" in one:
        return f"failed: {one['failed'][-300:]}"
    if "error" in one:
        sizes = f"{one['forecast']['peak_bytes'] / 1e9:.2f} GB, in fact {one['fact']['peak_bytes'] / 1e9:.2f} GB"
        return f"{sizes} ({one['error']:+.1%})"
    words = ("fits" if one[name] else "no" for name in ("says_fits", "fits"))
    return "{} items: the doctor says {}, in fact {}".format(one["items"], *words)


def attempt(part: Callable[[], dict[str, Any]], ends_at: float) -> dict[str, Any] | None:
    """A part, or why it failed; None where the time is over."""
    if time.monotonic() > ends_at:
        return None
    began = time.monotonic()
    try:
        found = part()
    except Exception as error:  # one part must not end the others
        found = {"failed": f"{type(error).__name__}: {error}"[-900:]}
    return found | {"seconds": round(time.monotonic() - began, 1)}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="cuda:0", choices=("cuda:0", "cpu"))
    parser.add_argument("--at-once", type=int, default=12, help="processes at the same time")
    parser.add_argument("--budget", type=float, default=95.0, help="seconds after which no part starts")
    parser.add_argument("--only", default="", help="parts whose name has this text")
    parser.add_argument("--result", type=Path, default=RESULTS / f"memory_fit_cuda_{time.strftime('%Y-%m-%d')}.json")
    asked = parser.parse_args()
    content: dict[str, Any] = {"origin": origin(), "limit_bytes": LIMIT, "parts": {}}
    if asked.result.exists():
        content = json.loads(asked.result.read_text())
    parts, device, ends_at = content["parts"], str(asked.device), time.monotonic() + asked.budget

    def write() -> None:
        content["summary"] = summary(content)
        asked.result.parent.mkdir(parents=True, exist_ok=True)
        temporary = asked.result.with_suffix(".tmp")
        temporary.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        temporary.replace(asked.result)

    with ThreadPoolExecutor(asked.at_once) as pool:
        waiting: dict[Future[dict[str, Any] | None], str] = {}

        def start(name: str, part: Callable[..., dict[str, Any]], *arguments: Any) -> None:
            if asked.only in name and "failed" in parts.get(name, {"failed": ""}):
                waiting[pool.submit(attempt, lambda: part(*arguments), ends_at)] = name

        for name, (workload, *flags) in WORKLOADS.items():
            start(name, peak, flags, workload, device)
        for name, flags in INCREMENTS.items():
            start(name, peak, flags, str(MODEL), device)
        if "at_limit" not in content and asked.only.partition(",")[0] in "fits":  # their limit, while the others run
            try:
                content["limit"] = limited(device)
                content["at_limit"] = at_limit(device, content["limit"]["fraction"])
            except Exception as error:  # the shapes do not need it
                content["limit"] = {"failed": str(error)}
                print(f"no limit: {error}", flush=True)
            write()
        if "at_limit" in content and content["limit"].get("above", "out of memory") == "out of memory":
            for share in FIT_SHARES:
                items = int(share * content["at_limit"])
                start(f"fits, {share:g} of the limit", fit, items, device, content["limit"]["fraction"])
        for future in as_completed(waiting):
            name, found = waiting[future], future.result()
            if found is not None:
                parts[name] = found
                write()
                print(f"{name}: {said(found)} ({found['seconds']} s)", flush=True)
    write()
    print(json.dumps(content["summary"], indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())

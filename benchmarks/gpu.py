"""Measure every workload on one GPU and write one JSON file: `python benchmarks/gpu.py` (under 8
minutes).

Run it in a clone. It needs torch, numpy and safetensors; the parts that start `ranks` also need
tyro and rich. If a package is missing, the script names it and leaves these parts out. Without a
GPU it says so and measures smaller cases on the CPU.

Each part runs in a separate process with a time limit. If one fails, its error is recorded and the
next part runs. The file is written after each part, so it also holds what was measured if the
script is killed. Parts:

- gpu_updates.py: making the graphs; updates of graph-coloring with prepared batches (fp32, bf16,
  --exact, several batch sizes); its epochs without and its evaluation (5, on the CPU 1, from which
  100 are extrapolated; --full runs all 100, however long they take); synchronising calls in a step.
- gpu_device.py: number types under bf16; launches and the share of the time in which the GPU works.
- gpu_trading.py: steps of the stock-trading market, and training on 5,000 episodes (on the CPU
  extrapolated).
- gpu_selfplay.py: self-play of chess: evaluations/s by batch of four nets, plies/s end to end, busy
  share. These are the last; `--only selfplay` measures them alone.
- gpu_video.py: updates of video-behavior from a store on the device: clips/s at 17 x 256 x 256 by batch, memory,
  bytes of a clip, share of the copy bandwidth; `--only video` measures them alone.
- gpu_value.py: updates of chess-value from a window of mapped files: positions/s of nnue, cnn and resnet by batch, of
  the device and of the host alone, memory; a cycle of `ranks train` without Stockfish; `--only value` measures them
  alone.
- gpu_runs.py: the training loop of every workload; level L3 (4 ranks on one GPU compared with 1); all
  GPUs over NCCL, where there are 2 or more; a run that is killed once.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from measure import RESULTS, ROOT, environment, write_result

BUDGET_S = 460.0
"""Parts that would start later are left out."""
PART_S, LONG_S = 120.0, 4 * 3600.0
"""Time limits of a part, and of the epochs with --full."""
DEVICE_S = 60.0
"""Time limit of the search for a GPU."""
TOYS = {name: str(ROOT / "tests" / "toys" / f"{name}.py") for name in ("images", "cartpole", "tictactoe")}
WORKLOADS = {"graph-coloring": "graph-coloring", "stock-trading": "stock-trading", **TOYS}
COMMAND_LINE = ("tyro", "rich")
VIDEO_NETS = {
    "r2plus1d-s": {"name": "r2plus1d-s"},
    "r2plus1d-s, stem 2 x 4 x 4": {"name": "r2plus1d-s", "stem_stride": [2, 4, 4]},
    "x3d-s": {"name": "x3d-s"},
    "mouse3d": {"name": "mouse3d"},
}
"""Settings of the networks of video-behavior, at full width."""
VALUE_BATCHES = {
    "nnue": ([8192, 16_384, 65_536, 262_144], [2048, 8192]),
    "cnn": ([4096, 16_384, 65_536], [128]),
    "resnet": ([4096, 16_384, 65_536], [128]),
}
"""Global batches of the nets of chess-value, on a GPU and on the CPU."""
BATCH_UNITS = {
    "clips_per_s": "clips/s",
    "positions_per_s": "positions/s",
    "device_positions_per_s": "of the device",
    "host_positions_per_s": "of the host",
}


def plan(device: str, command_line: bool, full: bool) -> list[tuple[str, str, dict[str, Any]]]:
    """(name, "module:function", arguments), the most important first."""
    gpu = device.startswith("cuda")
    parts: list[tuple[str, str, dict[str, Any]]] = []

    def add(name: str, function: str, **arguments: Any) -> None:
        parts.append((name, function, {"device": device, **arguments}))

    def add_same_bits(name: str) -> None:
        if command_line:
            add(f"L3 {name}", "gpu_runs:same_bits", workload=WORKLOADS[name], iterations=4)

    updates = "gpu_updates:coloring_updates"
    add("number types", "gpu_device:dtypes")
    add("making the graphs", "gpu_updates:make_graphs")
    add_same_bits("graph-coloring")
    if command_line:
        add("several GPUs", "gpu_runs:several_gpus", workload=TOYS["images"], iterations=40)
        add("survive", "gpu_runs:survives", workload=TOYS["images"], iterations=400)
    add("synchronising calls", "gpu_updates:synchronising_calls")
    precision, batch = ("bf16", 256) if gpu else ("fp32", 16)
    add("work of a graph-coloring update", "gpu_device:coloring_work", precision=precision, batch=batch)
    add("work of a stock-trading iteration", "gpu_device:trading_work", precision=precision)
    for precision in ("bf16", "fp32") if gpu else ("fp32",):
        epochs = 100 if full else 5 if gpu else 1
        add(f"epochs {precision}", "gpu_updates:coloring_epochs", precision=precision, epochs=epochs)
    add("trading market", "gpu_trading:market_steps", accounts=65_536 if gpu else 4_096, steps=252)
    for precision in ("fp32", "bf16") if gpu else ("fp32",):
        add(f"trading episodes {precision}", "gpu_trading:episodes", precision=precision)
    for batch in (32, 256, 1024) if gpu else (16, 32):
        for precision in ("fp32", "bf16"):
            add(f"updates {precision} {batch}", updates, precision=precision, batch=batch, exact=False)
    add("updates exact", updates, precision="fp32", batch=256 if gpu else 32, exact=True)
    for name, iterations in {"graph-coloring": 60 if gpu else 10, "images": 300, "cartpole": 6, "tictactoe": 6}.items():
        add(f"loop {name}", "gpu_runs:training_loop", workload=WORKLOADS[name], iterations=iterations, precision="fp32")
    for name in ("stock-trading", *TOYS):
        add_same_bits(name)
    for name, net in VIDEO_NETS.items():
        sizes = {"clip": [17, 256], "batches": [128, 256, 512, 1024], "frames": 4096}
        small = {"clip": [9, 32], "batches": [4, 8], "frames": 256}
        precision = "bf16" if gpu else "fp32"
        add(f"video {name}", "gpu_video:clip_updates", precision=precision, net=net, **(sizes if gpu else small))
    for name, (large, small_batches) in VALUE_BATCHES.items():
        for precision in ("bf16", "fp32") if gpu and name == "nnue" else ("bf16",) if gpu else ("fp32",):
            sizes = {"batches": large if gpu else small_batches, "positions": 4_000_000 if gpu else 400_000}
            add(f"value {name} {precision}", "gpu_value:value_updates", precision=precision, net=name, **sizes)
    if command_line:
        add("value cycle", "gpu_value:cycle", games=400 if gpu else 40, nodes=200 if gpu else 100)
    selfplay_precision = "bf16" if gpu else "fp32"
    for net in ("10x128", "6x64", "default", "origin"):
        batches = [64, 256, 1024, 4096] if gpu else [8]
        add(
            f"selfplay evaluations {net}",
            "gpu_selfplay:evaluations",
            precision=selfplay_precision,
            net=net,
            batches=batches,
        )
    for net, simulations in (
        {"10x128": 32, "default": 32, "6x64": 32, "origin": 0}.items() if gpu else {"6x64": 2}.items()
    ):
        sizes = {"slots": 2048 if gpu else 8, "games": 128 if gpu else 4, "simulations": simulations}
        add(f"selfplay {net}", "gpu_selfplay:selfplay", precision=selfplay_precision, net=net, **sizes)
    return parts


def carry_out(function: str, arguments: dict[str, Any], limit_s: float) -> dict[str, Any]:
    """Run one part in a separate process; return its result, or its error."""
    with tempfile.TemporaryDirectory(prefix="ranks-benchmark-") as folder:
        out = Path(folder, "found.json")
        order = json.dumps([function, arguments, str(out)])
        process = subprocess.Popen(
            [sys.executable, __file__, "--part", order],
            env=environment(CUBLAS_WORKSPACE_CONFIG=":4096:8"),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        start = time.perf_counter()
        try:
            output, _ = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            output = f"it took longer than {limit_s:.0f} s"
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # nothing that it started outlives it
            process.wait()
        about = {"seconds": round(time.perf_counter() - start, 2), "arguments": arguments}
        with suppress(OSError, ValueError):  # a part that was killed may have written half of it
            found = json.loads(out.read_text(encoding="utf-8"))
            return {"ok": not found.pop("failed", False), **about, "found": found}
        ended = f"it ended with exit code {process.returncode} and wrote no result"
        return {"ok": False, **about, "error": output.strip()[-2000:] or ended}


def chosen_device() -> tuple[str, str]:
    """The device and its name. A separate process finds them, so that CUDA does not start in this
    one."""
    code = "import torch; print(torch.cuda.get_device_name(0) if torch.cuda.is_available() else '')"
    try:
        found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=DEVICE_S)
    except subprocess.TimeoutExpired:
        print(f"torch did not say within {DEVICE_S:.0f} s whether there is a GPU")
        return "cpu", "CPU"
    if found.returncode:
        print(found.stderr.strip()[-2000:])
    name = found.stdout.strip()
    return ("cuda:0", name) if name else ("cpu", "CPU")


def origin_or_error() -> dict[str, Any]:
    """`measure.origin`, found in a separate process: a GPU that a part has broken must not hide the other parts."""
    found = carry_out("measure:origin", {}, DEVICE_S)
    if "found" not in found:
        return {"error": found["error"]}
    return {**found["found"], "command": " ".join(["python", "benchmarks/gpu.py", *sys.argv[1:]])}


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, help="write the JSON into this folder instead of benchmarks/results")
    parser.add_argument("--full", action="store_true", help="all 100 epochs of graph-coloring, however long they take")
    parser.add_argument("--only", metavar="TEXT", help="only parts whose name holds TEXT")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    asked = parser.parse_args(argv)
    if asked.part:
        function, arguments, out = json.loads(asked.part)
        module, _, name = function.partition(":")
        found = getattr(import_module(module), name)(**arguments)
        Path(out).write_text(json.dumps(found), encoding="utf-8")
        return 0
    begun = time.monotonic()
    device, name = chosen_device()
    missing = [package for package in COMMAND_LINE if importlib.util.find_spec(package) is None]
    print(f"on {name}" if device != "cpu" else "no CUDA GPU found: measuring the CPU, smaller")
    if missing:
        print(f"{' and '.join(missing)} not installed: L3 and survive, which start `ranks` itself, are left out")
    results: dict[str, Any] = {}
    path: Path | None = None
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    content = {"origin": origin_or_error(), "device": name, "missing_packages": missing, "parts": results}
    for part, function, arguments in plan(device, not missing, asked.full):
        if asked.only and asked.only not in part:
            continue
        left_s = BUDGET_S - (time.monotonic() - begun)
        if left_s < 10:
            results[part] = {"ok": False, "error": "left out: the time was up"}
        else:
            limit_s = LONG_S if asked.full and part.startswith("epochs") else min(PART_S, left_s)
            results[part] = carry_out(function, arguments, limit_s)
        print(f"{'ok    ' if results[part]['ok'] else 'FAILED'} {part}: {brief(results[part])}", flush=True)
        content["seconds"] = round(time.monotonic() - begun, 1)
        path = write_result(f"workloads_{slug}_{time.strftime('%Y-%m-%d')}", content, asked.out or RESULTS)
    print(f"written: {path}" if path else f"no part has {asked.only!r} in its name")
    return 0 if all(part["ok"] for part in results.values()) else 1


def brief(part: dict[str, Any]) -> str:
    """The result of one part in one line."""
    if "error" in part:
        return part["error"].splitlines()[-1] if part["error"] else "it ended without output"
    units = {
        "graphs_per_s": "graphs/s",
        "nodes_per_s": "nodes/s",
        "updates_per_s": "updates/s",
        "samples_per_s": "samples/s",
        "env_steps_per_s": "environment steps/s",
        "steps_per_s": "environment steps/s",
        "plies_per_s": "plies/s",
        "positions_per_s": "positions/s",
        "evaluations_per_s": "evaluations/s",
        "bare_forward_per_s": "of the bare forward pass",
        "seconds_5000_episodes": "s for 5,000 episodes of 252 days",
        "iteration_s": "s an iteration",
        "recovery_s": "s to recover",
        "hundred_epochs_s": "s for 100 epochs",
        "calls": "synchronising calls",
        "evaluation_s": "s an evaluation",
        "launches": "launches",
        "operations_on_the_cpu": "operations",
        "gpu_busy_share": "of the time the GPU works",
    }
    words = [f"{part['found'][key]:,.4g} {unit}" for key, unit in units.items() if part["found"].get(key) is not None]
    for batch, found in part["found"].get("batches", {}).items():
        words.append(f"{speed_of(found)} at {batch}")
    if "equal" in part["found"]:
        words.append("equal fingerprints" if part["found"]["equal"] else "fingerprints DIFFER")
    if "peak_memory_bytes" in part["found"]:
        words.append(f"peak {part['found']['peak_memory_bytes'] / 2**20:,.0f} MiB")
    if "making_the_graphs_s" in part["found"]:
        words.append(f"{sum(part['found']['making_the_graphs_s'].values()):,.4g} s")
    if "problems" in part["found"]:
        words += part["found"]["problems"] or ["no problems"]
    return ", ".join(words) or part["found"].get("left_out", "")


def speed_of(found: dict[str, Any]) -> str:
    """The speed at one batch size."""
    speeds = [f"{found[key]:,.4g} {unit}" for key, unit in BATCH_UNITS.items() if key in found]
    limit = f" ({found['limited_by']})" if "limited_by" in found else ""
    return ", ".join(speeds) + limit if speeds else "out of memory"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

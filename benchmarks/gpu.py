"""Measure the workloads on one GPU and write one JSON file: `python benchmarks/gpu.py` (8 minutes; `--budget SECONDS`
for more of the parts).

Run it in a clone. It needs torch, numpy and safetensors; the parts that start `ranks` also need
tyro and rich. If a package is missing, the script names it and leaves these parts out. Without a
GPU it says so and measures smaller cases on the CPU.

Each part runs in a separate process with a time limit. If one fails, its error is recorded and the
next part runs. The file is written after each part, so it also holds what was measured if the
script is killed. A call takes over the parts of the newest file of the same kind of device that it does not measure
again (`--only selfplay,video`); each part has its commit and date. Parts, in gpu_parts:

- updates.py: making the graphs; updates of graph-coloring with prepared batches (fp32, bf16,
  --exact, several batch sizes); its epochs without and its evaluation (5, on the CPU 1, from which
  100 are extrapolated; --full runs all 100, however long they take); synchronising calls in a step.
- device.py: number types under bf16; launches and the share of the time in which the GPU works.
- trading.py: steps of the stock-trading market, and training on 5,000 episodes (on the CPU
  extrapolated).
- selfplay.py: self-play of chess: evaluations/s by batch of four nets, plies/s end to end, busy
  share. With and without CUDA graphs.
- video.py: updates of video-behavior from a store on the device: clips/s at 17 x 256 x 256 by batch, memory, kernels,
  bytes of a clip, share of the copy bandwidth.
- value.py: updates of chess-value from a window of mapped files: positions/s of nnue, cnn and resnet by batch, of
  the device and of the host alone, memory; a cycle of `ranks train`.
- runs.py: the training loop of every workload; level L3 (4 ranks on one GPU compared with 1); all
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
from collections.abc import Callable, Container, Generator, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # for `python benchmarks/gpu.py`

from benchmarks.gpu_parts.plan import plan
from benchmarks.measure import RESULTS, environment, write_result

BUDGET_S = 460.0
"""Parts that would start later are left out; --budget changes it."""
LEAST_S = 10.0
"""Nor does a part start with less time than this."""
PART_S, LONG_S = 120.0, 4 * 3600.0
"""Time limits of a part, and of the epochs with --full."""
DEVICE_S = 60.0
"""Time limit of the search for a GPU."""
COMMAND_LINE = ("tyro", "rich")
BATCH_UNITS = {
    "clips_per_s": "clips/s",
    "positions_per_s": "positions/s",
    "device_positions_per_s": "of the device",
    "host_positions_per_s": "of the host",
}


class Part:
    """One part in a separate process. It imports what it needs at once, and begins when `run` is called."""

    def __init__(self, function: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="ranks-benchmark-")
        self._out = Path(self._folder.name, "found.json")
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--part", function, str(self._out)],
            env=environment(CUBLAS_WORKSPACE_CONFIG=":4096:8"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, arguments: dict[str, Any], limit_s: float) -> dict[str, Any]:
        """Its result, or its error."""
        start = time.perf_counter()
        try:
            output, _ = self._process.communicate(json.dumps(arguments), timeout=limit_s)
        except subprocess.TimeoutExpired:
            output = f"it took longer than {limit_s:.0f} s"
        finally:
            self.end()
        about = {"seconds": round(time.perf_counter() - start, 2), "arguments": arguments}
        with self._folder, suppress(OSError, ValueError):  # a part that was killed may have written half of it
            found = json.loads(self._out.read_text(encoding="utf-8"))
            return {"ok": not found.pop("failed", False), **about, "found": found}
        ended = f"it ended with exit code {self._process.returncode} and wrote no result"
        return {"ok": False, **about, "error": output.strip()[-2000:] or ended}

    def end(self) -> None:
        """End its process, whether it has run or not."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)  # nothing that it started outlives it
        self._process.wait()


def carry_out(
    parts: Sequence[tuple[str, dict[str, Any]]], limit_s: Callable[[int], float]
) -> Generator[dict[str, Any]]:
    """Run parts, one after the other. While one measures, the next one imports."""
    ready = [Part(parts[0][0])] if parts else []
    try:
        for index, (_, arguments) in enumerate(parts):
            ready += [Part(function) for function, _ in parts[index + 1 : index + 2]]
            yield ready.pop(0).run(arguments, limit_s(index))
    finally:
        for part in ready:
            part.end()


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


def earlier_parts(files: Sequence[Path], names: Container[str]) -> dict[str, Any]:
    """The parts of the newest file that have been measured, and that there still are."""
    for path in sorted(files)[-1:]:
        with suppress(OSError, ValueError):
            parts = json.loads(path.read_text(encoding="utf-8"))["parts"]
            return {
                name: {"date": path.stem[-10:], **part} for name, part in parts.items() if name in names and part["ok"]
            }
    return {}


def origin_or_error(command: str) -> dict[str, Any]:
    """`measure.origin`, found in a separate process: a GPU that a part has broken must not hide the other parts."""
    found = Part("benchmarks.measure:origin").run({}, DEVICE_S)
    if "found" not in found:
        return {"error": found["error"]}
    return {**found["found"], "command": command}


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, help="write the JSON into this folder instead of benchmarks/results")
    parser.add_argument("--full", action="store_true", help="all 100 epochs of graph-coloring, however long they take")
    parser.add_argument("--only", metavar="TEXT,...", default="", help="only parts whose name holds one of the texts")
    parser.add_argument("--budget", metavar="SECONDS", type=float, default=BUDGET_S, help="no part starts later")
    parser.add_argument("--part", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args(argv)
    if asked.part:
        module, _, name = asked.part[0].partition(":")
        function = getattr(import_module(module), name)
        arguments = json.loads(sys.stdin.read())
        Path(asked.part[1]).write_text(json.dumps(function(**arguments)), encoding="utf-8")
        return 0
    begun = time.monotonic()
    device, name = chosen_device()
    missing = [package for package in COMMAND_LINE if importlib.util.find_spec(package) is None]
    print(f"on {name}" if device != "cpu" else "no CUDA GPU found: measuring the CPU, smaller")
    if missing:
        print(f"{' and '.join(missing)} not installed: L3 and survive, which start `ranks` itself, are left out")
    folder, slug = asked.out or RESULTS, re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    today = time.strftime("%Y-%m-%d")
    every = plan(device, not missing, asked.full)
    results = earlier_parts([*folder.glob(f"workloads_{slug}_*.json")], {name for name, _, _ in every})
    path: Path | None = None
    only = ["--only", asked.only] if asked.only and not results else []  # a file of several calls names all parts
    command = " ".join(["python", "benchmarks/gpu.py", *only, *(["--full"] if asked.full else [])])
    content = {"origin": origin_or_error(command), "device": name, "missing_packages": missing, "parts": results}
    texts = asked.only.split(",")
    parts = [part for part in every if any(text in part[0] for text in texts)]

    def left_s() -> float:
        return asked.budget - (time.monotonic() - begun)

    def limit_s(index: int) -> float:
        if asked.full and parts[index][0].startswith("epochs"):
            return LONG_S
        return max(LEAST_S, min(PART_S, left_s()))

    found = carry_out([(function, arguments) for _, function, arguments in parts], limit_s)
    for part, _, _ in parts:
        if left_s() < LEAST_S:
            print(f"{part} and what follows: left out, the time was up")
            break
        results[part] = {**next(found), "commit": content["origin"].get("commit"), "date": today}
        print(f"{'ok    ' if results[part]['ok'] else 'FAILED'} {part}: {brief(results[part])}", flush=True)
        content["seconds"] = round(time.monotonic() - begun, 1)
        path = write_result(f"workloads_{slug}_{today}", content, folder)
    found.close()
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

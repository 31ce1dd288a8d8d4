"""Every workload on the GPU that is here, with proofs, in one JSON: `python benchmarks/gpu.py` (under 8 minutes).

Run it in a clone; it needs torch, numpy and safetensors, and for the parts that start `ranks` itself also tyro and
rich: what is missing is named and its parts are left out. Without a GPU it says so and measures the CPU, smaller.

Each part is a process of its own, so one that fails is written down and the rest goes on. Parts: updates of
graph-coloring with the data ready (fp32, bf16, --exact, several batch sizes), whole training loops of every workload,
synchronising calls in a step, level L3 (4 ranks on one card against 1), and a run that is killed once.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from measure import RESULTS, ROOT, environment, origin, write_result

BUDGET_S = 460.0
"""Parts that would begin after this are left out."""
PART_S = 120.0
"""No part may take longer."""
TOYS = {name: str(ROOT / "tests" / "toys" / f"{name}.py") for name in ("images", "cartpole", "tictactoe")}
WORKLOADS = {"graph-coloring": "graph-coloring", **TOYS}
COMMAND_LINE = ("tyro", "rich")
THREADS = 1
"""CPU threads of each rank, so that 1 and 4 ranks compute alike and a CPU's figures can be repeated."""


# The parts, each carried out by a process of its own ------------------------------------------------------------------


def coloring_updates(device: str, precision: str, batch: int, exact: bool) -> dict[str, Any]:
    """Updates of graph-coloring on batches that are on the device already; how long making one takes stands beside."""
    import torch

    from ranks import Learner, RunConfig, StepBatch, World, stream
    from ranks.workloads import load
    from ranks.workloads.graph_coloring.generators import GeneratedGraphs
    from ranks.workloads.graph_coloring.training import coloring_loss

    world = World.join(
        RunConfig(precision=precision, exact=exact, threads=THREADS), device=device, workload="graph-coloring"
    )
    cfg = load("graph-coloring").Config()
    graphs = stream(GeneratedGraphs(cfg.data, 0, "train", world.device), batch, world)
    learner = Learner(load("graph-coloring").build(cfg), cfg.optim.resolve(global_batch=batch, updates=10_000), world)
    loss = partial(coloring_loss, cfg=cfg, lead_in=cfg.lead_in // 2)
    start = time.perf_counter()
    ready = [(step, batches_of(step, exact)) for step in map(graphs.at, range(2))]
    data_s = (time.perf_counter() - start) / len(ready)
    nodes = statistics.mean(sum(len(g.node_graph_N) for part in parts for g in part) for _, parts in ready)

    def update(turn: int) -> None:
        step, parts = ready[turn % len(ready)]
        left = iter(parts)
        learner.step(loss, StepBatch(step.shards, lambda ids: next(left)))

    def wait() -> None:
        learner.drain()
        if world.device.type == "cuda":
            torch.cuda.synchronize()

    for turn in range(4):
        update(turn)
    wait()
    if world.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    blocks: list[float] = []
    begun, turn = time.perf_counter(), 0
    while len(blocks) < 3 or (time.perf_counter() - begun < 6.0 and len(blocks) < 50):
        start = time.perf_counter()
        for _ in range(4):
            update(turn)
            turn += 1
        wait()
        blocks.append((time.perf_counter() - start) / 4)
    update_s = statistics.median(blocks)
    return {
        "updates_per_s": 1 / update_s,
        "graphs_per_s": batch / update_s,
        "nodes_per_s": nodes / update_s,
        "update_s": {"median": update_s, "least": min(blocks), "most": max(blocks), "blocks_of_4": len(blocks)},
        "nodes_per_batch": nodes,
        "making_a_batch_s": data_s,
        "peak_memory_bytes": peak_memory_bytes(world),
    }


def batches_of(step: Any, exact: bool) -> list[Any]:
    """What the passes of a step will gather: one batch for each shard that holds items, or one for all."""
    pieces = [s.ids for s in step.shards if len(s.ids)] if exact else [step.shards.ids]
    return [step.gather(ids) for ids in pieces]


def peak_memory_bytes(world: Any) -> int:
    from ranks.engine.rows import peak_memory_bytes as measured

    return measured(world.device)


def training_loop(device: str, workload: str, iterations: int, precision: str) -> dict[str, Any]:
    """A workload's own loop, as `ranks train` runs it: data, updates, rows, evaluation, checkpoints."""
    from ranks import RunConfig, World
    from ranks.engine.journal import read_rows
    from ranks.workloads import load

    with tempfile.TemporaryDirectory(prefix="ranks-benchmark-") as folder:
        place = RunConfig(precision=precision, threads=THREADS, runs_dir=Path(folder), name="run")
        world = World.join(place, device=device, workload=workload)
        module = load(workload)
        config = replace(module.Config(), iterations=iterations)
        summary = module.train(replace(config, eval_graphs=8) if hasattr(config, "eval_graphs") else config, world)
        rows = read_rows(summary.folder / "metrics.jsonl")
        finished = [e for e in read_rows(summary.folder / "events.jsonl") if e["event"] == "finished"][-1]
    later = rows[len(rows) // 5 :]
    return {
        "iterations": len(rows),
        "iteration_s": statistics.median(row["time/iteration_s"] for row in later),
        "samples_per_s": statistics.median(row.get("time/samples_per_second", 0.0) for row in later),
        "time_split_s": finished["time_split"],
        "peak_memory_bytes": finished["peak_memory_bytes"],
        "metrics": summary.metrics,
    }


def synchronising_calls(device: str, workload: str) -> dict[str, Any]:
    """Where the host waited for the GPU within `Learner.step`, over 5 steps of graph-coloring with the data ready."""
    import torch

    from ranks import Learner, RunConfig, StepBatch, World, stream
    from ranks.workloads import load
    from ranks.workloads.graph_coloring.generators import GeneratedGraphs
    from ranks.workloads.graph_coloring.training import coloring_loss

    if not device.startswith("cuda"):
        return {"left_out": "only CUDA counts synchronising calls"}
    world = World.join(RunConfig(threads=THREADS), device=device, workload=workload)
    cfg = load(workload).Config()
    graphs = stream(GeneratedGraphs(cfg.data, 0, "train", world.device), 32, world)
    learner = Learner(load(workload).build(cfg), cfg.optim.resolve(global_batch=32, updates=100), world)
    loss = partial(coloring_loss, cfg=cfg, lead_in=cfg.lead_in // 2)
    step = graphs.at(0)
    whole = step.gather(step.shards.ids)
    batch = StepBatch(step.shards, lambda ids: whole)
    for _ in range(3):
        learner.step(loss, batch)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        for _ in range(5):
            learner.step(loss, batch)
        torch.cuda.set_sync_debug_mode("default")
    places = [f"{Path(w.filename).name}:{w.lineno}" for w in caught if "synchronizing CUDA" in str(w.message)]
    return {
        "steps": 5,
        "calls": len(places),
        "in_the_engine": sum("learner.py" in p or "vote.py" in p or "step.py" in p for p in places),
        "places": {place: places.count(place) for place in sorted(set(places))},
    }


# The parts that start `ranks` itself ----------------------------------------------------------------------------------


def ranks_train(workload: str, name: str, runs: Path, device: str, num_ranks: int, *more: str) -> subprocess.Popen[str]:
    """`python -m ranks train ... --exact`, as a user types it."""
    place = ["--gpus", f"{device.removeprefix('cuda:')},"] if device.startswith("cuda") else ["--gpus", "none"]
    command = ["train", workload, "--exact", "--ranks", str(num_ranks), *place, "--name", name, "--runs-dir", str(runs)]
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
    from ranks.engine.journal import read_rows

    try:
        output, _ = process.communicate(timeout=PART_S - 10)
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
            flags = ["--iterations", str(iterations), *([] if workload in TOYS.values() else ["--eval-graphs", "8"])]
            run = ranks_train(workload, name, Path(folder), device, num_ranks, *flags)
            found[f"ranks_{num_ranks}"] = end_of(run, Path(folder), name)
            seconds[f"ranks_{num_ranks}"] = time.perf_counter() - start
    equal = len(set(found.values())) == 1
    return {"iterations": iterations, "equal": equal, "fingerprints": found, "seconds": seconds, "failed": not equal}


def survives(device: str, workload: str, iterations: int) -> dict[str, Any]:
    """One of 2 ranks is killed after a checkpoint; the run must end as one that nobody touched."""
    with tempfile.TemporaryDirectory(prefix="ranks-benchmark-") as folder:
        runs = Path(folder)
        flags = ("--iterations", str(iterations), "--save-every", "5")
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
    held = killed == straight and rows == list(range(iterations))
    return {
        "equal": killed == straight,
        "each_iteration_once": rows == list(range(iterations)),
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
    """The process id of a rank (Linux). Raises RuntimeError."""
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            variables = path.read_bytes().split(b"\0")
            if f"RANKS_PARENT={launcher}".encode() in variables and f"RANK={rank}".encode() in variables:
                return int(path.parent.name)
    raise RuntimeError(f"no rank {rank} of launcher {launcher}")


# All of them ----------------------------------------------------------------------------------------------------------


def plan(device: str, command_line: bool) -> list[tuple[str, str, dict[str, Any]]]:
    """(name, function, arguments), the most important first."""
    gpu = device.startswith("cuda")
    parts: list[tuple[str, str, dict[str, Any]]] = []

    def add(name: str, function: Callable[..., Any], **arguments: Any) -> None:
        parts.append((name, function.__name__, {"device": device, **arguments}))

    def add_same_bits(name: str) -> None:
        if command_line:
            add(f"L3 {name}", same_bits, workload=WORKLOADS[name], iterations=4)

    add_same_bits("graph-coloring")
    if command_line:
        add("survive", survives, workload=TOYS["images"], iterations=400)
    add("synchronising calls", synchronising_calls, workload="graph-coloring")
    for batch in (32, 256, 1024) if gpu else (16, 32):
        for precision in ("fp32", "bf16"):
            add(f"updates {precision} {batch}", coloring_updates, precision=precision, batch=batch, exact=False)
    add("updates exact", coloring_updates, precision="fp32", batch=256 if gpu else 32, exact=True)
    for name, iterations in {"graph-coloring": 60 if gpu else 10, "images": 300, "cartpole": 6, "tictactoe": 6}.items():
        add(f"loop {name}", training_loop, workload=WORKLOADS[name], iterations=iterations, precision="fp32")
    for name in TOYS:
        add_same_bits(name)
    return parts


def carry_out(function: str, arguments: dict[str, Any], limit_s: float) -> dict[str, Any]:
    """One part in a process of its own: what it found, or how it failed."""
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
        if out.exists():
            found = json.loads(out.read_text(encoding="utf-8"))
            return {"ok": not found.pop("failed", False), **about, "found": found}
        return {"ok": False, **about, "error": output.strip()[-2000:]}


def chosen_device() -> tuple[str, str]:
    """The device and its name; asked in a process of its own, so that CUDA never starts in this one."""
    code = "import torch; print(torch.cuda.get_device_name(0) if torch.cuda.is_available() else '')"
    name = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip()
    return ("cuda:0", name) if name else ("cpu", "CPU")


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, help="write the JSON into this folder instead of benchmarks/results")
    parser.add_argument("--only", metavar="TEXT", help="only parts whose name holds TEXT")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    asked = parser.parse_args(argv)
    if asked.part:
        function, arguments, out = json.loads(asked.part)
        Path(out).write_text(json.dumps(globals()[function](**arguments)), encoding="utf-8")
        return 0
    begun = time.monotonic()
    device, name = chosen_device()
    missing = [package for package in COMMAND_LINE if importlib.util.find_spec(package) is None]
    print(f"on {name}" if device != "cpu" else "no CUDA GPU found: measuring the CPU, smaller")
    if missing:
        print(f"{' and '.join(missing)} not installed: L3 and survive, which start `ranks` itself, are left out")
    results: dict[str, Any] = {}
    for part, function, arguments in plan(device, not missing):
        if asked.only and asked.only not in part:
            continue
        left_s = BUDGET_S - (time.monotonic() - begun)
        if left_s < 10:
            results[part] = {"ok": False, "error": "left out: the time was up"}
        else:
            results[part] = carry_out(function, arguments, min(PART_S, left_s))
        print(f"{'ok    ' if results[part]['ok'] else 'FAILED'} {part}: {brief(results[part])}", flush=True)
    content = {
        "origin": origin(),
        "device": name,
        "missing_packages": missing,
        "seconds": round(time.monotonic() - begun, 1),
        "parts": results,
    }
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    path = write_result(f"workloads_{slug}_{time.strftime('%Y-%m-%d')}", content, asked.out or RESULTS)
    print(f"written: {path}")
    return 0 if all(part["ok"] for part in results.values()) else 1


def brief(part: dict[str, Any]) -> str:
    """One part in a few words."""
    if "error" in part:
        return part["error"].splitlines()[-1] if part["error"] else "it ended without a word"
    units = {
        "graphs_per_s": "graphs/s",
        "nodes_per_s": "nodes/s",
        "updates_per_s": "updates/s",
        "samples_per_s": "samples/s",
        "iteration_s": "s an iteration",
        "recovery_s": "s to recover",
        "calls": "synchronising calls",
    }
    words = [f"{part['found'][key]:,.4g} {unit}" for key, unit in units.items() if key in part["found"]]
    if "equal" in part["found"]:
        words.append("equal fingerprints" if part["found"]["equal"] else "fingerprints DIFFER")
    if "peak_memory_bytes" in part["found"]:
        words.append(f"peak {part['found']['peak_memory_bytes'] / 2**20:,.0f} MiB")
    return ", ".join(words) or part["found"].get("left_out", "")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

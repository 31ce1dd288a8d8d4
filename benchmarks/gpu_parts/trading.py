"""stock-trading on a device: steps of its market, and training for 5,000 episodes of 252 days with 10 epochs."""

from __future__ import annotations

import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from benchmarks.gpu_parts.updates import wait
from benchmarks.measure import THREADS
from ranks import RunConfig, World
from ranks.engine.files.jsonl import read_rows
from ranks.workloads.stock_trading.config import Config, demo
from ranks.workloads.stock_trading.data.periods import load_periods
from ranks.workloads.stock_trading.market.market import Market
from ranks.workloads.stock_trading.training import train

EPISODES, EPISODE_DAYS, GOAL_S = 5_000, 252, 60.0


def market_steps(device: str, accounts: int, steps: int) -> dict[str, Any]:
    """Environment steps per second of the market alone, with actions that are already on the device."""
    cfg = Config()
    market_device = torch.device(device)
    market = Market(load_periods(cfg.periods).train, range(accounts), 0, cfg.market, market_device)
    action_BS = torch.rand((accounts, market.num_stocks), device=device) * 2 - 1
    seconds = float("inf")
    for _ in range(2):  # the first pass warms up
        wait(market_device)
        start = time.perf_counter()
        for _ in range(steps):
            market.step(action_BS)
            market.observe()
        wait(market_device)
        seconds = time.perf_counter() - start
    return {"accounts": accounts, "steps_per_s": accounts * steps / seconds}


def episodes(device: str, precision: str) -> dict[str, Any]:
    """A whole training of the preset full, 5,120 episodes, as `ranks train` runs it, without the KL stop of epochs.

    On the CPU two rollouts of the preset demo, extrapolated and marked as such.
    """
    gpu = device.startswith("cuda")
    cfg = Config() if gpu else replace(demo(), ppo=replace(demo().ppo, epochs=10), iterations=3)
    cfg = replace(cfg, ppo=replace(cfg.ppo, target_kl=None))
    with tempfile.TemporaryDirectory(prefix="ranks-benchmark-") as folder:
        place = RunConfig(precision=precision, threads=THREADS, runs_dir=Path(folder), name="run")
        world = World.join(place, device=device, workload="stock-trading")
        summary = train(cfg, world)
        rows = read_rows(summary.folder / "metrics.jsonl")
        finished = [e for e in read_rows(summary.folder / "events.jsonl") if e["event"] == "finished"][-1]
    seconds = [row["time/iteration_s"] for row in rows][0 if gpu else 1 :]
    days = cfg.global_batch * cfg.n_steps
    rate = days * len(seconds) / sum(seconds)
    return {
        "episodes": days * len(rows) / EPISODE_DAYS,
        "steps_per_s": rate,
        "updates": sum(row["train/num_updates"] for row in rows),
        "seconds_5000_episodes": EPISODES * EPISODE_DAYS / rate,
        "extrapolated": not gpu,
        "goal_s_on_one_h200": GOAL_S,
        "peak_memory_bytes": finished["peak_memory_bytes"],
    }

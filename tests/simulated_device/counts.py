"""The work of one iteration on the simulated device: operations, copied bytes, and waits of the host.

    python -m tests.simulated_device.counts graph-coloring
    python -m tests.simulated_device.counts stock-trading '{"n_steps": 8}'     with other settings
    python -m tests.simulated_device.counts graph-batch                        256 graphs of the preset full
    python -m tests.simulated_device.counts ppo                                a rollout, an update, a backtest

An iteration is an update, or a rollout and its updates. Set-up and evaluation are not in the counts: a training of six
iterations is compared with one of two. Prints one line of JSON.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import torch

from ranks import Learner, RunConfig, World
from ranks.rl import ppo
from ranks.workloads import load
from ranks.workloads.graph_coloring.data.build.build import prepare
from ranks.workloads.graph_coloring.data.dataset_folder import load as load_graphs
from ranks.workloads.graph_coloring.net.device_graphs import DeviceGraphs
from ranks.workloads.stock_trading.data.periods import get_test_rows, load_periods, load_prices, resolve_dates
from ranks.workloads.stock_trading.market.market import Market
from ranks.workloads.stock_trading.policy.backtest import backtest
from ranks.workloads.stock_trading.policy.market_policy import MarketPolicy
from ranks.workloads.stock_trading.policy.preprocessing import market_days_for, set_preprocessing
from ranks.workloads.stock_trading.training import build, make_collector, read_training_days, trading_loss
from tests.simulated_device.device import DEVICE, Simulated, simulated
from tests.simulated_device.trainings import tiny

FEW, MORE = 2, 6
BATCHES, BATCH, GRAPHS = 7, 256, 2000
PPO_STEPS = 21


def work(mode: Simulated) -> dict[str, Counter[str]]:
    """What was counted so far."""
    return {
        "operations": Counter(mode.operations),
        "copied_bytes": Counter(mode.copied_bytes),
        "waits": Counter(mode.waits),
    }


def difference(after: Mapping[str, Counter[str]], before: Mapping[str, Counter[str]], times: int) -> dict[str, Any]:
    """The work between two moments, divided by `times`, and the number of all operations."""
    found = {
        kind: {name: (count - before[kind][name]) / times for name, count in after[kind].most_common()}
        for kind in after
    }
    found = {kind: {name: count for name, count in counts.items() if count} for kind, counts in found.items()}
    return {"all_operations": sum(found["operations"].values()), **found}


def of_an_iteration(workload: str, settings: dict[str, Any]) -> dict[str, Any]:
    """The work of one iteration of a small training."""
    found: list[dict[str, Counter[str]]] = []
    with simulated() as mode, tempfile.TemporaryDirectory() as folder:
        for number, iterations in enumerate((1, FEW, MORE)):  # the first training loads what later ones reuse
            run = RunConfig(threads=1, runs_dir=Path(folder), name=str(number))
            world = World.join(run, device=str(DEVICE), workload=workload)
            load(workload).train(tiny(workload, {**settings, "iterations": iterations}), world)
            world.leave()
            found.append(work(mode))
    few, more = ({kind: b[kind] - a[kind] for kind in b} for a, b in pairwise(found))
    return difference(more, few, MORE - FEW)


def of_a_batch_of_graphs() -> dict[str, Any]:
    """The work to build one batch, and the CPU milliseconds of the same on a CPU with one thread."""
    torch.set_num_threads(1)
    data = load("graph-coloring").PRESETS["full"]().data
    stored = load_graphs(prepare(replace(data, labels="bounds", train_graphs=GRAPHS), "train"))
    ids = torch.randperm(GRAPHS, generator=torch.Generator().manual_seed(0))[: BATCHES * BATCH].split(BATCH)
    on_cpu, times = DeviceGraphs(stored, 32, torch.device("cpu")), list[float]()
    for some in [*ids, *ids]:
        start = time.process_time()
        on_cpu.gather(some)
        times.append(1000 * (time.process_time() - start))
    with simulated() as mode:
        on_device = DeviceGraphs(stored, 32, DEVICE)
        before = work(mode)
        for some in ids:
            on_device.gather(some)
        return {"cpu_ms": sorted(times)[len(times) // 2], **difference(work(mode), before, len(ids))}


def of_ppo() -> dict[str, Any]:
    """The work of a rollout, of one of its updates, and of a backtest of stock-trading with 3 LSTMs, where ruin ends
    episodes at any step."""
    cfg = tiny("stock-trading", {"n_steps": PPO_STEPS, "global_batch": 32})
    cfg = replace(cfg, model=replace(cfg.model, kind="clstm"))
    cfg = replace(cfg, market=replace(cfg.market, ruin_fraction=0.9995, episode_days=PPO_STEPS + 7))
    with simulated() as mode:
        world = World.join(RunConfig(threads=1), device=str(DEVICE), workload="stock-trading")
        periods = load_periods(cfg.periods)
        market = partial(Market, periods.train, seed=0, config=cfg.market, device=world.device)
        policy = build(cfg)
        set_preprocessing(policy, periods)
        learner = Learner(policy, cfg.optim, world, global_batch=cfg.global_batch, updates=100)
        inputs = read_training_days(policy, periods.train, world)
        collector = make_collector(policy, inputs, market, cfg, world)
        loss = partial(trading_loss, cfg=cfg.ppo, inputs=inputs)
        found: dict[str, Any] = {"episode_ends": 0}
        for iteration in range(3):  # the first one sets things up
            moments = [work(mode)]
            rollout = collector.collect(MarketPolicy(policy, inputs), iteration)
            moments.append(work(mode))
            ppo.update(learner, loss, rollout, collector.ids, cfg.ppo, iteration)
            moments.append(work(mode))
            found["episode_ends"] = int(cast(Any, rollout.ended_TB).cpu_tensor.sum())
            found["rollout"] = difference(moments[1], moments[0], 1)
            found["update"] = difference(moments[2], moments[1], cfg.ppo.epochs * cfg.ppo.minibatches)
        prices = load_prices(cfg.data)
        rows = get_test_rows(resolve_dates(cfg.periods, prices), cfg.model.window, prices)
        days = market_days_for(policy, prices, rows, cfg.features)
        before = work(mode)
        ledger = backtest(policy, days, cfg.market, world.device, world)
        found["backtest"] = {"days": len(ledger.value_T), **difference(work(mode), before, 1)}
        world.leave()
    return found


if __name__ == "__main__":
    what, settings = sys.argv[1], json.loads(sys.argv[2]) if len(sys.argv) > 2 else {}
    measured = {"graph-batch": of_a_batch_of_graphs, "ppo": of_ppo}.get(what, partial(of_an_iteration, what, settings))
    print(json.dumps(measured()))

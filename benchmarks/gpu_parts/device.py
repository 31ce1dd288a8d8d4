"""What a device does in an update and in a PPO iteration: number types, kernel launches, and the share of the time in
which it works."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.gpu_parts.updates import Updates, wait
from benchmarks.measure import THREADS
from ranks import Learner, RunConfig, World
from ranks.engine.distributed.precision import autocast
from ranks.rl import ppo
from ranks.workloads.stock_trading.config import Config, demo
from ranks.workloads.stock_trading.data.periods import load_periods
from ranks.workloads.stock_trading.market.market import Market
from ranks.workloads.stock_trading.policy.market_policy import MarketPolicy
from ranks.workloads.stock_trading.training import build, make_collector, read_training_days, trading_loss

LAUNCHES = ("cudaLaunch", "cuLaunch", "cudaGraphLaunch", "cudaMemcpyAsync", "cudaMemsetAsync")
"""How the names of CUDA's calls begin that put work into a stream."""


class Trading:
    """stock-trading without its run folder: `iterate` collects a rollout and makes the updates from it."""

    def __init__(self, device: str, precision: str) -> None:
        cfg = Config() if device.startswith("cuda") else demo()
        self.cfg = cfg = replace(cfg, ppo=replace(cfg.ppo, epochs=2, target_kl=None))
        self.world = World.join(RunConfig(precision=precision, threads=THREADS), device=device, workload="trading")
        days = load_periods(cfg.periods).train
        market = partial(Market, days, seed=0, config=cfg.market, device=self.world.device)
        self.policy, updates = build(cfg), 1000 * cfg.ppo.epochs * cfg.ppo.minibatches
        self.learner = Learner(self.policy, cfg.optim, self.world, global_batch=cfg.global_batch, updates=updates)
        self.inputs = read_training_days(self.policy, days, self.world)
        self.collector = make_collector(self.policy, self.inputs, market, cfg, self.world)
        self.iteration = 0

    def iterate(self) -> None:
        rollout = self.collector.collect(MarketPolicy(self.policy, self.inputs), self.iteration)
        loss = partial(trading_loss, cfg=self.cfg.ppo, inputs=self.inputs)
        ppo.update(self.learner, loss, rollout, self.collector.ids, self.cfg.ppo, self.iteration)
        self.iteration += 1


def coloring_work(device: str, precision: str, batch: int) -> dict[str, Any]:
    """Of one update of graph-coloring with prepared batches."""
    updates = Updates(device, precision, batch, exact=False)

    def do() -> None:
        updates.update()
        updates.learner.drain()

    return work(do, updates.world.device, times=4)


def trading_work(device: str, precision: str) -> dict[str, Any]:
    """Of one iteration of stock-trading: a rollout and its updates."""
    trading = Trading(device, precision)
    found = work(trading.iterate, trading.world.device, times=1)
    ppo_config = trading.cfg.ppo
    return found | {"updates": ppo_config.epochs * ppo_config.minibatches, "rollout_steps": trading.cfg.n_steps}


def work(do: Callable[[], None], device: torch.device, times: int) -> dict[str, Any]:
    """Launches and busy time of one call of `do`. The profiler slows the host down, so the seconds come from calls
    without it."""
    gpu = device.type == "cuda"
    for _ in range(2):
        do()
    wait(device)
    start, start_cpu = time.perf_counter(), time.process_time()
    for _ in range(times):
        do()
    wait(device)
    wall_s, cpu_s = (time.perf_counter() - start) / times, (time.process_time() - start_cpu) / times
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if gpu else [])]
    with profile(activities=activities) as profiler:
        for _ in range(times):
            do()
        wait(device)
    events = list(profiler.events() or [])
    found: dict[str, Any] = {"wall_s": wall_s, "host_cpu_s": cpu_s, "profiled_calls": times}
    if not gpu:
        operations = sum(event.name.startswith("aten::") for event in events)
        return found | {"operations_on_the_cpu": operations / times, "gpu_busy_share": None}
    kernels = [e for e in events if e.device_type == DeviceType.CUDA and not getattr(e, "is_user_annotation", False)]
    busy_s = union_us([(e.time_range.start, e.time_range.end) for e in kernels]) / 1e6 / times
    launches = sum(event.name.startswith(LAUNCHES) for event in events)
    longest: defaultdict[str, float] = defaultdict(float)
    for event in kernels:
        longest[event.name] += (event.time_range.end - event.time_range.start) / 1e6 / times
    top = sorted(longest.items(), key=lambda item: -item[1])[:12]
    return found | {
        "launches": launches / times,
        "kernels_and_copies": len(kernels) / times,
        "gpu_busy_s": busy_s,
        "gpu_busy_share": busy_s / wall_s,
        "longest_kernels_s": {name[:120]: seconds for name, seconds in top},
    }


def union_us(spans: list[tuple[float, float]]) -> float:
    """The length of the union of spans (kernels of several streams may overlap)."""
    total, reached = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total


class Dtypes(TorchDispatchMode):
    """`of`: operation -> floating types of its tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.of: defaultdict[str, set[str]] = defaultdict(set)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        self.of[func._schema.name] |= {str(t.dtype) for t in tensors((args, found)) if t.is_floating_point()}
        return found


def tensors(tree: Any) -> Iterator[Tensor]:
    if isinstance(tree, Tensor):
        yield tree
    elif isinstance(tree, list | tuple):
        for part in tree:
            yield from tensors(part)


def dtypes(device: str) -> dict[str, Any]:
    """The number types under bf16: float16 nowhere, recurrent layers in float32, linear layers in bf16."""
    world = World.join(RunConfig(precision="bf16", threads=THREADS), device=device, workload="dtypes")
    found: dict[str, dict[str, list[str]]] = {}
    problems: list[str] = []
    for kind in (nn.LSTM, nn.GRU, nn.RNN):
        first, recurrent, last = (
            module.to(world.device) for module in (nn.Linear(64, 64), kind(64, 64), nn.Linear(64, 8))
        )
        with Dtypes() as seen:
            with autocast(world.config, world.device):
                hidden = recurrent(first(torch.randn(16, 32, 64, device=world.device)))[0]
                out = last(hidden)
            out.float().sum().backward()
        found[kind.__name__] = {name: sorted(types) for name, types in seen.of.items() if types != {"torch.float32"}}
        if any("torch.float16" in types for types in seen.of.values()):
            problems.append(f"{kind.__name__}: float16")
        if (hidden.dtype, out.dtype) != (torch.float32, torch.bfloat16):
            problems.append(f"{kind.__name__}: recurrent layer {hidden.dtype}, linear layer {out.dtype}")
    trading = Trading(device, "bf16")
    with Dtypes() as seen:
        trading.iterate()
    found["stock-trading"] = {name: sorted(types) for name, types in seen.of.items() if "torch.bfloat16" in types}
    if any("torch.float16" in types for types in seen.of.values()):
        problems.append("stock-trading: float16")
    return {"problems": problems, "not_float32": found, "failed": bool(problems)}

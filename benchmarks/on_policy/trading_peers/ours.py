"""Our side of trading.py: the training loop of stock-trading without a run folder."""

from __future__ import annotations

import time
from functools import partial

import torch
from task import KNOWN, Timed, print_result, read_task
from torch.utils.flop_counter import FlopCounterMode

from ranks.engine.config import RunConfig
from ranks.engine.distributed.world import World
from ranks.engine.update.learner import Learner
from ranks.rl import ppo
from ranks.workloads.stock_trading.data.periods import load_periods
from ranks.workloads.stock_trading.market.market import Market
from ranks.workloads.stock_trading.policy.market_policy import MarketPolicy
from ranks.workloads.stock_trading.policy.preprocessing import set_preprocessing
from ranks.workloads.stock_trading.tables.known_answers import policy_sharpe
from ranks.workloads.stock_trading.training import build, make_collector, read_training_days, trading_loss

MATRIX, PRODUCTS = 1024, 20


def main() -> None:
    task = read_task()
    cfg = task.config()
    world = World.join(RunConfig(seed=task.seed, threads=1), device="cpu", workload="benchmark")
    periods = load_periods(cfg.periods)
    markets: list[Timed] = []

    def make(ids: range) -> Timed:
        markets.append(Timed(Market(periods.train, ids, world.seed, cfg.market)))
        return markets[-1]

    policy = build(cfg)
    set_preprocessing(policy, periods)
    learner = Learner(policy, cfg.optim, world, global_batch=cfg.global_batch, updates=1)
    inputs = read_training_days(policy, periods.train, world)
    collector = make_collector(policy, inputs, make, cfg, world)
    loss = partial(trading_loss, cfg=cfg.ppo, inputs=inputs)

    def learn(iteration: int) -> None:
        rollout = collector.collect(MarketPolicy(policy, inputs), iteration)
        ppo.update(learner, loss, rollout, collector.ids, cfg.ppo, iteration)

    learn(0)
    start, markets[0].spent_s = time.process_time(), 0.0
    for iteration in range(1, cfg.iterations):
        learn(iteration)
    cpu_s, environment_s = time.process_time() - start, markets[0].spent_s
    score = policy_sharpe(policy, cfg.periods, cfg.market) if task.source in KNOWN else None
    with FlopCounterMode(display=False) as counter:
        learn(cfg.iterations)
    print_result(
        steps=task.iterations * task.samples,
        cpu_s=cpu_s,
        updates=task.updates,
        parameters=sum(p.numel() for p in policy.parameters()),
        environment_s=environment_s,
        score=score,
        product_flops=counter.get_total_flops() * task.iterations,
        peak_flops_per_s=peak_flops_per_s(),
    )


def peak_flops_per_s() -> float:
    """Floating-point operations a CPU second of large float32 matrix products with one thread: the best of some."""
    a, b = torch.randn(2, MATRIX, MATRIX)
    best = 0.0
    for _ in range(PRODUCTS):
        start = time.process_time()
        torch.mm(a, b)
        best = max(best, 2 * MATRIX**3 / (time.process_time() - start))
    return best


if __name__ == "__main__":
    main()

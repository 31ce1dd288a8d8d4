"""Our side of trading_recurrent_ppo.py: the training loop of stock-trading without a run folder."""

from __future__ import annotations

import time
from functools import partial

import torch
from task import Timed, print_result, read_task

from ranks.engine.config import RunConfig
from ranks.engine.distributed.world import World
from ranks.engine.update.learner import Learner
from ranks.rl import ppo
from ranks.rl.collector import Collector
from ranks.workloads.stock_trading.data.periods import load_periods
from ranks.workloads.stock_trading.market.market import Market
from ranks.workloads.stock_trading.policy.market_policy import MarketPolicy
from ranks.workloads.stock_trading.policy.preprocessing import set_preprocessing
from ranks.workloads.stock_trading.tables.known_answers import policy_sharpe
from ranks.workloads.stock_trading.training import build, trading_loss


def main() -> None:
    task = read_task()
    cfg = task.config()
    world = World.join(RunConfig(seed=task.seed, threads=task.threads), device="cpu", workload="benchmark")
    periods = load_periods(cfg.periods)
    days = periods.train
    markets: list[Timed] = []

    def make(ids: range) -> Timed:
        markets.append(Timed(Market(days, ids, world.seed, cfg.market)))
        return markets[-1]

    policy, table_DK = build(cfg), torch.as_tensor(days.table_DK)
    set_preprocessing(policy, periods.stats)
    learner = Learner(policy, cfg.optim, world, global_batch=cfg.global_batch, updates=1)
    collector = Collector(MarketPolicy(policy, table_DK), make, cfg.global_batch, cfg.n_steps, cfg.ppo, world)
    loss = partial(trading_loss, cfg=cfg.ppo, table_DK=table_DK)
    start = time.perf_counter()
    for iteration in range(cfg.iterations):
        if iteration == 1:
            start, markets[0].spent_s = time.perf_counter(), 0.0
        rollout = collector.collect(MarketPolicy(policy, table_DK), iteration)
        ppo.update(learner, loss, rollout, collector.ids, cfg.ppo, iteration)
    seconds, updates = time.perf_counter() - start, learner.updates * task.iterations // cfg.iterations
    steps = task.iterations * cfg.n_steps * cfg.global_batch
    score = policy_sharpe(policy, cfg.periods, cfg.market) if task.source == "mean-reverting" else None
    parameters = sum(p.numel() for p in policy.parameters())
    env_s = markets[0].spent_s
    print_result(steps=steps, seconds=seconds, updates=updates, parameters=parameters, environment_s=env_s, score=score)


if __name__ == "__main__":
    main()

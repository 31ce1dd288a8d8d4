"""Our side of trading_recurrent_ppo.py: the loop of stock-trading, without a run folder."""

from __future__ import annotations

import time
from functools import partial

import torch
from task import Timed, begin, tell

from ranks.engine.config import RunConfig
from ranks.engine.distributed.world import World
from ranks.engine.update.learner import Learner
from ranks.rl import ppo
from ranks.rl.collector import Collector
from ranks.workloads.stock_trading.carried import carry
from ranks.workloads.stock_trading.loading import load
from ranks.workloads.stock_trading.market.market import Market
from ranks.workloads.stock_trading.on_market import OnMarket
from ranks.workloads.stock_trading.tables.known_answers import sharpe_of
from ranks.workloads.stock_trading.training import build, trading_loss


def main() -> None:
    task = begin()
    cfg = task.config()
    world = World.join(RunConfig(seed=task.seed, threads=task.threads), device="cpu", workload="benchmark")
    periods = load(cfg)
    days = periods.train
    markets: list[Timed] = []

    def make(ids: range) -> Timed:
        markets.append(Timed(Market(days, ids, world.seed, cfg.market)))
        return markets[-1]

    policy, table_DK = build(cfg), torch.as_tensor(days.table_DK)
    carry(policy, periods.fitted)
    learner = Learner(policy, cfg.optim, world, global_batch=cfg.global_batch)
    collector = Collector(OnMarket(policy, table_DK), make, cfg.global_batch, cfg.horizon, cfg.ppo, world)
    loss = partial(trading_loss, cfg=cfg.ppo, table_DK=table_DK)
    start = time.perf_counter()
    for iteration in range(cfg.iterations):
        if iteration == 1:
            start, markets[0].spent_s = time.perf_counter(), 0.0
        rollout = collector.collect(OnMarket(policy, table_DK), iteration)
        ppo.update(learner, loss, rollout, collector.ids, cfg.ppo, iteration)
    seconds, updates = time.perf_counter() - start, learner.updates * task.iterations // cfg.iterations
    steps = task.iterations * cfg.horizon * cfg.global_batch
    score = sharpe_of(policy, cfg) if task.source == "mean-reverting" else None
    parameters = sum(p.numel() for p in policy.parameters())
    env_s = markets[0].spent_s
    tell(steps=steps, seconds=seconds, updates=updates, parameters=parameters, environment_s=env_s, score=score)


if __name__ == "__main__":
    main()

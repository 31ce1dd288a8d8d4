"""Rollouts of a small policy in a small market."""

from __future__ import annotations

import numpy as np
import torch

from ranks.rl.collector import Collector
from ranks.rl.config import PPOConfig
from ranks.rl.rollouts.rollout import Rollout
from ranks.workloads.stock_trading.data import synthetic
from ranks.workloads.stock_trading.data.market_days import MarketDays
from ranks.workloads.stock_trading.market.config import MarketConfig
from ranks.workloads.stock_trading.market.market import Market
from ranks.workloads.stock_trading.policy.market_policy import MarketPolicy
from ranks.workloads.stock_trading.policy.trading_policy import MarketInputs, TradingPolicy
from tests.rl.fixtures import single_rank


def collected(
    kind: str, n_steps: int, episode_days: int, iterations: int
) -> tuple[TradingPolicy, MarketInputs, Rollout]:
    """(policy in float64, its inputs from the market, the last of `iterations` rollouts of 8 accounts)."""
    torch.manual_seed(0)
    made = synthetic.martingale(200, 2, 3)
    table_DK = np.random.default_rng(0).standard_normal((200, 5)).astype(np.float32)
    is_turbulent_D = np.zeros(200, bool)
    days = MarketDays(made.dates_D, made.tickers, made.close_DS, made.fill_DS(), table_DK, is_turbulent_D, 10)
    cfg = MarketConfig(episode_days=episode_days)
    policy = TradingPolicy(2, 5, 4, kind, window=10, stride=7, feature_hidden=8, hidden=8).double()
    inputs = policy.read(torch.as_tensor(table_DK, dtype=torch.float64))
    with single_rank(precision="fp64") as world:
        collector = Collector(
            MarketPolicy(policy, inputs), lambda ids: Market(days, ids, 0, cfg), 8, n_steps, PPOConfig(), world
        )
        rollouts = [collector.collect(MarketPolicy(policy, inputs), iteration) for iteration in range(iterations)]
    return policy, inputs, rollouts[-1]

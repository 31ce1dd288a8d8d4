"""Backtest a policy: one account through a period, for evaluation, backtests and reports."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from ranks.engine.distributed.world import World
from ranks.engine.update.evaluate import eval_mode
from ranks.workloads.stock_trading.data.market_days import MarketDays
from ranks.workloads.stock_trading.market.config import MarketConfig
from ranks.workloads.stock_trading.market.ledger import Ledger
from ranks.workloads.stock_trading.market.market import Market
from ranks.workloads.stock_trading.market.simulate import simulate
from ranks.workloads.stock_trading.policy.market_policy import MarketPolicy
from ranks.workloads.stock_trading.policy.trading_policy import TradingPolicy


def backtest(
    policy: TradingPolicy, days: MarketDays, config: MarketConfig, device: torch.device, world: World | None = None
) -> Ledger:
    """The ledger of one account that trades a whole period with the policy.

    It takes the most likely action each day and reads exactly `window` days, as `TradingPolicy.forward` does. It starts
    with cash and, where the policy has one, a zero LSTM state. `world` gives the precision of a run.
    """
    market = Market(days, range(1), 0, replace(config, episode_days=None), device)
    market_policy, state = MarketPolicy(policy, policy.read(market.table_DF, stride=1)), policy.start_state(1)

    def act(obs: dict[str, Tensor]) -> Tensor:
        nonlocal state
        distribution, _, state = market_policy.act(obs, state)
        return distribution.mode()

    with eval_mode(policy, world):
        return simulate(market, act)

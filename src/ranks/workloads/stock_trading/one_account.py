"""One account that a policy trades through a period: what evaluation, backtests and reports share."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from ranks.engine.distributed.world import World
from ranks.engine.update.evaluate import eval_mode
from ranks.workloads.stock_trading.config import Config
from ranks.workloads.stock_trading.market.days import Days
from ranks.workloads.stock_trading.market.ledger import Ledger
from ranks.workloads.stock_trading.market.market import Market
from ranks.workloads.stock_trading.market.metrics import summary
from ranks.workloads.stock_trading.market.replay import replay
from ranks.workloads.stock_trading.on_market import OnMarket
from ranks.workloads.stock_trading.policy import TradingPolicy


def backtest(
    policy: TradingPolicy, days: Days, cfg: Config, device: torch.device, world: World | None = None
) -> Ledger:
    """The books of one account that takes the likeliest action each day, from exactly `window` days, as `forward` of an
    export does; it begins with cash and no memory. `world`: for the run's precision."""
    market = Market(days, range(1), 0, replace(cfg.market, episode_days=None), device)
    on_market, state = OnMarket(policy, market.table_DF, stride=1), policy.start_state(1)

    def act(obs: dict[str, Tensor]) -> Tensor:
        nonlocal state
        distribution, _, state = on_market.act(obs, state)
        return distribution.mode()

    with eval_mode(policy, world):
        return replay(market, act)


def measures(ledger: Ledger) -> dict[str, float]:
    """By name, as `metrics.summary` gives them."""
    return summary(ledger.value_T, ledger.notional_T, ledger.fee_T)

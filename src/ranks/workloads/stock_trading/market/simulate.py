"""Simulate one account over a period and return its ledger: the market of training, used for backtests.

Legend: T days of the ledger, B = 1 environment, S stocks.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from ranks.workloads.stock_trading.market.ledger import Ledger
from ranks.workloads.stock_trading.market.market import Market

Act = Callable[[dict[str, Tensor]], Tensor]
"""Observation -> actions [1, S]; called once for each day, in order."""


def simulate(market: Market, act: Act) -> Ledger:
    """Run the next episode of a market with one environment, to its end or to ruin, and return the ledger.

    With `episode_days` None the episode is the whole period. The days after ruin are computed too and left out, so that
    the host waits for the device only at the end. ValueError for a market of several environments.
    """
    if market.num_environments != 1:
        raise ValueError(f"a market of {market.num_environments} environments")
    market.reset()
    days, config = market.days, market.config
    first = int(market.start_day_B[0])
    cash, shares, value = [market.cash_B], [market.shares_BS], [market.value_B]
    for _ in range(market.episode_days):
        market.advance(act(market.observe()))
        cash.append(market.cash_B)
        shares.append(market.shares_BS)
        value.append(market.value_B)
    cash_T, shares_TS, value_T = (torch.cat(parts).cpu().numpy() for parts in (cash, shares, value))
    ruined_T = value_T[1:] <= config.ruin_fraction * config.initial_cash
    num_days = 2 + int(ruined_T.argmax()) if ruined_T.any() else len(value_T)
    cash_T, shares_TS, value_T = cash_T[:num_days], shares_TS[:num_days], value_T[:num_days]
    rows = slice(first, first + num_days)
    traded_TS = np.diff(shares_TS, axis=0, prepend=shares_TS[:1])
    fill_TS = np.full_like(shares_TS, np.nan)
    fill_TS[1:] = market.fill_DS.cpu().numpy()[rows][:-1]
    price_TS = fill_TS * (1 + np.sign(traded_TS) * config.slippage)
    commission_T = np.where(traded_TS != 0, np.abs(traded_TS) * price_TS, 0.0).sum(1) * config.commission
    dates_T, close_TS = days.dates_D[rows], days.close_DS[rows]
    return Ledger(dates_T, days.tickers, cash_T, shares_TS, close_TS, price_TS, commission_T, value_T)

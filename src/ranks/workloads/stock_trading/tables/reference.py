"""Reference values that any correct backtest of the shipped prices gives: 2016-01-04 to 2020-05-08, 1,095 days."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ranks.workloads.stock_trading.data import sp500
from ranks.workloads.stock_trading.data.prices import Floats
from ranks.workloads.stock_trading.data.turbulence import turbulence
from ranks.workloads.stock_trading.market import baselines
from ranks.workloads.stock_trading.market.config import MarketConfig
from ranks.workloads.stock_trading.market.metrics import cagr, cumulative_return, max_drawdown, sharpe, volatility

FIRST, LAST = "2016-01-04", "2020-05-08"
TRAIN = ("2009-01-02", "2015-10-01")
MEASURES = (cumulative_return, cagr, volatility, sharpe, max_drawdown)
FREE = MarketConfig(cost_bps=0.0, whole_shares=False)
PRINTED = {
    "buy and hold, equal weights, no cost": (1.6342, 0.2500, 0.2321, 1.0781, -0.3065),
    "equal weights every 21 days, 10 bp": (0.8953, 0.1587, 0.1971, 0.8459, -0.3161),
    "the S&P 500": (0.4557, 0.0903, 0.1924, 0.5463, -0.3392),
}
"""Return, CAGR, volatility, Sharpe ratio, maximum drawdown; computed apart from this code, to four digits."""
TURBULENT = {0.9: (42.18, 153), 0.99: (91.70, 41), 1.0: (267.57, 5)}
"""Quantile of the training days -> the turbulence there, and test days above it."""


@dataclass(frozen=True)
class Row:
    what: str
    found: str
    bar: str
    passed: bool


def reference_rows() -> list[Row]:
    """One row for each line of reference values."""
    stocks, index = sp500.stocks(), sp500.index()
    rows = stocks.rows(FIRST, LAST)
    costly = replace(FREE, cost_bps=10.0)
    values: dict[str, Floats] = {
        "buy and hold, equal weights, no cost": baselines.buy_and_hold(stocks, rows, FREE).value_T[1:],
        "equal weights every 21 days, 10 bp": baselines.equal_weight(stocks, rows, costly).value_T[1:],
        "the S&P 500": baselines.buy_and_hold(index, index.rows(FIRST, LAST), FREE).value_T[1:],
    }
    out: list[Row] = []
    for name, value_T in values.items():
        found = tuple(round(measure(value_T), 4) for measure in MEASURES)
        out.append(Row(name, _text(found), _text(PRINTED[name]), found == PRINTED[name]))
    turbulence_D, train = turbulence(stocks.close_DS), stocks.rows(*TRAIN)
    for quantile, (limit, above) in TURBULENT.items():
        level = float(np.quantile(turbulence_D[train.start : train.stop], quantile))
        days = int((turbulence_D[rows.start : rows.stop] > level).sum())
        name = f"turbulence, quantile {quantile:g} of the training days"
        passed = (round(level, 2), days) == (limit, above)
        out.append(Row(name, f"{level:.2f}, {days} test days above", f"{limit:.2f}, {above} test days above", passed))
    return out


def _text(numbers: tuple[float, ...]) -> str:
    return " ".join(f"{number:.4f}" for number in numbers)
